"""Profiles of running jobs that the server keeps: what is stored, and the JSON shapes of the API."""

from __future__ import annotations

from typing import Annotated, NamedTuple

import msgspec

from corral.model.records import Record, one_of

What = Annotated[str, one_of("python", "stacks", "torch", "jax", "tensorflow", "memory", "system")]


class ProfileRow(NamedTuple):
    """A profile as it is stored; times are in seconds since 1970."""

    id: str
    job: str
    user: str
    """The owner of the job, whose quota it counts for."""
    taken_by: str
    what: str
    seconds: int
    at: float
    until: float
    """When the front that takes it must have told of it again; later it counts as failed."""
    state: str
    """`taking`, `reading`, `done`, `failed` or `removed`."""
    doc: str = "{}"
    """`ProfileDoc` as JSON."""
    digest: str = ""
    """The SHA-256 of its files' archive; "" is none."""
    size: int = 0


class ProfileProblem(Record, frozen=True):
    """Why a process or a task is not in a profile, or only in part."""

    rank: str
    problem: str


class ProfileFile(Record, frozen=True):
    """A file of a profile."""

    name: str
    size: int


class ProfileDoc(Record, frozen=True):
    """What is stored of a profile as JSON."""

    tasks: tuple[str, ...] = ()
    ranks: int = 0
    problem: str = ""
    problems: tuple[ProfileProblem, ...] = ()
    files: tuple[ProfileFile, ...] = ()


class ProfileView(Record, frozen=True):
    """A profile of a running job."""

    id: str
    job: str
    job_name: str
    what: What
    seconds: int
    """For how long samples are taken; 0 for stacks."""
    state: Annotated[str, one_of("taking", "reading", "done", "failed")]
    taken_by: str
    taken_at: str
    """When it was asked for."""
    starts_at: str
    """When its samples begin: PyTorch's traces begin on all ranks at the same moment."""
    tasks: tuple[str, ...] = ()
    ranks: int = 0
    """Processes of which something was read."""
    problem: str = ""
    """Why there is nothing in it; "" if there is."""
    problems: tuple[ProfileProblem, ...] = ()
    files: tuple[ProfileFile, ...] = ()
    size: int = 0
    """Bytes that are kept of it."""


class ProfileList(Record, frozen=True):
    """Profiles, newest first, and what those of the user's jobs take of the quota."""

    items: tuple[ProfileView, ...] = ()
    bytes: int = 0
    most_bytes: int = 0
    """The quota in bytes; 0 is no limit."""
    days: float = 0
    """After so many days a profile is removed."""


class ProfilePlace(Record, frozen=True):
    """Threads of several ranks that have the same stack, innermost frame first."""

    thread: str
    active: bool
    frames: tuple[str, ...]
    ranks: tuple[str, ...]


class ProfileFunction(Record, frozen=True):
    """A function's share of all samples: at the stack's top (`own`), and anywhere in the stack."""

    name: str
    own: float
    total: float


class ProfileFrame(Record, frozen=True):
    """A rectangle of the flame graph: `begin` and `samples` are its place in the width of all samples."""

    name: str
    depth: int
    begin: int
    samples: int


class ProfileTop(Record, frozen=True):
    """An operator, kernel or collective, with its whole time in seconds and its calls."""

    name: str
    seconds: float
    calls: int


class RankTimeline(Record, frozen=True):
    """Equal spans of a rank's trace: the share of each that every part takes. The rest is idle."""

    computing: tuple[float, ...] = ()
    exposed_communication: tuple[float, ...] = ()
    copies: tuple[float, ...] = ()
    data_waits: tuple[float, ...] = ()


