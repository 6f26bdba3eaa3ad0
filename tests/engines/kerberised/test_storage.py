"""Staging, kept logs and block locations in an HDFS that asks for Kerberos, with a real KDC, NameNode and DataNode."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from corral.engines.yarn.hadoop_rest import HadoopRest
from corral.kernel.errors import Forbidden, Unavailable
from corral.storage.block_locations import BlockLocator, NameNodes
from corral.storage.hdfs import plain_words
from corral.storage.remote_folder import open_folder
from tests.storage.every_store import StoreSuite
from tests.testbeds.hadoop.secure_hdfs import CORRAL, SecureHdfs
from tests.testbeds.kerberos import Kdc

pytestmark = pytest.mark.timeout(300)


def by_keytab(kdc: Kdc, name: str) -> dict[str, str]:
    return {**kdc.environment, "KRB5_CLIENT_KTNAME": f"{kdc.home}/{name}.keytab", "KRB5CCNAME": "MEMORY:here"}


def stage(env: Mapping[str, str], source: object, target: object) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "corral.storage", "stage", str(source), str(target)]
    return subprocess.run(words, env={**os.environ, **env}, capture_output=True, text=True, check=False)


class TestKerberisedHdfs(StoreSuite):
    """WebHDFS by SPNEGO is a store like all others; many files are no other than a few, for who calls."""

    small_files = 96  # each costs both daemons and the test several calls

    test_many_small_files_are_all_there = None  # type: ignore[assignment]

    @pytest.fixture
    def store(self, hdfs: SecureHdfs, kdc: Kdc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
        for name, value in by_keytab(kdc, "ada").items():
            monkeypatch.setenv(name, value)
        return f"{hdfs.web}/ada/{tmp_path.name}"


def test_a_file_belongs_to_whom_the_ticket_is_of_whatever_the_environment_says(
    hdfs: SecureHdfs, kdc: Kdc, tmp_path: Path
) -> None:
    (tmp_path / "one").write_text("1")
    cache = {**kdc.environment, "KRB5CCNAME": kdc.cache("ada", kdc.home / "ada.keytab", "ada")}
    for name, env in {"keytab": by_keytab(kdc, "ada"), "cache": cache}.items():
        done = stage({**env, "HADOOP_USER_NAME": "ben"}, tmp_path / "one", f"{hdfs.web}/ada/{name}")
        assert done.returncode == 0, done.stderr
        assert hdfs.owner(f"/ada/{name}") == "ada"


def test_without_a_ticket_or_a_right_it_is_one_sentence(hdfs: SecureHdfs, kdc: Kdc, tmp_path: Path) -> None:
    (tmp_path / "one").write_text("1")
    nobody = stage(kdc.environment, tmp_path / "one", f"{hdfs.web}/ada/nobody")
    assert nobody.returncode == 1 and len(nobody.stderr.splitlines()) == 1
    assert "set KRB5_CLIENT_KTNAME to a keytab" in nobody.stderr
    closed = stage(by_keytab(kdc, "ada"), tmp_path / "one", f"{hdfs.web}/closed/one")
    assert closed.returncode == 1 and len(closed.stderr.splitlines()) == 1
    assert "Permission denied: user=ada, access=EXECUTE" in closed.stderr


def test_a_name_node_under_another_name_than_its_principals_refuses_the_ticket_in_one_sentence(
    hdfs: SecureHdfs, kdc: Kdc, tmp_path: Path
) -> None:
    kdc.keytab("HTTP/127.0.0.1")
    refused = stage(by_keytab(kdc, "ada"), f"{hdfs.web.replace('localhost', '127.0.0.1')}/ada/x", tmp_path / "x")
    assert refused.returncode == 1 and len(refused.stderr.splitlines()) == 1
    assert "the NameNode refuses the Kerberos ticket: GSSException: " in refused.stderr
    assert "name the daemon by the host name of its HTTP principal" in refused.stderr


def test_hdfs_by_its_own_protocol_takes_the_same_keytab(hdfs: SecureHdfs, kdc: Kdc, tmp_path: Path) -> None:
    content = os.urandom(300_000)
    (tmp_path / "one").write_bytes(content)
    env = {**by_keytab(kdc, "ada"), "HADOOP_CONF_DIR": str(hdfs.client_configuration)}
    there = stage(env, tmp_path / "one", f"{hdfs.native}/ada/native")
    assert there.returncode == 0, there.stderr
    back = stage(env, f"{hdfs.native}/ada/native", tmp_path / "back")
    assert back.returncode == 0 and (tmp_path / "back").read_bytes() == content, back.stderr


async def test_logs_and_code_are_kept_there(
    hdfs: SecureHdfs, kdc: Kdc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in by_keytab(kdc, "ada").items():
        monkeypatch.setenv(name, value)
    place = await open_folder(f"{hdfs.web}/ada/blobs")
    await place.write("logs/one", b"0123456789")
    assert await place.read("logs/one", 3, 6) == b"345" and await place.files("logs") == {"one": 10}


async def test_an_engine_writes_as_itself_and_for_its_users(hdfs: SecureHdfs, kdc: Kdc) -> None:
    files = HadoopRest("NameNode", [hdfs.url], CORRAL, kdc.identity(CORRAL))
    try:
        await files.put_file("/webhdfs/v1/apps/corral/record", b"its own")
        await files.put_file("/webhdfs/v1/ada/given", b"hers", user="ada")
        assert await files.read_file("/webhdfs/v1/ada/given", user="ada") == b"hers"
        with pytest.raises(Forbidden, match="Permission denied: user=ada"):
            await files.put_file("/webhdfs/v1/closed/taken", b"", user="ada")
    finally:
        await files.close()
    assert (hdfs.owner("/apps/corral/record"), hdfs.owner("/ada/given")) == (CORRAL, "ada")


async def test_a_principal_whom_hadoop_does_not_let_act_for_others_is_told(hdfs: SecureHdfs, kdc: Kdc) -> None:
    files = HadoopRest("NameNode", [hdfs.url], "ada", kdc.identity("ada"))
    try:
        with pytest.raises(Forbidden, match=r"hadoop\.proxyuser"):
            await files.ask("GET", "/webhdfs/v1/", user="ben", op="GETFILESTATUS")
    finally:
        await files.close()


async def test_one_ticket_serves_many_calls(hdfs: SecureHdfs, kdc: Kdc) -> None:
    files = HadoopRest("NameNode", [hdfs.url], CORRAL, kdc.identity(CORRAL))
    other = HadoopRest("NameNode", [hdfs.url], "ben", kdc.identity("ben"))
    try:
        await files.ask("GET", "/webhdfs/v1/", op="GETFILESTATUS")
        kdc.stop()  # nor is the KDC needed while the NameNode's cookie is valid
        for _ in range(3):
            await files.ask("GET", "/webhdfs/v1/", op="GETFILESTATUS")
        with pytest.raises(Unavailable, match="Cannot contact any KDC"):
            await other.ask("GET", "/webhdfs/v1/", op="GETFILESTATUS")
    finally:
        kdc.start()
        await files.close()
        await other.close()


async def test_blocks_are_located_for_the_user_of_a_job(hdfs: SecureHdfs, kdc: Kdc, tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(bytes(5000))
    assert stage(by_keytab(kdc, "ada"), tmp_path / "data", f"{hdfs.web}/ada/data").returncode == 0
    assert stage(by_keytab(kdc, "ben"), tmp_path / "data", f"{hdfs.web}/closed/data").returncode == 0
    locator = BlockLocator([NameNodes((hdfs.url,), CORRAL, lambda account: account, kdc.identity(CORRAL))])
    try:
        located = await locator.where(f"{hdfs.web}/ada/data", "ada")
        assert located.total == 5000 and sum(located.by_hosts.values()) == 5000
        with pytest.raises(Forbidden, match="user=ada"):
            await locator.where(f"{hdfs.web}/closed/data", "ada")
    finally:
        await locator.close()


def test_a_delegation_token_in_an_error_is_not_passed_on() -> None:
    said = "HTTPConnectionPool(host='dn', port=9864): Max retries exceeded with url: /x?op=OPEN&delegation=SECRET&n=1"
    assert "SECRET" not in plain_words(said) and plain_words(said).endswith("delegation=…&n=1")
