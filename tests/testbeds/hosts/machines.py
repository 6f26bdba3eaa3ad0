"""Start hosts of our own on a bridge that only this machine reaches, and take them down, also after a killed test run.

Addresses and names come from the bridge's subnet, which no other test process has. What a killed run left is found by
its folder, whose owner has ended, and removed before the next hosts start.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.testbeds.hosts import settings
from tests.testbeds.hosts.roots import INIT, root
from tests.testbeds.kubernetes import remains
from tests.testbeds.kubernetes.cgroups import Tree
from tests.testbeds.kubernetes.daemons import FEW_COLLECTIONS
from tests.testbeds.kubernetes.networks import Bridge
from tests.testbeds.kubernetes.networks import remove as remove_bridge
from tests.waiting import pause

_FOLDERS: Final = "corral-hosts-"
_GUARD: Final = 900
"""Seconds against hanging, of a start or an end."""
_ORDERLY_END: Final = signal.SIGRTMIN + 4
"""Tells systemd to power off."""
_VARIABLES: Final = " ".join(f"{name}={value}" for name, value in FEW_COLLECTIONS.items())
_SSHD: Final = "KexAlgorithms curve25519-sha256\nCiphers aes128-gcm@openssh.com\n"
"""What is cheap: a key exchange of OpenSSH's first choice takes 0.1 s more, and its cipher twice as long."""
_START: Final = """
for folder in "$1"/*; do [ ! -d "$folder/$2" ] || echo $$ > "$folder/$2/cgroup.procs"; done
[ ! -d "$1/$2" ] || echo $$ > "$1/$2/cgroup.procs"
shift 2
exec setpriv --pdeathsig KILL "$@"
"""