class RankTimes(Record, frozen=True):
    """What one rank did in the seconds of its trace; the parts from `computing` to `idle` add up to `seconds`."""

    rank: str
    seconds: float
    computing: float
    exposed_communication: float
    copies: float
    data_waits: float
    idle: float
    communication: float
    """All communication, hidden or not."""
    device: bool
    """Whether the trace has a device's work; else computing is that of the processors."""
    steps: int
    operators: tuple[ProfileTop, ...]
    kernels: tuple[ProfileTop, ...]
    collectives: tuple[ProfileTop, ...]
    timeline: RankTimeline


class ProfileAdvice(Record, frozen=True):
    """One piece of advice, with the figure that led to it and the share of the time that it may save."""

    subject: Annotated[
        str,
        one_of(
            "data-loading",
            "imbalance",
            "communication",
            "copies",
            "device-use",
            "stalls",
            "memory-slack",
            "one-thread",
            "page-cache",
            "disk",
            "throttling",
            "run-queue",
        ),
    ]
    figure: float
    gain: float
    rank: str
    """The rank that it is about; "" for all."""
    text: str
    of: Annotated[str, one_of("time", "memory")] = "time"
    """What the gain is a share of: the time, or the memory that the task asked for."""


class ProfileCurve(Record, frozen=True):
    """A figure over the time of a profile: the means of equally long spans, and the greatest single value."""

    name: str
    unit: str
    points: tuple[float, ...]
    most: float


class RankCurves(Record, frozen=True):
    """The figures of one rank over time."""

    rank: str
    seconds: float
    curves: tuple[ProfileCurve, ...]


class MemoryHolder(Record, frozen=True):
    """What holds memory, in bytes before and after the profile."""

    kind: str
    name: str
    before: int
    after: int


class RankMemory(Record, frozen=True):
    """The memory of one process in bytes, without swap."""

    rank: str
    used: int
    """At the end of the profile."""
    peak: int
    """The most that it ever had."""
    grown: int
    """All growth of private memory, also where some was given back."""
    kept: int
    """By how much private memory was larger at the end; negative where it was smaller."""
    holders: tuple[MemoryHolder, ...]
    """By kind, the largest first."""
    names: tuple[MemoryHolder, ...]
    """The largest mappings."""


class ProfilePathPart(Record, frozen=True):
    """A part of the critical path over the ranks: what one of them did while the others waited for it."""

    rank: str
    part: Annotated[str, one_of("computing", "exposed_communication", "copies", "data_waits", "idle")]
    seconds: float
    share: float
    """Of the whole path."""
    names: tuple[str, ...]
    """The operators, kernels or collectives with most of that time."""


class ProfileReport(Record, frozen=True):
    """What was read of a profile; parts that its kind does not have are empty."""

    what: What
    ranks: tuple[str, ...]
    places: tuple[ProfilePlace, ...] = ()
    """Where threads stand; the places of the fewest ranks come first."""
    samples: int = 0
    """How many samples the flame graph has; of memory, how many KiB grew."""
    functions: tuple[ProfileFunction, ...] = ()
    """The functions with the most samples of their own; of memory, those beneath which it grew most."""
    frames: tuple[ProfileFrame, ...] = ()
    """The flame graph, each frame before those below it."""
    reports: tuple[RankTimes, ...] = ()
    imbalance: float = 0
    advice: tuple[ProfileAdvice, ...] = ()
    """The greatest gain first."""
    path: tuple[ProfilePathPart, ...] = ()
    """The critical path over the ranks, the longest part first; empty where they have no collectives in common."""
    memory: tuple[RankMemory, ...] = ()
    curves: tuple[RankCurves, ...] = ()


class ProfileDifference(Record, frozen=True):
    """A share of the time in two profiles."""

    name: str
    before: float
    after: float


class ProfileComparison(Record, frozen=True):
    """Two profiles of one kind: of traces the shares of time of all ranks, of samples the functions' own shares."""

    what: What
    before: str
    """The profile that is compared with."""
    after: str
    differences: tuple[ProfileDifference, ...]
    """The greatest difference first."""


ROW_DOC = msgspec.json.Decoder(ProfileDoc)
