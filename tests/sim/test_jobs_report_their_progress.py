"""Simulated jobs report their progress by regimes, and `shockwave` plays them: no starvation, and equal digests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from corral.scheduler import Regime, find_policy, with_part
from corral.sim.machines import plain_site
from corral.sim.regimes import reported
from corral.sim.results import Result
from corral.sim.simulation import Knobs, Simulation
from corral.sim.trace import TraceJob

CHANGING = (Regime(16.0, 0.25, 500.0), Regime(64.0, 0.75, 500.0))


def played(policy: str, *jobs: TraceJob, machines: str = "1x4", reports: float = 60.0) -> Result:
    name, *parts = policy.split("+")
    rules = find_policy(name)
    for part in parts:
        rules = with_part(rules, part)
    site = plain_site(machines)
    assert site is not None
    return Simulation(jobs, site, rules, Knobs(told=False, reports=reports)).run()


def test_progress_follows_the_regimes() -> None:
    said = [reported(CHANGING, part, 0.0) for part in (0.0, 0.25, 0.5, 0.75, 1.0)]
    assert [each.progress for each in said] == pytest.approx([0.0, 0.125, 0.25, 0.625, 1.0])
    assert [each.batch_size for each in said] == [16.0, 16.0, 64.0, 64.0, 64.0]
    even = reported((), 0.3, 7.0)
    assert (even.progress, even.batch_size, even.at) == (0.3, None, 7.0)


def test_reports_reach_the_history_that_orders_read() -> None:
    """Nobody declares a duration. The running job says that it needs about 100 s more, the new one is taken for 600.

    Without reports the running job would be taken to need as long again as it has run, 940 s.
    """
    jobs = (TraceJob("old", 0.0, 1000.0, 4, regimes=CHANGING), TraceJob("new", 940.0, 3000.0, 4))
    assert not played("shockwave+order", *jobs).jobs[0].interruptions
    assert played("shockwave+order", *jobs, reports=0.0).jobs[0].interruptions


@pytest.mark.parametrize("order", ["shockwave", "shockwave-program"])
def test_a_wide_job_ends_among_short_ones_that_never_stop(order: str) -> None:
    """Short jobs keep all devices busy for 12,000 s; in order of the shortest time the wide one waits for their end."""
    short = [TraceJob(f"short-{number}", number * 100.0, 400.0, 1) for number in range(120)]
    wide = TraceJob("wide", 300.0, 1000.0, 4)
    found = {each.name: each for each in played(f"{order}+order", wide, *short).jobs}
    assert len(found) == 121 and all(each.finished for each in found.values())
    assert found["wide"].ended < 11_000.0


def test_no_device_is_idle_while_a_job_waits_that_fits() -> None:
    jobs = [TraceJob(f"job-{number}", number * 10.0, 300.0 + 40 * number, 1) for number in range(12)]
    found = played("shockwave+order", *jobs)
    assert found.utilisation * found.makespan * found.devices == pytest.approx(
        sum(job.seconds for job in jobs), rel=1e-6
    )
    busy = sorted(job.ended for job in found.jobs)[:-4]
    assert busy, "until the last four jobs all devices are in use"
    used = sum(min(end, busy[-1]) - begin for begin, end, _ in found.held if begin < busy[-1])
    assert used >= 4 * (busy[-1] - 40.0)


_SCRIPT = """
from tests.sim.test_jobs_report_their_progress import CHANGING, played
from corral.sim.trace import TraceJob
jobs = [TraceJob(f"j{n}", n * 37.0, 1000.0, 1 + n % 3, regimes=CHANGING) for n in range(14)]
print(*(played(f"{name}+order", *jobs).digest for name in ("shockwave", "shockwave-program", "gandiva-fair")))
"""


def test_a_run_has_the_same_digest_whatever_the_hash_seed() -> None:
    root = Path(__file__).parents[2]
    found = {
        subprocess.run(
            [sys.executable, "-c", _SCRIPT],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(root)},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1


def test_gandiva_fair_gives_a_narrow_and_a_wide_job_equal_time() -> None:
    jobs = (TraceJob("wide", 0.0, 2000.0, 4), TraceJob("narrow", 0.0, 2000.0, 4))
    wide, narrow = played("gandiva-fair+order", *jobs).jobs
    assert wide.interruptions + narrow.interruptions >= 8, "they take turns"
    assert abs(wide.ended - narrow.ended) <= 400.0
