"""`corral deploy up` on hosts of our own, from bare: done once, gone on with after a cut, and no host in another's way."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from corral.deploy.steps import files
from tests import warm
from tests.deploy.counted_ssh import CountedSsh
from tests.testbeds.hosts import roots
from tests.testbeds.hosts.machines import Machines

pytestmark = [pytest.mark.timeout(1200), pytest.mark.skipif(bool(roots.missing()), reason=roots.missing())]
GUARD = 400
"""Seconds against hanging."""
HEAD, WORKERS = "head", ("gpu1", "gpu2")
FSTAB = "/dev/vda1 / ext4 defaults 0 1\n/dev/vdb none swap sw 0 0\n"
FULL = ("--skip-check", "disk")
"""The disk of this machine may be full."""
_CORRAL = (sys.executable, "-m", "corral.cli.main")
_WANTED = (files.MODULES_FILE, files.SYSCTLS_FILE, "/etc/fstab")


@pytest.fixture
def bare() -> Iterator[Machines]:
    """Three hosts as they were delivered, with a swap area in their table of file systems."""
    machines = Machines((HEAD, *WORKERS))
    try:
        for name in machines.address:
            machines.run(name, "cat >/etc/fstab", FSTAB.encode())
        yield machines
    finally:
        machines.stop()


def words(machines: Machines, folder: Path, *options: str, keys: dict[str, str] | None = None) -> list[str]:
    """The command `deploy up`, with a list of these hosts in the folder."""
    lines = ["cluster: lab", f"ssh: {{user: admin, key: {machines.key}}}", "hosts:"]
    for name, address in machines.address.items():
        own = f", ssh: {{key: {keys[name]}}}" if keys and name in keys else ""
        role = "control-plane" if name == HEAD else "worker"
        lines.append(f"  {name}: {{address: {address}, roles: [{role}]{own}}}")
    listed = folder / "hosts.yaml"
    listed.write_text("\n".join(lines) + "\n")
    command = ["deploy", "up", "--timeout", "200", "--packages", str(roots.packages()), *FULL, *options, str(listed)]
    return [*_CORRAL, *command]


def up(
    machines: Machines, folder: Path, *options: str, keys: dict[str, str] | None = None, ssh: CountedSsh | None = None
) -> tuple[int, dict[str, Any], str]:
    """The exit code, the report by host and standard error of an `up`."""
    command = words(machines, folder, "-o", "json", *options, keys=keys)
    env = ssh.environment() if ssh else os.environ
    done = warm.corral(command[len(_CORRAL) :], env=env, seconds=GUARD)
    report = json.loads(done.stdout) if done.stdout else {"hosts": []}
    return done.returncode, {each["name"]: each for each in report["hosts"]}, done.stderr


def state_of(machines: Machines, name: str) -> str:
    """All that `up` changes on a host, as text: the same on two hosts that were prepared alike."""
    return machines.run(
        name,
        f"for file in {' '.join(_WANTED)}; do stat -c %n:%a $file; cat $file; done; "
        "dpkg-query -W; cat /proc/sys/net/ipv4/ip_forward; find /var/lib/corral; "
        "cat /var/lib/corral/deploy/before/etc/fstab",
    )


def test_bare_hosts_are_prepared_once_and_a_second_up_does_nothing(bare: Machines, tmp_path: Path) -> None:
    code, dry, said = up(bare, tmp_path, "--dry-run")
    assert code == 0, said
    assert "ethtool" not in bare.run(HEAD, "dpkg-query -W")
    planned = {step["title"] for step in dry[HEAD]["steps"] if step["needed"]}
    code, report, said = up(bare, tmp_path)
    assert code == 0, said
    done, later = set(report[HEAD]["done"]), set(report[HEAD]["later"])
    assert done | later == planned and not done & later
    assert {"install conntrack, ethtool, socat", "set net.ipv4.ip_forward = 1", "change /etc/fstab"} <= done
    for name in bare.address:
        assert f"{name}: [1/" in said
        state = state_of(bare, name)
        assert state == state_of(bare, HEAD)
        assert "# /dev/vdb none swap sw 0 0" in state and FSTAB in state  # changed, and kept as it was before
        log = (tmp_path / "hosts.logs" / f"{name}.log").read_text()
        assert "Setting up socat" in log and "change /etc/fstab" in log
    ssh = CountedSsh(tmp_path / "bin")
    code, report, said = up(bare, tmp_path, ssh=ssh)
    assert code == 0, said
    assert all(each["state"] == "prepared" and not each["done"] for each in report.values())
    once = {address: ["", "exec sh -s"] for address in bare.address.values()}
    assert ssh.by_host() == once, "a connection and one look at each"


def test_an_up_that_is_killed_at_any_step_is_gone_on_with_to_the_same_end(bare: Machines, tmp_path: Path) -> None:
    code, _, said = up(bare, tmp_path, "--host", HEAD)
    assert code == 0, said
    wanted = state_of(bare, HEAD)
    for name, cuts in zip(WORKERS, ((1, 2), (4,)), strict=True):
        for at in cuts:
            _cut_at(at, words(bare, tmp_path, "--host", name), bare)
        code, report, said = up(bare, tmp_path, "--host", name)
        assert code == 0, said
        assert report[name]["state"] == "prepared"
        assert state_of(bare, name) == wanted


def _cut_at(step: int, command: list[str], machines: Machines) -> None:
    """Start an `up`, and kill it with -9 as soon as it tells of this step."""
    process = _started(command, machines)
    assert process.stderr is not None
    assert any(f": [{step}/" in line for line in process.stderr)
    os.kill(process.pid, signal.SIGKILL)
    process.stderr.close()
    assert process.wait(timeout=GUARD) == -signal.SIGKILL


def _started(command: list[str], machines: Machines) -> subprocess.Popen[str]:
    """A running `up`; what it leaves behind when it is killed goes with the hosts."""
    env = os.environ | {"TMPDIR": str(machines.home)}
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=env)


def test_a_host_that_fails_leaves_the_others_going_and_says_what_to_do(bare: Machines, tmp_path: Path) -> None:
    other = tmp_path / "other-key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(other)], check=True)
    bare.run(
        "gpu1", "mkdir -p /etc/sysctl.d; mount -t tmpfs -o size=4k full /etc/sysctl.d; echo x >/etc/sysctl.d/own.conf"
    )
    code, report, said = up(bare, tmp_path, keys={"gpu2": str(other)})
    assert code == 4, said
    assert {name: each["state"] for name, each in report.items()} == {
        HEAD: "prepared", "gpu1": "failed", "gpu2": "not reached",
    }  # fmt: skip
    assert report["gpu1"]["message"] == f"cannot write {files.SYSCTLS_FILE}: its disk is full"
    assert report["gpu1"]["remedy"] == "Free some space (df -h), then run up again."
    assert "ssh-copy-id" in report["gpu2"]["remedy"]
    bare.run("gpu1", "umount /etc/sysctl.d")
    code, report, said = up(bare, tmp_path)
    assert code == 0, said
    assert state_of(bare, "gpu1") == state_of(bare, HEAD) == state_of(bare, "gpu2")
    assert "write /etc/modules-load.d/corral.conf" not in report["gpu1"]["done"]


def test_a_host_whose_check_fails_is_left_out_and_the_next_up_goes_on(bare: Machines, tmp_path: Path) -> None:
    listener = "import socket, sys, time; own = socket.create_server((sys.argv[1], 10250)); time.sleep(10000)"
    bare.run("gpu1", f'systemd-run --unit=other python3 -c "{listener}" {bare.address["gpu1"]}')
    bare.run("gpu1", f"until ss -ltn | grep -q {bare.address['gpu1']}:10250; do sleep 0.1; done")
    late = '#!/bin/sh\n/bin/date -d "1 hour ago" "$@"\n'
    bare.run("gpu2", "cat >/usr/local/bin/date; chmod 755 /usr/local/bin/date", late.encode())
    before = {name: bare.run(name, "dpkg-query -W; ls -A /var/lib/corral /etc/sysctl.d || true") for name in WORKERS}
    code, report, said = up(bare, tmp_path)
    assert code == 4, said
    assert {name: each["state"] for name, each in report.items()} == {
        HEAD: "prepared", "gpu1": "obstructed", "gpu2": "obstructed",
    }  # fmt: skip
    assert report["gpu1"]["message"] == "ports: another program listens at port 10250, which the kubelet needs"
    assert "ss -ltnp" in report["gpu1"]["remedy"] and "--skip-check ports" in report["gpu1"]["remedy"]
    assert re.fullmatch(r"clock: the clock is 3[56]\d\d\.\d s behind of this machine's", report["gpu2"]["message"])
    assert {
        name: bare.run(name, "dpkg-query -W; ls -A /var/lib/corral /etc/sysctl.d || true") for name in WORKERS
    } == before
    bare.run("gpu1", "systemctl stop other")
    code, report, said = up(bare, tmp_path, "--skip-check", "clock")
    assert code == 0, said
    assert report["gpu2"]["done"] and not report[HEAD]["done"]
    assert state_of(bare, "gpu1") == state_of(bare, HEAD) == state_of(bare, "gpu2")


def test_ctrl_c_ends_an_up_and_the_next_one_goes_on(bare: Machines, tmp_path: Path) -> None:
    process = _started(words(bare, tmp_path), bare)
    assert process.stderr is not None
    for line in process.stderr:
        if "gpu1: [1/" in line:
            break
    process.send_signal(signal.SIGINT)
    said = process.stderr.read()
    process.stderr.close()
    assert process.wait(timeout=GUARD) == 130
    assert "Run it again to go on." in said and "Traceback" not in said
    code, _, said = up(bare, tmp_path)
    assert code == 0, said


def test_hosts_of_a_killed_test_run_are_removed_before_the_next_start() -> None:
    code = (
        "import os, signal, sys\nfrom tests.testbeds.hosts.machines import Machines\nmade = Machines(('left',))\n"
        "print(made.home, made.bridge.name, flush=True)\nos.kill(os.getpid(), signal.SIGKILL)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=GUARD)
    assert done.returncode == -signal.SIGKILL, done.stderr
    home, bridge = done.stdout.split()
    assert Path(home).exists()
    machines = Machines(("next",))
    try:
        assert not Path(home).exists()
        assert bridge not in subprocess.run(["ip", "link"], capture_output=True, text=True, check=True).stdout
        assert Path(home).name not in Path("/proc/mounts").read_text()
    finally:
        machines.stop()
