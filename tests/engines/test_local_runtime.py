"""Tasks under the runtime: code, secrets, the other tasks' addresses, and the lines in the log."""

from __future__ import annotations

import io
import json
import os
import stat
import sys
import tarfile
import threading
from collections.abc import AsyncIterator, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from corral.model.launch import PortRequest, RuntimePlan, SecretDelivery
from corral.storage.code_archives import BlobStore
from corral.workers.pool import Workers
from tests.engines.local_harness import Harness, attempt, launch

TOKEN = "cjt_the-job-token"


class Server(ThreadingHTTPServer):
    """The two calls that tasks make to Corral's server; the test sets the answers."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.peers: list[dict[str, Any]] = []
        self.complete = False
        self.status = 200
        self.asked = 0
        self.enough = threading.Event()
        self.url = f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.asked += 1
        if self.server.asked >= 3:
            self.server.enough.set()
        wrong = self.headers["Authorization"] != f"Bearer {TOKEN}" or not self.path.startswith("/api/v3/runtime/peers?")
        body = json.dumps({"attempt": 0, "complete": self.server.complete, "peers": self.server.peers}).encode()
        self.send_response(401 if wrong else self.server.status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        return


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as made:
        thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield made
        made.shutdown()
        thread.join()


@pytest.fixture
async def local(tmp_path: Path) -> AsyncIterator[Harness]:
    blobs = BlobStore(tmp_path / "blobs")
    blobs.open()
    async with Harness(tmp_path, blobs=blobs) as harness:
        yield harness


def asks(server: Server, **plan: Any) -> dict[str, Any]:
    return {"runtime": RuntimePlan(**plan), "api_url": server.url, "job_token": TOKEN}


async def upload(folder: Path, files: dict[str, str]) -> str:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w:gz") as tar:
        for name, text in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(text)
            tar.addfile(info, io.BytesIO(text.encode()))

    async def stream() -> AsyncIterator[bytes]:
        yield raw.getvalue()

    workers = Workers()
    try:
        return (await BlobStore(folder / "blobs").put(stream(), 1 << 20, workers)).digest
    finally:
        await workers.close()


async def test_code_is_unpacked_into_the_working_folder(local: Harness) -> None:
    digest = await upload(local.folder, {"train.py": "print(open('data/x').read())", "data/x": "from the archive"})
    assert (await local.run(sys.executable, "train.py", runtime=RuntimePlan(code_digest=digest))).code == 0
    assert local.log() == "from the archive\n"


async def test_a_relative_working_folder_is_one_of_the_code(local: Harness) -> None:
    digest = await upload(local.folder, {"src/train.py": "import os; print(os.getcwd())"})
    plan = RuntimePlan(code_digest=digest)
    end = await local.run("sh", "-c", "python3 train.py; echo $CORRAL_TASK_DIR", runtime=plan, working_dir="src")
    assert end.code == 0
    here, told = local.log().split()
    assert here == told and here.endswith("/work/src")


async def test_code_that_is_not_there_ends_the_task_with_what_to_do(local: Harness) -> None:
    end = await local.run("true", runtime=RuntimePlan(code_digest="0" * 64))
    assert end.code == -200 and "upload it again" in end.reason


async def test_addresses_of_the_other_tasks_are_filled_in_when_they_have_started(
    local: Harness, server: Server
) -> None:
    env = {"MASTER": "$(peer:worker-0:host):$(peer:worker-0:port:rdzv)", "PLAIN": "$(date) $HOME"}
    task = launch("sh", "-c", "echo $MASTER $1; echo \"$PLAIN\"", "sh", "$(peer:ps-1:port:web)", env=env,
                  **asks(server, resolve=("worker-0", "ps-1")))  # fmt: skip
    server.peers = [
        {"role": "worker", "index": 0, "host": "10.0.0.1", "ports": {"rdzv": [2222, 3]}, "state": "running"}
    ]
    await local.engine.start(task)
    await until_asked(server)
    assert local.log() == ""
    server.peers += [{"role": "ps", "index": 1, "host": "10.0.0.2", "ports": {"web": [80]}, "state": "running"}]
    assert (await local.exited(attempt())).code == 0
    assert local.log() == "10.0.0.1:2222 80\n$(date) $HOME\n"


async def test_a_barrier_waits_for_everyone_through_a_server_that_is_away(local: Harness, server: Server) -> None:
    server.status = 503
    await local.engine.start(launch("echo", "go", **asks(server, barrier=True)))
    await until_asked(server)
    server.status = 200
    server.asked = 0
    server.enough.clear()
    await until_asked(server)
    assert local.log() == ""
    server.complete = True
    assert (await local.exited(attempt())).code == 0
    assert local.log() == "go\n"


async def test_a_barrier_that_takes_too_long_is_a_conflict(local: Harness, server: Server) -> None:
    end = await local.run("true", **asks(server, barrier=True, barrier_timeout_seconds=0))
    assert end.code == 251 and "waited 0 s for the other tasks" in end.reason


async def test_a_task_of_a_job_that_is_gone_gives_up_at_once(local: Harness, server: Server) -> None:
    server.status = 404
    end = await local.run("true", **asks(server, barrier=True))
    assert end.code == 252 and "this task's job does not run" in end.reason


async def test_a_task_can_be_stopped_while_it_waits(local: Harness, server: Server) -> None:
    await local.engine.start(launch("echo", "never", **asks(server, barrier=True)))
    await until_asked(server)
    await local.engine.stop(attempt(), grace_seconds=60)
    end = await local.exited(attempt())
    assert end.code == 143 and local.log() == ""


@pytest.mark.parametrize("command", [("echo", "$(peer:worker-7:host)"), ("echo", "$(secret:x)")])
async def test_a_reference_to_nothing_is_told(local: Harness, server: Server, command: tuple[str, ...]) -> None:
    server.complete = True
    end = await local.run(*command, **asks(server, barrier=True))
    assert end.code == 252 and "cannot be completed" in end.reason


async def test_tasks_of_a_job_derive_the_same_secrets_and_others_do_not(local: Harness) -> None:
    for index, key in enumerate(("one", "one", "two")):
        await local.run(
            "printenv", "KEY", task=index, env={"KEY": "$(secret:agent)"}, job_secret=key, runtime=RuntimePlan()
        )
    first, second, other = (local.log(attempt(index)) for index in range(3))
    assert first == second != other and len(first) == 65


async def test_secrets_reach_the_task_by_variable_and_file_and_nothing_else_sees_them(local: Harness) -> None:
    secrets = (SecretDelivery("hunter2", env="PASSWORD"), SecretDelivery("key material", file="keys/id"))
    script = "echo $PASSWORD; cat keys/id; stat -c ' %a' keys/id; sleep 1000"
    await local.engine.start(launch("sh", "-c", script, secrets=secrets))
    await local.line("hunter2")
    await local.line("key material 600")
    folder = local.folder / "engine/attempts" / attempt()
    shim = local.shim()
    for process in (shim, int(Path(f"/proc/{shim}/task/{shim}/children").read_text())):
        for what in ("environ", "cmdline"):
            assert b"hunter2" not in Path(f"/proc/{process}/{what}").read_bytes()
    assert not any(
        b"hunter2" in path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.name != "id"
    )
    assert "hunter2" not in repr(secrets)
    session = await local.engine.exec(attempt(), ["printenv", "PASSWORD"], tty=False)
    assert await anext(session.output()) == b"hunter2\n"
    await session.close()
    await local.engine.stop(attempt(), grace_seconds=0)
    await local.exited(attempt())


async def test_private_files_are_private_while_they_wait(local: Harness, server: Server) -> None:
    task = launch("true", secrets=(SecretDelivery("s", env="S"),), **asks(server, barrier=True))
    await local.engine.start(task)
    await until_asked(server)
    folder = local.folder / "engine/attempts" / attempt() / "private"
    assert stat.S_IMODE(os.stat(folder / "job-secret").st_mode) == 0o600
    assert not [name for name in ("plan", "token", "secrets") if (folder / name).exists()]
    await local.engine.stop(attempt(), grace_seconds=0)
    await local.exited(attempt())


async def test_a_known_fault_in_the_log_becomes_the_exit_code_and_the_reason(local: Harness) -> None:
    end = await local.run(sys.executable, "-c", "import no_such_module", runtime=RuntimePlan())
    assert end.code == 232
    assert end.reason == (
        "the command ended with 1; its log says: ModuleNotFoundError: No module named 'no_such_module'"
    )
    end = await local.run(sys.executable, "-c", "import nothing", task=1, runtime=RuntimePlan(exit_patterns=False))
    assert (end.code, end.reason) == (1, "")


async def test_exit_codes_and_signals_pass_through_the_runtime(local: Harness) -> None:
    assert (await local.run("sh", "-c", "exit 42", runtime=RuntimePlan())).code == 42
    assert (await local.run("sh", "-c", "kill -9 $$", task=1, runtime=RuntimePlan())).code == 137
    assert (await local.run("no-such-program", task=2, runtime=RuntimePlan())).code == 127
    assert (await local.run("/etc/passwd", task=3, runtime=RuntimePlan())).code == 126
    await local.engine.start(
        launch("sh", "-c", "trap 'exit 9' TERM; echo up; sleep 1000 & wait", task=4, runtime=RuntimePlan())
    )
    await local.line("up", attempt(4))
    await local.engine.stop(attempt(4), grace_seconds=60)
    assert (await local.exited(attempt(4))).code == 9


async def test_the_runtime_stands_for_itself_in_a_command(local: Harness) -> None:
    end = await local.run("$(runtime)", "nonsense", runtime=RuntimePlan(exit_patterns=False))
    assert end.code == 2 and "usage: runtime run PLAN" in local.log()


async def test_data_is_staged_in_before_and_out_after(local: Harness, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data/a.txt").write_text("alpha")
    plan = RuntimePlan(
        inputs=((f"file://{tmp_path}/data", "in"),), outputs=(("out", f"file://{tmp_path}/results"),)
    )  # fmt: skip
    end = await local.run("sh", "-c", "mkdir out && tr a-z A-Z <in/a.txt >out/b.txt", runtime=plan)
    assert end.code == 0, local.log()
    assert (tmp_path / "results/b.txt").read_text() == "ALPHA"
    end = await local.run("true", task=1, runtime=RuntimePlan(inputs=((f"file://{tmp_path}/none", "in"),)))
    assert end.code == 255 and "could not be moved" in end.reason


async def test_ports_are_told_to_the_task(local: Harness) -> None:
    await local.run("printenv", "CORRAL_PORT_RDZV", runtime=RuntimePlan(), ports=(PortRequest("rdzv"),))
    assert local.log().strip().isdigit()


async def until_asked(server: Server) -> None:
    import asyncio

    assert await asyncio.to_thread(server.enough.wait, 60)
