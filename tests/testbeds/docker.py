"""Why: containers are tested in a real Docker daemon, ours alone: own folders, own socket, no bridge, ended by its pid."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

PACKAGES = ("docker.io", "busybox-static")


def installed() -> bool:
    """Whether the daemon and a static busybox are here, installed now if this is root on Debian."""
    script = Path(__file__).with_name("apt.sh")
    if not all(map(shutil.which, ("dockerd", "busybox"))):
        subprocess.run(["bash", str(script), *PACKAGES], check=False)
    return os.getuid() == 0 and all(map(shutil.which, ("dockerd", "busybox")))


class DockerDaemon:
    """One daemon with nothing in it."""

    def __init__(self) -> None:
        self._home = Path(tempfile.mkdtemp(prefix="corral-docker-"))
        self.address = f"unix://{self._home}/docker.sock"
        self._log = (self._home / "log").open("wb")
        self._process = subprocess.Popen(
            [
                "dockerd",
                f"--host={self.address}",
                f"--data-root={self._home}/data",
                f"--exec-root={self._home}/exec",
                f"--pidfile={self._home}/pid",
                "--bridge=none",
                "--iptables=false",
                "--ip-forward=false",
                "--exec-opt=native.cgroupdriver=cgroupfs",
            ],
            stdout=self._log,
            stderr=self._log,
        )
        try:
            self._wait()
        except BaseException:
            self.stop()
            raise

    def run(self, *words: str, stdin: bytes = b"") -> bytes:
        """What the client prints for a command.

        Raises CalledProcessError.
        """
        command = ["docker", f"--host={self.address}", *words]
        return subprocess.run(command, input=stdin, capture_output=True, check=True).stdout

    def stop(self) -> None:
        """End the daemon and remove its folders."""
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()
        for line in Path("/proc/self/mounts").read_text().splitlines():
            place = line.split()[1]
            if place.startswith(f"{self._home}/"):
                subprocess.run(["umount", "--lazy", place], check=False)
        shutil.rmtree(self._home, ignore_errors=True)

    def _wait(self) -> None:
        deadline = time.monotonic() + 60
        while True:
            try:
                self.run("version")
                return
            except subprocess.CalledProcessError as error:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    tail = (self._home / "log").read_text(errors="replace")[-2000:]
                    raise RuntimeError(f"dockerd did not start: {tail}") from error
                time.sleep(0.05)
