"""Questions about another course of the cluster, and their answers: what if nodes, quotas, jobs or rules were others?

A request is what people ask. A question is the same with everything found and parsed, as control plays it. Courses are
what control saw, one before and one after the changes for each seed; an answer compares them.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any, Final

import msgspec

from corral.kernel.quantile import quantile
from corral.model.estimate_correction import UNCORRECTED, Correction, Quantiles
from corral.model.records import Record

LONGEST_HORIZON: Final = 30 * 86400.0
"""The most seconds that a question may look ahead."""
MOST_SEEDS: Final = 20
MOST_NODES: Final = 1000
MOST_JOBS: Final = 1000
MOST_FILES: Final = 50
MOST_TRIES: Final = 16
"""Questions that the search for a goal asks control, at most."""
MOST_NAMED: Final = 500
"""Nodes, jobs or queues that one kind of change may name."""
MOST_STAYS: Final = 2000
"""Stays of jobs on nodes that the timeline of one course tells."""
MOST_TOLD_NODES: Final = 500
"""Nodes that a timeline tells."""
DAY: Final = 86400.0
LAST_WEEK: Final = "last-week"
"""Arrivals as in the same hours of the week, or of the day where the journal is younger than a week."""


class AddedNodes(Record, frozen=True, forbid_unknown_fields=True):
    """So many more nodes that are like a known one (`engine/node`)."""

    count: int
    like: str


class AddedJobs(Record, frozen=True, forbid_unknown_fields=True):
    """A job file, submitted so many times now."""

    job: str
    """The text of the file, in any language that `corral submit` reads."""
    times: int = 1


class WhatIfRequest(Record, frozen=True, forbid_unknown_fields=True):
    """Changes to try, and how far to look ahead; without changes the answer says what is to be expected."""

    add_nodes: tuple[AddedNodes, ...] = ()
    remove_nodes: tuple[str, ...] = ()
    """Nodes that are drained at once and do not come back."""
    drain: tuple[str, ...] = ()
    """Nodes that take no new tasks, and whose tasks run elsewhere."""
    queues: dict[str, dict[str, Any]] = {}
    """By queue, the changed fields of its document (`{"research": {"deserved": {"devices": 16}}}`); objects are merged."""
    documents: str = ""
    """Documents as `corral apply` takes them."""
    submit: tuple[AddedJobs, ...] = ()
    stop: tuple[str, ...] = ()
    """Jobs that are stopped now, by name or id."""
    priorities: dict[str, str | int] = {}
    """By waiting job, its new priority: a class or a number."""
    policy: str = ""
    """The preset, or the order, of the scheduling policy."""
    horizon_seconds: float = DAY
    seeds: int = 1
    """How many courses are drawn; more than one tell how sure the answer is."""
    seed: int = 0
    """The first seed."""
    timeline: bool = False
    """Whether the answer tells what runs where, in the courses of the first seed."""
    arrivals: str = ""
    """`last-week`: jobs arrive as in the same hours of the week in the server's journal; "": nobody else submits."""
    goal: str = ""
    """An assertion that is to hold after the changes: `wait.p95(queue=research) <= 1h`; needs `vary`."""
    vary: str = ""
    """What is raised until the goal holds: `nodes-like=local/node1` or `queue=research:deserved.devices`."""


class NewWork(msgspec.Struct, frozen=True):
    """A checked job that a question submits `times` times; `document` is its canonical document as JSON."""

    document: str
    user: str
    groups: tuple[str, ...] = ()
    times: int = 1


class Question(msgspec.Struct, frozen=True):
    """A request as control plays it."""

    horizon_seconds: float
    seeds: tuple[int, ...]
    documents: tuple[dict[str, Any], ...] | None = None
    """All documents of the changed configuration; None: it stays as it is."""
    add_nodes: tuple[AddedNodes, ...] = ()
    drain: tuple[str, ...] = ()
    submit: tuple[NewWork, ...] = ()
    stop: tuple[str, ...] = ()
    """Ids of jobs."""
    priorities: dict[str, str] = {}
    """By job id."""
    timeline: bool = False
    arrivals: str = ""


