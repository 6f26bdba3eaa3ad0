"""Hosts of our own: each an sshd in its own network, mount and UTS namespace, on a bridge that only this machine reaches.

They share this machine's files, except for the machine id and the accounts. Each listens at its own address on the
bridge alone.
"""

from __future__ import annotations

import contextlib
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.testbeds.kubernetes.networks import Bridge, remove
from tests.waiting import pause

ACCOUNTS: Final = {
    "plain": "/bin/sh",
    "noisy": "#!/bin/sh\necho 'Welcome to this machine.'\nexec /bin/sh \"$@\"\n",
    "flood": "#!/bin/sh\nexec yes\n",
    "angry": "#!/bin/sh\nexec yes >&2\n",
    "garbage": "#!/bin/sh\nhead -c 20000 /dev/urandom\n",
    "cut": "#!/bin/sh\necho 'corral-facts begin 1'\necho 'time=1'\n",
    "stuck": "#!/bin/sh\nexec sleep 1000\n",
}
"""Accounts without rights, by name, each with its shell: a program, or the text of one."""
_START: Final = """
hostname "$1"
mount --bind "$2/machine-id" /etc/machine-id
mount --bind "$2/passwd" /etc/passwd
mkdir -p /run/sshd
exec setpriv --pdeathsig TERM "$3" -D -e -f "$2/sshd_config"
"""


class SshHosts:
    """Running hosts; `address` has that of each, and `key` is the file that lets root and the accounts in."""

    def __init__(self, folder: Path, names: tuple[str, ...], extra_ports: dict[str, tuple[int, ...]]) -> None:
        self._folder = folder
        self._processes: list[subprocess.Popen[bytes]] = []
        self._namespaces: list[str] = []
        self.bridge = Bridge()
        self.address = {name: f"{self.bridge.subnet}.{11 + at}" for at, name in enumerate(names)}
        self.key = folder / "key"
        try:
            _make_key(self.key)
            self._accounts()
            for name in names:
                self._start(name, extra_ports.get(name, ()))
            for name in names:
                self._wait_for_ssh(name)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End every host; nothing of them is left."""
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            process.wait(timeout=60)
        for namespace in self._namespaces:  # sessions of sshd's children are in it, too
            for pid in _run("ip", "netns", "pids", namespace).split():
                subprocess.run(["kill", "-KILL", pid], check=False, capture_output=True)
            _run("ip", "netns", "delete", namespace)
        remove(self.bridge.name)

    def in_network(self, name: str, *command: str) -> None:
        """Run a command in the network of a host."""
        _run("ip", "netns", "exec", self._namespace(name), *command)

    def outside(self, name: str) -> str:
        """The end of a host's link that is on the bridge."""
        return f"v{self.bridge.name[3:].replace('-', '')}{self.address[name].rpartition('.')[2]}"

    def processes(self, name: str) -> set[str]:
        """The ids of the processes in the network of a host."""
        return set(_run("ip", "netns", "pids", self._namespace(name)).split())

    def _namespace(self, name: str) -> str:
        return f"{self.bridge.name}-{name}"

    def _accounts(self) -> None:
        """Write the accounts file that all hosts share, and the shells in it."""
        rows = ["root:x:0:0:root:/root:/bin/sh", "sshd:x:100:65534::/run/sshd:/usr/sbin/nologin"]
        for number, (name, shell) in enumerate(ACCOUNTS.items()):
            path = Path(shell)
            if shell.startswith("#!"):
                path = self._folder / f"shell-{name}"
                path.write_text(shell)
                path.chmod(0o755)
            rows.append(f"{name}:*:{64_000 + number}:65534::/:{path}")
        (self._folder / "passwd").write_text("\n".join(rows) + "\n")

    def _start(self, name: str, extra_ports: tuple[int, ...]) -> None:
        namespace, address = self._namespace(name), self.address[name]
        _run("ip", "netns", "add", namespace)
        self._namespaces.append(namespace)
        outside = self.outside(name)
        _run(
            "ip",
            "link",
            "add",
            outside,
            "master",
            self.bridge.name,
            "type",
            "veth",
            "peer",
            "name",
            "eth0",
            "netns",
            namespace,
        )
        _run("ip", "link", "set", outside, "up")
        for words in ("link set lo up", f"address add {address}/24 dev eth0", "link set eth0 up"):
            self.in_network(name, "ip", *words.split())
        folder = self._folder / name
        folder.mkdir()
        _make_key(folder / "host_key")
        (folder / "machine-id").write_text(f"{abs(hash(namespace)):032x}\n")
        (folder / "passwd").write_bytes((self._folder / "passwd").read_bytes())
        listens = "".join(f"ListenAddress {address}:{port}\n" for port in (22, *extra_ports))
        (folder / "sshd_config").write_text(
            f"{listens}HostKey {folder}/host_key\nAuthorizedKeysFile {self.key}.pub\nPidFile none\nUsePAM no\n"
            "StrictModes no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nMaxStartups 100\n"
            "PermitRootLogin prohibit-password\nKexAlgorithms curve25519-sha256\n"  # the first choice takes 0.1 s more
        )
        with (folder / "log").open("wb") as log:
            command = ["ip", "netns", "exec", namespace, "unshare", "--mount", "--uts", "sh", "-ec", _START, "start"]
            self._processes.append(
                subprocess.Popen(
                    [*command, name, str(folder), "/usr/sbin/sshd"], stdout=log, stderr=log, stdin=subprocess.DEVNULL
                )
            )

    def _wait_for_ssh(self, name: str) -> None:
        """Wait until a host shows its key."""
        begun = time.monotonic()
        process = self._processes[list(self.address).index(name)]
        while process.poll() is None and time.monotonic() - begun < 120:
            keys = ["ssh-keyscan", "-T", "10", self.address[name]]
            if subprocess.run(keys, capture_output=True, check=False).stdout:
                return
            time.sleep(pause(begun))
        raise RuntimeError(f"{name} has no SSH server: {(self._folder / name / 'log').read_text()}")


@contextlib.contextmanager
def silent_ssh_server(address: str) -> Iterator[int]:
    """A server that sends SSH's banner and then nothing; yields its port."""
    with socket.create_server((address, 0)) as server:
        import threading

        held: list[socket.socket] = []

        def serve() -> None:
            with contextlib.suppress(OSError):  # the server is closed at the end
                while True:
                    caller, _ = server.accept()
                    held.append(caller)
                    caller.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield int(server.getsockname()[1])
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join(60)
            for caller in held:
                caller.close()


def _make_key(path: Path) -> None:
    _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path))


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout
