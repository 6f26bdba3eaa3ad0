"""The examples end to end: `corral up`, `corral submit`, real libraries, placements and runtime."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from corral.kernel.tokens import derived_secret
from tests.frameworks.environments import ROOT, cache_folder, digits, environment
from tests.frameworks.notebook_visits import NotebookVisit
from tests.frameworks.platform import Platform
from tests.waiting import pause

pytestmark = [pytest.mark.frameworks, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    made = Platform(tmp_path_factory.mktemp("platform"))
    made.up()
    yield made
    made.down()


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """A folder whose path leaves room for a Unix socket's name."""
    with tempfile.TemporaryDirectory(prefix="demo-") as folder:
        yield Path(folder)


@contextmanager
def demo(folder: Path, *, epochs: int = 0) -> Iterator[subprocess.Popen[str]]:
    """The demo as a terminal starts it, in a process group of its own, with its temporary files in `folder`.

    With `epochs` the demo's `python` trains for that many.
    """
    python = environment("pytorch") / "python"
    env = {name: value for name, value in os.environ.items() if not name.startswith("CORRAL_")}
    env |= {"CORRAL_CACHE": str(cache_folder()), "TMPDIR": str(folder), "PYTHONUNBUFFERED": "1"}
    if epochs:
        found = folder / "bin" / "python"
        found.parent.mkdir()
        found.write_text(f'#!/bin/sh\n[ "$1" != train.py ] || set -- "$@" --epochs {epochs}\nexec {python} "$@"\n')
        found.chmod(0o755)
        env["PATH"] = f"{found.parent}{os.pathsep}{env['PATH']}"
    program = [sys.executable, str(ROOT / "examples" / "demo.py")]
    options: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    with subprocess.Popen(program, env=env, start_new_session=True, **options) as process:
        try:
            yield process
        finally:
            process.kill()


def test_the_demo_trains_and_leaves_nothing_running(short_folder: Path) -> None:
    with demo(short_folder) as running:
        printed, _ = running.communicate(timeout=500)
        assert running.returncode == 0, printed
    assert re.search(r"accuracy +0\.9\d", printed)
    assert re.search(r"worker-1 +local/node\d, device \d", printed)
    assert re.search(r"http://127\.0\.0\.1:\d+/sign-in#link=\S+", printed)
    assert_nothing_is_left(short_folder)


def test_a_demo_that_is_interrupted_stops_what_it_started(short_folder: Path) -> None:
    with demo(short_folder, epochs=10**9) as running:
        assert running.stdout is not None
        # A command that the demo runs would be interrupted too, with an exit of its own; by now it only follows the
        # log.
        begun = next(line for line in running.stdout if "training on" in line)
        assert of_the_demo(short_folder) - {running.pid}, begun
        os.killpg(running.pid, signal.SIGINT)
        printed, _ = running.communicate(timeout=500)
        assert running.returncode == 130, printed
    assert "Traceback" not in printed
    assert_nothing_is_left(short_folder)


def assert_nothing_is_left(folder: Path) -> None:
    begun = time.monotonic()
    while left := of_the_demo(folder):  # a process that was ended is there for a moment longer
        assert time.monotonic() - begun < 120, left
        time.sleep(pause(begun))
    assert list(folder.glob("corral-*")) == []  # PyTorch leaves an empty folder of its own here


def of_the_demo(folder: Path) -> set[int]:
    """All processes that the demo started; each has the demo's folder for temporary files."""
    return {pid for pid, _ in processes() if f"TMPDIR={folder}\0" in file_of(pid, "environ")}


def file_of(pid: int, name: str) -> str:
    try:
        return Path(f"/proc/{pid}/{name}").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return ""  # it has just ended, or belongs to another user


def processes() -> Iterator[tuple[int, str]]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            yield int(entry.name), file_of(int(entry.name), "cmdline").replace("\0", " ")


def test_elastic_pytorch_goes_on_when_a_worker_is_killed_and_when_it_is_scaled(platform: Platform) -> None:
    file = platform.example("pytorch/elastic.yaml", environment("pytorch"))
    file.write_text(file.read_text().replace("train.py", f"train.py --data {digits()}"))
    job = platform.submit(file)
    platform.corral("scale", job, "2")
    platform.wait_for(job, r"epoch \d+/120 .* processes 2")
    done = last_epoch(platform, job)
    os.kill(training_process(platform, job, "worker.1"), signal.SIGKILL)
    wait_for_start(platform, job, 2, after=done)
    platform.corral("scale", job, "3")
    wait_for_start(platform, job, 3, after=done)
    platform.wait_for(job, r"epoch \d+/120 .* processes 3")
    done = last_epoch(platform, job)
    platform.corral("scale", job, "2")
    wait_for_start(platform, job, 2, after=done)
    assert platform.client.job(job)["attempt"] == 0, "the job began again instead"
    platform.corral("stop", job)


