"""A forked child solves the programs of policies, however many threads HiGHS would have, or has in the parent."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

_SOLVES = """
import asyncio, os, sys
import numpy as np
from corral.control.what_if.forked import Fork, ForkLimits
from corral.running import new_loop
from corral.scheduler.policy.gavel.linear_program import solve
from corral.scheduler.policy.round_program import Bidder, Window, planned_rounds
from scipy.optimize._highspy import _core

def threads():
    return len(os.listdir("/proc/self/task"))

def found():
    bidders = [Bidder(1 + at % 4, at % 7 / 70, 2000.0 + 371 * at, fair_in=1e5, share=0.3) for at in range(24)]
    values = solve(np.array([-1.0, -2.0]), np.array([[1.0, 1.0]]), np.array([-9.0]), np.array([3.0]), np.full(2, 2.0))
    return repr((planned_rounds(bidders, Window(16, 12, 600.0)), values.tolist())).encode()

async def ask(compute):
    fork = Fork(compute, ForkLimits(seconds=60))
    try:
        return await fork.answer()
    finally:
        await fork.end()

async def main():
    before, own = threads(), found()
    print("begun:", threads() - before)
    if sys.argv[1:] == ["forced"]:
        _core._Highs.resetGlobalScheduler(True)
        solver, options = _core._Highs(), _core.HighsOptions()
        options.log_to_console, options.threads = False, 2
        solver.passOptions(options)
        solver.run()
        print("forced:", threads() - before)
    print("equal:", await ask(found) == own)
    print("one thread:", await ask(lambda: (found(), str(threads()).encode())[1]) == b"1")

with asyncio.Runner(loop_factory=new_loop) as runner:
    runner.run(main())
"""


def said(*arguments: str, **environment: str) -> list[str]:
    """What the program prints; numpy's own threads are left out."""
    env = {**os.environ, "OPENBLAS_NUM_THREADS": "1", **environment}
    command = [sys.executable, "-c", _SOLVES, *arguments]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.stdout.splitlines()


def test_threads_that_the_fork_has_lost_are_not_waited_for() -> None:
    begun, forced, *answers = said("forced")
    assert (begun, forced) == ("begun: 0", "forced: 1")
    assert answers == ["equal: True", "one thread: True"]


def test_a_machine_of_many_processors_has_no_more_threads_for_it(tmp_path: Path) -> None:
    """Sixty threads would have no room in the memory that a forked child may take."""
    library = tmp_path / "many_processors.so"
    source = Path(__file__).with_name("many_processors.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source], check=True)
    assert said(LD_PRELOAD=str(library)) == ["begun: 0", "equal: True", "one thread: True"]
