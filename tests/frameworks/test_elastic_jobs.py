"""Real elastic jobs shrink for other jobs, grow again and keep learning; only the scheduler decides when."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from corral.scheduler.policy.history import SETTLING_SECONDS
from tests.frameworks.environments import digits, environment
from tests.frameworks.platform import Platform

pytestmark = [pytest.mark.frameworks, pytest.mark.timeout(600)]

CLUSTER = """
kind: Cluster
node: {cpu: 8, memory: 16Gi, shm: 1Gi, devices: {count: 2, kind: gpu, model: described-a100, memory: 40Gi}}
racks: {rack1: {nodes: [node1, node2]}}
"""
"""Four devices on two nodes: an elastic job of four workers fills them."""


EPOCH = r"epoch (\d+)/\d+ loss ([\d.]+) .* processes {}\b"


ONE_NODE = """
kind: Cluster
node: {cpu: 8, memory: 16Gi, shm: 1Gi, devices: {count: 4, kind: gpu, model: described-a100, memory: 40Gi}}
nodes: [node1]
---
kind: Policy
allot: goodput
"""


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    made = Platform(tmp_path_factory.mktemp("platform"), cluster=CLUSTER)
    made.up()
    yield made
    made.down()


@pytest.fixture
def by_goodput(tmp_path: Path) -> Iterator[Platform]:
    """Four devices on one node, and jobs are sized by what they report."""
    made = Platform(tmp_path, cluster=ONE_NODE)
    made.up()
    yield made
    made.down()


def test_a_torchrun_job_goes_from_four_workers_to_two_and_back_while_its_loss_falls(platform: Platform) -> None:
    job = submit_for(platform, "pytorch/elastic.yaml", "pytorch", f"{train()} --epochs 60 --pause 0.5")
    goes_from_four_to_two_and_back(platform, job, r"epoch (\d+)/60 loss ([\d.]+) .* processes {}\b")


def test_a_horovod_job_goes_from_four_workers_to_two_and_back_while_its_loss_falls(
    platform: Platform, tmp_path: Path
) -> None:
    enough = tmp_path / "enough"
    command = f"exec python train.py --steps {10**6} --pause 0.3 --rate 0.0005 --enough {enough}"
    job = submit_for(platform, "horovod/job.yaml", "horovod", command)
    goes_from_four_to_two_and_back(platform, job, r"step (\d+)/\d+ on \S+ rank 0 of {}, loss ([\d.]+)", enough)


def test_a_torchrun_job_whose_rendezvous_moves_goes_on_from_the_checkpoint_that_it_was_asked_for(
    platform: Platform, tmp_path: Path
) -> None:
    holder_of_two = platform.client.submit(json.dumps(holder(2)))["id"]
    epochs = tmp_path / "epochs"
    epochs.write_text(f"{10**6}")
    command = f"{train()} --epochs $(cat {epochs}) --pause 0.5 --checkpoint {tmp_path / 'checkpoint.pt'}"
    checkpoint = {"signal": "SIGUSR1", "grace": "60s"}
    job = submit_for(platform, "pytorch/elastic.yaml", "pytorch", command, checkpoint=checkpoint)
    reached(platform, job, EPOCH.format(2), after=1)
    placed = platform.client.job(job)["placement"]
    (node,) = {task["node"] for task in placed}
    try:
        platform.corral("drain", node, "--wait")
        # Each has the signal at its own moment. One that gets it after the other has ended cannot finish its epoch.
        (done,) = {epoch for task in placed for epoch in asked_to_end(platform, job, task["index"])}
        epochs.write_text(f"{done + 2}")
        platform.client.stop(holder_of_two)
        platform.wait_for(job, rf"from epoch {done + 1}\b")
        found = platform.client.job(job)
        assert (found["attempt"], found["retries"]) == (1, 0)
        (receipt,) = platform.client.receipts(job)["items"]
        assert (receipt["rule"], receipt["devices"], receipt["tasks"]) == ("drain", 2, [])
        ended = platform.client.wait(job)
        assert ended["state"] == "succeeded", "tasks that got no place join nobody when the others have ended"
    finally:
        platform.corral("uncordon", node)


def asked_to_end(platform: Platform, job: str, index: int) -> list[int]:
    """The epochs after which a task of the first attempt ended as it was asked to."""
    log = b"".join(platform.client.log(job, "worker", index, attempt=f"{job}.0.worker.{index}.0")).decode()
    return [int(done) for done in re.findall(r"asked to end after epoch (\d+)\b", log)]


def test_goodput_takes_back_the_workers_of_a_torchrun_job_that_its_own_reports_show_to_be_useless(
    by_goodput: Platform,
) -> None:
    holder_of_two = by_goodput.client.submit(json.dumps(holder(2)))["id"]
    # The rest after each epoch takes most of the time, so more workers bring hardly any throughput.
    job = submit_for(by_goodput, "pytorch/elastic.yaml", "pytorch", f"{train()} --epochs 400 --pause 3")
    by_goodput.wait_for(job, r"epoch \d+/400 .* processes 2\b")
    by_goodput.wait_until(job, lambda _: measured(by_goodput, job), "throughput that counts for two workers")
    by_goodput.client.stop(holder_of_two)
    grown = max(step for step, _ in reached(by_goodput, job, EPOCH.format(4), after=0))
    reached(by_goodput, job, EPOCH.format(2), after=grown)
    found = by_goodput.client.job(job)
    assert (found["attempt"], found["retries"]) == (0, 0)
    # On a busy machine two workers may look slow for a while: then it tries four again, and takes them back again.
    receipts = by_goodput.client.receipts(job)["items"]
    assert {(each["rule"], each["byJob"], each["devices"]) for each in receipts} == {("shrink", "", 2)}, (
        "nobody else wanted the devices"
    )
    work = found["work"]
    assert work is not None and (work["gradientNoise"] is None or work["gradientNoise"] > 0)


def measured(platform: Platform, job: str) -> bool | None:
    """Whether a throughput was reported that counts for the size at which the job started; None: not yet."""
    found = platform.client.job(job)
    work, started = found["work"], found["startedAt"]
    if work is None or started is None or work["throughput"] is None:
        return None
    ran = datetime.fromisoformat(work["at"]) - datetime.fromisoformat(started)
    return ran.total_seconds() > SETTLING_SECONDS or None


def train() -> str:
    """The PyTorch example's command, spared the import of scikit-learn."""
    return f"exec python train.py --data {digits()}"


