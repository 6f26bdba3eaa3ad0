"""Staging from and to HDFS, by its own protocol and over HTTP, with a real NameNode and DataNode."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from corral.kernel.errors import NotFound, Unavailable
from corral.storage.block_locations import BlockLocator, NameNodes
from corral.storage.hdfs import plain_words
from corral.storage.log_archive import LogArchive
from corral.storage.remote_folder import open_folder
from corral.storage.staging import place as storage_place
from tests.endtoend.platform import Platform, one
from tests.reserved import free_port
from tests.storage.every_store import StoreSuite
from tests.storage.moody import JOB, TASK, Machine, whole
from tests.testbeds.hadoop import jars
from tests.testbeds.hadoop.hdfs import Hdfs
from tests.testbeds.kubernetes.certificates import Authority

pytestmark = pytest.mark.timeout(300)
ADA = {"HADOOP_USER_NAME": "ada"}
SCHEMES = pytest.mark.parametrize("scheme", ["hdfs", "webhdfs"])


@pytest.fixture(scope="module")
def hdfs() -> Iterator[Hdfs]:
    """A cluster with two folders of Ada's, and one that is not hers."""
    if reason := jars.missing():
        pytest.skip(reason)
    jars.folder()
    with Hdfs(tls=True) as made:
        for folder in ("/ada/hdfs", "/ada/webhdfs"):
            made.add_folder(folder, "ada")
        made.add_folder("/closed", "ben")
        yield made


def at(hdfs: Hdfs, scheme: str, path: str) -> str:
    """The URI of a path below Ada's folder for the scheme; a path with a leading slash is absolute."""
    base = hdfs.native if scheme == "hdfs" else hdfs.web
    return f"{base}{path}" if path.startswith("/") else f"{base}/ada/{scheme}/{path}"


def stage(source: object, target: object) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "corral.storage", "stage", str(source), str(target)]
    return subprocess.run(words, env=os.environ | ADA, capture_output=True, text=True, check=False)


def staged(source: object, target: object) -> str:
    """Stage, which must succeed; returns the output."""
    done = stage(source, target)
    assert done.returncode == 0, done.stderr
    return done.stderr


