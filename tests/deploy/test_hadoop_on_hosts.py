"""HDFS and YARN by `corral deploy up` on bare hosts: a job of Corral, a worker more, one less, and back to bare hosts."""

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
KEPT = "written before the backup"
REFUSED = 7
"""curl's exit code where a connection is refused."""
MASTER, WORKER, NEW = "store1", "store2", "store3"
GO = "/tmp/go"
"""The file that tasks wait for."""
SMALL = 'JAVA_TOOL_OPTIONS="-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"'
"""What lets Java start with less processor time: services, and programs of a step."""
CHEAP = (
    f"systemctl set-environment {SMALL}; echo 'SetEnv {SMALL}' >/etc/ssh/sshd_config.d/a-java.conf; "
    "echo 'Defaults env_keep += JAVA_TOOL_OPTIONS' >/etc/sudoers.d/java; systemctl reload ssh"
)
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

    def started(self, document: Mapping[str, Any]) -> str:
        """The name of a job that runs."""
        file = self._folder / "job.json"
        file.write_text(json.dumps(document))
        job = self.corral("submit", str(file), "-o", "name").strip()
        self._wait(job, "running")
        return job

    def ended(self, job: str) -> str:
        """The output of a job that must succeed."""
        self._wait(job, "succeeded")
        return self.corral("logs", job)

    def _wait(self, job: str, state: str) -> None:
        begun = time.monotonic()
        while (now := json.loads(self.corral("get", job, "-o", "json")))["state"] != state:
            assert now["state"] != "failed" and time.monotonic() - begun < GUARD, now
            time.sleep(pause(begun))

    def down(self) -> None:
        """End the server and every task."""
        self.corral("down", "--stop-jobs", "--data", str(self._data))


@pytest.fixture
def bare() -> Iterator[Machines]:
    machines = Machines((MASTER, WORKER, NEW))
    try:
        for name in machines.address:
            machines.run(name, CHEAP)
        yield machines
    finally:
        machines.stop()


