"""`corral deploy check` and `plan` on real SSH servers: findings, refusals, and nothing that is left on them."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import warm
from tests.deploy.ssh_hosts import SshHosts, silent_ssh_server
from tests.waiting import pause

NEEDS = "root, OpenSSH's client and server, and iproute2: apt-get install openssh-server openssh-client iproute2"
HERE = os.geteuid() == 0 and all(
    shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin") for name in ("ssh", "sshd", "ip")
)
pytestmark = pytest.mark.skipif(not HERE, reason=NEEDS)
GUARD = 240
"""Seconds against hanging."""


@pytest.fixture(scope="module")
def servers() -> Iterator[SshHosts]:
    # Not below pytest's folder: each run of pytest closes that to the accounts that run their shells from here.
    with tempfile.TemporaryDirectory(prefix="corral-deploy-") as folder:
        Path(folder).chmod(0o755)
        running = SshHosts(Path(folder), ("one", "two", "three"), {"two": (10250,)})
        try:
            running.in_network("three", "ip", "route", "add", "unreachable", f"{running.address['two']}/32")
            yield running
        finally:
            running.stop()


def check(servers: SshHosts, folder: Path, document: str, *options: str) -> tuple[int, dict[str, Any], str]:
    """The exit code, the report and standard error of a check; the list is in a folder of its own."""
    return deploy("check", servers, folder, document, *options)


def deploy(
    command: str, servers: SshHosts, folder: Path, document: str, *options: str
) -> tuple[int, dict[str, Any], str]:
    """The same of any command."""
    folder.mkdir(exist_ok=True)
    listed = folder / "hosts.yaml"
    for name, address in servers.address.items():
        document = document.replace(f"ADDRESS-{name}", address)
    listed.write_text(document.replace("KEY", str(servers.key)))
    words = [*f"deploy {command} -o json --timeout 200".split(), *options, str(listed)]
    done = warm.corral(words, env=os.environ, seconds=GUARD)
    report = json.loads(done.stdout) if done.stdout else {}
    return done.returncode, report, done.stderr


def found(report: dict[str, Any], host: str, check: str) -> list[dict[str, str]]:
    """The findings of one check on one host."""
    (entry,) = [each for each in report["hosts"] if each["name"] == host]
    return [each for each in entry["findings"] if each["check"] == check]


def as_account(account: str) -> str:
    return f"hosts: {{one: {{address: ADDRESS-one, roles: [storage], ssh: {{user: {account}, key: 'KEY'}}}}}}"


THREE = """\
ssh: {user: root, key: 'KEY'}
hosts:
  one: {address: ADDRESS-one, roles: [control-plane]}
  two: {address: ADDRESS-two, roles: [worker]}
  three: {address: ADDRESS-three, roles: [worker]}
