"""File systems of servers are told, and one whose server does not answer holds nothing up and is told to hang."""

from __future__ import annotations

import ctypes
import logging
import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.model.metrics.node_families import NodeMetric
from corral.model.metrics.samples import Value
from corral.monitor.agent.collector import Collector
from corral.monitor.agent.machine_files import MOST_SERVERS, SERVER_SYSTEMS, FileSystem, server_file_systems
from corral.monitor.agent.machine_samples import MachineReader
from corral.monitor.agent.server_file_systems import LOOK_SECONDS, PATIENCE, ServerFileSystems

SECONDS: Final = 120.0
RULES: Final = Path(__file__).resolve().parents[3] / "examples/prometheus/corral.rules.yml"
NAMED_ALIKE: Final = (("ceph-fuse", "fuse.ceph-fuse"), ("beegfs_nodev", "beegfs"), ("AFS", "afs"))
Figures = dict[str, float]


def mounts(*folders: Path, kind: str = "nfs4", options: str = "rw,vers=4.2") -> str:
    return "".join(f"nas:/{number} {folder} {kind} {options} 0 0\n" for number, folder in enumerate(folders))


def told(values: list[Value], mount: Path) -> Figures:
    return {each.family: each.value for each in values if each.labels[2:] == (str(mount),)}


class Asked:
    """File systems that are asked by a program of the test, with a clock of its own."""

    def __init__(self, program: Path, text: str) -> None:
        self.program, self.now = program, 0.0
        self.say(text)
        self.all = ServerFileSystems((str(program),), monotonic=lambda: self.now)

    def say(self, text: str) -> None:
        new = self.program.with_suffix(".new")
        new.write_text(f"#!/bin/sh\n{text}\n")
        new.chmod(0o755)
        new.rename(self.program)

    def until(self, mounted: str, mount: Path, is_so: Callable[[Figures], bool]) -> Figures:
        """What is told of a mount once it is so, without time passing."""
        end = time.monotonic() + SECONDS
        while not is_so(found := told(self.all.values(mounted), mount)):
            assert time.monotonic() < end, found
            time.sleep(0.01)
        return found


def until_written(file: Path) -> None:
    end = time.monotonic() + SECONDS
    while not file.exists() or not file.read_text():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.fixture
def asked(tmp_path: Path) -> Iterator[Asked]:
    made = Asked(tmp_path / "stat", "echo 4096 100 25")
    yield made
    made.all.close()


def test_the_mounts_of_servers_are_found_each_once() -> None:
    text = (
        "/dev/vda / ext4 rw 0 0\nnas:/x /my\\040data nfs4 ro,vers=4.2 0 0\nnas:/x /again nfs4 rw 0 0\n"
        "10.0.0.1@o2ib:/scratch /scratch lustre rw 0 0\nuser@host: /home fuse.sshfs rw 0 0\n"
        "nas:/y /odd\\012line nfs rw 0 0\n"
        "nas:/z\u00a0/z\u00a0nfs4\u00a0rw /home/user/z fuse.x rw,user_id=1000 0 0\n"
        "cut nfs4\n"
    )
    assert server_file_systems(text) == {
        FileSystem("nas:/x", "nfs4", "/my data"): True,
        FileSystem("10.0.0.1@o2ib:/scratch", "lustre", "/scratch"): False,
    }
    many = "".join(f"nas:/{number} /n{number} nfs rw 0 0\n" for number in range(MOST_SERVERS + 9))
    assert len(server_file_systems(many)) == MOST_SERVERS


def test_file_systems_with_the_name_of_their_kind_are_told_for_each_mount() -> None:
    text = "".join(f"{device} /{device}{mount} {kind} rw 0 0\n" for device, kind in NAMED_ALIKE for mount in "ab")
    assert {each.mount for each in server_file_systems(text)} == {
        f"/{device}{mount}" for device, _ in NAMED_ALIKE for mount in "ab"
    }  # fmt: skip


def test_file_systems_that_users_mounted_by_fuse_are_not_asked() -> None:
    roots, users = (
        "rw,nosuid,nodev,relatime,user_id=0,group_id=0,allow_other",
        "rw,nosuid,nodev,relatime,user_id=1000,group_id=1000",
    )
    many = "".join(f"nas:/{number} /tmp/{number} fuse.juicefs {users} 0 0\n" for number in range(MOST_SERVERS))
    text = f"{many}JuiceFS:lab /lab fuse.juicefs {roots} 0 0\nnas:/1 /1 nfs4 rw 0 0\n"
    assert [each.mount for each in server_file_systems(text)] == ["/lab", "/1"]


