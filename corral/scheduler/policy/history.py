"""What each job has received so far, as the parts of a policy may ask.

It is folded from the same events as the cluster, and recalled after a restart from what is stored with the jobs.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from types import MappingProxyType
from typing import Final, NamedTuple

from corral.kernel.ids import JobId
from corral.kernel.units import DEVICE
from corral.model.runs import Served
from corral.scheduler.events import WorkReported
from corral.scheduler.policy.contention import Contention
from corral.scheduler.policy.service_distribution import ServiceDistribution

_NOTHING: Final[Mapping[tuple[int, int], float]] = MappingProxyType({})
_NO_MODEL: Final[Mapping[str, float]] = MappingProxyType({})
SETTLING_SECONDS: Final = 30.0
"""Seconds after a change of a job's holdings in which its throughput counts for no size: processes start or join."""
_MOST_SIZES: Final = 64
"""The most sizes of one job whose throughput is remembered; the oldest are dropped first."""
_MOST_OVER: Final = 1024
"""The most ended jobs that wait to be added to the distribution of attained service."""
_MOST_REGIMES: Final = 16
"""The most batch sizes of one job that are told apart; further ones count as the last."""


class Regime(NamedTuple):
    """A part of a job's work at one batch size (Shockwave calls it a regime)."""

    batch_size: float
    """Examples of one step of all tasks together; 0: not known."""
    progress: float
    """The fraction of its work that was done at this size."""
    seconds: float
    """The service that it took."""


class JobHistory(NamedTuple):
    """What one job has received and reported, until the time that was asked about."""

    service_seconds: float = 0.0
    """Seconds during which the job held devices or other resources, in all its runs."""
    device_seconds: float = 0.0
    """Devices times seconds held, in all its runs (attained service). A job without devices counts as one device."""
    starts: int = 0
    """How often it was placed while it held nothing."""
    progress: float | None = None
    """The fraction of its work that is done, from 0 to 1, as last reported; None: never reported."""
    throughput: Mapping[tuple[int, int], float] = _NOTHING
    """Work per second as last reported, by the numbers of devices and nodes that the job held then."""
    gradient_noise: float | None = None
    """The gradient noise scale in examples, as last reported; None: never reported."""
    batch_size: float | None = None
    """Examples of one step of all tasks together, as last reported; None: never reported."""
    held_since: float | None = None
    """When what it holds last changed, in seconds since 1970; None: it holds nothing."""
    regimes: tuple[Regime, ...] = ()
    """What it reported by batch size, in the order of their first reports; all seconds are until the latest report."""
    model_seconds: Mapping[str, float] = _NO_MODEL
    """Seconds held by the model of the devices; time on several models at once, or on none with a name, is in none."""
    model_speeds: Mapping[str, float] = _NO_MODEL
    """Work per second and device as last reported on each model; a report from several models at once is in none."""


class _Account(NamedTuple):
    """The stored state of one job; it holds `devices` since `since` (0 devices: it holds nothing)."""

    service: float = 0.0
    attained: float = 0.0
    starts: int = 0
    since: float = 0.0
    devices: float = 0.0
    progress: float | None = None
    throughput: Mapping[tuple[int, int], float] = _NOTHING
    gradient_noise: float | None = None
    batch_size: float | None = None
    regimes: tuple[Regime, ...] = ()
    model: str = ""
    model_seconds: Mapping[str, float] = _NO_MODEL
    model_speeds: Mapping[str, float] = _NO_MODEL

    def passed(self, at: float) -> float:
        """Return the seconds that it held something from `since` until a time; 0 for an earlier time."""
        return at - self.since if self.devices and at > self.since else 0.0

    def until(self, at: float) -> _Account:
        """Return the account with everything received until a time; an earlier time than `since` adds nothing."""
        passed = self.passed(at)
        if not passed:
            return self
        return _Account(
            self.service + passed,
            self.attained + passed * self.devices,
            self.starts,
            self.since + passed,
            self.devices,
            self.progress,
            self.throughput,
            self.gradient_noise,
            self.batch_size,
            self.regimes,
            self.model,
            self.on_models(passed),
            self.model_speeds,
        )

    def holding(self, starts: int, since: float, devices: float, model: str) -> _Account:
        """Return the account with other holdings; in a third of the time of `_replace`."""
        return _Account(
            self.service,
            self.attained,
            starts,
            since,
            devices,
            self.progress,
            self.throughput,
            self.gradient_noise,
            self.batch_size,
            self.regimes,
            model,
            self.model_seconds,
            self.model_speeds,
        )

    def on_models(self, passed: float) -> Mapping[str, float]:
        """Return the seconds by model when so many more have passed."""
        if not (passed and self.model):
            return self.model_seconds
        more = self.model_seconds.get(self.model, 0.0) + passed
        return MappingProxyType({**self.model_seconds, self.model: more})