class Machines:
    """Running hosts; `address` has that of each, and `key` lets their account `admin` in, who has sudo."""

    def __init__(self, names: Sequence[str]) -> None:
        sweep()
        self.home = Path(tempfile.mkdtemp(prefix=_FOLDERS))
        remains.write_owner(self.home)
        settings.remember(self.home, _FOLDERS)
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._connections: dict[str, subprocess.Popen[bytes]] = {}
        self.bridge = Bridge()
        remains.write_owner(self.home, self.bridge.name)
        self.address = {name: f"{self.bridge.subnet}.{11 + at}" for at, name in enumerate(names)}
        self.key = self.home / "key"
        try:
            _make_key(self.key)
            for name in names:
                _prepare(self.home / name, name, self.key, self.bridge.gateway)
                self._boot(name)
            for name in names:
                self._wait(name)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End all hosts in order, at the same time, then remove what is left of them."""
        for name in self._processes:
            self._press_power(name)
        for name in self._processes:
            self._wait_for_end(name)
        _remove(self.home, self.bridge.name)

    def power_off(self, name: str) -> None:
        """End a host as its power button does; its files stay."""
        self._press_power(name)
        self._wait_for_end(name)

    def _press_power(self, name: str) -> None:
        self._disconnect(name)
        process = self._processes[name]
        if process.poll() is None:
            with contextlib.suppress(ProcessLookupError, FileNotFoundError, IndexError):
                os.kill(self._first_process(process), _ORDERLY_END)

    def _wait_for_end(self, name: str) -> None:
        process = self._processes[name]
        try:
            process.wait(timeout=_GUARD)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def cut_power(self, name: str) -> None:
        """End a host at once, without a word to those that it talks with."""
        process = self._processes[name]
        self._disconnect(name)
        _run("ip", "-n", _network(self.bridge.name, name), "link", "set", "eth0", "down")
        os.kill(self._first_process(process), signal.SIGKILL)
        process.wait(timeout=_GUARD)

    def replace(self, name: str) -> None:
        """Put another machine in the place of a host: the same name and address, nothing else."""
        self.power_off(name)
        Tree(f"{self.home.name}-{name}").remove()
        remains.unmount(self.home / name)
        _run("ip", "link", "delete", self._outside(name))
        _run("ip", "netns", "delete", _network(self.bridge.name, name))
        shutil.rmtree(self.home / name)
        _prepare(self.home / name, name, self.key, self.bridge.gateway)
        self._boot(name)
        self._wait(name)

    def run(self, name: str, command: str, text: bytes = b"") -> str:
        """Run a command as root on a host over SSH; returns what it printed. Raises RuntimeError."""
        done = subprocess.run(
            [*self._ssh(name), f"sudo sh -ec '{command}'"], input=text, capture_output=True, check=False, timeout=_GUARD
        )
        if done.returncode:
            raise RuntimeError(f"{command} on {name} ended with {done.returncode}: {done.stderr.decode()[-2000:]}")
        return done.stdout.decode()

    def _ssh(self, name: str, *further: str) -> list[str]:
        options = (
            "BatchMode=yes", "StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "LogLevel=ERROR",
            f"ControlPath={self.home / 'connection'}-%h", *further,
        )  # fmt: skip
        chosen = [word for option in options for word in ("-o", option)]
        return ["ssh", "-F", "none", *chosen, "-i", str(self.key), f"admin@{self.address[name]}"]

    def _connect(self, name: str) -> None:
        """Make the connection that commands on a host share; before it is there, and after it broke, each has its own."""
        *options, account = self._ssh(name, "ControlMaster=yes", "ServerAliveInterval=15")
        self._connections[name] = subprocess.Popen(
            ["setpriv", "--pdeathsig", "TERM", *options, "-N", "-T", account],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def _disconnect(self, name: str) -> None:
        connection = self._connections.pop(name, None)
        if connection is not None:
            connection.terminate()
            connection.wait(timeout=_GUARD)

    def _outside(self, name: str) -> str:
        """The end of a host's link that is in this machine's bridge."""
        return f"v{self.bridge.name[3:].replace('-', '')}{self.address[name].rpartition('.')[2]}"

    def _boot(self, name: str) -> None:
        folder, address = self.home / name, self.address[name]
        network = _network(self.bridge.name, name)
        _run("ip", "netns", "add", network)
        outside = self._outside(name)
        link = f"link add {outside} master {self.bridge.name} type veth peer name eth0 netns {network}"
        _run("ip", *link.split())
        _run("ip", "link", "set", outside, "up")
        for words in (
            "link set lo up", f"address add {address}/24 dev eth0", "link set eth0 up",
            f"route add default via {self.bridge.gateway}",
        ):  # fmt: skip
            _run("ip", "-n", network, *words.split())
        _run("ip", "netns", "exec", network, "sysctl", "-qw", "net.ipv4.ip_forward=0")  # it has this machine's at first
        _run("mount", "-t", "overlay", "overlay", "-o", _overlay(folder), str(folder / "root"))
        cgroup = Tree(f"{self.home.name}-{name}")
        cgroup.create()
        nspawn = (
            "systemd-nspawn", "--quiet", "--register=no", "--keep-unit", f"--directory={folder / 'root'}",
            f"--machine={name}", f"--network-namespace-path=/run/netns/{network}", "--capability=all",
            "--private-users=no", "--resolv-conf=off", "--timezone=off", "--link-journal=no", "--console=read-only",
            f"--bind={folder / 'containerd'}:/var/lib/containerd", "--bind=/dev/kmsg", INIT,
        )  # fmt: skip
        env = os.environ | {
            "SYSTEMD_SECCOMP": "0",
            "SYSTEMD_NSPAWN_API_VFS_WRITABLE": "yes",
            "SYSTEMD_NSPAWN_USE_CGNS": "1",
        }
        with (folder / "log").open("wb") as log:
            self._processes[name] = subprocess.Popen(
                ["sh", "-ec", _START, "start", "/sys/fs/cgroup", cgroup.path.lstrip("/"), *nspawn],
                env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip

    def _wait(self, name: str) -> None:
        """Wait until its SSH server lets the account in."""
        begun = time.monotonic()
        said = ""
        while self._processes[name].poll() is None and time.monotonic() - begun < _GUARD:
            words = [*self._ssh(name, "ConnectTimeout=10"), "true"]
            done = subprocess.run(words, capture_output=True, text=True, check=False)
            if done.returncode == 0:
                self._connect(name)
                return
            said = done.stderr
            time.sleep(pause(begun))
        raise RuntimeError(f"{name} did not start: {said} {(self.home / name / 'log').read_text(errors='replace')}")

    @staticmethod
    def _first_process(nspawn: subprocess.Popen[bytes]) -> int:
        """The id, as this machine has it, of the host's PID 1: nspawn's child."""
        children = Path(f"/proc/{nspawn.pid}/task/{nspawn.pid}/children").read_text().split()
        return int(children[0])


def sweep() -> None:
    """Remove the hosts whose test run ended without stopping them."""
    for home in list(remains.orphans(_FOLDERS)):
        with contextlib.suppress(FileNotFoundError):  # another run may remove it too
            _remove(home, json.loads((home / "owner.json").read_text())["bridge"])


def _remove(home: Path, bridge: str) -> None:
    names = [path.name for path in home.iterdir() if path.is_dir()]
    for name in names:
        Tree(f"{home.name}-{name}").remove()
    remains.unmount(home)
    for name in names if bridge else ():
        subprocess.run(["ip", "netns", "delete", _network(bridge, name)], check=False, capture_output=True)
    if bridge:
        remove_bridge(bridge)
    settings.restore(home, _FOLDERS)
    shutil.rmtree(home, ignore_errors=True)


def _prepare(folder: Path, name: str, key: Path, gateway: str) -> None:
    """Make the layers of a host: its own name and SSH host key, and the key that its account takes."""
    for part in ("root", "upper", "work", "containerd"):
        (folder / part).mkdir(parents=True)
    (folder / "upper").chmod(0o755)
    ssh, home = folder / "upper/etc/ssh", folder / "upper/home/admin"
    for path in (ssh, home / ".ssh"):
        path.mkdir(parents=True)
    (folder / "upper/etc/machine-id").write_text(f"{uuid.uuid4().hex}\n")  # of a virtual machine all would be the same
    (folder / "upper/etc/hostname").write_text(f"{name}\n")
    (folder / "upper/etc/hosts").write_text(f"127.0.0.1 localhost\n127.0.1.1 {name}\n")
    # No name server is there: a question ends at once, and not after ten seconds. CoreDNS refuses one of the host itself.
    (folder / "upper/etc/resolv.conf").write_text(f"nameserver {gateway}\n")
    _make_key(ssh / "ssh_host_ed25519_key")
    _collect_rarely(folder / "upper/etc")
    (ssh / "sshd_config.d").mkdir()
    (ssh / "sshd_config.d/cheap.conf").write_text(f"{_SSHD}SetEnv {_VARIABLES}\n")
    account = (root() / "home/admin").stat()
    (home / ".ssh/authorized_keys").write_bytes(key.with_suffix(".pub").read_bytes())
    for path in (home, home / ".ssh", home / ".ssh/authorized_keys"):
        os.chown(path, account.st_uid, account.st_gid)


def _collect_rarely(etc: Path) -> None:
    """Let Go's programs collect garbage less often: services, and what sudo runs for a session."""
    manager, sudoers = etc / "systemd/system.conf.d/cheap.conf", etc / "sudoers.d/cheap"
    for path, text in (
        (manager, f"[Manager]\nDefaultEnvironment={_VARIABLES}\n"),
        (sudoers, 'Defaults env_keep += "' + " ".join(FEW_COLLECTIONS) + '"\n'),
    ):
        path.parent.mkdir(parents=True)
        path.write_text(text)
    sudoers.chmod(0o440)


def _overlay(folder: Path) -> str:
    return f"lowerdir={root()},upperdir={folder / 'upper'},workdir={folder / 'work'}"


def _network(bridge: str, name: str) -> str:
    return f"{bridge}-{name}"


def _make_key(path: Path) -> None:
    _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path))


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_GUARD)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