def submit_for(platform: Platform, path: str, library: str, command: str, **fields: Any) -> str:
    """Submit an example's elastic job, long enough to be watched and short enough to end in the test; returns its id."""
    file = platform.example(path, environment(library))
    document = yaml.safe_load(file.read_text()) | fields
    document["roles"]["worker"]["command"] = command
    file.write_text(yaml.safe_dump(document))
    return platform.submit(file)


def goes_from_four_to_two_and_back(platform: Platform, job: str, learned: str, enough: Path | None = None) -> None:
    """Shrink and grow a job; `learned` matches a step and its loss in the log, with `{}` for the number of processes.

    A job that looks for the file `enough` ends then.
    """
    first = reached(platform, job, learned.format(4), after=0)
    begun, _ = max(first)
    other = platform.client.submit(json.dumps(holder(2)))["id"]
    second = reached(platform, job, learned.format(2), after=begun)
    shrunk, _ = max(second)
    # A ring is smaller before its tasks have ended, so the other job may still start.
    platform.wait_until(other, lambda _: platform.client.job(other)["state"] == "running" or None, "state running")
    assert {task["index"] for task in platform.client.job(job)["placement"]} >= {0}
    assert len(platform.client.job(job)["placement"]) == 2
    platform.client.stop(other)
    third = reached(platform, job, learned.format(4), after=shrunk)
    if enough is not None:
        enough.touch()
    ended = platform.client.wait(job)
    assert ended["state"] == "succeeded", platform.log(job)[-4000:]
    assert (ended["attempt"], ended["retries"]) == (0, 0), "the job began again instead"
    two, four = (steps(platform.log(job), learned.format(size)) for size in (2, 4))  # without restarted tasks
    best = (
        min(loss for _, loss in first),
        min(loss for step, loss in second + two if step > begun),
        min(loss for step, loss in third + four if step > shrunk),
    )
    assert best[0] > best[1] > best[2], f"its best loss does not fall: {best}"
    (receipt,) = platform.client.receipts(job)["items"]
    assert (receipt["rule"], receipt["devices"], receipt["byJob"], receipt["state"]) == ("shrink", 2, other, "returned")


def reached(platform: Platform, job: str, learned: str, *, after: int) -> list[tuple[int, float]]:
    """Wait until a step after `after` was taken by `size` processes; returns the steps known so far."""

    def known(log: str) -> list[tuple[int, float]] | None:
        found = steps(log, learned)
        return found if max(found, default=(0, 0.0))[0] > after else None

    return platform.wait_until(job, known, f"step after {after} ({learned})")


def steps(log: str, learned: str) -> list[tuple[int, float]]:
    """The steps in a log, each with its loss."""
    return [(int(step), float(loss)) for step, loss in re.findall(learned, log)]


def holder(devices: int) -> dict[str, Any]:
    """A job of one task that holds `devices` devices until it is stopped."""
    role = {"resources": {"cpu": "0.1", "devices": devices}, "command": "sleep 1000"}
    return {"name": "holder", "framework": "shell", "roles": {"main": role}}