def last_epoch(platform: Platform, job: str) -> int:
    return max(int(epoch) for epoch in re.findall(r"epoch (\d+)/120", platform.log(job)))


def wait_for_start(platform: Platform, job: str, size: int, *, after: int) -> None:
    """Wait until `size` processes have met and go on after an epoch later than `after`."""
    later = "|".join(str(epoch) for epoch in range(120, after, -1))
    platform.wait_for(job, rf"with {size} processes from epoch (?:{later})\b")


def training_process(platform: Platform, job: str, task: str) -> int:
    """The pid of the program itself, below its task's shim, runtime and torchrun."""
    (pid,) = [
        pid
        for pid, command in processes()
        if command.startswith("python train.py") and f"/{job}.0.{task}." in folder_of(pid)
    ]
    return pid


def folder_of(pid: int) -> str:
    """The working folder of a process; "" once it has ended."""
    try:
        return os.readlink(f"/proc/{pid}/cwd")
    except OSError:
        return ""


def test_tensorflow_runs_on_the_server(platform: Platform) -> None:
    log = platform.run(platform.example("tensorflow/job.yaml", environment("tensorflow")))
    assert "worker 0 of 2: loss 0.0" in log
    assert "worker 1 of 2: loss 0.0" in log


def test_jax_runs_on_the_server(platform: Platform) -> None:
    log = platform.run(platform.example("jax/job.yaml", environment("jax")))
    assert "process 0 of 2: error 0.0" in log
    assert "process 1 of 2: error 0.0" in log


def test_mpi_runs_on_the_server(platform: Platform) -> None:
    if shutil.which("mpirun") is None:
        pytest.skip("Open MPI is not here: apt-get install openmpi-bin")
    log = platform.run(platform.example("mpi/job.yaml", environment("mpi")))
    assert re.search(r"pi is 3\.1415926536, by 3 ranks: 0=worker-0 1=worker-\d 2=worker-\d", log)


def test_elastic_horovod_goes_on_with_whoever_is_there(platform: Platform) -> None:
    file = platform.example("horovod/job.yaml", environment("horovod"))
    job = platform.submit(file)
    platform.corral("scale", job, "3")
    platform.wait_for(job, r"step \d+/200 on worker-2: rank \d of 3\b")
    platform.corral("scale", job, "2")
    platform.wait_for(job, r"step \d+/200 on worker-0: rank \d of 2\b")
    platform.corral("scale", job, "3")
    platform.wait_for(job, r"of 2, .*\n(?:.*\n)*.*step \d+/200 on worker-\d: rank 2 of 3\b")
    platform.corral("stop", job)


def test_roles_find_each_other_on_the_server(platform: Platform) -> None:
    assert "client 2 fetched" in platform.run(platform.example("shell/job.yaml"))


def test_a_notebook_opens_with_the_token_that_the_server_can_compute(platform: Platform) -> None:
    import httpx2

    from corral.datafolder import read_key
    from corral.kernel.tokens import job_secret

    job = platform.submit(platform.example("notebook/job.yaml", environment("notebook")))
    url = platform.wait_for(job, r"http://127\.0\.0\.1:\d+/proxy/[0-9a-z]+/main-0/notebook/")[0]
    key = read_key(Path(platform.data))
    token = derived_secret(job_secret(key, job), "notebook")
    answer = httpx2.get(f"{url}api/contents", headers={"Authorization": f"token {token}"}, timeout=60)
    assert "first.ipynb" in [entry["name"] for entry in answer.json()["content"]]
    assert httpx2.get(f"{url}api/contents", timeout=60).status_code == 403
    listed = platform.corral("exec", job, "main-0", "--", "jupyter", "server", "list")
    assert f"{url}?token={token}" in listed
    server = platform.client.url
    visit = NotebookVisit(server, str(platform.client.open_service(job, "main", 0, "notebook")["url"]))
    assert urlsplit(url).path == visit.base
    page = visit.get("lab")
    assert page.status_code == 200 and "<title>JupyterLab</title>" in page.text
    assert "first.ipynb" in [entry["name"] for entry in visit.get("api/contents").json()["content"]]
    assert visit.run("print(6 * 7)") == "42\n"
    visit.http.close()
    platform.corral("stop", job)


