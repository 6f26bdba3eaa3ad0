"""A Docker daemon of the test's own, which touches nothing outside its folder.

Tasks use the host's network, so the daemon needs no bridge and changes no firewall. Images are made here by tar,
without a registry. A daemon outlives a test that is killed; the next one ends it and removes its files.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import signal
import subprocess
import tarfile
import tempfile
import time
from pathlib import Path

from tests.testbeds.kubernetes import remains

_HOMES = "corral-docker-"
_PROGRAMS = ("dockerd", "containerd", "containerd-shim-runc-v2")
APPLETS = ("sh", "cat", "echo", "env", "id", "ls", "mkdir", "pwd", "sleep", "touch", "wc")


def missing() -> str:
    """The missing programs for a daemon, "" when all are installed."""
    needs = {"docker.io": shutil.which("dockerd"), "busybox-static": static_busybox()}
    absent = [package for package, found in needs.items() if not found]
    if absent:
        return f"the Debian packages {' and '.join(absent)} are not installed"
    return "" if os.geteuid() == 0 else "a Docker daemon needs root"


def static_busybox() -> Path | None:
    """A statically linked busybox; None when it is not installed."""
    for place in (Path("/bin/busybox"), Path("/usr/bin/busybox")):
        if place.exists() and b"ld-linux" not in place.read_bytes()[:4096]:
            return place
    return None


class DockerDaemon:
    """One daemon with a folder of its own; `host` is a client's DOCKER_HOST."""

    def __init__(self) -> None:
        sweep()
        self._home = Path(tempfile.mkdtemp(prefix=_HOMES))
        remains.write_owner(self._home)
        self.host = _host(self._home)
        for driver in ("overlay2", "vfs"):
            if self._start(driver):
                return
        log = self._log()
        remove(self._home)
        raise RuntimeError(f"dockerd did not start: {log}")

    def import_busybox(self, image: str) -> None:
        """Make an image of busybox alone."""
        busybox = static_busybox()
        assert busybox is not None
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as tar:
            tar.add(busybox, "bin/busybox")
            for applet in APPLETS:
                link = tarfile.TarInfo(f"bin/{applet}")
                link.type, link.linkname = tarfile.SYMTYPE, "busybox"
                tar.addfile(link)
        self.client("import", "-", image, given=packed.getvalue())

    def client(self, *words: str, given: bytes = b"") -> str:
        """Run the Docker client; returns its output."""
        return _client(self._home, *words, given=given)

    def containers(self) -> list[str]:
        """The names of all containers, ended ones too."""
        return self.client("ps", "--all", "--format", "{{.Names}}").split()

    def close(self) -> None:
        """End every container and the daemon, and remove its mounts and its folder."""
        _remove_containers(self._home)
        self._stop()
        remove(self._home)

    def _start(self, driver: str) -> bool:
        words = ["--storage-driver", driver, "--host", self.host, "--bridge", "none", "--iptables=false"]
        words += ["--ip6tables=false", "--exec-opt", "native.cgroupdriver=cgroupfs", "--log-level", "warn"]
        for option, name in (("data-root", "data"), ("exec-root", "exec"), ("pidfile", "pid")):
            words.append(f"--{option}={self._home / name}")
        with (self._home / "log").open("ab") as log:
            self._process = subprocess.Popen(["dockerd", *words], stdout=log, stderr=log, start_new_session=True)
        deadline = time.monotonic() + 150
        while self._process.poll() is None and time.monotonic() < deadline:
            with contextlib.suppress(RuntimeError):
                self.client("version", "--format", "{{.Server.Version}}")
                return True
            time.sleep(0.1)
        self._stop()
        return False

    def _stop(self) -> None:
        """End the daemon; its containerd, which it started, ends with it."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(30)
            except subprocess.TimeoutExpired:
                os.killpg(self._process.pid, signal.SIGKILL)
                self._process.wait()

    def _log(self) -> str:
        return (self._home / "log").read_text(errors="replace")[-2000:]


def sweep() -> None:
    """End daemons whose test ended without closing them, and remove their files."""
    for home in list(remains.orphans(_HOMES)):
        _remove_containers(home)
        remove(home)


def remove(home: Path) -> None:
    """End a daemon's processes: itself, then those that outlive it; and remove its mounts and files."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        left = _processes(home)
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        deadline = time.monotonic() + 120
        while set(left) & set(_processes(home)) and time.monotonic() < deadline:
            time.sleep(0.05)
    remains.unmount(home)
    shutil.rmtree(home, ignore_errors=True)


def _processes(home: Path) -> list[int]:
    """The daemon, its containerd and the shims of its containers: those whose command line names its folder."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            program, *words = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
            if Path(program).name in _PROGRAMS and any(f"{home}/" in word for word in words):
                found.append(int(folder.name))
    return found


def _host(home: Path) -> str:
    return f"unix://{home / 'docker.sock'}"


def _client(home: Path, *words: str, given: bytes = b"") -> str:
    env = {**os.environ, "DOCKER_HOST": _host(home)}
    done = subprocess.run(["docker", *words], env=env, input=given, capture_output=True, timeout=300, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"docker {' '.join(words)}: {done.stderr.decode()[-2000:]}")
    return done.stdout.decode()


def _remove_containers(home: Path) -> None:
    with contextlib.suppress(RuntimeError):  # no daemon answers there any more
        if names := _client(home, "ps", "--all", "--format", "{{.Names}}").split():
            _client(home, "rm", "--force", *names)
