"""HDFS and YARN by `corral deploy up` on two bare hosts, until a job of Corral runs there, and back to bare hosts."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from corral.deploy.steps import hadoop_files as texts
from tests import warm
from tests.deploy.counted_ssh import CountedSsh
from tests.reserved import free_port
from tests.testbeds.hosts import hadoop
from tests.testbeds.hosts.machines import Machines
from tests.waiting import pause

pytestmark = [pytest.mark.timeout(1200), pytest.mark.skipif(bool(hadoop.missing()), reason=hadoop.missing())]
GUARD = 900
"""Seconds against hanging."""
REFUSED = 7
"""curl's exit code where a connection is refused."""
MASTER, WORKER = "store1", "store2"
SMALL = "JAVA_TOOL_OPTIONS=-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""What lets Java start with less processor time."""
AS_FOUND = (
    'find / /tmp /var/tmp -xdev -iname "*corral*" -o -xdev -iname "*hadoop*"; iptables -S; getent passwd; '
    "dpkg-query -W | cut -f 1; cat /proc/sys/net/ipv4/ip_forward; "
    "systemctl list-unit-files --no-legend; pgrep -c java || true"
)
"""What a reset leaves as it was."""


class Server:
    """A server on this machine whose tasks run on YARN of the hosts; it is asked by its command line."""

    def __init__(self, folder: Path, machines: Machines) -> None:
        master, here, port = machines.address[MASTER], machines.bridge.gateway, free_port()
        self._folder, self._data = folder, folder / "data"
        self._env = {name: value for name, value in os.environ.items() if not name.startswith("CORRAL_")}
        self._env |= {"XDG_CONFIG_HOME": str(folder / "config"), "CORRAL_YARN_START_SECONDS": "600"}
        at = ("--host", here, "--port", str(port), "--advertise", f"http://{here}:{port}")
        yarn = (
            "--engine", "yarn", "--yarn-resource-managers", f"http://{master}:8088",
            "--yarn-name-nodes", f"http://{master}:9870", "--yarn-user", "corral", "--yarn-queue", "corral",
        )  # fmt: skip
        told = json.loads(self.corral("up", "--detach", *at, "--data", str(self._data), "-o", "json", *yarn))
        self.corral("login", told["link"])

    def corral(self, *words: str) -> str:
        """The output of `corral WORDS`, which must succeed."""
        done = warm.corral(words, env=self._env, cwd=self._folder, seconds=GUARD)
        assert done.returncode == 0, f"corral {' '.join(words)}: {done.stdout}{done.stderr}"
        return done.stdout

    def ran(self, document: Mapping[str, Any]) -> str:
        """The output of a job that must succeed."""
        file = self._folder / "job.json"
        file.write_text(json.dumps(document))
        job = self.corral("submit", str(file), "-o", "name").strip()
        begun = time.monotonic()
        while (now := json.loads(self.corral("get", job, "-o", "json")))["state"] != "succeeded":
            assert now["state"] != "failed" and time.monotonic() - begun < GUARD, now
            time.sleep(pause(begun))
        return self.corral("logs", job)

    def down(self) -> None:
        """End the server and every task."""
        self.corral("down", "--stop-jobs", "--data", str(self._data))


@pytest.fixture
def bare() -> Iterator[Machines]:
    machines = Machines((MASTER, WORKER))
    try:
        for name in machines.address:
            machines.run(name, f'systemctl set-environment "{SMALL}"')
        yield machines
    finally:
        machines.stop()


def listed(machines: Machines, folder: Path) -> Path:
    """A list of these hosts; this machine may call them."""
    lines = ["cluster: lab", f"ssh: {{user: admin, key: {machines.key}}}", "hosts:"]
    lines += [f"  {name}: {{address: {address}, roles: [hadoop]}}" for name, address in machines.address.items()]
    full = "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage"
    lines.append(
        f"hadoop: {{master: {MASTER}, clients: [{machines.bridge.gateway}], heap: 256Mi, "
        f"nodes: {{{WORKER}: {{cpu: 4, memory: 2Gi, devices: 2}}}}, properties: {{yarn-site: {{{full}: 99.9}}}}}}"
    )
    path = folder / "hosts.yaml"
    path.write_text("\n".join(lines) + "\n")
    return path