"""


def test_three_hosts_are_looked_at_and_the_ports_between_them_tried(servers: SshHosts, tmp_path: Path) -> None:
    before = servers.processes("one")
    code, report, told = check(servers, tmp_path / "a b", THREE)
    assert code == 4
    assert "one: answered" in told
    for name in servers.address:
        assert found(report, name, "ssh")[0]["message"] == f"reached as root at {servers.address[name]}"
        assert found(report, name, "names")[0]["message"] == f"it calls itself {name}"
        assert [each["level"] for each in found(report, name, "sudo")] == ["ok"]
    taken, closed = found(report, "two", "ports")
    assert taken["message"] == "another program listens at port 10250, which the kubelet needs"
    assert closed["message"] == "port 10250 (the kubelet) finds no way from three"
    assert closed["remedy"]
    assert [each["level"] for each in found(report, "one", "ports")] == ["ok"]
    assert [each["level"] for each in found(report, "one", "udp")] == ["ok"]
    for name, other in (("two", "three"), ("three", "two")):  # an answer finds no way either
        assert [each["message"] for each in found(report, name, "udp")] == [
            f"port 8472 (the pods' network) is not answered from {other}"
        ]
    wait_for(lambda: not servers.processes("one") - before)  # sshd's own process of a session ends a moment after it
    pins = (tmp_path / "a b" / "hosts.known_hosts").read_text().splitlines()
    assert sorted(line.split()[0] for line in pins) == ["one", "three", "two"]


def test_a_way_that_loses_large_packets_alone_is_found(servers: SshHosts, tmp_path: Path) -> None:
    """The interfaces of both ends say 1500 bytes, and what lies between them takes 1400."""
    link = servers.outside("one")
    two_hosts = "\n".join(line for line in THREE.splitlines() if "three" not in line) + "\n"
    subprocess.run(["ip", "link", "set", link, "mtu", "1400"], check=True)
    try:
        _, report, _ = check(servers, tmp_path, two_hosts)
    finally:
        subprocess.run(["ip", "link", "set", link, "mtu", "1500"], check=True)
    for name, other in (("one", "two"), ("two", "one")):
        lost = [each["message"] for each in found(report, name, "mtu") if each["level"] == "failure"]
        assert lost == [f"packets of up to 1500 bytes from {other} are lost on the way, and small ones are not"]
        assert not found(report, name, "udp")


def test_a_host_key_is_pinned_at_the_first_look_and_a_changed_one_is_refused(servers: SshHosts, tmp_path: Path) -> None:
    one = "ssh: {user: root, key: 'KEY'}\nhosts: {head: {address: ADDRESS-one, roles: [storage]}}"
    assert "ssh" not in failures(check(servers, tmp_path, one)[1])
    pinned = (tmp_path / "hosts.known_hosts").read_bytes()
    code, report, _ = check(servers, tmp_path, one.replace("ADDRESS-one", "ADDRESS-two"))
    (refused,) = found(report, "head", "ssh")
    assert code == 5
    assert refused["message"] == "its host key is not the one that was pinned at the first look"
    assert f"ssh-keygen -f '{tmp_path}/hosts.known_hosts' -R head" in refused["remedy"]
    assert (tmp_path / "hosts.known_hosts").read_bytes() == pinned
    subprocess.run(
        ["ssh-keygen", "-f", str(tmp_path / "hosts.known_hosts"), "-R", "head"], check=True, capture_output=True
    )
    assert "ssh" not in failures(check(servers, tmp_path, one.replace("ADDRESS-one", "ADDRESS-two"))[1])


def failures(report: dict[str, Any]) -> set[str]:
    return {each["check"] for host in report["hosts"] for each in host["findings"] if each["level"] == "failure"}


def test_an_account_without_rights_is_told_to_get_sudo(servers: SshHosts, tmp_path: Path) -> None:
    code, report, _ = check(servers, tmp_path, as_account("plain"))
    (sudo,) = found(report, "one", "sudo")
    assert (code, sudo["level"]) == (4, "failure")
    assert sudo["remedy"]


def test_a_shell_that_greets_changes_nothing(servers: SshHosts, tmp_path: Path) -> None:
    _, report, _ = check(servers, tmp_path, as_account("noisy"))
    assert found(report, "one", "ssh")[0]["message"] == f"reached as noisy at {servers.address['one']}"


@pytest.mark.parametrize(
    ("account", "options", "says"),
    [
        ("stranger", (), "does not let stranger in with the keys that were offered"),
        ("flood", (), "it printed more than 524288 bytes instead of an answer"),
        ("angry", (), "it printed more than 262144 bytes instead of an answer"),
        ("garbage", (), "its answer cannot be read: the probe's first line is not in it"),
        ("cut", (), "its answer cannot be read: it is cut off: the probe's last line is not in it"),
        ("stuck", ("--timeout", "3"), "did not answer within 3 s"),
    ],
)
def test_a_host_that_gives_no_answer_is_one_sentence_with_its_remedy(
    servers: SshHosts, tmp_path: Path, account: str, options: tuple[str, ...], says: str
) -> None:
    code, report, told = check(servers, tmp_path, as_account(account), *options)
    (refused,) = found(report, "one", "ssh")
    assert code == 5
    assert says in refused["message"] and "\n" not in refused["message"]
    assert refused["remedy"]
    assert "Traceback" not in told


def test_a_host_that_is_off_or_silent_does_not_hold_up_the_others(servers: SshHosts, tmp_path: Path) -> None:
    with silent_ssh_server(servers.bridge.gateway) as port:
        document = (
            "ssh: {user: root, key: 'KEY'}\nhosts:\n"
            f"  off: {{address: {servers.bridge.subnet}.99, roles: [storage]}}\n"
            f"  silent: {{address: {servers.bridge.gateway}, roles: [storage], ssh: {{port: {port}}}}}\n"
            "  nothing: {address: ADDRESS-three, roles: [storage], ssh: {port: 9}}\n"
            "  nowhere: {address: nowhere.invalid, roles: [storage]}\n"
            "  one: {address: ADDRESS-one, roles: [storage]}\n"
        )
        code, report, told = check(servers, tmp_path, document)
    assert code == 4
    assert "not reached" in told
    assert "answer" in found(report, "off", "ssh")[0]["message"]
    assert "answer" in found(report, "silent", "ssh")[0]["message"]
    assert found(report, "nothing", "ssh")[0]["message"].startswith("nothing listens at")
    assert found(report, "nowhere", "ssh")[0]["message"] == "the name nowhere.invalid has no address"
    assert found(report, "one", "ssh")[0]["level"] == "ok"


def test_one_host_is_looked_at_alone(servers: SshHosts, tmp_path: Path) -> None:
    _, report, _ = check(servers, tmp_path, THREE, "--host", "three", "--no-ports")
    assert [each["name"] for each in report["hosts"]] == ["three"]
    code, _, told = check(servers, tmp_path, THREE, "--host", "thre")
    assert code == 3
    assert 'did you mean "three"?' in told
    code, _, told = check(servers, tmp_path, "hosts: {one: {address: ADDRESS-one}}")
    assert code == 2
    assert "it has no roles" in told


def test_a_plan_has_the_steps_of_each_host_and_does_none(servers: SshHosts, tmp_path: Path) -> None:
    document = THREE.replace("ADDRESS-two", f"{servers.bridge.subnet}.99")
    code, planned, told = deploy("plan", servers, tmp_path, document, "--host", "one", "--host", "two")
    one, two = planned["hosts"]
    assert code == 4
    assert (one["name"], one["obstacles"], two["steps"]) == ("one", [], [])
    assert len(two["obstacles"]) == 1
    kinds = [step["kind"] for step in one["steps"] if step["needed"]]
    assert kinds[-5:] == ["file", "file", "kubeadm", "file", "chart"]
    configuration = next(step for step in one["steps"] if step["title"] == "write /etc/kubernetes/corral.yaml")
    assert f"+  advertiseAddress: {servers.address['one']}" in configuration["detail"]
    assert not Path("/etc/kubernetes/corral.yaml").exists() and not Path("/etc/sysctl.d/90-corral.conf").exists()
    assert "Traceback" not in told


def test_an_interrupted_check_ends_at_once_and_leaves_no_session(servers: SshHosts, tmp_path: Path) -> None:
    before = servers.processes("one")
    listed = tmp_path / "hosts.yaml"
    document = as_account("stuck").replace("ADDRESS-one", servers.address["one"]).replace("KEY", str(servers.key))
    listed.write_text(document)
    words = [sys.executable, *f"-m corral.cli.main deploy check --timeout 3600 {listed}".split()]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as running:
        try:
            wait_for(lambda: any("sleep 1000" in command_line(pid) for pid in servers.processes("one") - before))
            running.send_signal(signal.SIGINT)
            told, _ = running.communicate(timeout=GUARD)
        finally:
            running.kill()
    assert running.returncode == 130
    assert "Interrupted." in told and "Traceback" not in told
    wait_for(lambda: not any("sshd: stuck" in command_line(pid) for pid in servers.processes("one") - before))


def command_line(pid: str) -> str:
    """The words of a process; "" once it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def wait_for(state: Callable[[], bool]) -> None:
    """Wait until a state is there."""
    begun = time.monotonic()
    while not state():
        assert time.monotonic() - begun < 120, "it did not come to this"
        time.sleep(pause(begun))


def test_a_look_that_may_not_open_enough_files_is_refused_before_it_begins(tmp_path: Path) -> None:
    rows = [f"  n{at}: {{address: 127.0.0.{at + 1}, roles: [storage], ssh: {{port: 1}}}}\n" for at in range(100)]
    (tmp_path / "hosts.yaml").write_text(f"hosts:\n{''.join(rows)}")
    command = [
        "sh",
        "-c",
        'ulimit -n 256; exec "$@"',
        "sh",
        sys.executable,
        *["-m", "corral.cli.main", "deploy", "check"],
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=GUARD)
    assert done.returncode == 4
    assert "This look needs 1328 open files, and this account may have 256." in done.stderr
