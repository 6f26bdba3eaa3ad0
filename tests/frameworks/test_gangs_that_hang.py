"""Real gangs of PyTorch and gloo that hang, or only seem to: who is odd is named, and healthy ones are left alone."""

from __future__ import annotations

import io
import json
import tarfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.frameworks.environments import WITHOUT_COMPILER, environment
from tests.frameworks.platform import Platform
from tests.waiting import pause

pytestmark = [pytest.mark.frameworks, pytest.mark.timeout(600)]

HEAD = """\
import os, signal, sys, threading, time, torch, torch.distributed as dist
torch.set_num_threads(1)
rank = int(os.environ["CORRAL_TASK_INDEX"])
dist.init_process_group("gloo", init_method=f"file://{sys.argv[1]}", rank=rank, world_size=int(sys.argv[2]))
def train_step():
    dist.all_reduce(torch.ones(8))
for _ in range(3): train_step()
print(f"ready {rank}", flush=True)
"""
STOPS_INSIDE = (
    HEAD
    + """\
stopping = f"{sys.argv[1]}.stopping"
def stop(thread):
    def is_within():
        frame = sys._current_frames()[thread]
        while frame and frame.f_code.co_name != "all_reduce": frame = frame.f_back
        return frame is not None
    while not is_within(): time.sleep(0.01)
    time.sleep(1.0)  # it has begun to wait for the last rank, which comes when this one has stopped
    with open(f"{stopping}.new", "w") as file: file.write(str(os.getpid()))
    os.rename(f"{stopping}.new", stopping)
    os.kill(os.getpid(), signal.SIGSTOP)
if rank == 2:
    threading.Thread(target=stop, args=(threading.get_ident(),), daemon=True).start()
def is_stopped():
    if not os.path.exists(stopping): return False
    with open(stopping) as file, open(f"/proc/{file.read()}/stat") as stat: return ") T " in stat.read()
while rank == 3 and not is_stopped(): time.sleep(0.01)
train_step()
"""
)
BEGINS_ANEW = (
    """\
import os, sys, corral
if os.environ["CORRAL_ATTEMPT"].split(".")[1] != "0": sys.exit()
"""
    + HEAD
    + """\
def load_shard():
    threading.Event().wait()
corral.report(step=3)
if rank == 1: load_shard()
train_step()
"""
)
WORKS = (
    HEAD
    + """\
def work():
    {work}
while rank == 0 and not os.path.exists(f"{{sys.argv[1]}}.enough"): work()
train_step()
dist.destroy_process_group()  # else a thread of gloo that frees its last tensor while Python ends aborts the process
"""
)
SAVES = 'torch.save(torch.ones(2**20), f"{sys.argv[1]}.checkpoint")'
COMPILES = 'compile("x = 1" + " + (1 + y)" * 500, "program", "exec")'
SLOWED = (
    HEAD
    + """\
import corral
for step in range(10**6):
    time.sleep(1.0 if rank == 1 else 0.5)
    corral.report(step=step)
    if step % 1000 == 999: train_step()
"""
)
MEETS = (
    HEAD
    + """\
import corral
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from torch.nn.parallel import DistributedDataParallel
def timed(group, bucket):
    future = allreduce_hook(group, bucket)
    if bucket.is_last():
        with corral.waiting():
            future.wait()
    return future
model = DistributedDataParallel(torch.nn.Linear(8, 1))
model.register_comm_hook(None, timed)
for step in range(10**6):
    time.sleep(1.0 if rank == 1 else 0.5)
    model(torch.ones(4, 8)).sum().backward()
    corral.report(step=step)
"""
)
CLUSTER = """\
kind: Cluster
node: {cpu: 16, memory: 16Gi}
nodes: [node1]
queues:
  default: {}
  watched: {hangs: {atLeast: 5s}}
  anew: {hangs: {atLeast: 5s, action: restart}}
"""


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    made = Platform(tmp_path_factory.mktemp("hanging"), cluster=CLUSTER)
    made.up()
    yield made
    made.down()


def running(platform: Platform, name: str, program: str, *, tasks: int, **fields: Any) -> str:
    """A gang that has made some steps."""
    script = platform.folder / f"{name}.py"
    script.write_text(program)
    meeting = platform.folder / f"{name}.meeting"
    command = [str(environment("pytorch") / "python"), str(script), str(meeting), str(tasks)]
    role = {"replicas": tasks, "resources": {"cpu": "0.1"}, "command": command}
    document = {"name": name, "framework": "shell", "queue": "watched", "roles": {"worker": role}, **fields}
    document["env"] = {"PYTHONPATH": str(WITHOUT_COMPILER)}
    file = platform.folder / f"{name}.yaml"
    file.write_text(yaml.safe_dump(document))
    job = platform.submit(file)
    for index in range(tasks):
        platform.wait_for(job, f"ready {index}")
    return job


def hung(platform: Platform, job: str) -> Mapping[str, Any]:
    """The first hang that is told of a job."""
    begun = time.monotonic()
    while time.monotonic() - begun < 400:
        if items := platform.client.job_hangs(job)["items"]:
            return dict(items[-1])
        time.sleep(pause(begun, most=1.0))
    raise AssertionError(f"no hang was told:\n{platform.log(job)}")