class PastRun(msgspec.Struct, frozen=True, gc=False):
    """How long a job that succeeded ran, and what it was."""

    user: str
    name: str
    queue: str
    devices: float
    seconds: float


class QueueCourse(msgspec.Struct):
    """What became of one queue. Times are in seconds, devices are means over the time looked at."""

    started: int = 0
    ended: int = 0
    preempted: int = 0
    waiting: int = 0
    """Jobs that wait at the end."""
    waits: list[float] = []
    """Of each start the wait before it; then of each job that waits at the end the wait so far."""
    used: float = 0.0
    lent: float = 0.0
    borrowed: float = 0.0


class Known(msgspec.Struct):
    """By how the run times of jobs were known, how many jobs there were."""

    own: int = 0
    """By the job's own `maxDuration`."""
    alike: int = 0
    """By ended jobs of the same user, name stem and devices."""
    queue: int = 0
    """By ended jobs of the same queue."""
    cluster: int = 0
    """By ended jobs of the cluster."""
    nothing: int = 0
    """No job has ended yet: they run on."""


class Stay(Record, frozen=True):
    """A job on devices of one node. Times are in seconds from now."""

    job: str
    """Its id."""
    name: str
    user: str
    queue: str
    node: str
    devices: tuple[int, ...]
    """Indexes of the node's devices."""
    begin: float = 0.0
    end: float | None = None
    """Null: after the horizon."""


class Course(msgspec.Struct):
    """What became of jobs and queues until the horizon. Times are in seconds after the question."""

    starts: dict[str, float]
    """By job that waited at the beginning or was submitted: its first start; without one it is not named."""
    queues: dict[str, QueueCourse]
    known: Known
    times: list[float]
    """When the following were looked at."""
    used: list[float]
    """Devices in use."""
    devices: int
    """Sound devices on nodes that take tasks, after the changes."""
    waiting: list[int]
    """Jobs that wait."""
    stays: list[Stay] = []
    """What ran where, where that was asked for; at most `MOST_STAYS`, earliest first."""
    stays_left_out: int = 0
    nodes: dict[str, int] = {}
    """By node, how many devices it has."""
    arrivals: int = 0
    """Jobs that arrive in it, beside those that the question submits."""
    never: tuple[str, ...] = ()
    """Those of the told jobs that wait at the horizon and could start on none of the nodes, even if nothing ran."""

    @property
    def drawn(self) -> bool:
        """Whether run times were drawn for it; else every seed has the same course."""
        return bool(self.known.alike or self.known.queue or self.known.cluster)

    @property
    def without_stays(self) -> Course:
        """The same course without what ran where."""
        return msgspec.structs.replace(self, stays=[], stays_left_out=0, nodes={})


class WaitingJob(msgspec.Struct, frozen=True):
    """A job whose start the courses tell: one that waits, or a submitted one."""

    id: str
    name: str
    user: str
    queue: str
    devices: float
    waited: float
    """Seconds that it has waited so far."""
    added: bool = False
    """Whether the question submits it."""


class Courses(msgspec.Struct, frozen=True):
    """Control's answer: by seed, the course as things are and the changed one."""

    at: float
    cursor: int
    """The last request of a user that both courses know of."""
    jobs: tuple[WaitingJob, ...]
    before: tuple[Course, ...]
    after: tuple[Course, ...]
    revision: str = ""
    """The revision of the state that both began with."""
    correction: Correction = UNCORRECTED
    arrival_days: float = 0.0
    """Days of the journal from which arrivals were drawn; 0 without arrivals."""
    """How the quantiles of several courses are corrected."""


class Spread(Record, frozen=True):
    """Quantiles over the seeds, in seconds; null: later than the horizon, or never."""

    p10: float | None = None
    p50: float | None = None
    p90: float | None = None


class QueueFigures(Record, frozen=True):
    """One queue until the horizon, the mean over the seeds. Waits are in seconds; of jobs that still wait so far."""

    started: float = 0.0
    ended: float = 0.0
    preemptions: float = 0.0
    waiting: float = 0.0
    """Jobs that wait at the horizon."""
    wait_p50: float | None = None
    wait_p95: float | None = None
    devices: float = 0.0
    """Devices in use, the mean over time."""
    lent: float = 0.0
    borrowed: float = 0.0


