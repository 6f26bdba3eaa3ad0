"""An attempt whose folder was removed is found by its processes: it is ended, reported and never doubled."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from corral.engines.local import attempt_monitor, processes
from corral.engines.local.live_attempt import FOLDER_GONE
from corral.model.launch import Exited, Started
from tests.engines.local_harness import Harness, alive, attempt, end_everything, launch, of_attempt, until
from tests.engines.test_local_adopts import killed_server

GONE = f'rm -rf "${processes.FOLDER}"'
WAYS = {
    "its folder": f"{GONE}; echo pid $$; exec sleep 1000",
    "what is in it": f'rm -rf "${processes.FOLDER}"/*; echo pid $$; exec sleep 1000',
    "its folder, and made it again": f'{GONE}; mkdir "${processes.FOLDER}"; echo pid $$; exec sleep 1000',
}
never = pytest.fixture(lambda monkeypatch: monkeypatch.setattr(attempt_monitor, "FOLDER_SECONDS", 1000.0))


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempt_monitor, "FOLDER_SECONDS", 0.01)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    for pid in of_attempt(attempt()):
        os.kill(pid, signal.SIGKILL)
    end_everything(tmp_path)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.usefixtures("soon")
async def test_a_task_that_removes_its_record_is_ended_and_that_is_told(local: Harness, way: str) -> None:
    await local.engine.start(launch("sh", "-c", WAYS[way]))
    end = await local.exited(attempt())
    assert (end.code, end.reason) == (-101, FOLDER_GONE)
    assert not of_attempt(attempt())
    await local.engine.forget([attempt()])
    assert local.engine.attempts() == frozenset()


@pytest.mark.parametrize("code", [0, 7])
@pytest.mark.usefixtures("never")
async def test_a_task_that_ends_by_itself_without_its_folder_has_its_true_code(local: Harness, code: int) -> None:
    assert (await local.run("sh", "-c", f"{GONE}; exit {code}")).code == code


@pytest.mark.usefixtures("never")
async def test_a_stop_ends_a_task_without_its_folder(local: Harness) -> None:
    await local.engine.start(launch("sh", "-c", f"trap '' TERM; {GONE}; echo gone; while :; do sleep 1000; done"))
    await local.line("gone")
    await local.engine.stop(attempt(), grace_seconds=0.05)
    await local.exited(attempt())
    assert not of_attempt(attempt())


@pytest.mark.parametrize("way", WAYS)
async def test_the_next_server_ends_a_task_without_its_record_and_starts_no_second_one(folder: Path, way: str) -> None:
    said = str(folder / "said")
    killed_server(folder, [attempt(), "sh", "-c", WAYS[way].replace("echo", f"echo >{said}")], ["wait", said])
    pid = int(Path(said).read_text().split()[1])
    async with Harness(folder) as local:
        assert attempt() in local.engine.attempts()
        await local.engine.start(launch("echo", "a second time"))
        end = await local.exited(attempt())
        assert (end.code, end.reason) == (-101, FOLDER_GONE)
        assert not alive(pid) and not of_attempt(attempt())
        assert local.count(Started, attempt()) == 0 and "second" not in local.log()
        await local.engine.forget([attempt()])
    async with Harness(folder) as local:
        assert local.engine.attempts() == frozenset()


async def test_a_task_of_another_server_on_this_machine_is_left_alone(local: Harness, tmp_path: Path) -> None:
    await local.engine.start(launch("sh", "-c", f"{GONE}; echo gone; exec sleep 1000"))
    await local.line("gone")
    async with Harness(tmp_path / "other") as other:
        assert other.engine.attempts() == frozenset()
        assert local.count(Exited, attempt()) == 0 and alive(local.shim())
    await local.engine.stop(attempt(), grace_seconds=0)
    await local.exited(attempt())


@pytest.mark.usefixtures("soon")
async def test_tasks_run_on_while_the_folder_of_all_is_away(local: Harness, tmp_path: Path) -> None:
    await local.engine.start(launch("sh", "-c", "echo up; exec sleep 1000"))
    await local.line("up")
    here, away = tmp_path / "engine/attempts", tmp_path / "engine/away"
    here.rename(away)
    looks = local.engine._watch._timers["folders"]
    await until(lambda: local.engine._watch._timers["folders"] is not looks)
    away.rename(here)
    assert local.count(Exited, attempt()) == 0 and alive(local.shim())
    await local.engine.stop(attempt(), grace_seconds=0)
    await local.exited(attempt())
