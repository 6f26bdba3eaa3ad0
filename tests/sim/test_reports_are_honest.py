"""Reports tell finish-time fairness, intervals over seeds, and what keeps figures from being compared."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.scheduler import find_policy
from corral.sim.fairness import finish_time_ratios
from corral.sim.machines import plain_site
from corral.sim.report import report_of
from corral.sim.report_page import report_page
from corral.sim.results import JobResult, Result
from corral.sim.simulation import Knobs, Simulation
from corral.sim.trace import TraceJob


def play(*jobs: TraceJob, machines: str = "1x4", policy: str = "fifo", knobs: Knobs | None = None) -> Result:
    site = plain_site(machines)
    assert site is not None
    return Simulation(jobs, site, replace(find_policy(policy)), knobs).run()


def test_equal_jobs_on_machines_without_a_queue_are_treated_fairly() -> None:
    """T1 of the score table: rho is about 1."""
    result = play(*(TraceJob(f"job-{at}", float(at), 100.0, 1) for at in range(4)))
    assert result.ratios == pytest.approx([1.0] * 4)
    assert result.figures()["worst_rho"] == pytest.approx(1.0) and result.figures()["unfair"] == 0.0


def test_a_job_that_waits_behind_a_long_one_has_a_high_ratio() -> None:
    """Of 4 devices a job of 4 has 2 beside one other job: alone it takes 20 s for its 10 s, and here 100 s."""
    result = play(TraceJob("long", 0.0, 90.0, 4), TraceJob("short", 0.0, 10.0, 4))
    long, short = result.ratios
    present = (2 * 90 + 10) / 100
    assert short == pytest.approx(100 / (10 * present))
    assert long == pytest.approx(90 / (90 * 2))
    assert result.figures()["unfair"] == 0.5


@given(st.lists(st.tuples(st.floats(0, 1e5), st.floats(1, 1e5), st.integers(1, 8)), min_size=1, max_size=12))
def test_the_mean_number_of_jobs_is_that_of_all_overlaps(found: list[tuple[float, float, int]]) -> None:
    jobs = [
        JobResult(f"j{at}", "u", devices, length, begin, begin, begin + length, 0, 0.0, True)
        for at, (begin, length, devices) in enumerate(found)
    ]
    expected = []
    for job in jobs:
        overlap = sum(max(0.0, min(job.ended, each.ended) - max(job.submitted, each.submitted)) for each in jobs)
        present = overlap / job.completion_seconds
        expected.append(job.completion_seconds / (job.seconds * max(1.0, present * job.devices / 8)))
    assert finish_time_ratios(jobs, 8) == pytest.approx(expected, rel=1e-6)


def seeded(seed: int, scatter: float = 0.0, policy: str = "fifo") -> Result:
    """A result whose times depend on its seed and a knob."""
    ended = 100.0 + 10 * seed + 100 * scatter
    job = JobResult("a", "ada", 4, 100.0, 0.0, 0.0, ended, 0, 0.0, True)
    return Result(policy, 4, (job,), 1, ((0.0, ended, 4),), knobs={"seed": seed, "scatter": scatter})


def test_results_that_differ_by_their_seed_are_one_line_with_an_interval() -> None:
    report = report_of([seeded(1), seeded(2), seeded(3)])
    (group,) = report.record()["groups"]
    assert (group["n"], group["seeds"], group["estimates"]["mean_jct"]["mean"]) == (3, [1, 2, 3], 120.0)
    page = report_page(report)
    assert "0.03 ± 0.01 h" in page and "95 % confidence intervals by Student's t" in page.replace("&#x27;", "'")
    assert "±" not in report_page(report_of([seeded(1)]))


def test_a_sweep_is_drawn_by_its_knob_with_bars() -> None:
    settings = [(policy, scatter) for policy in ("fifo", "las") for scatter in (0.0, 1.0)]
    report = report_of([seeded(seed, scatter, policy) for policy, scatter in settings for seed in (1, 2)])
    swept = report.sections[0]
    assert swept.title == "By scatter" and swept.names == ["fifo", "las"]
    (first, second), (low, high) = swept.charts[0].lines["fifo"], swept.charts[0].spread["fifo"]
    assert (first[0], second[0]) == (0.0, 1.0) and second[1] - first[1] == pytest.approx(100 / 3600)
    assert low == high > 0.0
    drawn = ElementTree.fromstring(swept.charts[0].svg())
    assert sum(each.tag.endswith("path") for each in drawn.iter()) == 4


def test_a_report_says_what_keeps_figures_from_being_compared() -> None:
    result = seeded(1)
    other = msgspec.structs.replace(result, policy="las", jobs=(msgspec.structs.replace(result.jobs[0], seconds=1.0),))
    assert report_of([result, other]).notes == [
        "These results are not of the same jobs; their figures cannot be compared."
    ]
    assert (
        "not of the same number of devices" in report_of([result, msgspec.structs.replace(result, devices=8)]).notes[0]
    )
    assert "ended early" in report_of([msgspec.structs.replace(result, submitted=2)]).notes[0]
    assert not report_of([result, seeded(1, policy="las")]).notes
