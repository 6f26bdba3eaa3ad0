"""Why: whoever waits should see that something happens; only on a terminal, and never mixed with the output."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator

import click

from corral.cli.output import span


@contextlib.contextmanager
def upload_bar(size: int, label: str) -> Iterator[Callable[[int], None]]:
    """A bar for `size` bytes; the function given takes the bytes so far. Nothing is drawn off a terminal."""
    if not sys.stderr.isatty():
        yield lambda done: None
        return
    with click.progressbar(length=size, label=label, file=sys.stderr) as bar:
        yield lambda done: bar.update(done - bar.pos)


class StatusLine:
    """One line on the terminal that is written over, for waits."""

    def __init__(self) -> None:
        self._shown = False
        self._terminal = sys.stderr.isatty()

    def tell(self, text: str) -> None:
        """Show `text` in place of the line before; off a terminal nothing."""
        if self._terminal:
            click.echo("\r\x1b[2K" + text[: _width() - 1], nl=False, err=True)
            self._shown = True

    def clear(self) -> None:
        """Leave an empty line behind."""
        if self._shown:
            click.echo("\r\x1b[2K", nl=False, err=True)
            self._shown = False


def waited(seconds: float) -> str:
    """How long one has waited, for a status line."""
    return f"({span(seconds)})"


def _width() -> int:
    import shutil

    return shutil.get_terminal_size().columns
