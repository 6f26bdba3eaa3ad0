"""A control writes each step before it is stored; after a kill the journal has all that was stored, and replays."""

from __future__ import annotations

import asyncio
import io
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from corral.cli.journal import journal_command
from corral.control.core import IntentsRead
from corral.control.journal.blocks import BlockReader
from corral.control.journal.export import export
from corral.control.journal.folder import JournalFolder, recorded
from corral.control.journal.records import Begun, Step, decoded
from corral.control.journal.replay import Replayed, replay
from corral.control.journal.rules import Rules
from corral.control.journal_keeper import JournalKeeper
from corral.model.store_writes import Intent, IntentKind
from tests.control.harness import House, PaperEngine, short


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    house = House(tmp_path, PaperEngine())
    folders = []

    def keeper() -> JournalKeeper:
        folders.append(JournalFolder(tmp_path / "journal", most_bytes=10**9, most_seconds=1e9))
        return JournalKeeper(folders[-1], Rules(), "1.0", house.clock)

    house.journal = keeper
    await house.open()
    yield house
    await house.close()
    for folder in folders:
        folder.close()


def replayed(house: House, **more: Any) -> Replayed:
    export(recorded(house.folder / "journal"), file := io.BytesIO(), **more)
    return replay(file)


async def test_what_was_stored_before_a_kill_is_in_the_journal_and_replays(house: House) -> None:
    # Stored before there is a control, so that one step starts two of them and says why the others wait.
    runs = [await house.submit(short(f"job-{number}", devices=3)) for number in range(4)]
    await house.begin()
    done = await house.submit(short("done", end_with=0))
    await house.until(done, "succeeded")
    await house.until(runs[0], "running")
    await house.abandon()
    await house.begin()
    await house.store.add_intent(runs[0], IntentKind.STOP, actor="ada", at=house.clock.now())
    await house.until(runs[0], "stopped")
    await house.until(runs[2], "running")
    await house.abandon()
    records = [decoded(each) for each in recorded(house.folder / "journal")]
    assert sum(isinstance(each, Begun) for each in records) == 2
    steps = [each for each in records if isinstance(each, Step)]
    intents = {i.seq for step in steps for read in step.inputs if isinstance(read, IntentsRead) for i in read.intents}
    stored = {each.seq for each in await house.store.intents(0)}
    assert stored and intents == stored
    found = replayed(house)
    assert found.difference is None and found.begun == 2 and found.steps == len(steps)
    kinds = {each.verb for step in steps for each in step.decisions}
    assert kinds == {"start", "stop", "wait"}


async def test_a_core_is_built_anew_once_a_day_so_that_a_replay_may_begin_there(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("corral.control.journal_keeper._BEGIN_BYTES", 20_000)
    await house.begin()
    jobs = [await house.submit(short(f"job-{number}", devices=1, end_with=0)) for number in range(12)]
    for job in jobs:
        await house.until(job, "succeeded")
    await house.abandon()
    found = replayed(house)
    assert found.difference is None and found.begun > 1
    last = replayed(house, since=found.last_at)
    assert last.difference is None and last.begun < found.begun and last.steps < found.steps


async def test_control_goes_on_without_a_journal_when_the_disk_is_full(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    await house.begin()
    await house.until(await house.submit(short("before", end_with=0)), "succeeded")

    def full(*told: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(JournalFolder, "add", full)
        await house.until(await house.submit(short("meanwhile", end_with=0)), "succeeded")
    await house.until(await house.submit(short("without", end_with=0)), "succeeded")
    await house.abandon()
    await house.begin()
    await house.until(await house.submit(short("after", end_with=0)), "succeeded")
    await house.abandon()
    found = replayed(house)
    assert found.difference is None and found.begun == 2


async def test_an_administrator_exports_a_part_of_it(house: House) -> None:
    await house.begin()
    await house.until(await house.submit(short("job", end_with=0)), "succeeded")
    await house.abandon()
    target = house.folder / "part.journal"
    words = ["export", str(target), "--data", str(house.folder), "-o", "json"]
    said = json.loads(CliRunner().invoke(journal_command, words, standalone_mode=False).stdout)
    with target.open("rb") as file:
        found = replay(file)
    assert (found.difference, found.problem, found.steps) == (None, "", said["steps"])
    assert target.stat().st_mode & 0o077 == 0 and said["bytes"] == target.stat().st_size
    early = CliRunner().invoke(journal_command, [*words, "--to", "2001-01-01"], standalone_mode=False)
    assert "no step of that time" in str(early.exception)
    nowhere = ["export", str(target), "--data", str(house.folder / "run")]
    assert "is not there" in str(CliRunner().invoke(journal_command, nowhere, standalone_mode=False).exception)
    assert not [name for name in os.listdir(house.folder) if name.endswith(".part")]


async def test_an_export_may_leave_names_and_commands_out(house: House) -> None:
    await house.begin()
    await house.until(await house.submit(short("q8q-job", end_with=0)), "succeeded")
    await house.abandon()
    target = house.folder / "anonymous.journal"
    words = ["export", str(target), "--anonymise", "--data", str(house.folder)]
    ran = CliRunner().invoke(journal_command, words, standalone_mode=False)
    assert "decides otherwise" not in ran.stderr
    with target.open("rb") as file:
        found = replay(file)
        file.seek(0)
        records = b"".join(BlockReader(file))
    assert (found.difference, found.problem) == (None, "") and found.steps
    assert b"q8q" not in records and str(house.folder).encode() not in records
    assert target.stat().st_mode & 0o077 == 0
    assert not [name for name in os.listdir(house.folder) if name.endswith((".part", ".renamed"))]


async def test_a_control_with_nothing_to_do_writes_a_step_now_and_then(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    silent = "corral.control.journal_keeper._SILENT_SECONDS"
    monkeypatch.setattr(silent, 1e9)
    await house.begin()
    job = await house.submit(short("begun"))
    await house.until(job, "running")
    asked, read = house.control_store.intents, asyncio.Event()

    async def heard(after_seq: int, limit: int = 1000) -> list[Intent]:
        found = await asked(after_seq, limit)
        read.set()
        return found

    house.control_store.intents = heard  # type: ignore[method-assign]

    async def steps_after(cycles: int) -> int:
        for _ in range(cycles + 1):  # the last one only shows that the one before is over
            read.clear()
            house.control.wake()
            async with house.patience():
                await read.wait()
        return sum(isinstance(decoded(each), Step) for each in recorded(house.folder / "journal"))

    assert await steps_after(3) == await steps_after(5)
    monkeypatch.setattr(silent, 0.0)
    assert await steps_after(3) < await steps_after(5), "readers learn up to when nothing happened"
    await house.store.add_intent(job, IntentKind.STOP, actor="ada", at=house.clock.now())
    await house.until(job, "stopped")
    assert replayed(house).difference is None
