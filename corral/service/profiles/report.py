"""The report of a profile, and the archive of its files. Worker processes run this, as traces are long."""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from corral.kernel.errors import InvalidInput, NotFound
from corral.model.profiles import (
    MemoryHolder,
    ProfileAdvice,
    ProfileComparison,
    ProfileCurve,
    ProfileDifference,
    ProfileFile,
    ProfileFrame,
    ProfileFunction,
    ProfilePathPart,
    ProfilePlace,
    ProfileReport,
    ProfileTop,
    RankCurves,
    RankMemory,
    RankTimeline,
    RankTimes,
)
from corral.profiles.advice import Given, advise, memory_slack
from corral.profiles.comparison import differences
from corral.profiles.critical_path import critical_path
from corral.profiles.folded import Function, frames, functions
from corral.profiles.kinds import FLAMES, TRACES, Good, file_of, flames_of, stacks_of, tree_of
from corral.profiles.memory import Holder, MemoryReport
from corral.profiles.stacks import places
from corral.profiles.system import SystemReport
from corral.profiles.system_advice import advise_system
from corral.profiles.taken import Taken
from corral.profiles.trace_report import PARTS, RankReport, Top, imbalance

REPORT: Final = "report.json"
_FUNCTIONS: Final = 100
_FRAMES: Final = 3_000
_MOST_MEMBER: Final = 128 * 1024**2
_WORDS: Final = ("computing", "exposed communication", "copies", "waits for data", "idle")
"""The parts of a rank's time as people call them."""
_READ_REPORT: Final = msgspec.json.Decoder(ProfileReport)


def report_of(what: str, good: Good, job: str, given: Mapping[str, Given] | None = None) -> tuple[bytes, bytes]:
    """The report as JSON, and the flame graph as SVG, empty where the kind has none; `given` is what each task has."""
    ranks = tuple(taken.rank for taken, _ in good)
    report = ProfileReport(what=what, ranks=ranks, **_PARTS[what](good, job, given or {}))
    return msgspec.json.encode(report), flames_of(good, job).encode() if report.frames else b""


def _places(good: Good, _: str, __: Mapping[str, Given]) -> dict[str, Any]:
    found = places((each.rank, stacks) for each, stacks in good)
    return {
        "places": tuple(
            ProfilePlace(place.stack.thread, place.stack.active, place.stack.frames, place.ranks) for place in found
        )
    }


def _functions(good: Good, job: str, _: Mapping[str, Given]) -> dict[str, Any]:
    every: list[Function] = functions(each for _, found in good for each in stacks_of(found))
    samples = sum(each.samples for _, found in good for each in stacks_of(found))
    return {
        "samples": samples,
        "functions": tuple(ProfileFunction(*each) for each in every[:_FUNCTIONS]),
        "frames": tuple(ProfileFrame(*each) for each in frames(tree_of(good, job), _FRAMES)) if samples else (),
    }


def _memory(good: Good, job: str, given: Mapping[str, Given]) -> dict[str, Any]:
    peaks: Counter[str] = Counter()
    for taken, found in good:
        peaks[taken.task] += found.peak * 1024
    return {
        **_functions(good, job, given),
        "memory": tuple(_rank_memory(found) for _, found in good),
        "curves": tuple(_curves(found) for _, found in good),
        "advice": tuple(ProfileAdvice(*each) for each in memory_slack(peaks, given)),
    }


def _system(good: Good, _: str, given: Mapping[str, Given]) -> dict[str, Any]:
    ranks: list[SystemReport] = [found for _, found in good]
    return {
        "curves": tuple(map(_curves, ranks)),
        "advice": tuple(ProfileAdvice(*each) for each in advise_system(ranks, given)),
    }


def _rank_memory(found: MemoryReport) -> RankMemory:
    sizes = (found.used * 1024, found.peak * 1024, found.grown * 1024, found.kept * 1024)
    return RankMemory(found.rank, *sizes, _holders(found.holders), _holders(found.names))


