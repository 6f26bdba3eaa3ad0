"""What is done for Hadoop on hosts: who owns its folders, what a reset leaves alone, and who has the first places."""

from __future__ import annotations

import asyncio
import io
import json
import os
import re
import subprocess
import tarfile
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import ClassVar, cast

import pytest

from corral.deploy.hosts.reader import Host
from corral.deploy.remote import work
from corral.deploy.remote.ssh import AT_ONCE, Answer, Ssh
from corral.deploy.steps.hadoop import START_MASTER
from corral.deploy.steps.outcome import Outcome
from tests.deploy.facts import hosts
from tests.deploy.test_hadoop import plans
from tests.testbeds.hadoop.yarn import loopback
from tests.waiting import pause

_FOLDER = Path(work.__file__).parent
FAMILIES = [f"{family}{end}" for family in ("iptables", "ip6tables") for end in ("", "-save", "-restore")]
RECORDED = ("chown", "id", "kubeadm", "ip", "systemctl", "rm", "userdel", "pkill", *FAMILIES)
_CALL = re.compile(rb"^alone \|\| return\n(.*)$", re.MULTILINE)
RULES = "-A INPUT -j KUBE-FORWARD"


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """The records of `up` in place of a host's; programs that would change the machine write down what they are asked."""
    (tmp_path / "state/deploy").mkdir(parents=True)
    (tmp_path / "state/deploy/made").touch()
    (tmp_path / "bin").mkdir()
    for name in RECORDED:
        says = f"echo '{RULES}'" if name.endswith("-save") else ""
        (tmp_path / "bin" / name).write_text(f'#!/bin/sh\necho "{name} $*" >>"$SEEN"\n{says}\n')
        (tmp_path / "bin" / name).chmod(0o755)
    return tmp_path


def call(state: Path, words: str) -> tuple[int, list[str]]:
    """Call a function there; returns its exit code and what the programs were asked."""
    seen = state / "seen"
    seen.unlink(missing_ok=True)
    functions = "".join((_FOLDER / name).read_text() for name in ("do.sh", "hadoop.sh", "registry.sh"))
    functions = functions.replace("/var/lib/corral", f"{state}/state").replace("/usr/local/bin/", f"{state}/bin/")
    functions = functions.replace("PATH=$PATH:", f"PATH={state}/bin:$PATH:", 1)
    env = {**os.environ, "SEEN": str(seen), "PATH": f"{state}/bin:{os.environ['PATH']}"}
    done = subprocess.run(["sh", "-c", f"{functions}\n{words}\n"], capture_output=True, check=False, env=env)
    return done.returncode, seen.read_text().splitlines() if seen.exists() else []


def listed(state: Path) -> tuple[Path, Path]:
    """A list of one folder of Hadoop's, and that folder."""
    folder = state / "data/corral-hadoop/blocks"
    (state / "folders").write_text(f"# Written by corral deploy.\n{folder}\n")
    return state / "folders", folder


def test_containers_do_not_own_the_folder_that_has_those_of_hadoop(state: Path) -> None:
    path, folder = listed(state)
    code, asked = call(state, f"make_hadoop_data {path} nobody")
    assert code == 0 and folder.stat().st_mode & 0o777 == 0o700 and folder.parent.stat().st_mode & 0o777 == 0o755
    given = [each for each in asked if each.startswith("chown")]
    assert given == [f"chown root:root {folder.parent}", f"chown -h nobody:nobody {folder}"]


def test_a_link_in_the_place_of_a_folder_of_hadoop_is_not_followed(state: Path) -> None:
    path, folder = listed(state)
    (state / "etc").mkdir(mode=0o755)
    folder.parent.mkdir(parents=True)
    folder.symlink_to(state / "etc")
    code, asked = call(state, f"make_hadoop_data {path} nobody")
    assert code == 1 and (state / "etc").stat().st_mode & 0o777 == 0o755
    assert not [each for each in asked if "nobody:nobody" in each]


def reset(state: Path, made: str) -> list[str]:
    """What a reset asks programs that would end a Kubernetes."""
    (state / "state/deploy/made").write_text(made)
    code, asked = call(state, "reset_packages() { :; }; reset_settings() { :; }; reset_host")
    assert code == 0, asked
    return [
        each for each in asked if each.startswith(("kubeadm", "ip ", "iptables-save")) or "/var/lib/kubelet" in each
    ]


def test_a_kubernetes_that_up_did_not_make_outlives_a_reset_of_hadoop(state: Path) -> None:
    assert reset(state, "/etc/systemd/system/corral-datanode.service\n/etc/corral-hadoop/core-site.xml\n") == []