def test_mounts_that_an_automounter_ends_when_they_are_not_used_are_not_asked() -> None:
    text = (
        "auto.home /home autofs rw,fd=5,pgrp=1,timeout=300,minproto=5,maxproto=5,indirect 0 0\n"
        "systemd-1 /data autofs rw,fd=53,pgrp=1,timeout=600,minproto=5,maxproto=5,direct 0 0\n"
        "systemd-1 /apps autofs rw,fd=54,pgrp=1,timeout=0,minproto=5,maxproto=5,direct 0 0\n"
        "nas:/home/ann /home/ann nfs4 rw 0 0\nnas:/data /data nfs4 rw 0 0\nnas:/apps /apps nfs4 rw 0 0\n"
        "nas:/homes /homes nfs4 rw 0 0\n"
    )
    assert [each.mount for each in server_file_systems(text)] == ["/apps", "/homes"]


def test_the_alert_rule_is_about_the_same_kinds() -> None:
    (kinds,) = re.findall(r'node_filesystem_device_error\{fstype=~"([^"]+)"', RULES.read_text())
    assert all(re.fullmatch(kinds, each) for each in SERVER_SYSTEMS)
    others = ("fuse.portal", "fuse.sshfs", "fuse.gvfsd-fuse", "fuse", "ext4", "fuseXjuicefs")
    assert not any(re.fullmatch(kinds, each) for each in others)


@given(st.text())
def test_any_text_of_mounts_is_read(text: str) -> None:
    assert len(server_file_systems(text)) <= MOST_SERVERS


def test_what_a_server_answers_is_told_and_asked_again_after_a_minute(asked: Asked, tmp_path: Path) -> None:
    mounted = mounts(tmp_path)
    assert asked.all.values(mounted) == [], "nothing is waited for"
    assert asked.until(mounted, tmp_path, bool) == {
        NodeMetric.FILE_SYSTEM_ERROR: 0, NodeMetric.FILE_SYSTEM_READ_ONLY: 0, NodeMetric.FILE_SYSTEM: 409600,
        NodeMetric.FILE_SYSTEM_AVAILABLE: 102400,
    }  # fmt: skip
    asked.say("echo 4096 100 7")
    asked.now = LOOK_SECONDS - 1
    assert told(asked.all.values(mounted), tmp_path)[NodeMetric.FILE_SYSTEM_AVAILABLE] == 102400
    asked.now = LOOK_SECONDS
    asked.until(mounted, tmp_path, lambda found: found[NodeMetric.FILE_SYSTEM_AVAILABLE] == 7 * 4096)
    read_only = told(asked.all.values(mounts(tmp_path, options="ro")), tmp_path)
    assert read_only[NodeMetric.FILE_SYSTEM_READ_ONLY] == 1
    assert asked.all.values("") == [], "it is unmounted"


