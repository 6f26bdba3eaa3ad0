"""The critical path of a real gloo job in which two groups of two ranks exchange, each at its own pace."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from corral.profiles.critical_path import critical_path
from corral.profiles.trace_events import read_events
from corral.profiles.trace_report import report
from tests.frameworks.environments import environment
from tests.reserved import free_port

pytestmark = [pytest.mark.frameworks, pytest.mark.timeout(600)]

PROGRAM = """
import sys, time, torch, torch.distributed as group
from torch.profiler import ProfilerActivity, profile
group.init_process_group("gloo")
rank = group.get_rank()
groups = [group.new_group([0, 1]), group.new_group([2, 3])]
mine, sent = groups[rank // 2], torch.ones(1000)

def step():
    # The first group exchanges once, and waits for rank 1; the other one four times, and sends a message.
    for _ in range(1 if rank < 2 else 4):
        time.sleep(0.4 if rank == 1 else 0.02 if rank == 2 else 0)
        group.all_reduce(sent, group=mine)
    if rank == 2:
        group.send(sent, 3)
    elif rank == 3:
        group.recv(sent, 2)
    group.all_reduce(sent)

step()
with profile(activities=[ProfilerActivity.CPU]) as made:
    for _ in range(6):
        step()
made.export_chrome_trace(f"{sys.argv[1]}/{rank}.json")
"""


def traces(folder: Path) -> list[str]:
    """The traces of the four ranks."""
    env = {"PATH": os.environ["PATH"], "OMP_NUM_THREADS": "1", "WORLD_SIZE": "4"}
    env |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    argv = [str(environment("pytorch") / "python"), "-c", PROGRAM, str(folder)]
    running = [subprocess.Popen(argv, env={**env, "RANK": str(rank)}, stderr=subprocess.PIPE) for rank in range(4)]
    said = [process.communicate(timeout=500)[1] for process in running]
    assert [process.returncode for process in running] == [0] * 4, said
    return [(folder / f"{rank}.json").read_text() for rank in range(4)]


def test_the_rank_that_its_group_waits_for_is_the_path_and_the_other_group_is_not(tmp_path: Path) -> None:
    reports = [report(f"worker-{rank}", read_events([text])) for rank, text in enumerate(traces(tmp_path))]
    assert {window.collective for each in reports for window in each.windows} >= {"gloo:all_reduce", "gloo:recv"}
    assert [len(each.windows) for each in reports] == [12, 12, 36, 36]
    path = critical_path(reports)
    assert path[0].rank == "worker-1"
    of_rank = {rank: sum(each.share for each in path if each.rank == rank) for rank in ("worker-1", "worker-2")}
    assert of_rank["worker-1"] > 0.6 > 4 * of_rank["worker-2"], path
