"""What is done for Hadoop on hosts: who owns its folders, what a reset leaves alone, and who has the first places."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
from pathlib import Path
from typing import cast

import pytest

from corral.deploy.hosts.reader import Host
from corral.deploy.remote import work
from corral.deploy.remote.ssh import AT_ONCE, Answer, Ssh
from corral.deploy.steps.hadoop import START_MASTER
from corral.deploy.steps.outcome import Outcome
from tests.deploy.facts import hosts
from tests.deploy.test_hadoop import plans

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
    functions = "".join((_FOLDER / name).read_text() for name in ("do.sh", "hadoop.sh"))
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