@pytest.mark.parametrize("unit", ["kubelet", "containerd"])
def test_a_kubernetes_that_up_made_is_taken_away(state: Path, unit: str) -> None:
    asked = " ".join(reset(state, f"/etc/systemd/system/{unit}.service\n"))
    assert "kubeadm reset --force" in asked and "/var/lib/kubelet /var/lib/etcd" in asked and "cni0" in asked


IMAGE, EARLIER = "0000000000000000012", "0000000000000000004"


def name_folder(state: Path) -> Path:
    """The folder of a NameNode with two images, and with edits from before, across and after the last of them."""
    folder = state / "data/corral-hadoop/name/current"
    folder.mkdir(parents=True)
    (folder / "VERSION").write_text("namespaceID=1\nclusterID=CID-one\n")
    for name in (f"fsimage_{EARLIER}", f"fsimage_{IMAGE}"):
        (folder / name).write_text(name)
        (folder / f"{name}.md5").write_text("sum")
    for first, last in ((1, 12), (13, 20), (21, 100)):
        (folder / f"edits_{first:019}-{last:019}").write_text(f"{first}")
    (folder / "edits_inprogress_0000000000000000101").write_text("now")
    (folder / "seen_txid").write_text("101\n")
    (state / "format").write_text(f"# Written by corral deploy.\n{folder.parent}\n")
    return folder


def gathered(state: Path) -> dict[str, str]:
    """The files of a backup of that folder."""
    name_folder(state)
    (state / "bin/runuser").write_text("#!/bin/sh\ntrue\n")
    (state / "bin/runuser").chmod(0o755)
    for name in ("rm", "chown"):
        (state / "bin" / name).unlink(missing_ok=True)
    code, _ = call(state, f"prepare_hdfs_backup {state}/format nobody")
    assert code == 0
    backup = state / "state/deploy/backup"
    with tarfile.open(backup / "hdfs/name.tar") as archive:
        assert [each.name for each in backup.rglob("*") if each.is_file()] == ["name.tar"]
        return {each.name: archive.extractfile(each).read().decode() for each in archive}  # type: ignore[union-attr]


def test_a_backup_of_hdfs_has_the_last_image_and_the_edits_since(state: Path) -> None:
    found = gathered(state)
    since = (f"edits_{13:019}-{20:019}", f"edits_{21:019}-{100:019}")
    assert set(found) == {"VERSION", "seen_txid", f"fsimage_{IMAGE}", f"fsimage_{IMAGE}.md5", *since}
    assert found["seen_txid"] == "100\n", "a NameNode wants to read all up to it, and the edits of now are not there"


def sent(state: Path, files: dict[str, str]) -> None:
    """Files in an archive that a host was sent."""
    received = state / "state/deploy/received"
    received.mkdir(parents=True, exist_ok=True)
    with tarfile.open(received / "name.tar", "w") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))


RESTORE = "received() { cd $STATE/received; }; chown() { :; }; restart() { echo restart $1 >>$SEEN; }; restore_hdfs"


def test_an_image_takes_the_place_of_the_one_that_is_there_and_that_is_kept(state: Path) -> None:
    files = gathered(state)
    folder = state / "data/corral-hadoop/name"
    (folder / "current/VERSION").write_text("clusterID=CID-two\n")
    sent(state, files)
    code, asked = call(state, f"{RESTORE} {state}/format nobody")
    assert code == 0 and asked == ["systemctl stop corral-namenode", "restart corral-namenode"]
    assert "CID-one" in (folder / "current/VERSION").read_text()
    (kept,) = folder.parent.glob("name-before-*")
    assert "CID-two" in (kept / "VERSION").read_text()


def test_an_image_of_the_same_hdfs_is_left_as_it_is_unless_it_was_asked_for(state: Path) -> None:
    files = gathered(state)
    folder = state / "data/corral-hadoop/name"
    (folder / "current/late").touch()
    sent(state, files)
    code, asked = call(state, f"{RESTORE} {state}/format nobody")
    assert code == 0 and asked == [] and (folder / "current/late").exists()
    assert not (state / "state/deploy/received").exists() and not (folder / "corral-restored").exists()
    sent(state, files)
    code, asked = call(state, f"{RESTORE} {state}/format nobody asked")
    assert code == 0 and "restart corral-namenode" in asked
    assert not (folder / "current/late").exists() and len(list(folder.parent.glob("name-before-*"))) == 1