def _holders(found: Iterable[Holder]) -> tuple[MemoryHolder, ...]:
    return tuple(MemoryHolder(each.kind, each.name, each.before * 1024, each.after * 1024) for each in found)


def _curves(found: MemoryReport | SystemReport) -> RankCurves:
    return RankCurves(found.rank, found.seconds, tuple(ProfileCurve(*each) for each in found.curves))


def _traces(good: Good, _: str, __: Mapping[str, Given]) -> dict[str, Any]:
    ranks: list[RankReport] = [found for _, found in good]
    path = critical_path(ranks)
    return {
        "reports": tuple(map(_times, ranks)),
        "imbalance": imbalance(ranks),
        "path": tuple(ProfilePathPart(*each) for each in path),
        "advice": tuple(ProfileAdvice(*each) for each in advise(ranks, path)),
    }


def _times(rank: RankReport) -> RankTimes:
    tops = {name: _tops(getattr(rank, name)) for name in ("operators", "kernels", "collectives")}
    shown = {name: value for name, value in rank._asdict().items() if name not in ("step_seconds", "windows")}
    return RankTimes(**{**shown, **tops, "timeline": RankTimeline(*rank.timeline)})


def _tops(found: Iterable[Top]) -> tuple[ProfileTop, ...]:
    return tuple(ProfileTop(*each) for each in found)


_PARTS: Final = {
    "stacks": _places, "python": _functions, "memory": _memory, "system": _system, **dict.fromkeys(TRACES, _traces),
}  # fmt: skip


def compare(before: tuple[str, ProfileReport], after: tuple[str, ProfileReport]) -> ProfileComparison:
    """Compare two profiles, each with its id. Raises InvalidInput `not-comparable`."""
    (first, one), (second, other) = before, after
    if one.what != other.what or one.what in ("stacks", "system"):
        message = "Two profiles of functions or of memory, or two traces of one framework, can be compared."
        raise InvalidInput("not-comparable", message)
    found = differences(_shares(one), _shares(other))
    return ProfileComparison(one.what, first, second, tuple(ProfileDifference(*each) for each in found))


def _shares(report: ProfileReport) -> Mapping[str, float]:
    if report.what in ("python", "memory"):
        return {each.name: each.own for each in report.functions}
    seconds = sum(each.seconds for each in report.reports) or 1.0
    return {
        words: sum(getattr(each, part) for each in report.reports) / seconds
        for part, words in zip(PARTS, _WORDS, strict=True)
    }


class Packed(NamedTuple):
    """The archive of a profile's files."""

    content: bytes
    digest: str
    files: tuple[ProfileFile, ...]
    """Those that people may read; the report is not one of them."""


def pack(id: str, report: bytes, flames: bytes, taken: Iterable[Taken]) -> Packed:
    """Pack the files of a profile into an archive; its id makes the content its own."""
    files = {FLAMES: flames} if flames else {}
    files |= dict(map(file_of, taken))
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz", compresslevel=1) as archive:
        for name, content in {"id": id.encode(), REPORT: report, **files}.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    content = made.getvalue()
    listed = tuple(ProfileFile(name, len(content)) for name, content in sorted(files.items()))
    return Packed(content, hashlib.sha256(content).hexdigest(), listed)


def member_of(path: str, name: str) -> bytes:
    """The content of a file in an archive. Raises NotFound `no-such-file`."""
    with tarfile.open(path, "r:gz") as archive:
        for member in archive:
            if member.name == name and member.isreg() and member.size <= _MOST_MEMBER:
                file = archive.extractfile(member)
                assert file is not None
                return file.read()
    raise NotFound("no-such-file", f"The profile has no file {name[:100]!r}.")


def read_report(content: bytes) -> ProfileReport:
    """Read a report that `report_of` made."""
    return _READ_REPORT.decode(content)