def test_a_server_that_does_not_answer_is_told_once_and_asked_again(
    asked: Asked, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    pids = tmp_path / "pids"
    (fine := tmp_path / "fine").mkdir()
    (hung := tmp_path / "hung").mkdir()
    asked.say(f'[ "$1" = {hung} ] && echo $$ >>{pids} && exec sleep 600; echo 4096 100 25')
    mounted = mounts(fine, hung)
    asked.until(mounted, fine, bool)
    assert told(asked.all.values(mounted), hung) == {}, "it has some seconds"
    until_written(pids)
    asked.now = PATIENCE
    for _ in range(3):
        found = told(asked.all.values(mounted), hung)
        assert found == {NodeMetric.FILE_SYSTEM_ERROR: 1, NodeMetric.FILE_SYSTEM_READ_ONLY: 0}
    assert caplog.text.count("nas:/1 at") == 1 and "has not answered within 10 s" in caplog.text
    asked.say("echo 4096 100 25")
    asked.now = LOOK_SECONDS
    asked.until(mounted, hung, lambda found: found[NodeMetric.FILE_SYSTEM_ERROR] == 0)
    assert f"at {hung} answers again" in caplog.text
    assert len(pids.read_text().split()) == 1, "the first question was one process, and ended"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("echo 'stat: /n: Stale file handle' >&2; exit 1", "stat: /n: Stale file handle"),
        ("exit 0", "said nothing"),
        ("echo 4096 many 1", "4096 many 1"),
        ("printf 'a\\001\\377b'; exit 1", "a"),
    ],
)
def test_what_a_server_refuses_is_told_in_one_line(
    asked: Asked, tmp_path: Path, text: str, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    asked.say(text)
    mounted = mounts(tmp_path)
    assert asked.until(mounted, tmp_path, bool)[NodeMetric.FILE_SYSTEM_ERROR] == 1
    (line,) = [each.getMessage() for each in caplog.records]
    assert said in line and "\n" not in line and len(line) < 500


def test_without_the_program_nothing_is_known_and_that_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    none = ServerFileSystems((str(tmp_path / "none"),))
    for _ in range(3):
        assert none.values(mounts(tmp_path)) == []
    assert caplog.text.count("No such file or directory") == 1


def test_the_real_program_tells_what_the_system_does(tmp_path: Path) -> None:
    real, mounted = ServerFileSystems(monotonic=lambda: 0.0), mounts(tmp_path)
    end = time.monotonic() + SECONDS
    while not (found := told(real.values(mounted), tmp_path)):
        assert time.monotonic() < end
        time.sleep(0.01)
    assert found[NodeMetric.FILE_SYSTEM_ERROR] == 0, found
    system = os.statvfs(tmp_path)
    assert found[NodeMetric.FILE_SYSTEM] == system.f_blocks * system.f_frsize
    real.close()


class SilentServer:
    """A file system of a server (FUSE) that never answers, as the kernel lists one of JuiceFS."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.server = os.open("/dev/fuse", os.O_RDWR)
        options = f"fd={self.server},rootmode=40000,user_id=0,group_id=0".encode()
        if ctypes.CDLL(None, use_errno=True).mount(b"far", os.fsencode(folder), b"fuse.juicefs", 0, options):
            os.close(self.server)
            pytest.skip(f"this machine mounts no FUSE: {os.strerror(ctypes.get_errno())}")

    def end(self) -> None:
        os.close(self.server)
        ctypes.CDLL(None).umount2(os.fsencode(self.folder), 2)


@pytest.fixture
def silent(tmp_path: Path) -> Iterator[SilentServer]:
    if os.geteuid() != 0 or not os.path.exists("/dev/fuse"):
        pytest.skip("only root, where there is FUSE, can mount a file system that never answers")
    (tmp_path / "far").mkdir()
    made = SilentServer(tmp_path / "far")
    yield made
    made.end()


def test_a_mount_whose_server_hangs_stalls_no_round_and_is_told(
    silent: SilentServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("corral.monitor.agent.server_file_systems.PATIENCE", 0.2)
    collector = Collector(parts=("machine",))
    end = time.monotonic() + SECONDS
    while True:
        begun = time.monotonic()
        values = [each for each in collector.collect(lambda *_: None).values if len(each.labels) == 3]
        assert time.monotonic() - begun < 60, "a round has waited for the server"
        found = told(values, silent.folder)
        if found:
            break
        assert time.monotonic() < end
        time.sleep(0.05)
    assert found[NodeMetric.FILE_SYSTEM_ERROR] == 1 and NodeMetric.FILE_SYSTEM not in found
    collector.close()


def test_an_agent_that_is_closed_leaves_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("corral.monitor.agent.server_file_systems._END_SECONDS", SECONDS)
    program, pids = tmp_path / "stat", tmp_path / "pids"
    program.write_text(f"#!/bin/sh\necho $$ >>{pids}\nexec sleep 600\n")
    program.chmod(0o755)
    reader = MachineReader()
    reader._servers = ServerFileSystems((str(program),))
    reader._servers.values(mounts(tmp_path))
    until_written(pids)
    reader.close()
    with pytest.raises(ProcessLookupError):
        os.kill(int(pids.read_text()), 0)
    reader._servers.values(mounts(tmp_path, tmp_path / "other"))
    assert len(reader._servers._questions) == 1, "none is asked after the end"


class Stuck:
    """A process that waits in the kernel and does not end, of which the kernel's and Python's calls are noted."""

    stdout = None
    returncode = None

    def __init__(self, asked: Asked, calls: list[str]) -> None:
        self._asked, self._calls = asked, calls

    def kill(self) -> None:
        self._calls.append("kill")

    def wait(self, seconds: float) -> None:
        self._calls.append("wait")
        self._asked.now += seconds
        raise subprocess.TimeoutExpired("stat", seconds)


def test_many_questions_that_hang_hold_the_end_up_for_a_second_in_all(
    asked: Asked, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    monkeypatch.setattr(
        "corral.monitor.agent.server_file_systems.subprocess.Popen", lambda *_, **__: Stuck(asked, calls)
    )
    asked.all.values(mounts(*(tmp_path / str(number) for number in range(MOST_SERVERS))))
    asked.all.close()
    assert asked.now == pytest.approx(1.0)
    assert calls[:MOST_SERVERS] == ["kill"] * MOST_SERVERS and calls.count("wait") == MOST_SERVERS


def test_no_more_questions_are_open_than_there_may_be_file_systems(tmp_path: Path) -> None:
    program = tmp_path / "stat"
    program.write_text("#!/bin/sh\nexec sleep 600\n")
    program.chmod(0o755)
    asked = ServerFileSystems((str(program),))
    for first in range(0, 3 * MOST_SERVERS, MOST_SERVERS):
        asked.values("".join(f"nas:/{number} /n{number} nfs rw 0 0\n" for number in range(first, first + MOST_SERVERS)))
        assert len(asked._questions) + len(asked._left) <= MOST_SERVERS
    asked.close()
