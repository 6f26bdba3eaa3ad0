"""Run examples on a server of the test's own, through its command line.

A test gives the tasks a real library by putting that library's environment first on their PATH.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

import yaml

from corral.client import Client
from tests import warm
from tests.frameworks.environments import ROOT, WITHOUT_COMPILER
from tests.reserved import task_ports
from tests.waiting import pause

T = TypeVar("T")
_LOOKS = 4
"""Looks into a job's log for each at its state."""


class Platform:
    """A server of its own, and its command line with a signed-in user."""

    def __init__(self, folder: Path, env: Mapping[str, str] | None = None, cluster: str = "") -> None:
        """`cluster` is a cluster document; by default the example's."""
        self.folder = folder
        self.cluster = ROOT / "examples" / "cluster.yaml"
        if cluster:
            self.cluster = folder / "cluster.yaml"
            self.cluster.write_text(cluster)
        self.env = {name: value for name, value in os.environ.items() if not name.startswith("CORRAL_")}
        self.env |= task_ports()
        self.env |= {"XDG_CONFIG_HOME": str(folder / "config")} | dict(env or {})
        self.data = str(folder / "data")

    def up(self) -> None:
        cluster = str(self.cluster)
        up = self.corral("up", "--detach", "--port", "0", "--cluster", cluster, "--data", self.data, "-o", "json")
        facts = json.loads(up)
        self.client = Client(facts["url"])
        self.client.login(link=facts["link"].partition("#link=")[2])
        self.env |= {"CORRAL_URL": self.client.url, "CORRAL_TOKEN": self.client.token}

    def down(self) -> None:
        self.client.close()
        self.corral("down", "--stop-jobs", "--data", self.data)

    def corral(self, *words: str, code: int = 0) -> str:
        done = warm.corral(words, env=self.env, seconds=500)
        assert done.returncode == code, f"corral {' '.join(words)}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def example(self, path: str, bin_folder: Path | None = None) -> Path:
        """A copy of an example whose tasks find the programs of `bin_folder` first."""
        folder = self.folder / f"{time.monotonic_ns()}"
        shutil.copytree(ROOT / "examples" / Path(path).parent, folder)
        file = folder / Path(path).name
        document = yaml.safe_load(file.read_text())
        if bin_folder is not None:
            path = f"{bin_folder}{os.pathsep}{os.environ['PATH']}"
            document["env"] = {"PATH": path}
            if document["framework"] == "pytorch":
                document["env"]["PYTHONPATH"] = str(WITHOUT_COMPILER)
        file.write_text(yaml.safe_dump(document))
        return file

    def run(self, file: Path) -> str:
        """Submit and follow; returns the output. The exit code is the job's."""
        return self.corral("submit", "-f", str(file))

    def submit(self, file: Path) -> str:
        return self.corral("submit", str(file), "-o", "name").strip()

    def log(self, job: str) -> str:
        """The job's output."""
        return b"".join(self.client.log(job)).decode(errors="replace")

    def wait_for(self, job: str, pattern: str, seconds: float = 400) -> re.Match[str]:
        """Wait until the job's log matches; returns the match."""
        return self.wait_until(job, lambda log: re.search(pattern, log), f"{pattern!r}", seconds)

    def wait_until(self, job: str, holds: Callable[[str], T | None], told: str, seconds: float = 400) -> T:
        """Wait until `holds` gives something for the job's log; returns that. `told` names it in a failure."""
        begun = time.monotonic()
        for look in itertools.count():
            log = self.log(job)
            if (found := holds(log)) is not None:
                return found
            if look % _LOOKS == 0:
                state = self.client.job(job)["state"]
                assert state not in ("failed", "succeeded", "stopped"), f"{state} before {told}:\n{log[-4000:]}"
            assert time.monotonic() - begun < seconds, f"no {told} in:\n{log[-4000:]}"
            time.sleep(pause(begun, most=1.0))
        raise AssertionError("it counts for ever")
