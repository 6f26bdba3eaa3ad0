"""`corral profile --what torch` on real PyTorch jobs: a planted cause is the first advice."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import warm
from tests.frameworks.environments import WITHOUT_COMPILER, environment
from tests.frameworks.platform import Platform

pytestmark = [pytest.mark.frameworks, pytest.mark.timeout(600)]

LOADER = """\
import sys, time, torch
from torch.utils.data import DataLoader, Dataset
torch.set_num_threads(1)
class Images(Dataset):
    def __len__(self): return 10**9
    def __getitem__(self, index):
        time.sleep(0.02)
        return torch.ones(8)
model = torch.nn.Linear(8, 8)
rule = torch.optim.SGD(model.parameters(), 0.01)
for number, batch in enumerate(DataLoader(Images(), batch_size=4)):
    rule.zero_grad(); model(batch).sum().backward(); rule.step()
    if number == 1: print("ready", flush=True)
"""
GANG = """\
import os, sys, time, torch, torch.distributed as dist
torch.set_num_threads(1)
rank = int(os.environ["CORRAL_TASK_INDEX"])
dist.init_process_group("gloo", init_method=f"file://{sys.argv[1]}", rank=rank, world_size=2)
number = 0
while True:
    torch.ones(8).sum()
    if rank == 1: time.sleep(0.2)
    dist.all_reduce(torch.ones(8))
    number += 1
    if number == 2: print(f"ready {rank}", flush=True)
"""

LATE = re.compile("no PyTorch asked|did not write its trace")


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    folder = tmp_path_factory.mktemp("profiled")
    made = Platform(folder)
    made.up()
    yield made
    made.down()


def running(platform: Platform, name: str, program: str, *words: str, tasks: int = 1, **fields: Any) -> str:
    """A job of a PyTorch program, once its tasks have made some steps."""
    script = platform.folder / f"{name}.py"
    script.write_text(program)
    command = [str(environment("pytorch") / "python"), str(script), *words]
    role = {"replicas": tasks, "resources": {"cpu": "0.1"}, "command": command}
    document = {"name": name, "framework": "shell", "roles": {"worker": role}, **fields}
    document["env"] = {"PYTHONPATH": str(WITHOUT_COMPILER)}
    file = platform.folder / f"{name}.yaml"
    file.write_text(yaml.safe_dump(document))
    job = platform.submit(file)
    for index in range(tasks):
        platform.wait_for(job, f"ready {index}" if tasks > 1 else "ready")
    return job


def profiled(platform: Platform, *words: str) -> dict[str, Any]:
    """The facts of a trace of two seconds.

    A process that stalls for some seconds asks too late for the common start. The command says so, and is repeated then.
    """
    for _ in range(5):
        done = warm.corral(("profile", *words, "--what", "torch", "-o", "json"), env=platform.env, seconds=200)
        facts = dict(json.loads(done.stdout))
        if not (late := [each for each in facts["problems"] if LATE.search(each["problem"])]):
            assert done.returncode == 0, done.stderr
            return facts
    raise AssertionError(f"it was late each time: {late}")


def test_a_data_loader_that_is_too_slow_is_the_first_advice(platform: Platform, tmp_path: Path) -> None:
    job = running(platform, "loader", LOADER, profile=True)
    facts = profiled(platform, "loader")
    first = facts["advice"][0]
    assert first["subject"] == "data-loading"
    assert first["gain"] > 0.5
    assert max(facts["reports"][0]["timeline"]["dataWaits"]) > 0.5
    assert "num_workers" in platform.corral("profile", "show", facts["id"])
    assert "waits for data" in platform.corral("profile", "show", facts["id"], "--compare", facts["id"])
    platform.corral("profile", "download", facts["id"], "--to", str(tmp_path))
    trace = tmp_path / f"{facts['id']}-{facts['files'][0]['name']}"
    assert trace.read_bytes()[:2] == b"\x1f\x8b"
    platform.corral("stop", job)


def test_the_slow_one_of_two_ranks_is_named(platform: Platform) -> None:
    job = running(platform, "gang", GANG, str(platform.folder / "meeting"), tasks=2, profile=True)
    facts = profiled(platform, "gang", "--all")
    advice = {each["subject"]: each for each in facts["advice"]}
    assert advice["imbalance"]["rank"].startswith("worker-1 ")
    assert facts["imbalance"] > 0.15
    platform.corral("stop", job)


def test_a_job_that_does_not_offer_traces_is_told_what_to_set(platform: Platform) -> None:
    job = running(platform, "plain", "import time\nprint('ready', flush=True)\ntime.sleep(1000)\n")
    told = platform.corral("profile", "plain", "--what", "torch", "-o", "json", code=1)
    assert "set `profile: true`" in json.loads(told)["problems"][0]["problem"]
    platform.corral("stop", job)
