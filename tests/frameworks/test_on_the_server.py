"""The examples as people run them: `corral up`, `corral submit`, the real libraries, placements and runtime included."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from corral.client import Client
from corral.kernel.tokens import derived_secret
from tests.frameworks.environments import ROOT, cache_folder, environment

pytestmark = [pytest.mark.frameworks, pytest.mark.timeout(600)]
BIN = Path(sys.executable).parent


class Platform:
    """A server of its own, and its command line with somebody signed in."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.env = {name: value for name, value in os.environ.items() if not name.startswith("CORRAL_")}
        self.env["XDG_CONFIG_HOME"] = str(folder / "config")
        self.data = str(folder / "data")

    def up(self) -> None:
        cluster = str(ROOT / "examples" / "cluster.yaml")
        up = self.corral("up", "--detach", "--port", "0", "--cluster", cluster, "--data", self.data, "-o", "json")
        facts = json.loads(up)
        self.client = Client(facts["url"])
        self.client.login(link=facts["link"].partition("#link=")[2])
        self.env |= {"CORRAL_URL": self.client.url, "CORRAL_TOKEN": self.client.token}

    def down(self) -> None:
        self.client.close()
        self.corral("down", "--stop-jobs", "--data", self.data)

    def corral(self, *words: str, code: int = 0) -> str:
        done = subprocess.run([BIN / "corral", *words], env=self.env, capture_output=True, text=True, timeout=500)
        assert done.returncode == code, f"corral {' '.join(words)}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def example(self, path: str, bin_folder: Path | None = None) -> Path:
        """A copy of an example whose tasks find the programs of `bin_folder` first."""
        folder = self.folder / f"{time.monotonic_ns()}"
        shutil.copytree(ROOT / "examples" / Path(path).parent, folder)
        file = folder / Path(path).name
        document = yaml.safe_load(file.read_text())
        if bin_folder is not None:
            document["env"] = {"PATH": f"{bin_folder}{os.pathsep}{os.environ['PATH']}"}
        file.write_text(yaml.safe_dump(document))
        return file

    def run(self, file: Path) -> str:
        """Submit and follow; what the job printed. The exit code is the job's."""
        return self.corral("submit", "-f", str(file))

    def submit(self, file: Path) -> str:
        return self.corral("submit", str(file), "-o", "name").strip()

    def wait_for(self, job: str, pattern: str, seconds: float = 400) -> re.Match[str]:
        """Wait until the job's log matches."""
        deadline = time.monotonic() + seconds
        while True:
            log = b"".join(self.client.log(job)).decode(errors="replace")
            if found := re.search(pattern, log):
                return found
            state = self.client.job(job)["state"]
            assert state not in ("failed", "succeeded", "stopped"), f"{state} before {pattern!r}:\n{log[-4000:]}"
            assert time.monotonic() < deadline, f"no {pattern!r} in:\n{log[-4000:]}"
            time.sleep(0.2)


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


def test_the_demo_trains_and_leaves_nothing_running(short_folder: Path) -> None:
    environment("pytorch")
    env = {name: value for name, value in os.environ.items() if not name.startswith("CORRAL_")}
    env |= {"CORRAL_CACHE": str(cache_folder()), "TMPDIR": str(short_folder)}
    demo = [sys.executable, ROOT / "examples" / "demo.py"]
    done = subprocess.run(demo, env=env, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"accuracy +0\.9\d", done.stdout)
    assert re.search(r"worker-1 +local/node\d, device \d", done.stdout)
    assert re.search(r"http://127\.0\.0\.1:\d+/sign-in#link=\S+", done.stdout)
    assert not [pid for pid, command in processes() if str(short_folder) in command]
    assert list(short_folder.glob("corral-*")) == []  # PyTorch leaves an empty folder of its own here


def processes() -> Iterator[tuple[int, str]]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                yield int(entry.name), (entry / "cmdline").read_text().replace("\0", " ")
            except (FileNotFoundError, ProcessLookupError):
                continue  # it has just ended


def test_elastic_pytorch_is_scaled_down_and_up_while_it_trains(platform: Platform) -> None:
    job = platform.submit(platform.example("pytorch/elastic.yaml", environment("pytorch")))
    platform.corral("scale", job, "3")
    platform.wait_for(job, r"epoch \d+/120 .* processes 3")
    platform.corral("scale", job, "2")
    before = int(platform.wait_for(job, r"epoch (\d+)/120 .* processes 2")[1])
    platform.corral("scale", job, "3")
    after = int(platform.wait_for(job, r"processes 2\n(?:.*\n)*.*epoch (\d+)/120 .* processes 3")[1])
    assert 1 < before < after, "it began again from nothing"
    platform.corral("stop", job)


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
    platform.corral("scale", job, "2")
    platform.wait_for(job, r"step \d+/100 on worker-1: rank \d of 2")
    platform.corral("scale", job, "1")
    platform.wait_for(job, r"step \d+/100 on worker-0: rank 0 of 1")
    platform.corral("scale", job, "2")
    platform.wait_for(job, r"of 1\n(?:.*\n)*.*step \d+/100 on worker-\d: rank 1 of 2")
    platform.corral("stop", job)


def test_roles_find_each_other_on_the_server(platform: Platform) -> None:
    assert "client 2 fetched" in platform.run(platform.example("shell/job.yaml"))


def test_a_notebook_opens_with_the_token_that_the_server_can_compute(platform: Platform) -> None:
    import httpx2

    from corral.datafolder import read_key
    from corral.kernel.tokens import job_secret

    job = platform.submit(platform.example("notebook/job.yaml", environment("notebook")))
    url = platform.wait_for(job, r"http://127\.0\.0\.1:\d+/proxy/[0-9a-z]+/main-0/")[0]
    key = read_key(Path(platform.data))
    token = derived_secret(job_secret(key, job), "notebook")
    answer = httpx2.get(f"{url}api/contents", headers={"Authorization": f"token {token}"})
    assert "first.ipynb" in [entry["name"] for entry in answer.json()["content"]]
    assert httpx2.get(f"{url}api/contents").status_code == 403
    listed = platform.corral("exec", job, "main-0", "--", "jupyter", "server", "list")
    assert f"{url}?token={token}" in listed
    platform.corral("stop", job)
