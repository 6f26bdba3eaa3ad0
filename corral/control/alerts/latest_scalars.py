"""The latest scalars of TensorBoard's files, as series that alert rules read; `/metrics` does not tell them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from threading import Lock
from typing import Final

from corral.control.alerts.reported_figures import FRESH_SECONDS, Named, labels_of_job
from corral.control.core.world import Job
from corral.kernel.ids import JobId
from corral.model.metrics.job_figures import JOB, JOB_FIGURES, SCALAR
from corral.model.metrics.samples import Value

MOST_CURVES: Final = 20_000
"""Curves that are kept; of more, those that had no value for the longest time are forgotten."""
_LABELS: Final = JOB_FIGURES[SCALAR].labels
_JOB: Final = _LABELS.index(JOB)


class LatestScalars:
    """Keeps the last value of each curve, for as long as it is fresh."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._latest: OrderedDict[tuple[str, ...], tuple[float, float]] = OrderedDict()
        """Time and value by the labels of a curve; those that had a value last are at the end."""

    def take(self, scalars: Iterable[tuple[float, Value]]) -> None:
        """Take values with their times in seconds since 1970; it is called in any thread."""
        with self._lock:
            for at, value in scalars:
                before = self._latest.get(value.labels)
                if before is None or before[0] <= at:
                    self._latest[value.labels] = at, value.value
                    self._latest.move_to_end(value.labels)
            while len(self._latest) > MOST_CURVES:
                self._latest.popitem(last=False)

    def named(self, jobs: Mapping[JobId, Job], now: float) -> Iterator[Named]:
        """The values of these jobs' curves, with the labels that series of tasks have; old ones are forgotten."""
        with self._lock:
            gone = [key for key, (at, _) in self._latest.items() if now - at > FRESH_SECONDS or not _job(jobs, key)]
            for key in gone:
                del self._latest[key]
            known = list(self._latest.items())
        for key, (_, value) in known:
            if (job := _job(jobs, key)) is not None:
                own = dict(zip(_LABELS, key, strict=True))
                del own[JOB]  # of a rule's series it is the server's
                yield SCALAR, labels_of_job(job) | own, value


def _job(jobs: Mapping[JobId, Job], key: tuple[str, ...]) -> Job | None:
    return jobs.get(JobId(key[_JOB]))
