"""With a server that is root, each user's tasks run under that user's uid, with its rights only."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from corral.devices import device_files
from corral.kernel.errors import Conflict
from corral.model.launch import RuntimePlan, SecretDelivery
from tests.engines.local_harness import Harness, attempt, launch

UID = 54_321
pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="only root can start tasks as other users; run as root")


@pytest.fixture
async def local() -> AsyncIterator[Harness]:
    folder = Path(tempfile.mkdtemp())  # pytest's own folders are closed to other users
    folder.chmod(0o711)
    async with Harness(folder, uid_of=lambda user: UID if user == "ada" else None) as harness:
        yield harness
    shutil.rmtree(folder)


async def test_a_task_runs_as_its_user_without_the_servers_groups(local: Harness) -> None:
    await local.run("sh", "-c", "id -u; id -g; id -G; touch made; echo said >>/dev/stderr")
    assert local.log().split() == [str(UID)] * 3 + ["said"]
    made = local.folder / "engine/attempts" / attempt() / "work/made"
    assert made.stat().st_uid == UID


async def test_a_task_and_its_sessions_have_the_groups_of_its_devices(
    local: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device_files, "groups", lambda devices: (1105, 1106))
    await local.engine.start(launch("sh", "-c", "id -G; exec sleep 1000"))
    await local.line(f"{UID} 1105 1106")
    session = await local.engine.exec(attempt(), ["id", "-G"], tty=False)
    assert await anext(session.output()) == f"{UID} 1105 1106\n".encode()
    await session.close()
    await local.engine.stop(attempt(), grace_seconds=60)
    assert (await local.exited(attempt())).code == 143


async def test_a_way_that_is_closed_to_the_user_is_told(local: Harness) -> None:
    local.folder.chmod(0o700)
    with pytest.raises(Conflict, match=f"{local.folder} is closed to other users; chmod"):
        await local.engine.start(launch("true"))
    assert local.engine.attempts() == frozenset()


async def test_the_servers_own_user_runs_as_the_server(local: Harness) -> None:
    await local.run("id", "-u", user="root")
    assert local.log().strip() == "0"


async def test_a_task_cannot_touch_its_record_nor_its_shim(local: Harness) -> None:
    script = "kill -9 $PPID; rm -rf ../pid ../launch.* ../exit.0; touch ../exit.0; cat ../launch.*; exit 3"
    end = await local.run("sh", "-c", script)
    assert (end.code, end.reason) == (3, "")


async def test_a_task_cannot_remove_what_the_engine_keeps_about_it(local: Harness) -> None:
    folder = local.folder / "engine/attempts" / attempt()
    script = 'cd /; rm -rf "$CORRAL_ATTEMPT_FOLDER"; mv "$CORRAL_ATTEMPT_FOLDER" /tmp; exit 3'
    end = await local.run("sh", "-c", script, runtime=RuntimePlan())
    assert (end.code, end.reason) == (3, "")
    kept = {path.name.partition(".")[0] for path in folder.iterdir()}
    assert {"launch", "pid", "exit"} <= kept


async def test_what_a_task_puts_in_its_reports_place_is_not_read_as_root(local: Harness) -> None:
    lure = local.folder / "root-only"
    lure.write_text('{"message": "a secret of the machine"}')
    lure.chmod(0o600)
    for index, trick in enumerate(
        (f"ln -sf {lure} ../private/result", "rm ../private/result; mkfifo ../private/result")
    ):
        end = await local.run("sh", "-c", f"{trick}; exit 3", task=index, runtime=RuntimePlan())
        assert (end.code, end.reason) == (3, "")


async def test_secrets_belong_to_the_user_that_needs_them(local: Harness) -> None:
    secrets = (SecretDelivery("hunter2", env="P", file="keys/id"),)
    end = await local.run("sh", "-c", "echo $P; cat keys/id; stat -c ' %a %u' keys/id", secrets=secrets)
    assert end.code == 0, local.log()
    assert local.log() == f"hunter2\nhunter2 600 {UID}\n"


async def test_the_runtime_and_sessions_run_as_the_user_too(local: Harness) -> None:
    await local.engine.start(launch("sh", "-c", "id -u; exec sleep 1000", runtime=RuntimePlan()))
    await local.line(str(UID))
    session = await local.engine.exec(attempt(), ["id", "-u"], tty=False)
    assert await anext(session.output()) == f"{UID}\n".encode()
    await session.close()
    await local.engine.stop(attempt(), grace_seconds=60)
    assert (await local.exited(attempt())).code == 143


async def test_nothing_that_a_job_chose_is_run_or_loaded_before_its_user_is_set(local: Harness) -> None:
    trap = local.folder / "trap"
    trap.mkdir(mode=0o755)
    for name in ("setpriv", "env", "sh"):
        (trap / name).write_text("#!/bin/sh\necho trapped as $(/usr/bin/id -u)\n")
        (trap / name).chmod(0o755)
    env = {"LD_PRELOAD": "/no/such.so", "PATH": f"{trap}:/usr/bin:/bin", "BASH_ENV": str(trap / "sh")}
    end = await local.run("/bin/sh", "-c", "exec /usr/bin/printenv LD_PRELOAD PATH BASH_ENV", env=env)
    assert end.code == 0, local.log()
    assert "trapped" not in local.log()
    said = [line for line in local.log().splitlines() if not line.startswith("ERROR: ld.so")]
    assert said == list(env.values())
    warned = local.log().count("ERROR: ld.so")
    assert warned == 2, "the job's own two programs load what it says, none of the server's does"


async def test_a_session_loads_what_a_job_chose_as_the_user_alone(local: Harness) -> None:
    env = {"LD_PRELOAD": "/no/such.so"}
    await local.engine.start(launch("/bin/sh", "-c", "echo up; exec sleep 1000", env=env))
    await local.line("up")
    session = await local.engine.exec(attempt(), ["/usr/bin/printenv", "LD_PRELOAD"], tty=False)
    printed = b"".join([chunk async for chunk in session.output()]).decode()
    assert printed.count("ERROR: ld.so") == 1 and printed.endswith("/no/such.so\n")
    await session.close()
    await local.engine.stop(attempt(), grace_seconds=60)
    assert (await local.exited(attempt())).code == 143