@pytest.mark.parametrize("roles", [{"worker": 11}, {"worker": 5, "server": 4}], ids=["one role", "two roles"])
def test_ranks_follow_the_racks_nodes_and_switches(platform: Platform, roles: dict[str, int]) -> None:
    telling = 'echo "rank $RANK of $WORLD_SIZE, $CORRAL_RANK, on $CORRAL_NODE $CORRAL_DEVICES"'
    needs = {"cpu": "0.1", "devices": 1}
    holder = platform.client.submit(json.dumps(shell_job("holder", {"main": (1, needs, "sleep 1000")})))
    tasks = {name: (count, needs, telling) for name, count in roles.items()}
    ranked = platform.client.submit(json.dumps(shell_job("ranked", tasks) | {"framework": "pytorch"}))
    assert platform.client.wait(ranked["id"])["state"] == "succeeded"
    platform.corral("stop", "--wait", holder["id"])
    told = re.findall(r"rank (\d+) of (\d+), (\d+), on (\S+) (\d)", platform.log(ranked["id"]))
    assert sorted(int(rank) for rank, *_ in told) == list(range(sum(roles.values())))
    assert all(rank == own and int(size) == len(told) for rank, size, own, *_ in told)
    ring = [(node, int(device)) for _, _, _, node, device in sorted(told, key=lambda line: int(line[0]))]
    racks = {"local/node1": 1, "local/node2": 1, "local/node3": 2, "local/node4": 2}
    for place in (lambda at: racks[at[0]], lambda at: at[0], lambda at: (at[0], at[1] // 2)):
        visited = [place(at) for at in ring]
        assert crossings(visited) == len(set(visited)), f"the ring comes twice through a place: {ring}"


def shell_job(name: str, roles: dict[str, tuple[int, dict[str, Any], str]]) -> dict[str, Any]:
    told = {
        role: {"replicas": count, "resources": needs, "command": command}
        for role, (count, needs, command) in roles.items()
    }
    return {"name": name, "framework": "shell", "roles": told}


def crossings(ring: list[Any]) -> int:
    """The number of times that a ring goes from one cell to another."""
    return sum(before != after for before, after in pairwise([*ring, ring[0]]))


def test_an_external_job_holds_its_devices_until_it_is_stopped(platform: Platform) -> None:
    job = platform.submit(platform.example("external/job.yaml"))
    for replicas in (2, 1):
        platform.corral("scale", job, str(replicas))
        for _ in platform.client.events(after=0, job=job):
            tasks = platform.client.job(job)["tasks"]
            if tasks["running"] == tasks["total"] == replicas:
                break
        assert [len(place["devices"]) for place in platform.client.job(job)["placement"]] == [2] * replicas
    platform.corral("stop", "--wait", job)
    assert platform.client.job(job)["state"] == "stopped"


def test_the_benchmarks_of_pytorch_run_over_two_nodes(platform: Platform, tmp_path: Path) -> None:
    suite, results = tmp_path / "suite.yaml", tmp_path / "results.jsonl"
    suite.write_text(
        """
superbench:
  benchmarks:
    all-reduce: {modes: [{name: torch.distributed, node_num: 2}], parameters: {most_mib: 1, repeat: 1}}
    all-reduce:mpi: {modes: [{name: mpi, proc_num: 2, node_num: 2}], parameters: {most_mib: 1, repeat: 1}}
    tcp-bw: {modes: [{name: mpi, proc_num: 1, node_num: 2}], parameters: {size_mib: 1}}
    model-benchmarks: {parameters: {steps: 1, warmup: 0, batch_size: 2}}
"""
    )
    python = str(environment("horovod") / "python")
    asked = ("--suite", str(suite), "--nodes", "node1,node2", "--python", python, "--results", str(results))
    platform.corral("benchmark", "run", *asked)
    for line in map(json.loads, results.read_text().splitlines()):
        for name in ("all-reduce", "all-reduce:mpi"):
            assert line[f"{name}/largest_bw:0"] > 0 and line[f"{name}/smallest_lat:0"] > 0
        assert line["tcp-bw/pair_bw:0"] > 0 and line["tcp-bw/pair_lat:0"] > 0
        steps = {f"model-benchmarks/{model}_step_time:0" for model in ("resnet", "transformer", "lstm", "recommender")}
        assert steps <= set(line)
