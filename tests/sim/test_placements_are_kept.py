"""A simulation keeps which devices each run held, and fragmentation follows from it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corral.kernel.errors import InvalidInput
from corral.model.placement import TaskPlacement
from corral.scheduler import find_policy, find_preempt
from corral.sim.curves import Span
from corral.sim.machines import plain_site
from corral.sim.occupancy import Occupancy, Recorder, Stay, fragments
from corral.sim.results import Result, read_result, write_result
from corral.sim.simulation import Knobs, Simulation
from corral.sim.trace import TraceJob

SHORTEST = replace(find_policy("srtf"), preempt=find_preempt("order"), preemption=True)


def play(*jobs: TraceJob, machines: str = "2x4", knobs: Knobs | None = None, placements: bool = True) -> Result:
    site = plain_site(machines)
    assert site is not None
    return Simulation(jobs, site, SHORTEST, knobs, placements=placements).run()


def stays_of(result: Result) -> tuple[Stay, ...]:
    assert result.occupancy is not None
    return result.occupancy.stays


def test_stays_say_which_devices_a_job_held_from_when_to_when() -> None:
    result = play(TraceJob("wide", 0.0, 200.0, 8, "ada"), TraceJob("small", 100.0, 10.0, 2, "bob"))
    assert result.occupancy is not None and result.occupancy.nodes == (("node00000", 4), ("node00001", 4))
    small = [stay for stay in stays_of(result) if stay.job == "small"]
    assert [(stay.begin, stay.end, stay.user, len(stay.devices)) for stay in small] == [(100.0, 110.0, "bob", 2)]
    wide = sorted(
        (stay.begin, stay.end, stay.node, len(stay.devices)) for stay in stays_of(result) if stay.job == "wide"
    )
    assert wide == [(0.0, 100.0, 0, 4), (0.0, 100.0, 1, 4), (110.0, 210.0, 0, 4), (110.0, 210.0, 1, 4)]


jobs_of = st.lists(
    st.tuples(st.floats(0, 500), st.floats(1, 200), st.sampled_from([1, 2, 3, 4, 8])), min_size=1, max_size=12
)


@settings(max_examples=30, deadline=None)
@given(jobs_of, st.sampled_from([0.0, 200.0]))
def test_no_device_is_held_twice_and_all_of_a_job_are_known(
    found: list[tuple[float, float, int]], failures: float
) -> None:
    jobs = sorted((TraceJob(f"j{at}", *each) for at, each in enumerate(found)), key=lambda job: job.submitted)
    result = play(*jobs, knobs=Knobs(node_failures_per_day=failures))
    spans: dict[tuple[int, int], list[tuple[float, float]]] = defaultdict(list)
    held: dict[tuple[str, float], int] = defaultdict(int)
    for stay in stays_of(result):
        if stay.job:
            held[stay.job, stay.begin] += len(stay.devices)
            for device in stay.devices:
                spans[stay.node, device].append((stay.begin, stay.end))
    assert all(first[1] <= second[0] for each in spans.values() for first, second in pairwise(sorted(each)))
    size = {job.name: job.devices for job in jobs}
    assert all(count == size[job] for (job, _), count in held.items())
    used = sum((stay.end - stay.begin) * len(stay.devices) for stay in stays_of(result) if stay.job)
    assert used == pytest.approx(sum((end - begin) * devices for begin, end, devices in result.held))


def test_nothing_is_kept_unless_asked_and_the_digest_is_the_same() -> None:
    job = TraceJob("a", 0.0, 100.0, 3)
    plain, kept = play(job, placements=False), play(job)
    assert plain.occupancy is None and "fragmentation" not in plain.figures()
    assert plain.digest == kept.digest and kept.figures()["fragmentation"] == pytest.approx(1 / 8)


OCCUPANCY = Occupancy(
    (("a", 4), ("b", 4)),
    (
        Stay(0.0, 10.0, "one", "ada", 0, (0, 1)),
        Stay(5.0, 20.0, "two", "bob", 1, (0, 1, 2)),
        Stay(8.0, 12.0, "three", "bob", 0, (2, 3)),
        Stay(15.0, 18.0, "", "", 1, (0, 1, 2, 3)),
    ),
)


def test_free_devices_of_partly_used_nodes_are_fragments() -> None:
    expected: list[Span] = [
        (0.0, 5.0, 2.0), (5.0, 8.0, 3.0), (8.0, 10.0, 1.0), (10.0, 12.0, 3.0), (12.0, 15.0, 1.0), (18.0, 20.0, 1.0),
    ]  # fmt: skip
    assert fragments(OCCUPANCY) == expected


def test_too_many_stays_are_cut_at_a_time() -> None:
    site = plain_site("2x4")
    assert site is not None
    recorder = Recorder(site.inventory, most=2)
    nodes = [node.name for node in site.inventory.nodes]
    for number, at in enumerate((0.0, 10.0, 20.0)):
        recorder.begin(f"job-{number}", at, f"j{number}", "ada", [TaskPlacement("w", 0, nodes[number % 2], (number,))])
    recorder.end("job-0", 15.0)
    recorder.end("job-2", 30.0)
    kept = recorder.occupancy(40.0)
    assert kept.until == 20.0
    assert [(stay.job, stay.begin, stay.end) for stay in kept.stays] == [("j0", 0.0, 15.0), ("j1", 10.0, 20.0)]


def test_a_result_with_placements_is_read_as_it_was_written(tmp_path: Path) -> None:
    result = play(TraceJob("a", 0.0, 100.0, 8))
    write_result(result, tmp_path / "r.json")
    assert read_result(tmp_path / "r.json") == result


@pytest.mark.parametrize(
    "stay",
    [
        Stay(0.0, 10.0, "a", "u", 2, (0,)),
        Stay(0.0, 10.0, "a", "u", -1, (0,)),
        Stay(0.0, 10.0, "a", "u", 0, (4,)),
        Stay(0.0, 10.0, "a", "u", 0, (1, 1)),
        Stay(10.0, 0.0, "a", "u", 0, (0,)),
        Stay(-1.0, 0.0, "a", "u", 0, (0,)),
    ],
)
def test_impossible_placements_are_refused(tmp_path: Path, stay: Stay) -> None:
    result = Result("fifo", 8, (), 0, (), occupancy=msgspec.structs.replace(OCCUPANCY, stays=(stay,)))
    write_result(result, tmp_path / "r.json")
    with pytest.raises(InvalidInput, match="a figure is out of range"):
        read_result(tmp_path / "r.json")