class TestHdfs(StoreSuite):
    """HDFS by its own protocol, and over HTTP."""

    small_files = 96  # each costs both daemons and the test several calls

    @pytest.fixture(params=["hdfs", "webhdfs"])
    def store(self, hdfs: Hdfs, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
        monkeypatch.setenv("HADOOP_USER_NAME", "ada")
        return at(hdfs, request.param, tmp_path.name)


def test_large_reads_come_from_one_stream_and_are_what_smaller_ones_are(
    hdfs: Hdfs, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = random.Random(1).randbytes(5 << 20)
    hdfs.write("/ada/hdfs/streamed", data)
    monkeypatch.setenv("HADOOP_USER_NAME", "ada")
    filesystem, path = storage_place(at(hdfs, "hdfs", "streamed"))
    with filesystem.open(path, "rb") as file:
        assert file.read(7) == data[:7], "a small one first"
        assert file.read(2 << 20) == data[7 : (2 << 20) + 7] and file.tell() == (2 << 20) + 7
        assert file.read(100) == data[(2 << 20) + 7 : (2 << 20) + 107], "a small one from the same stream"
        assert file.seek(1000) == 1000 and file.read(3 << 20) == data[1000 : (3 << 20) + 1000]
        assert file.read() == data[(3 << 20) + 1000 :] and file.read() == b"" and file.read(10) == b""
        assert file.seek(4) == 4 and b"".join(file.pieces()) == data[4:] and file.tell() == len(data)
        assert file.seek(5) == 5 and file.read(1 << 20) == data[5 : (1 << 20) + 5]
        assert b"".join(file.pieces()) == data[(1 << 20) + 5 :] and list(file.pieces()) == []
        assert file.seek(-10, os.SEEK_END) == len(data) - 10 and file.read(1 << 20) == data[-10:]


@SCHEMES
def test_a_quota_that_is_used_up_is_one_sentence(tmp_path: Path, hdfs: Hdfs, scheme: str) -> None:
    hdfs.add_folder(f"/ada/{scheme}/small", "ada")
    hdfs.ask("PUT", f"/ada/{scheme}/small", "SETQUOTA", namespacequota="2")
    tree = tmp_path / "tree"
    tree.mkdir()
    for name in ("one", "two", "three"):
        (tree / name).write_text(name)
    full = stage(tree, at(hdfs, scheme, "small"))
    assert full.returncode == 1 and len(full.stderr.splitlines()) == 1
    assert "quota" in full.stderr and "exceeded" in full.stderr and "\\tat" not in full.stderr


@SCHEMES
def test_a_damaged_block_is_told_and_leaves_no_file(tmp_path: Path, hdfs: Hdfs, scheme: str) -> None:
    content = os.urandom(100_000)
    (tmp_path / "one").write_bytes(content)
    staged(tmp_path / "one", at(hdfs, scheme, "damaged"))
    hdfs.damage(content)
    damaged = stage(at(hdfs, scheme, "damaged"), tmp_path / "back")
    assert damaged.returncode == 1 and len(damaged.stderr.splitlines()) == 1, damaged.stderr
    assert not (tmp_path / "back").exists()


def test_a_name_node_in_safe_mode_is_one_sentence(tmp_path: Path, hdfs: Hdfs) -> None:
    (tmp_path / "one").write_text("1")
    places = [at(hdfs, scheme, "late") for scheme in ("hdfs", "webhdfs")]
    hdfs.set_safe_mode(True)  # for both: each change starts a program of Hadoop's
    try:
        refusals = [stage(tmp_path / "one", place) for place in places]
    finally:
        hdfs.set_safe_mode(False)
    for place, refused in zip(places, refusals, strict=True):
        assert refused.returncode == 1 and len(refused.stderr.splitlines()) == 1, place
        assert "safe mode" in refused.stderr
        staged(tmp_path / "one", place)


@SCHEMES
def test_a_tree_goes_there_and_comes_back_and_is_moved_once(tmp_path: Path, hdfs: Hdfs, scheme: str) -> None:
    tree, there, back = tmp_path / "tree", at(hdfs, scheme, "run/1"), tmp_path / "back"
    (tree / "deep").mkdir(parents=True)
    files = {"a.bin": os.urandom(9_000_000), "empty": b"", "deep/ü #1?;%41 [x].txt": b"b", "deep/ü #2": b"cc"}
    for name, content in files.items():
        (tree / name).write_bytes(content)
    staged(tree, there)
    assert "staged 0 files, 9000003 bytes (4 already there)" in staged(tree, there)
    assert hdfs.owner(f"/ada/{scheme}/run/1/a.bin") == "ada"
    staged(there, back)
    assert {str(file.relative_to(back)): file.read_bytes() for file in back.rglob("*") if file.is_file()} == files
    assert "4 already there" in staged(there, back)


def test_a_tree_goes_there_and_comes_back_over_tls(tmp_path: Path, hdfs: Hdfs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(hdfs.tls.authority))
    tree, there, back = tmp_path / "tree", f"{hdfs.tls.web}/ada/webhdfs/tls", tmp_path / "back"
    files = {"big.bin": os.urandom(5_000_000), "empty": b"", "ü #1?;%41.txt": b"b"}  # more than one piece
    tree.mkdir()
    for name, content in files.items():
        (tree / name).write_bytes(content)
    staged(tree, there)
    staged(there, back)
    assert {file.name: file.read_bytes() for file in back.iterdir()} == files
    assert "3 already there" in staged(there, back)


async def test_block_locations_are_asked_for_over_tls(
    tmp_path: Path, hdfs: Hdfs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(hdfs.tls.authority))
    (tmp_path / "one").write_text("seven")
    uri = f"{hdfs.tls.web}/ada/webhdfs/located"
    staged(tmp_path / "one", uri)
    locator = BlockLocator([NameNodes((hdfs.tls.web.replace("swebhdfs", "https"),), "ada")])
    try:
        found = await locator.where(uri, "ada")
    finally:
        await locator.close()
    assert found.total == sum(found.by_hosts.values()) == len("seven")


def test_a_certificate_of_nobody_known_is_refused(tmp_path: Path, hdfs: Hdfs, monkeypatch: pytest.MonkeyPatch) -> None:
    other = Authority(tmp_path / "other")
    monkeypatch.setenv("SSL_CERT_FILE", str(other.certificate))
    refused = stage(f"{hdfs.tls.web}/ada/webhdfs/x", tmp_path / "x")
    assert refused.returncode == 1 and len(refused.stderr.splitlines()) == 1
    assert "CERTIFICATE_VERIFY_FAILED" in refused.stderr


@SCHEMES
def test_a_file_that_changed_replaces_the_one_that_is_there(tmp_path: Path, hdfs: Hdfs, scheme: str) -> None:
    source, there = tmp_path / "weights", at(hdfs, scheme, "weights")
    for content in ("first", "the second"):
        source.write_text(content)
        staged(source, there)
    staged(there, tmp_path / "back")
    assert (tmp_path / "back").read_text() == "the second"
    assert [name for name in hdfs.names(f"/ada/{scheme}") if "weights" in name] == ["weights"]


@SCHEMES
def test_a_half_copied_file_goes_on_where_it_stopped(tmp_path: Path, hdfs: Hdfs, scheme: str) -> None:
    content = os.urandom(3_000_000)
    (tmp_path / "whole").write_bytes(content)
    os.utime(tmp_path / "whole", (1_000_000_000, 1_000_000_000))
    (tmp_path / "part").write_bytes(content[:1_000_000])
    staged(tmp_path / "part", at(hdfs, scheme, "big.corral-part"))
    staged(tmp_path / "whole", at(hdfs, scheme, "big"))
    (tmp_path / "back.corral-part").write_bytes(content[:2_000_000])
    staged(at(hdfs, scheme, "big"), tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == content
    assert "big.corral-part" not in hdfs.names(f"/ada/{scheme}")


@SCHEMES
def test_what_is_missing_closed_or_away_is_one_sentence(tmp_path: Path, hdfs: Hdfs, scheme: str) -> None:
    missing = at(hdfs, scheme, "none")
    assert stage(missing, tmp_path / "x").stderr == f"corral: There is nothing at {missing}.\n"
    (tmp_path / "one").write_text("1")
    closed = stage(tmp_path / "one", at(hdfs, scheme, "/closed/one"))
    assert closed.returncode == 1 and len(closed.stderr.splitlines()) == 1
    assert "Permission denied: user=ada, access=WRITE" in closed.stderr and "\\tat" not in closed.stderr
    away = stage(f"{scheme}://127.0.0.1:{free_port()}/a", tmp_path / "x")
    assert away.returncode == 1 and len(away.stderr.splitlines()) == 1
    assert "could not be copied" in away.stderr and "refused" in away.stderr


@SCHEMES
def test_a_port_that_is_none_is_said(tmp_path: Path, scheme: str) -> None:
    wrong = stage(f"{scheme}://127.0.0.1:99999/a", tmp_path / "x")
    assert wrong.returncode == 1 and "Port out of range" in wrong.stderr


def test_a_jobs_data_come_from_there_and_go_back(tmp_path: Path, hdfs: Hdfs) -> None:
    (tmp_path / "digits.txt").write_text("7\n")
    staged(tmp_path / "digits.txt", at(hdfs, "webhdfs", "digits/a.txt"))
    platform = Platform(tmp_path / "platform")
    platform.up()
    try:
        job = platform.ran(
            one(
                "staged",
                "mkdir model && tr 7 8 < data/a.txt > model/weights",
                role={"env": ADA},
                inputs=[{"uri": at(hdfs, "webhdfs", "digits"), "path": "data"}],
                outputs=[{"path": "model", "uri": at(hdfs, "hdfs", "model")}],
            )
        )
        assert job["state"] == "succeeded", platform.log(job)
    finally:
        platform.down()
    staged(at(hdfs, "hdfs", "model/weights"), tmp_path / "weights")
    assert (tmp_path / "weights").read_text() == "8\n"


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ('RPCError("org.apache.hadoop.security.Denied", "not you\\n\\tat org.apache")', "not you"),
        ('RPCError("org.apache.hadoop.SafeMode", "Name node is in safe mode.")', "Name node is in safe mode."),
        ("Connection refused (os error 111)", "Connection refused (os error 111)"),
    ],
)
def test_a_servers_stack_is_not_passed_on(said: str, words: str) -> None:
    assert plain_words(said) == words


@SCHEMES
async def test_logs_and_code_are_kept_there(
    tmp_path: Path, hdfs: Hdfs, scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HADOOP_USER_NAME", "ada")
    place = await open_folder(at(hdfs, scheme, "blobs"))
    archive = LogArchive(place.below("logs"))
    one, two = Machine(tmp_path / "one", archive), Machine(tmp_path / "two", archive)
    expected = b""
    for number, size in enumerate((100, 300_000, 0, 50)):
        expected += (data := os.urandom(size))
        one.write(data)
        one.grows(f"{number}.0.1.0")
        await one.archiver.sweep()
    assert await two.archiver.restore(TASK) == ("3.0.1.0", len(expected))
    one.store.finish(TASK)
    await one.archiver.sweep()
    source = await Machine(tmp_path / "three", archive).shelf.source(TASK)
    assert await source.complete() and await whole(source, 70_000) == expected
    assert await source.read(250_000, 9) == (250_000, expected[250_000:250_009])
    await archive.remove(JOB)
    await archive.remove(JOB)
    assert not (await archive.look(TASK, "all")).segments
    (tmp_path / "code").write_bytes(expected)
    await place.put("code/x", tmp_path / "code")
    await place.get("code/x", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == expected and await place.size("code/x") == len(expected)
    assert await place.size("code/y") is None
    with pytest.raises(NotFound):
        await place.get("code/y", tmp_path / "none")
    with pytest.raises(Unavailable, match="cannot be used: "):
        await open_folder(at(hdfs, scheme, "/closed/blobs"))


@SCHEMES
async def test_a_folder_is_closed_to_other_users(hdfs: Hdfs, scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HADOOP_USER_NAME", "ada")
    folder = (await open_folder(at(hdfs, scheme, "shared"))).below("hangs")
    await folder.close_to_others()
    await folder.write("x", b"1")
    assert await folder.read("x", 0, 1) == b"1"
    status = hdfs.ask("GET", f"/ada/{scheme}/shared/hangs", "GETFILESTATUS")["FileStatus"]
    assert (status["owner"], status["permission"]) == ("ada", "700")


@SCHEMES
def test_a_storage_is_moved_before_and_after_and_what_nobody_changed_stays(
    tmp_path: Path, hdfs: Hdfs, scheme: str
) -> None:
    folder, there = tmp_path / "storage", at(hdfs, scheme, "storage/ada")
    folder.mkdir()

    def moved(source: object, target: object) -> str:
        words = [sys.executable, "-m", "corral.storage", "stage", "--storage", str(source), str(target)]
        done = subprocess.run(words, env=os.environ | ADA, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stderr

    assert "is not there yet" in moved(there, folder)
    (folder / "first").write_text("one")
    assert "staged 1 files" in moved(folder, there)
    again = tmp_path / "again"
    again.mkdir()
    assert "staged 1 files" in moved(there, again)
    assert (again / "first").read_text() == "one"
    (again / "second").write_text("two")
    assert "staged 1 files, 6 bytes (1 already there)" in moved(again, there)