class NameNode(BaseHTTPRequestHandler):
    """What a NameNode tells of itself."""

    protocol_version = "HTTP/1.0"
    nodes: ClassVar[list[int]] = []
    """The blocks of each DataNode."""
    missing, safe = 0, False

    @classmethod
    def tip(cls) -> str:
        """Why it is in safe mode; "" if it is not."""
        return "on" * cls.safe

    def do_GET(self) -> None:
        """Answer as JMX does."""
        live = json.dumps({str(at): {"numBlocks": blocks} for at, blocks in enumerate(self.nodes)})
        bean = {
            "LiveNodes": live,
            "NumberOfMissingBlocks": self.missing,
            "TotalBlocks": 2,
            "Safemode": self.tip(),
        }
        body = json.dumps({"beans": [bean]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.mark.parametrize(
    ("nodes", "missing", "safe", "fails", "says"),
    [
        ([1, 1], 0, False, False, "2 of 2 DataNodes are there, and 0 blocks are missing"),
        (
            [1, 0],
            1,
            True,
            False,
            "2 of 2 DataNodes are there, and 1 blocks are missing; it is in safe mode, told of 1 copies of 2 blocks",
        ),
        ([2], 0, False, True, "corral: 1 of 2 DataNodes are there, and 0 blocks are missing"),
        (
            [2, 2],
            0,
            True,
            False,
            "2 of 2 DataNodes are there, and 0 blocks are missing; it is in safe mode, told of 4 copies",
        ),
        (None, 0, False, True, "corral: the NameNode does not answer: "),
    ],
)
def test_an_hdfs_without_its_namenode_or_a_datanode_is_a_failure_and_missing_blocks_are_told(
    state: Path,
    monkeypatch: pytest.MonkeyPatch,
    nodes: list[int] | None,
    missing: int,
    safe: bool,
    fails: bool,
    says: str,
) -> None:
    for name, value in (("nodes", nodes), ("missing", missing), ("safe", safe)):
        monkeypatch.setattr(NameNode, name, value)
    with HTTPServer(("127.0.0.1", 0), NameNode) as server:
        address = f"127.0.0.1:{server.server_port}"
        if nodes is None:
            server.server_close()
        else:
            threading.Thread(target=server.serve_forever, daemon=True).start()
        property_ = f"<name>dfs.namenode.http-address</name><value>{address}</value>"
        (state / "hdfs-site.xml").write_text(f"<property>{property_}</property>\n")
        code, _ = call(state, f"HADOOP_CONF={state}; print_hdfs_state 2 2 nobody >$SEEN.said 2>&1")
        if nodes is not None:
            server.shutdown()
    said = (state / "seen.said").read_text()
    assert bool(code) == fails and said.startswith(says) and said.endswith("\n")


def test_a_namenode_that_only_younger_blocks_keep_in_safe_mode_leaves_it(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are those of files that were written after the backup, which a restore gives up."""
    monkeypatch.setattr(NameNode, "nodes", [1, 1])
    tip = "Safe mode is ON. Name node detected blocks with generation stamps in future."
    with HTTPServer(("127.0.0.1", 0), NameNode) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        property_ = f"<name>dfs.namenode.http-address</name><value>127.0.0.1:{server.server_port}</value>"
        (state / "hdfs-site.xml").write_text(f"<property>{property_}</property>\n")
        leave = f'as_hadoop() {{ echo "$*" >>$SEEN; mv {state}/young {state}/old; }}; HADOOP_CONF={state}'
        monkeypatch.setattr(NameNode, "tip", classmethod(lambda cls: tip if (state / "young").exists() else ""))
        (state / "young").touch()
        code, asked = call(state, f"{leave}; print_hdfs_state 2 60 nobody >$SEEN.said 2>&1")
        server.shutdown()
    assert code == 0 and asked == ["nobody org.apache.hadoop.hdfs.tools.DFSAdmin -safemode forceExit"]
    assert (state / "seen.said").read_text() == "2 of 2 DataNodes are there, and 0 blocks are missing\n"


class Daemons(BaseHTTPRequestHandler):
    """What YARN's and HDFS's daemons of one host tell, by the port that is asked."""

    protocol_version = "HTTP/1.0"
    heard = 700
    """Seconds since the NameNode heard of the DataNode."""
    asked: ClassVar[set[int]] = set()

    def do_GET(self) -> None:
        """Answer as the daemon of the port does."""
        host, port = cast(tuple[str, int], self.server.server_address)
        node = {"xferaddr": f"{host}:9866", "adminState": "In Service", "lastContact": Daemons.heard}
        told = {
            8088: {"nodes": {"node": [{"id": f"{host}:8041"}]}},
            9870: {"beans": [{"LiveNodes": json.dumps({host: node})}]},
        }.get(port, {})
        Daemons.asked.add(port)
        body = json.dumps(told).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def test_a_worker_is_awaited_until_its_own_daemons_answer_and_have_told_of_themselves(state: Path) -> None:
    """The masters list a daemon for minutes after it has ended."""
    host, servers = loopback(), []

    def serve(*ports: int) -> None:
        for port in ports:
            servers.append(HTTPServer((host, port), Daemons))
            threading.Thread(target=servers[-1].serve_forever, daemon=True).start()

    def asked(*ports: int) -> None:
        Daemons.asked.clear()
        begun = time.monotonic()
        while not Daemons.asked.issuperset(ports):
            assert time.monotonic() - begun < 200 and joining.is_alive(), Daemons.asked
            time.sleep(pause(begun))

    codes: list[int] = []
    joining = threading.Thread(target=lambda: codes.append(call(state, f"join_hadoop {host} {host}")[0]))
    try:
        serve(8088, 9870, 8042)
        joining.start()
        asked(8042)
        assert 8088 not in Daemons.asked, "it asked the masters, whose list may be old"
        serve(9864)
        asked(8042, 9864, 8088, 9870)
        asked(8042, 9864, 8088, 9870)
        Daemons.heard = 0
        joining.join(200)
        assert codes == [0]
    finally:
        Daemons.heard = 700
        for server in servers:
            server.shutdown()
            server.server_close()


@pytest.mark.parametrize("odd", [{"VERSION": "clusterID=CID-x\n", "../x": "1"}, {"VERSION": "x"}, {"odd/VERSION": "x"}])
def test_an_archive_that_is_no_image_changes_nothing(state: Path, odd: dict[str, str]) -> None:
    folder = name_folder(state)
    (state / "bin/rm").unlink()
    before = sorted(each.name for each in folder.iterdir())
    sent(state, odd)
    code, asked = call(state, f"{RESTORE} {state}/format nobody")
    assert code and not asked
    assert sorted(each.name for each in folder.iterdir()) == before and not (state / "data/corral-hadoop/x").exists()


@pytest.mark.parametrize(
    ("cluster", "block", "wiped", "fails"),
    [("CID-one", True, False, False), ("CID-two", False, True, False), ("CID-two", True, False, True)],
)
def test_a_datanode_of_another_hdfs_begins_anew_unless_it_has_blocks(
    state: Path, cluster: str, block: bool, wiped: bool, fails: bool
) -> None:
    path, folder = listed(state)
    (folder / "current/BP-1").mkdir(parents=True)
    (folder / "current/VERSION").write_text(f"clusterID={cluster}\n")
    if block:
        (folder / "current/BP-1/blk_1073741825").write_text("1")
    code, asked = call(state, f"restart() {{ echo restart $1 >>$SEEN; }}; rejoin_hdfs {path} CID-one")
    assert bool(code) == fails and (not list(folder.iterdir())) == wiped
    assert ("restart corral-datanode" in asked) != fails


class Hadoop:
    """Hosts whose steps take no time; the master has a worker only once it has started itself."""

    def __init__(self, *, failing: bool) -> None:
        self.early: list[str] = []
        """The workers that asked before."""
        self._started, self._failing = False, failing

    async def ask(self, host: Host, command: str, text: object, *, most: int, seconds: float) -> Answer:
        """Answer to the call of a script."""
        called = _CALL.search(text) if isinstance(text, bytes) else None
        await asyncio.sleep(0)
        if called and called[1] == " ".join(START_MASTER).encode():
            self._started = not self._failing
            return Answer(b"", int(self._failing))
        if called and called[1].startswith(b"join_hadoop") and not self._started:
            self.early.append(host.name)
        return Answer(b"", 0)


def done(asked: Hadoop, folder: Path) -> dict[str, Outcome]:
    """What comes of the steps of more hosts than are worked on at once, with the master as the last of the list."""
    names = [*(f"w{at}" for at in range(AT_ONCE + 2)), "m"]
    rows = [f"  {name}: {{address: 10.0.0.{at}, roles: [hadoop]}}" for at, name in enumerate(names, 1)]
    chosen = hosts("\n".join(["hosts:", *rows, "hadoop: {master: m}"]))
    steps = work.do_steps_over(
        cast(Ssh, asked), chosen, plans(chosen), folder / "hosts.yaml", folder, (), lambda host, says: None
    )
    return asyncio.run(steps)


def test_workers_wait_for_the_master_which_has_one_of_the_first_places(tmp_path: Path) -> None:
    asked = Hadoop(failing=False)
    assert {each.state for each in done(asked, tmp_path).values()} == {"prepared"} and asked.early == []


def test_workers_do_not_wait_for_a_master_that_failed(tmp_path: Path) -> None:
    asked = Hadoop(failing=True)
    outcomes = done(asked, tmp_path)
    refusal = outcomes["w0"].refusal
    assert refusal is not None and refusal.message == "cannot join Hadoop: m has not started" and asked.early == []
    assert {each.state for each in outcomes.values()} == {"failed"}
