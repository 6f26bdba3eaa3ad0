"""The formats of traces by name; an installed package adds one by the group `corral.trace_readers`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from corral.kernel.errors import InvalidInput
from corral.kernel.plug_ins import load, plug_ins
from corral.sim.machines import Site
from corral.sim.trace import MOST_CHARACTERS, Reader, TraceJob
from corral.sim.traces import gavel, journal, muri, openb, philly, plain, pollux, shockwave, slurm
from corral.sim.traces.throughputs import by_duration, by_throughput

GROUP: Final = "corral.trace_readers"
"""The entry-point group of readers."""


class Format(NamedTuple):
    """One format and how it is read."""

    reader: Reader
    fits: Callable[[str], bool] = lambda first: False
    """Whether a trace whose first line begins like this has the format."""
    profiled: Callable[[Path], Reader] | None = None
    """Returns the reader that takes durations from a file or folder of profiles; raises InvalidInput or NotFound."""
    most_characters: int = MOST_CHARACTERS
    """The most characters of a line."""
    of_bytes: Callable[[BinaryIO], Iterator[tuple[int, TraceJob | str]]] | None = None
    """Reads a file that has no lines, in place of the reader."""
    site: Callable[[BinaryIO], Site] | None = None
    """Returns the machines and documents that such a file names too; raises InvalidInput."""


FORMATS: Final[dict[str, Format]] = {
    "plain": Format(plain.read_plain, plain.COLUMNS.fit),
    "muri": Format(muri.read_muri, muri.COLUMNS.fit),
    "philly": Format(philly.read_philly, philly.COLUMNS.fit),
    "slurm": Format(slurm.read_slurm, slurm.COLUMNS.fit),
    "gavel": Format(by_duration(gavel.gavel_jobs), gavel.fits, partial(by_throughput, gavel.gavel_jobs)),
    "shockwave": Format(
        by_duration(shockwave.shockwave_jobs), shockwave.fits, partial(by_throughput, shockwave.shockwave_jobs)
    ),
    "pollux": Format(pollux.read_pollux, pollux.COLUMNS.fit, pollux.pollux_with),
    "openb": Format(openb.read_openb, openb.COLUMNS.fit),
    "journal": Format(journal.read_lines, journal.fits, of_bytes=journal.read_journal, site=journal.read_site),
}
"""The built-in formats by name."""


def find_format(name: str) -> Format:
    """Return the format of this name, built in or installed.

    Raises InvalidInput if there is none, or if it cannot be loaded.
    """
    if name in FORMATS:
        return FORMATS[name]
    points = plug_ins(GROUP)
    if name not in points:
        known = ", ".join(format_names())
        raise InvalidInput("unknown-trace-format", f'There is no trace format "{name}"; choose one of {known}.')
    return _loaded(points[name])


def format_names() -> list[str]:
    """Return the names of all formats, in order."""
    return sorted({*FORMATS, *plug_ins(GROUP)})


def _loaded(point: EntryPoint) -> Format:
    """Return what an entry point names: a Format, or a Reader that fits no first line."""
    found: Format | Reader = load(point, "trace format", lambda found: found)
    return found if isinstance(found, Format) else Format(found)


def find_reader(name: str, profiles: Path | None = None) -> Reader:
    """Return the reader of a format, with a file or folder of profiles if there is one.

    Raises InvalidInput if there is no such format, if it cannot be loaded, or if it uses no profiles; InvalidInput or
    NotFound for the profiles.
    """
    found = find_format(name)
    if profiles is None:
        return found.reader
    if found.profiled is None:
        raise InvalidInput("no-profiles", f"Traces of the format {name} are read without profiles.")
    return found.profiled(profiles)


def format_of(first: str) -> str | None:
    """Return the format that the first line of a trace fits, built-in ones first; None if none fits.

    Raises InvalidInput if an installed format cannot be loaded.
    """
    found = next((name for name, each in FORMATS.items() if each.fits(first)), None)
    return found or next((name for name, point in plug_ins(GROUP).items() if _loaded(point).fits(first)), None)
