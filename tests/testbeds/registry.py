"""A real private registry: Debian's, on a loopback port, with one account."""

from __future__ import annotations

import base64
import contextlib
import json
import shutil
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import yaml

from tests.reserved import free_port
from tests.testbeds.kubernetes.daemons import Daemon

USER, PASSWORD = "puller", "hunter2"
_HASH = "$2b$04$abcdefghijklmnopqrstuuV3duMsC0HpUex6N9qapiuOHHWkwRXVm"
"""bcrypt of the password: the registry accepts no other hash."""


def missing() -> str:
    """The missing programs for a registry, "" when all are installed."""
    return "" if shutil.which("docker-registry") else "the Debian package docker-registry is not installed"


class Registry:
    """A registry at `address`, ready when constructed, whose images only `USER` can pull."""

    def __init__(self, folder: Path) -> None:
        self.address = f"127.0.0.1:{free_port()}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "users").write_text(f"{USER}:{_HASH}\n")
        config = {
            "version": 0.1,
            "storage": {"filesystem": {"rootdirectory": str(folder / "images")}},
            "http": {"addr": self.address},
            "auth": {"htpasswd": {"realm": "corral", "path": str(folder / "users")}},
        }
        (folder / "config.yml").write_text(yaml.safe_dump(config))
        self._daemon = Daemon("registry", ["docker-registry", "serve", folder / "config.yml"], folder)
        self._daemon.start(self._ready)

    def secret(self, name: str) -> dict[str, Any]:
        """The Secret with which a kubelet may pull."""
        login = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        logins = {"auths": {self.address: {"username": USER, "password": PASSWORD, "auth": login}}}
        return {
            "metadata": {"name": name},
            "type": "kubernetes.io/dockerconfigjson",
            "stringData": {".dockerconfigjson": json.dumps(logins)},
        }

    def close(self) -> None:
        """Stop it."""
        self._daemon.stop()

    def _ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://{self.address}/v2/", timeout=5):
                return False
        except urllib.error.HTTPError as error:
            with contextlib.closing(error):
                return error.code == 401
        except OSError:
            return False
