"""Progress bars and status lines, shown on standard error of a terminal only."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

import click

from corral.cli.output import span

if TYPE_CHECKING:
    from corral.client.schema import WhatIfProgress

_BAR: Final = 20
"""Characters of a bar."""


@contextlib.contextmanager
def progress_bar(size: int, label: str) -> Iterator[Callable[[int], None]]:
    """Show a bar; the yielded function takes how many of `size` are done. Without a terminal, show nothing."""
    if not sys.stderr.isatty():
        yield lambda done: None
        return
    with click.progressbar(length=size, label=label, file=sys.stderr) as bar:
        yield lambda done: bar.update(done - bar.pos)


class StatusLine:
    """A status line that is overwritten during waits, with the elapsed time at its start, updated each second."""

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        self._begun = time.monotonic()
        self._text = ""
        self._lock = threading.Lock()
        self._ended = threading.Event()
        if self._terminal:
            threading.Thread(target=self._tick, daemon=True).start()

    def tell(self, text: str) -> None:
        """Show `text` instead of the previous line; without a terminal, show nothing."""
        with self._lock:
            self._text = text
        self._draw()

    def clear_line(self) -> None:
        """Clear the line, so that something else can be printed; the next `tell` shows it again."""
        with self._lock:
            shown, self._text = self._text, ""
        if shown and self._terminal:
            click.echo("\r\x1b[2K", nl=False, err=True)

    def clear(self) -> None:
        """Clear the line and end the updates."""
        with self._lock:
            shown, self._text = self._text, ""
        self._ended.set()
        if shown and self._terminal:
            click.echo("\r\x1b[2K", nl=False, err=True)

    def _tick(self) -> None:
        while not self._ended.wait(1.0):
            self._draw()

    def _draw(self) -> None:
        with self._lock:
            if self._text and self._terminal and not self._ended.is_set():
                line = f"({span(time.monotonic() - self._begun)}) {self._text}"
                click.echo("\r\x1b[2K" + line[: _width() - 1], nl=False, err=True)


@contextlib.contextmanager
def question_bar() -> Iterator[Callable[[WhatIfProgress], None]]:
    """Show a bar for a what-if question; the yielded function takes its progress. Without a terminal, show nothing."""
    line = StatusLine()
    try:
        yield lambda progress: line.tell(progress_text(progress))
    finally:
        line.clear()


def progress_text(progress: WhatIfProgress) -> str:
    """Return a bar, the percentage and the sentence of a question's progress."""
    done = round(_BAR * progress["fraction"])
    return f"[{'#' * done}{'-' * (_BAR - done)}] {progress['fraction']:4.0%}  {progress['says']}"


def _width() -> int:
    import shutil

    return shutil.get_terminal_size().columns