class QueueOutcome(Record, frozen=True):
    """One queue before and after the changes."""

    name: str
    before: QueueFigures
    after: QueueFigures


class JobOutcome(Record, frozen=True):
    """When one job starts, in seconds from now. Of other people's jobs ordinary users see no name and no user."""

    id: str
    name: str
    user: str
    queue: str
    devices: float
    waited_seconds: float = 0.0
    added: bool = False
    """Whether the question submits it; then it has no time before."""
    before: Spread = Spread()
    after: Spread = Spread()
    never_before: bool = False
    """Whether it never starts as things are, since no nodes could hold it even if nothing ran."""
    never_after: bool = False
    """The same with the changes."""


class UseOverTime(Record, frozen=True):
    """The whole cluster over time; the mean over the seeds at each time."""

    devices: float = 0.0
    """Devices that tasks can use."""
    used: tuple[float, ...] = ()
    waiting: tuple[float, ...] = ()
    """Jobs that wait."""


class TimelineNode(Record, frozen=True):
    """A node of a timeline, and how many devices it has."""

    name: str
    devices: int


class Timeline(Record, frozen=True):
    """What runs where, as things are and with the changes, in the courses of the first seed."""

    nodes: tuple[TimelineNode, ...] = ()
    """The nodes with devices, at most 500."""
    before: tuple[Stay, ...] = ()
    after: tuple[Stay, ...] = ()
    left_out: int = 0
    """Stays that are not told: those after the first 2,000 of a course, and those on nodes that are not told."""


class GoalTry(Record, frozen=True):
    """One value that the search for a goal tried."""

    value: int
    held: bool
    measured: float | None = None
    """The left side of the goal; null: never, or the value is refused."""
    wanted: float | None = None
    """Its right side."""
    refused: str = ""
    """Why documents with this value are refused; "" if they are not."""


class GoalOutcome(Record, frozen=True):
    """The least that reaches a goal. The rest of the answer is about this least, or about the most that was tried."""

    goal: str
    vary: str
    reached: bool
    least: int | None = None
    """Nodes to add, or the value of the queue's field; null: nothing that was tried reaches the goal."""
    complete: bool = True
    """Whether the search came to its end; else less may do as well, or more may reach it."""
    unit: str = "number"
    """Of the measured values: `seconds` or `number`."""
    says: str = ""
    """The outcome as a sentence."""
    tries: tuple[GoalTry, ...] = ()
    """In the order in which they were tried."""


class WhatIfAnswer(Record, frozen=True):
    """What is to be expected as things are, beside what is to be expected with the changes."""

    at: str
    cursor: int
    """The last request of a user that the answer knows of."""
    horizon_seconds: float
    seeds: int
    changes: tuple[str, ...] = ()
    """The changes, each as a clause."""
    assumptions: tuple[str, ...] = ()
    """What was assumed, each as a sentence."""
    queues: tuple[QueueOutcome, ...] = ()
    jobs: tuple[JobOutcome, ...] = ()
    """The waiting and the submitted jobs, in their order: the first 1,000, and those that gain or lose most."""
    jobs_left_out: int = 0
    gains: tuple[str, ...] = ()
    """The ids of those that start earlier by most (P50), at most ten."""
    losses: tuple[str, ...] = ()
    """The ids of those that start later by most, at most ten."""
    times: tuple[float, ...] = ()
    """Seconds from now of the following."""
    before: UseOverTime = UseOverTime()
    after: UseOverTime = UseOverTime()
    timeline: Timeline | None = None
    """Where it was asked for."""
    goal: GoalOutcome | None = None
    """Where the question had a goal."""
    revision: str = ""
    """The revision of the state that it looks at; forecasts of equal revision and seeds say the same as `before`."""


def quantiles(job: str, courses: Sequence[Course], correction: Correction = UNCORRECTED) -> Quantiles:
    """P10, P50 and P90 of a job's start over courses; those of several courses are corrected."""
    starts = sorted(course.starts.get(job, inf) for course in courses)
    p10, p50, p90 = (None if at == inf else at for at in (quantile(starts, part) for part in (0.1, 0.5, 0.9)))
    return correction.applied((p10, p50, p90)) if len(starts) > 1 else (p10, p50, p90)