def deploy(*words: str, ssh: CountedSsh | None = None) -> subprocess.CompletedProcess[str]:
    return warm.corral(["deploy", *words], env=ssh.environment() if ssh else os.environ, seconds=GUARD)


def up(path: Path, ssh: CountedSsh | None = None) -> dict[str, Any]:
    """The report by host of an `up` that prepares all."""
    skipped = ("--skip-check", "disk", "--skip-check", "dns")
    done = deploy(
        "up", "--timeout", "200", "--bundle", str(hadoop.bundle()), *skipped, "-o", "json", str(path), ssh=ssh
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return {each["name"]: each for each in json.loads(done.stdout)["hosts"]}


def called(url: str, *options: str) -> int:
    """What curl ends with."""
    words = ["curl", "--silent", "--max-time", "60", "--output", "/dev/null", *options, url]
    return subprocess.run(words, check=False).returncode


def called_by_a_stranger(machines: Machines, url: str) -> int:
    """The same from another address of the hosts' network, which the list does not name."""
    stranger, at = f"{machines.bridge.subnet}.200", ["dev", machines.bridge.name]
    subprocess.run(["ip", "address", "add", f"{stranger}/24", *at], check=True)
    try:
        return called(url, "--interface", stranger)
    finally:
        subprocess.run(["ip", "address", "del", f"{stranger}/24", *at], check=True)


def test_two_bare_hosts_become_hadoop_run_a_job_and_are_bare_again(bare: Machines, tmp_path: Path) -> None:
    path = listed(bare, tmp_path)
    before = {name: bare.run(name, AS_FOUND) for name in bare.address}
    report = up(path)
    assert "format HDFS, if it is not" in report[MASTER]["done"] and not report[WORKER]["later"]
    ssh = CountedSsh(tmp_path / "bin")
    assert [each["done"] for each in up(path, ssh).values()] == [[], []]
    assert ssh.by_host() == {address: ["", "exec sh -s"] for address in bare.address.values()}

    master = f"http://{bare.address[MASTER]}:8088/ws/v1/cluster/info"
    assert called(master) == 0 and called_by_a_stranger(bare, master) == REFUSED
    _runs_a_job(Server(tmp_path, bare))

    bare.run(WORKER, f"systemctl stop corral-datanode; rm {texts.CONF}/core-site.xml")
    found = json.loads(deploy("diff", "-o", "json", str(path)).stdout)["differences"]
    assert {(each["host"], each["what"]) for each in found} == {
        (WORKER, f"{texts.CONF}/core-site.xml"), (WORKER, "corral-datanode"), (WORKER, "corral-nodemanager"),
    }  # fmt: skip
    status = deploy("status", "-o", "json", str(path))
    parts = {(each["host"], each["name"]): each for each in json.loads(status.stdout)["components"]}
    assert status.returncode == 4 and not parts[WORKER, "corral-datanode"]["good"]
    assert parts[MASTER, "corral-namenode"]["good"] and parts[MASTER, "corral-namenode"]["version"] == hadoop.VERSION
    again = up(path)
    assert not again[MASTER]["done"] and again[WORKER]["done"][-1] == "wait until YARN and HDFS have it"

    done = deploy("reset", "--cluster", "lab", str(path))
    assert done.returncode == 0, done.stderr
    assert {name: bare.run(name, AS_FOUND) for name in bare.address} == before


def _runs_a_job(server: Server) -> None:
    """Two tasks with a device each."""
    main = {
        "replicas": 2,
        "resources": {"cpu": 1, "memory": "256Mi", "devices": 1},
        "command": "echo on $(hostname) as $(id -un)",
        "completion": {"minSucceeded": 2},
    }
    try:
        said = server.ran({"name": "hello", "framework": "shell", "roles": {"main": main}})
        assert said.count(f"on {WORKER} as {texts.USER}") == 2
    finally:
        server.down()