_NEW: Final = _Account()


class History:
    """The history of every job that is not over, and what ended jobs had attained. Times are in seconds since 1970."""

    def __init__(self) -> None:
        self._accounts: dict[JobId, _Account] = {}
        self._ended = ServiceDistribution()
        self._over: list[float] = []
        """The service of jobs that are over and not yet in `_ended`: most policies never ask for it."""
        self.share = inf
        """The devices of all machines for each job that ran or waited at the latest plan; infinite before the first one.

        It follows from cluster and queue, so it is no part of the history's own state.
        """
        self.contention = Contention()
        """How many jobs ran or waited at the plans so far; no part of the history's own state either."""
        self.prepared: object = None
        """What an order prepared for the latest plan (`JointOrder.prepare`), which its `key` reads."""

    def of(self, job: JobId, now: float) -> JobHistory:
        """Return what a job has received until `now`; everything is 0 for a job that was never placed."""
        found = self._accounts.get(job)
        if found is None:
            return JobHistory()
        held_since = found.since if found.devices else None
        passed = found.passed(now)
        return JobHistory(
            found.service + passed,
            found.attained + passed * found.devices,
            found.starts,
            found.progress,
            found.throughput,
            found.gradient_noise,
            found.batch_size,
            held_since,
            found.regimes,
            found.on_models(passed),
            found.model_speeds,
        )

    def service_seconds(self, job: JobId, now: float) -> float:
        """Return the seconds during which a job held anything until `now`, as `of` does, but faster."""
        found = self._accounts.get(job)
        return 0.0 if found is None else found.service + found.passed(now)

    def device_seconds(self, job: JobId, now: float) -> float:
        """Return the attained service of a job until `now`, as `of` does, but faster."""
        found = self._accounts.get(job)
        if found is None:
            return 0.0
        devices, since = found.devices, found.since
        return found.attained + (now - since) * devices if devices and now > since else found.attained

    def model(self, job: JobId) -> str:
        """Return the one model of all devices that a job holds; "" if they are of several, or it holds none."""
        found = self._accounts.get(job)
        return found.model if found is not None and found.devices else ""

    def held(self, job: JobId) -> tuple[str, float | None, Mapping[str, float]]:
        """Return the model of what a job holds, since when it holds it, and its `model_speeds`; as `of`, but faster."""
        found = self._accounts.get(job)
        if found is None:
            return "", None, _NO_MODEL
        return (found.model, found.since, found.model_speeds) if found.devices else ("", None, found.model_speeds)

    def progress(self, job: JobId) -> float | None:
        """Return the fraction of its work that a job last reported; None if it never did."""
        found = self._accounts.get(job)
        return None if found is None else found.progress

    def holds(self, job: JobId, millis: int, at: float, model: str = "") -> None:
        """Record that a job holds these thousandths of devices from `at` on, all of one model if that is named."""
        before = self._accounts.get(job, _NEW)
        account = before.until(at)
        if before.devices:
            self._accounts[job] = account.holding(account.starts, account.since, millis / DEVICE or 1.0, model)
        else:
            self._accounts[job] = account.holding(account.starts + 1, at, millis / DEVICE or 1.0, model)

    def released(self, job: JobId, millis: int, at: float, *, wholly: bool, model: str = "") -> None:
        """Record that a job holds only these thousandths of devices from `at` on (0: unknown), or nothing at all.

        `model` is what all that is left is of; "" if it is of several.
        """
        account = self._accounts.get(job)
        if account is not None:
            devices = 0.0 if wholly else millis / DEVICE or 1.0
            account = account.until(at)
            self._accounts[job] = account.holding(account.starts, account.since, devices, model)

    def report(self, said: WorkReported, size: tuple[int, int]) -> bool:
        """Record what a job reports of its work while it holds `size` (devices, nodes); return whether it is new.

        A throughput said within `SETTLING_SECONDS` of a change of the job's holdings is of the size before, or of none.
        """
        account = self._accounts.get(said.job)
        if account is None:
            return False
        known, speeds = dict(account.throughput), dict(account.model_speeds)
        if said.throughput is not None and said.at >= account.since + SETTLING_SECONDS:
            known.pop(size, None)
            known[size] = said.throughput
            while len(known) > _MOST_SIZES:
                del known[next(iter(known))]
            if account.model and size[0]:
                speeds = {**speeds, account.model: said.throughput / size[0]}
        after = account._replace(
            progress=_latest(said.progress, account.progress),
            throughput=MappingProxyType(known),
            model_speeds=MappingProxyType(speeds),
            gradient_noise=_latest(said.gradient_noise, account.gradient_noise),
            batch_size=_latest(said.batch_size, account.batch_size),
            regimes=_with_progress(account, said),
        )
        self._accounts[said.job] = after
        return after != account

    def recall(self, job: JobId, served: Served) -> bool:
        """Restore what is stored of a job that was placed before a restart; return whether it differs from what is known.

        What the job holds now counts from the time up to which its service is stored.
        """
        account = self._accounts.get(job, _NEW)
        after = account._replace(
            service=served.service_seconds,
            attained=served.device_seconds,
            starts=served.starts,
            since=served.until,
            progress=served.progress,
            throughput=MappingProxyType({(devices, nodes): speed for devices, nodes, speed in served.throughput}),
            gradient_noise=served.gradient_noise,
            batch_size=served.batch_size,
            regimes=tuple(Regime(*regime) for regime in served.regimes),
            model_seconds=MappingProxyType(dict(served.model_seconds)),
            model_speeds=MappingProxyType(dict(served.model_speeds)),
        )
        self._accounts[job] = after
        return after != account

    def served(self, job: JobId) -> Served | None:
        """Return the stored form of what a job received until its holdings last changed; None if it had nothing."""
        found = self._accounts.get(job)
        if found is None:
            return None
        return Served(
            found.service,
            found.attained,
            found.starts,
            found.since,
            found.progress,
            tuple([(*size, speed) for size, speed in found.throughput.items()]) if found.throughput else (),
            found.gradient_noise,
            found.batch_size,
            tuple([(size, progress, seconds) for size, progress, seconds in found.regimes]) if found.regimes else (),
            tuple(found.model_seconds.items()) if found.model_seconds else (),
            tuple(found.model_speeds.items()) if found.model_speeds else (),
        )

    def forget(self, job: JobId) -> None:
        """Drop a job that is over; what it attained goes into `ended`."""
        account = self._accounts.pop(job, None)
        if account is not None and account.starts:
            self._over.append(account.attained)
            if len(self._over) >= _MOST_OVER:
                self._add_ended()

    @property
    def ended(self) -> ServiceDistribution:
        """The service that jobs had attained when they were over, however they ended; jobs that never ran do not count."""
        if self._over:
            self._add_ended()
        return self._ended

    @ended.setter
    def ended(self, known: ServiceDistribution) -> None:
        self._ended = known
        self._over.clear()

    def _add_ended(self) -> None:
        self._ended = self._ended.with_jobs(self._over)
        self._over.clear()

    def copy(self) -> History:
        """Return an independent copy."""
        twin = History()
        twin._accounts, twin._ended, twin.share = dict(self._accounts), self.ended, self.share
        twin.contention, twin.prepared = self.contention.copy(), self.prepared
        return twin

    def columns(self) -> list[tuple[object, ...]]:
        """Return the state of all jobs in the order of their ids, for hashing and comparing."""
        return [
            (
                job,
                *account._replace(throughput=_NOTHING, model_seconds=_NO_MODEL, model_speeds=_NO_MODEL),
                *(sorted(each.items()) for each in (account.throughput, account.model_seconds, account.model_speeds)),
            )
            for job, account in sorted(self._accounts.items())
        ]


def _latest(said: float | None, before: float | None) -> float | None:
    return before if said is None else said


def _with_progress(account: _Account, said: WorkReported) -> tuple[Regime, ...]:
    """Return the regimes with the progress and the service since the report before; O(regimes).

    A report of less progress than before, after a restart from a checkpoint, adds the time that was lost. A report of
    the same progress changes nothing: the next one counts its time.
    """
    known = account.regimes
    progress = account.progress or 0.0
    if said.progress is None or said.progress == progress:
        return known
    size = _latest(said.batch_size, account.batch_size) or 0.0
    service = account.service + account.passed(said.at)
    gained = said.progress - progress
    seconds = max(0.0, service - sum(regime.seconds for regime in known))
    at = next((at for at, regime in enumerate(known) if regime.batch_size == size), len(known))
    if at == len(known) and at >= _MOST_REGIMES:
        at -= 1
    before = known[at] if at < len(known) else Regime(size, 0.0, 0.0)
    after = before._replace(progress=max(0.0, before.progress + gained), seconds=before.seconds + seconds)
    return (*known[:at], after, *known[at + 1 :])
