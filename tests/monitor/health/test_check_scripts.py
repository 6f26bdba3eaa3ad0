"""Check scripts follow node-problem-detector's convention, in bounds, and only from a folder that others cannot write."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from corral.kernel.errors import InvalidInput
from corral.model.health.signs import SignKind
from corral.model.metrics.agent_page import NO_VERSIONS, CheckTold, encode_page, encode_values, read_page
from corral.model.metrics.samples import Samples
from corral.monitor.health import check_rounds
from corral.monitor.health.check_rounds import CheckRounds
from corral.monitor.health.check_scripts import Checked, run_all, run_script, scripts_in

PATIENT = 300.0


def script(folder: Path, name: str, text: str) -> Path:
    folder.chmod(0o755)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


class Said:
    """What rounds log."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def error(self, _: str, message: str = "", error: str = "") -> None:
        self.lines.append(message or error)


async def test_a_folder_that_goes_is_told_once_and_again_when_it_has_been_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder := tmp_path / "checks").mkdir()
    script(folder, "bad.sh", "exit 1")
    taken: list[list[Checked]] = []
    monkeypatch.setattr(check_rounds, "log", said := Said())
    running = asyncio.create_task(CheckRounds(folder, lambda: ("n1",), taken.append, every=0.0, limit=PATIENT).run())

    async def until(is_so: Callable[[list[list[Checked]]], bool]) -> None:
        taken.clear()
        async with asyncio.timeout(PATIENT):
            while not is_so(taken):
                await asyncio.sleep(0.01)

    for times in (1, 2):
        await until(any)
        folder.rename(tmp_path / "away")
        await until(lambda found: len(found) > 5 and not any(found[-5:]))
        gone = [each for each in said.lines if each.endswith(f"No such file or directory: '{folder}'.")]
        assert len(gone) == times, said.lines
        (tmp_path / "away").rename(folder)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_a_problem_is_a_sign_with_its_message(tmp_path: Path) -> None:
    script(tmp_path, "disk.sh", 'echo "disk of $CORRAL_NODE\tis full"; echo more >&2; exit 1')
    script(tmp_path, "fine.sh", "echo all is well")
    script(tmp_path, "unknown.sh", "exit 3")
    (tmp_path / "README").write_text("not executable")
    found = await run_all(tmp_path, ["local/n1"], PATIENT)
    assert [(each.script, each.code) for each in found] == [("disk.sh", 1), ("fine.sh", 0), ("unknown.sh", 3)]
    signs = [sign for each in found if (sign := each.sign(5.0)) is not None]
    (sign,) = signs
    assert (sign.kind, sign.node, sign.reason) == (
        SignKind.CHECK_FAILED, "local/n1", "check disk.sh: disk of local/n1 is full",
    )  # fmt: skip


async def test_a_script_that_hangs_with_its_children_is_ended(tmp_path: Path) -> None:
    found = await run_script(script(tmp_path, "hangs.sh", "sleep 1000 & sleep 1000"), "local/n1", 0.2)
    assert (found.code, found.message) == (None, "it took longer than 0.2 s") and found.sign(0.0) is None


async def test_a_name_that_is_no_utf_8_can_be_told(tmp_path: Path) -> None:
    named = script(tmp_path, "disk.sh", "exit 1").rename(tmp_path / os.fsdecode(b"d\xefsk.sh"))
    found = await run_script(named, "local/n1", PATIENT)
    told = CheckTold(found.script, found.code, found.message, 1.0)
    page = encode_page("n1", 1.0, encode_values(Samples()), (told,), NO_VERSIONS)
    assert (read_page(page).checks[0].script, found.code) == ("d?sk.sh", 1)


async def test_output_is_bounded(tmp_path: Path) -> None:
    found = await run_script(script(tmp_path, "loud.sh", "yes"), "local/n1", PATIENT)
    assert (found.code, found.message) == (None, "it printed more than 65536 bytes")
    found = await run_script(script(tmp_path, "long.sh", "yes | head -c 1000; exit 1"), "local/n1", PATIENT)
    assert found.code == 1 and found.message == " ".join("y" * 40)


async def test_a_script_that_cannot_be_started_is_unknown(tmp_path: Path) -> None:
    path = script(tmp_path, "bad", "")
    path.write_text("#!/no/such/shell\n")
    found = await run_script(path, "local/n1", PATIENT)
    assert found.code is None and found.message == "it could not be started: No such file or directory"


def test_what_others_can_write_is_refused(tmp_path: Path) -> None:
    path = script(tmp_path, "disk.sh", "exit 1")
    path.chmod(0o777)
    with pytest.raises(InvalidInput, match=r"disk\.sh can be written by others"):
        scripts_in(tmp_path)
    path.chmod(0o755)
    tmp_path.chmod(0o775)
    with pytest.raises(InvalidInput, match="can be written by others"):
        scripts_in(tmp_path)
    with pytest.raises(InvalidInput, match="cannot be read"):
        scripts_in(tmp_path / "none")
