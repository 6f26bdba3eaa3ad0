"""Jobs with a profile: their speed follows from their placement, elastic ones change it while they run and report it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from corral.scheduler import find_policy, with_part
from corral.sim.machines import plain_site
from corral.sim.profiled import Leg, ProfiledProgress
from corral.sim.progress import Costs
from corral.sim.results import Result
from corral.sim.simulation import Knobs, Simulation
from corral.sim.trace import TraceJob


@dataclass(frozen=True)
class Even:
    """A job of two equal legs that is as fast as it has devices, and half as fast on several nodes."""

    seconds: float = 1000.0
    most: int = 8
    speeds: float = 0.0
    """The speed on any number of devices; 0: it grows with them."""

    def legs(self, devices: Sequence[int], *, adapts: bool) -> Sequence[Leg]:
        speed = self.speeds or sum(devices) / (2 if len(devices) > 1 else 1)
        half = self.seconds / 2
        return [Leg(half, half / speed, 8.0 * sum(devices), 10.0 * speed, noise) for noise in (100.0, 1000.0)]


def played(policy: str, *jobs: TraceJob, machines: str = "2x4", **knobs: float) -> Result:
    name, *parts = policy.split("+")
    rules = find_policy(name)
    for part in parts:
        rules = with_part(rules, part)
    site = plain_site(machines)
    assert site is not None
    elastic = bool(knobs.pop("elastic", 0))
    costs = Costs(restart=knobs.pop("restart", 0.0))
    return Simulation(jobs, site, rules, Knobs(costs, told=False, elastic=elastic, **knobs)).run()


def test_a_run_goes_through_the_legs_at_their_speeds() -> None:
    costs = Costs(restart=30.0)
    progress = ProfiledProgress(100.0, legs=[Leg(60.0, 30.0, 8, 1.0, 5.0), Leg(40.0, 80.0, 16, 2.0, 7.0)])
    assert progress.begin(0.0, 1.0, costs) == 110.0
    assert [progress.part(at) for at in (0.0, 15.0, 30.0, 70.0, 110.0)] == pytest.approx([0.0, 0.3, 0.6, 0.8, 1.0])
    assert progress.report(70.0).gradient_noise == 7.0 and progress.report(10.0).batch_size == 8
    slower = [leg._replace(seconds=2 * leg.seconds) for leg in progress.legs]
    assert progress.resize(70.0, slower, costs) == 70.0 + 30.0 + 80.0, "half of the second leg is left"
    assert progress.report(80.0).throughput is None and progress.part(100.0) == pytest.approx(0.8)
    progress.finish(180.0)
    assert progress.complete and progress.runs == 1


def test_a_job_is_slower_on_several_nodes_by_its_profile() -> None:
    """Six devices do 6 s of work a second on one node, and half of that on two."""
    job = TraceJob("wide", 0.0, 1000.0, 6, profile=Even())
    for machines, seconds in (("1x8", 1000.0 / 6), ("2x4", 1000.0 / 3)):
        assert played("fifo", job, machines=machines).jobs[0].ended == pytest.approx(seconds, abs=0.01)


def test_an_elastic_job_takes_free_devices_and_gives_them_up_for_another() -> None:
    """Alone on 4 devices it does 4 s of work a second. From 100 s on the other one holds a device of them for 60 s."""
    jobs = (TraceJob("elastic", 0.0, 1000.0, 1, profile=Even(most=4)), TraceJob("other", 100.0, 60.0, 1))
    found = {job.name: job for job in played("fifo+rules", *jobs, machines="1x4", elastic=1).jobs}
    assert found["other"].started == pytest.approx(100.0, abs=1.0)
    assert found["elastic"].ended == pytest.approx((1000.0 + 60.0) / 4, abs=1.0)
    assert found["elastic"].finished and not found["elastic"].interruptions, "a change of its size is none"
    costly = {job.name: job for job in played("fifo+rules", *jobs, machines="1x4", elastic=1, restart=30.0).jobs}
    assert found["elastic"].ended + 25.0 < costly["elastic"].ended <= found["elastic"].ended + 61.0


def test_what_an_elastic_job_held_is_counted_by_its_sizes() -> None:
    jobs = (TraceJob("elastic", 0.0, 1000.0, 1, profile=Even(most=4)), TraceJob("other", 100.0, 60.0, 1))
    result = played("fifo+rules", *jobs, machines="1x4", elastic=1)
    assert sum((end - begin) * devices for begin, end, devices in result.held) == pytest.approx(1000.0 + 60.0, abs=1.0)


def test_goodput_gives_devices_to_the_job_that_reports_to_be_faster_on_more() -> None:
    """The first job takes all devices, gives up half of them for the second, and reports the same throughput as before."""
    flat = TraceJob("flat", 0.0, 3000.0, 1, profile=Even(3000.0, 8, speeds=1.0))
    even = TraceJob("even", 100.0, 9000.0, 1, profile=Even(9000.0))
    result = played("fifo+goodput+rules", flat, even, machines="1x8", elastic=1, reports=60.0)
    found = {job.name: job for job in result.jobs}
    assert found["even"].started < 400.0 and all(job.finished for job in result.jobs)
    before_flat_ends = [size for begin, _, size in result.held if found["even"].started < begin < found["flat"].ended]
    assert max(before_flat_ends) == 7, "one device is left to the flat one"
