"""Bundles of jobs that hung in the folder that several servers share."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import cast

import pytest
from structlog.testing import capture_logs

from corral.control.hangs.bundles import Bundles
from corral.kernel.errors import NotFound, Unavailable
from corral.kernel.ids import JobId
from corral.model.hangs.records import bundle_name
from corral.storage.remote_folder import RemoteFolder, open_folder

NOW = 1_795_000_000.0
DAY = 86_400.0
JOB, OTHER = JobId("1a"), JobId("1b")


async def shared_folder(tmp_path: Path) -> RemoteFolder:
    return (await open_folder(f"file://{tmp_path}/far/corral")).below("hangs")


class Stuck:
    """A shared folder that answers nothing, or refuses what `refused` says."""

    def __init__(self, refused: str = "") -> None:
        self.refused, self.put_names = refused, list[str]()

    async def close_to_others(self) -> None:
        if self.refused:
            raise Unavailable("blob-store-unavailable", self.refused)

    async def put(self, name: str, source: Path) -> None:
        self.put_names.append(name)
        await asyncio.Event().wait()

    async def files(self) -> dict[str, int]:
        await asyncio.Event().wait()
        return {}

    def folder(self) -> RemoteFolder:
        return cast(RemoteFolder, self)


async def kept(bundles: Bundles, job: JobId, at: float, now: float = NOW) -> int:
    """Keep a bundle and share it; its size."""
    size = await bundles.keep(job, bundle_name(at), {"a": b"x"}, now)
    await bundles.share(job, bundle_name(at))
    return size


def names(tmp_path: Path) -> list[str]:
    return sorted(each.name for each in (tmp_path / "far" / "corral" / "hangs").glob("*"))


async def test_the_server_that_leads_next_has_the_bundle(tmp_path: Path) -> None:
    shared = await shared_folder(tmp_path)
    first, next_one = Bundles(tmp_path / "first", shared=shared), Bundles(tmp_path / "next", shared=shared)
    await kept(first, JOB, NOW)
    shutil.rmtree(tmp_path / "first")
    data = await next_one.read(JOB, bundle_name(NOW))
    assert data[:2] == b"\x1f\x8b" and data == await first.read(JOB, bundle_name(NOW))
    for job, name in ((OTHER, bundle_name(NOW)), (JOB, bundle_name(NOW + 1)), ("../1a", bundle_name(NOW))):
        with pytest.raises(NotFound, match="This bundle is not there"):
            await next_one.read(job, name)


async def test_old_bundles_and_those_of_removed_jobs_go_from_the_shared_folder(tmp_path: Path) -> None:
    shared = await shared_folder(tmp_path)
    bundles = Bundles(tmp_path / "first", shared=shared)
    for job, at in ((JOB, NOW - 31 * DAY), (JOB, NOW - DAY), (OTHER, NOW)):
        await kept(bundles, job, at, at)
    await shared.write("notes.txt", b"of somebody else")
    await Bundles(tmp_path / "next", shared=shared).clear(NOW)
    left = {f"1a.{bundle_name(NOW - DAY)}.tar.gz", f"1b.{bundle_name(NOW)}.tar.gz", "notes.txt"}
    assert set(names(tmp_path)) == left
    bundles.forget(OTHER)
    await bundles.clear(NOW)
    assert names(tmp_path) == [f"1a.{bundle_name(NOW - DAY)}.tar.gz", "notes.txt"]


async def test_the_oldest_beyond_the_quota_go_from_the_shared_folder(tmp_path: Path) -> None:
    shared = await shared_folder(tmp_path)
    for number in range(3):
        await kept(Bundles(tmp_path / f"server{number}", shared=shared), JOB, NOW + number)
    size = (await shared.files())[f"1a.{bundle_name(NOW)}.tar.gz"]
    await Bundles(tmp_path / "next", 2 * size, shared=shared).clear(NOW)
    assert names(tmp_path) == [f"1a.{bundle_name(NOW + number)}.tar.gz" for number in (1, 2)]


async def test_a_shared_folder_that_is_away_leaves_the_bundle_on_the_disk(tmp_path: Path) -> None:
    shared = await shared_folder(tmp_path)
    bundles = Bundles(tmp_path / "first", shared=shared)
    folder = tmp_path / "far" / "corral" / "hangs"
    folder.write_text("this is no folder")
    with capture_logs() as said:
        assert await kept(bundles, JOB, NOW) > 0
    assert [each["event"] for each in said] == ["the bundle of a job that hangs is on this server alone"]
    assert (await bundles.read(JOB, bundle_name(NOW)))[:2] == b"\x1f\x8b"


async def test_a_shared_folder_that_never_answers_is_given_up_and_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for limit in ("_SHARE_SECONDS", "_CLEAR_SECONDS"):
        monkeypatch.setattr(f"corral.control.hangs.bundles.{limit}", 0.05)
    bundles = Bundles(tmp_path / "first", shared=Stuck().folder())
    with capture_logs() as said:
        await kept(bundles, JOB, NOW)
        await bundles.clear(NOW)
    assert [(each["event"], each["error"]) for each in said] == [
        ("the bundle of a job that hangs is on this server alone", "The shared folder did not answer within 0.05 s."),
        ("old bundles of jobs that hung could not be removed", "The shared folder did not answer within 0.05 s."),
    ]
    assert (await bundles.read(JOB, bundle_name(NOW)))[:2] == b"\x1f\x8b"


async def test_other_users_cannot_enter_the_shared_folder(tmp_path: Path) -> None:
    folder = tmp_path / "far" / "corral" / "hangs"
    folder.mkdir(parents=True, mode=0o755)
    await kept(Bundles(tmp_path / "first", shared=await shared_folder(tmp_path)), JOB, NOW)
    assert folder.stat().st_mode & 0o777 == 0o700


async def test_nothing_is_shared_in_a_folder_that_cannot_be_closed(tmp_path: Path) -> None:
    stuck = Stuck("The blob store cannot be used: it is of another user.")
    bundles = Bundles(tmp_path / "first", shared=stuck.folder())
    with capture_logs() as said:
        await kept(bundles, JOB, NOW)
    assert [each["error"] for each in said] == [stuck.refused] and not stuck.put_names


async def test_removed_jobs_without_a_bundle_are_not_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("corral.control.hangs.bundles._MOST_GONE", 3)
    bundles = Bundles(tmp_path / "next", shared=await shared_folder(tmp_path))
    for number in range(10):  # it is not known yet which of them have bundles there
        bundles.forget(JobId(f"{number}z"))
    assert len(bundles._gone) == 3
    other = Bundles(tmp_path / "first", shared=await shared_folder(tmp_path))
    await kept(other, OTHER, NOW)
    await bundles.clear(NOW)
    await kept(bundles, JOB, NOW)
    for job in (JOB, OTHER, JobId("1c")):
        bundles.forget(job)
    assert bundles._gone == {JOB, OTHER}
    await bundles.clear(NOW)
    assert names(tmp_path) == [] and not bundles._gone