def test_a_rank_that_stops_inside_an_all_reduce_is_named_with_a_bundle(platform: Platform) -> None:
    job = running(platform, "stops", STOPS_INSIDE, tasks=4)
    found = hung(platform, job)
    assert found["odd"] == ["worker-2"]
    assert found["collective"] == "all_reduce"
    assert found["place"].startswith("train_step (stops.py:")
    assert found["why"].startswith("worker-2 is stopped in all_reduce at ")
    (event,) = [each for each in platform.client.job_events(job)["items"] if each["kind"] == "job.hung"]
    assert "3 others wait in all_reduce" in event["message"]
    platform.corral("profile", "hung", "stops")
    packed = b"".join(platform.client.hang_bundle(job, found["bundle"]))
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        files = {each.name: archive.extractfile(each).read() for each in archive}  # type: ignore[union-attr]
    assert {"summary.json", "figures.json", *(f"worker-{rank}.all.log" for rank in range(4))} <= set(files)
    assert len([name for name in files if name.endswith(".stacks-2.json")]) == 4
    assert b"ready 2" in files["worker-2.all.log"]
    assert json.loads(files["summary.json"])["ranks"][2]["standing"] == "stopped"
    platform.corral("stop", job)


def test_a_gang_whose_rank_never_comes_to_a_collective_is_restarted_by_its_queue(platform: Platform) -> None:
    job = running(platform, "anew", BEGINS_ANEW, tasks=2, queue="anew", report=True, profile=True)
    found = hung(platform, job)
    assert (found["odd"], found["action"]) == (["worker-1"], "restart")
    assert found["place"].startswith("load_shard (anew.py:")
    assert found["why"].startswith("worker-1 is behind in all_reduce number 3 at load_shard (anew.py:")
    assert (found["collective"], found["number"]) == ("all_reduce", 3)
    assert platform.client.wait(job, timeout=400)["state"] == "succeeded"
    (event,) = [each for each in platform.client.job_events(job)["items"] if each["kind"] == "job.hung"]
    assert event["message"].startswith("No step was reported for ")


@pytest.mark.parametrize("work", [SAVES, COMPILES], ids=["saves a large checkpoint", "compiles"])
def test_a_gang_that_waits_for_a_rank_that_works_is_not_called_hung(platform: Platform, work: str) -> None:
    name = f"works-{work is SAVES:d}"
    job = running(platform, name, WORKS.replace("{work}", work).replace("{{", "{").replace("}}", "}"), tasks=2)
    log = Path(platform.data) / "logs" / "control.log"
    begun = time.monotonic()
    while not any("a silent job works" in line and job in line for line in log.read_text().splitlines()):
        assert time.monotonic() - begun < 400, platform.client.job_hangs(job)
        time.sleep(pause(begun, most=1.0))
    (platform.folder / f"{name}.meeting.enough").touch()
    assert platform.client.wait(job, timeout=400)["state"] == "succeeded", platform.log(job)
    assert platform.client.job_hangs(job)["items"] == []


def test_a_rank_that_is_slowed_to_half_has_half_the_score_of_its_peers(platform: Platform) -> None:
    for name, program, holds in (("slowed", SLOWED, is_known), ("meets", MEETS, waits_are_known)):
        job = running(platform, name, program, tasks=3, report=True, queue="default")
        until_ranks(platform, job, holds)
        assert "worker-1" in platform.corral("profile", "ranks", job).splitlines()[1]
        assert platform.client.job_hangs(job)["items"] == []
        platform.corral("stop", job)


Ranks = Mapping[str, Mapping[str, Any]]
"""What is known of each rank of a gang, by its task, the slowest first."""


def is_known(ranks: Ranks) -> bool:
    """Whether the second of three ranks is known to be slower than its peers."""
    scores = {task: each["score"] for task, each in ranks.items()}
    if len(scores) < 3 or next(iter(scores)) != "worker-1":
        return False
    return bool(scores["worker-1"] < 0.7 and min(scores["worker-0"], scores["worker-2"]) > 0.9)


def waits_are_known(ranks: Ranks) -> bool:
    """Whether it is so though all ranks wait for each other, so that they make the same steps."""
    paces = [each["stepsPerSecond"] for each in ranks.values()]
    if not is_known(ranks) or max(paces) >= 1.3 * min(paces):
        return False
    return bool(ranks["worker-1"]["waits"] < 0.25 < ranks["worker-0"]["waits"])


def until_ranks(platform: Platform, job: str, holds: Callable[[Ranks], bool]) -> None:
    """Wait until this holds of the ranks of a gang: a busy machine slows each of them now and then."""
    begun = time.monotonic()
    ranks: dict[str, Mapping[str, Any]] = {}
    while not holds(ranks):
        assert time.monotonic() - begun < 400, f"{ranks}\n{platform.log(job)}"
        time.sleep(pause(begun, most=1.0))
        items = platform.client.job_ranks(job)["items"]
        ranks = {each["task"]: each for each in items if each["score"] is not None}