def listed(machines: Machines, folder: Path, *names: str) -> Path:
    """A list of these hosts; this machine may call them."""
    lines = ["cluster: lab", f"ssh: {{user: admin, key: {machines.key}}}", "hosts:"]
    lines += [f"  {name}: {{address: {machines.address[name]}, roles: [hadoop]}}" for name in names]
    full = "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage"
    offers = ", ".join(f"{name}: {{cpu: 4, memory: 2Gi, devices: 2}}" for name in names if name != MASTER)
    lines.append(
        f"hadoop: {{master: {MASTER}, clients: [{machines.bridge.gateway}], heap: 256Mi, replication: 1, "
        f"nodes: {{{offers}}}, "
        f"properties: {{yarn-site: {{{full}: 99.9}}, hdfs-site: {{dfs.namenode.safemode.extension: 0}}}}}}"
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


def test_bare_hosts_become_hadoop_run_a_job_take_a_worker_lose_one_and_are_bare_again(
    bare: Machines, tmp_path: Path
) -> None:
    path = listed(bare, tmp_path, MASTER, WORKER)
    before = {name: bare.run(name, AS_FOUND) for name in bare.address}
    report = up(path)
    assert "format HDFS, if it is not" in report[MASTER]["done"] and not report[WORKER]["later"]
    ssh = CountedSsh(tmp_path / "bin")
    assert [each["done"] for each in up(path, ssh).values()] == [[], []]
    assert ssh.by_host() == {bare.address[name]: ["", "exec sh -s"] for name in (MASTER, WORKER)}

    master = f"http://{bare.address[MASTER]}:8088/ws/v1/cluster/info"
    assert called(master) == 0 and called_by_a_stranger(bare, master) == REFUSED
    folder = f"http://{bare.address[MASTER]}:9870/webhdfs/v1/user/corral"
    written(f"{folder}/first", tmp_path / "first")
    _workers_come_and_go_while_a_job_runs(bare, tmp_path)
    _no_service_is_left(bare)
    _hdfs_comes_back(bare, path, tmp_path / "lab.backup")

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

    # A DataNode that is written to keeps the block itself.
    own = f"http://{bare.address[WORKER]}:9864/webhdfs/v1/user/corral/last"
    written(own, tmp_path / "last", f"&namenoderpcaddress={bare.address[MASTER]}:8020")
    said = deploy_good("remove-node", WORKER, "--cluster", "lab", "--hosts", str(path))
    assert f"Take {WORKER} off" in said and bare.run(WORKER, AS_FOUND) == before[WORKER]
    assert [read(f"{folder}/{name}") for name in ("first", "kept", "last")] == [KEPT] * 3, f"only {NEW} has blocks now"
    done = deploy("reset", "--cluster", "lab", str(listed(bare, tmp_path, MASTER, NEW)))
    assert done.returncode == 0, done.stderr
    assert {name: bare.run(name, AS_FOUND) for name in bare.address} == before


def _workers_come_and_go_while_a_job_runs(machines: Machines, folder: Path) -> None:
    """Two tasks with a device each go on while a worker is added, and keep theirs from being taken away."""
    main = {
        "replicas": 2,
        "resources": {"cpu": 1, "memory": "256Mi", "devices": 1},
        "command": f"until [ -e {GO} ]; do sleep 1; done; echo on $(hostname) as $(id -un)",
        "completion": {"minSucceeded": 2},
    }
    server = Server(folder, machines)
    try:
        job = server.started({"name": "hello", "framework": "shell", "roles": {"main": main}})
        path = listed(machines, folder, MASTER, WORKER, NEW)
        report = up(path)
        assert report[NEW]["done"][-1] == "wait until YARN and HDFS have it"
        rules = [f"change {texts.RULES_FILE}", f"enable and start {texts.FIREWALL}"]
        assert report[MASTER]["done"] == rules and report[WORKER]["done"] == rules

        done = deploy("remove-node", WORKER, "--cluster", "lab", "--drain-timeout", "1", "--hosts", str(path))
        assert done.returncode == 4 and "of YARN ran on it after 1 s" in done.stdout, done.stdout + done.stderr
        parts = json.loads(deploy("status", "-o", "json", str(path)).stdout)["components"]
        (yarn,) = [each["state"] for each in parts if (each["host"], each["name"]) == (WORKER, "yarn")]
        assert yarn.startswith("leaves, with ")
        machines.run(WORKER, f"touch {GO}")
        assert server.ended(job).count(f"on {WORKER} as {texts.USER}") == 2
    finally:
        server.down()
    machines.run(WORKER, f"rm {GO}")
    report = up(path)
    assert report[MASTER]["done"] == [f"change {texts.EXCLUDED_FILE}", "let HDFS and YARN read which hosts leave"]


def _no_service_is_left(machines: Machines) -> None:
    """YARN goes on removing a job's service, with its files in HDFS, after Corral has left.

    A backup that has files which are removed before HDFS goes back to it lacks their blocks, and stays in safe mode.
    """
    url = f"http://{machines.address[MASTER]}:9870/webhdfs/v1/user/corral/.yarn/services?op=LISTSTATUS&user.name=corral"
    begun = time.monotonic()
    while True:
        found = subprocess.run(["curl", "--silent", "--max-time", "60", url], capture_output=True, check=True)
        if json.loads(found.stdout)["FileStatuses"]["FileStatus"] == []:
            return
        assert time.monotonic() - begun < GUARD, found.stdout
        time.sleep(pause(begun))


def _hdfs_comes_back(machines: Machines, path: Path, file: Path) -> None:
    """The NameNode loses its disk after a backup, and the DataNode has the blocks; before that nothing is taken back."""
    folder = f"http://{machines.address[MASTER]}:9870/webhdfs/v1/user/corral"
    written(f"{folder}/kept", file.with_name("kept"))
    deploy_good("backup", str(file), str(path))
    assert file.stat().st_mode & 0o777 == 0o600
    written(f"{folder}/late", file.with_name("kept"))
    said = deploy_good("restore", str(file), "--cluster", "lab", str(path))
    assert "HDFS is there, and is left as it is" in said and read(f"{folder}/late") == KEPT
    machines.run(MASTER, "systemctl stop corral-namenode; rm -r /var/lib/corral-hadoop/name/current")
    said = deploy_good("restore", str(file), "--cluster", "lab", str(path))
    assert "2 of 2 DataNodes are there, and 0 blocks are missing." in said
    assert read(f"{folder}/kept") == KEPT and "FileNotFound" in read(f"{folder}/late")


def deploy_good(*words: str) -> str:
    """What a command of `corral deploy` that must succeed says."""
    done = deploy(*words)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stderr


def written(url: str, file: Path, further: str = "") -> None:
    """Write a file of HDFS as Corral's user; the NameNode leads on to a DataNode."""
    file.write_text(KEPT)
    words = ["curl", "--silent", "--fail", "--location", "--max-time", "60", "--upload-file", str(file)]
    subprocess.run([*words, f"{url}?op=CREATE&user.name=corral{further}"], check=True)


def read(url: str) -> str:
    """A file of HDFS, or why there is none."""
    words = ["curl", "--silent", "--location", "--max-time", "60", f"{url}?op=OPEN&user.name=corral"]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout
