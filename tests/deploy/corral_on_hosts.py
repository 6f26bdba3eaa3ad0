"""Corral in the cluster of `test_cluster_on_hosts.py`, reached by its command line over TLS."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from tests import warm
from tests.testbeds.hosts.bundle import CORRAL
from tests.testbeds.kubernetes.images import BUSYBOX
from tests.testbeds.kubernetes.servertree import POSTGRESQL
from tests.waiting import pause

SECTION: Final = f"""\
corral:
  host: gpu1
  image: {CORRAL}
  postgresql: {POSTGRESQL}
  values: |
    jobs: {{defaultImage: "{CORRAL}"}}
    resources:
      front: {{requests: {{cpu: 10m, memory: 64Mi}}}}
      control: {{requests: {{cpu: 10m, memory: 64Mi}}}}
    database: {{trial: {{resources: {{requests: {{cpu: 10m, memory: 64Mi}}}}}}}}
"""
"""Jobs that name no image, as the validation of a node, have Python by Corral's own."""
GUARD: Final = 600
"""Seconds against hanging."""
LINK: Final = re.compile(r"https://\S+/sign-in#link=(\S+)")


class Portal:
    """A person who knows the portal's certificate, with a configuration of their own."""

    def __init__(self, folder: Path, url: str, ca: Path) -> None:
        self.url, self.ca, self._folder = url, ca, folder
        folder.mkdir()
        self._env = {name: value for name, value in os.environ.items() if not name.startswith("CORRAL_")}
        self._env |= {"XDG_CONFIG_HOME": str(folder / "config"), "COLUMNS": "200"}

    def corral(self, *words: str, code: int = 0, seconds: float = 300) -> str:
        """The output of `corral WORDS`, which must end with `code`; with another one, what it said."""
        done = warm.corral(words, env=self._env, cwd=self._folder, seconds=seconds)
        assert done.returncode == code, (
            f"corral {' '.join(words)} ended with {done.returncode}: {done.stdout}{done.stderr}"
        )
        return done.stdout if code == 0 else done.stderr

    def answers(self) -> None:
        """Wait until the server answers: nodes learn a little later of a pod that has just become ready."""
        words = ["curl", "--silent", "--fail", "--insecure", "--max-time", "60", "--output", "/dev/null"]
        look = [*words, f"{self.url}/readyz"]
        self.wait(lambda: str(subprocess.run(look, check=False).returncode), lambda found: found == "0")

    def submit(self, document: Mapping[str, Any]) -> str:
        """Submit a document by `corral submit`; returns the job's id."""
        file = self._folder / "job.json"
        file.write_text(json.dumps(document))
        return self.corral("submit", str(file), "-o", "name").strip()

    def until(self, job: str, state: str) -> None:
        """Wait until a job is in a state."""
        self.wait(lambda: json.loads(self.corral("get", job, "-o", "json"))["state"], lambda found: found == state)

    def until_all_run(self, job: str) -> None:
        """Wait until every task of a job runs; the job itself is said to run when its first one does."""

        def left() -> str:
            tasks = json.loads(self.corral("get", job, "-o", "json"))["tasks"]
            return str(tasks["total"] - tasks["running"])

        self.wait(left, lambda found: found == "0")

    def until_printed(self, job: str, task: str, text: str) -> None:
        """Wait until a task has printed a text."""
        self.wait(lambda: self.corral("logs", job, task), lambda found: text in found)

    @staticmethod
    def wait(look: Callable[[], str], holds: Callable[[str], object]) -> None:
        """Wait until what is looked at holds."""
        begun = time.monotonic()
        while not holds(found := look()):
            assert time.monotonic() - begun < GUARD, found
            time.sleep(pause(begun))


def over_two_workers(name: str, server: str, client: str) -> dict[str, Any]:
    """A gang with a task on each worker."""
    roles = {"server": _role("gpu1", server), "client": _role("gpu2", client)}
    return {"name": name, "framework": "shell", "roles": roles}


def on_a_worker(name: str, node: str, command: str) -> dict[str, Any]:
    """A job of one task on this worker."""
    return {"name": name, "framework": "shell", "roles": {"main": _role(node, command)}}


def _role(node: str, command: str) -> dict[str, Any]:
    where = {"kubernetes.io/hostname": node}
    return {"image": BUSYBOX, "resources": {"cpu": "0.1"}, "nodeSelector": where, "command": command}
