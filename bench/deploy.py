"""Measure the way from three empty hosts and a bundle to a first job, `up` again, and a restore after a reset of all hosts.

The portal's certificate is given in the list, so what a person trusts stays the same after the reset.
"""

from __future__ import annotations

import json
import re
import tempfile
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tests.deploy.cluster_on_hosts import Cluster

_GIVEN: Final = "corral:\n  certificate: portal.crt\n  key: portal.key\n"
_BEGUN: Final = re.compile(r"^(\S+Z) \[\d+/\d+\] (.+)$")
_ENDED: Final = re.compile(r"^(\S+Z) ended with 0$")


def measure() -> dict[str, float]:
    """The seconds of each part, as root. Raises RuntimeError where something is not as it should be."""
    from tests.deploy.cluster_on_hosts import HEAD, WORKERS, Cluster
    from tests.testbeds.hosts import bundle
    from tests.testbeds.hosts.machines import Machines

    machines = Machines((HEAD, *WORKERS))
    try:
        with tempfile.TemporaryDirectory(prefix="corral-deploy-") as name:
            lab = Cluster(machines, Path(name))
            lab.given = bundle.with_corral(lab.folder, bundle.bundle())
            return _Lab(lab).measure()
    finally:
        machines.stop()


class _Lab:
    def __init__(self, lab: Cluster) -> None:
        from tests.deploy.cluster_on_hosts import SETTINGS
        from tests.deploy.corral_on_hosts import SECTION

        self.lab = lab
        self.settings = SETTINGS + SECTION.replace("corral:\n", _GIVEN, 1)
        self._certificate()
        lab.write_list(self.settings)

    def measure(self) -> dict[str, float]:
        from tests.deploy.cluster_on_hosts import as_found
        from tests.deploy.corral_on_hosts import LINK, Portal, over_two_workers

        lab = self.lab
        before = {name: as_found(lab.machines, name) for name in lab.machines.address}
        packed = lab.packed()
        begun = time.monotonic()
        text = self._good("up", "--bundle", str(packed))
        up = time.monotonic() - begun
        link = LINK.search(text)
        if link is None:
            raise RuntimeError(f"up ended with no link: {text}")
        person = Portal(lab.folder / "ada", link[0].partition("/sign-in")[0], lab.folder / "portal.crt")
        person.corral("login", "--ca", str(person.ca), link[0])
        job = person.submit(over_two_workers("first", "echo hello", "echo hello"))
        person.until(job, "succeeded")
        first = time.monotonic() - begun
        kubeadm = self._kubeadm()
        begun = time.monotonic()
        self._good("up", "--bundle", str(lab.given))
        again = time.monotonic() - begun
        person.corral("users", "add", "grace")
        self._good_of("backup", str(lab.folder / "lab.backup"))
        begun = time.monotonic()
        self._good("reset", "--cluster", "lab")
        reset = time.monotonic() - begun
        changed = [name for name, text in before.items() if as_found(lab.machines, name) != text]
        if changed:
            raise RuntimeError(f"not as they were found: {changed}")
        begun = time.monotonic()
        self._good("up", "--bundle", str(packed))
        self._good_of("restore", str(lab.folder / "lab.backup"), "--cluster", "lab")
        back = time.monotonic() - begun
        users = [each["name"] for each in json.loads(person.corral("users", "-o", "json"))]
        if "grace" not in users or json.loads(person.corral("get", job, "-o", "json"))["state"] != "succeeded":
            raise RuntimeError(f"accounts and history are not back: {users}")
        return {"first_job": first, "up": up, "kubeadm": kubeadm, "again": again, "reset": reset, "back": back}

    def _certificate(self) -> None:
        from corral.deploy.remote.portal import own_certificate
        from tests.deploy.cluster_on_hosts import HEAD

        whole = own_certificate(self.lab.machines.address[HEAD]).decode()
        at = whole.index("-----BEGIN CERTIFICATE-----")
        (self.lab.folder / "portal.crt").write_text(whole[at:])
        (self.lab.folder / "portal.key").write_text(whole[whole.index("-----BEGIN") : at])

    def _good(self, *words: str) -> str:
        from tests.deploy.cluster_on_hosts import FULL, TIMEOUT

        more = (*TIMEOUT, *FULL) if words[0] == "up" else ()
        return self._said(self.lab.ask(*words, *more))

    def _good_of(self, *words: str) -> str:
        return self._said(self.lab.ask(*words))

    def _said(self, told: tuple[int, str, str]) -> str:
        code, text, said = told
        if code:
            raise RuntimeError(f"it ended with {code}: {text}\n{said}\n{self.lab.logs()[-6000:]}")
        return text

    def _kubeadm(self) -> float:
        """The seconds of `kubeadm init` and of the longer join, by the logs of the hosts."""
        found: dict[str, float] = {}
        for log in (self.lab.folder / "hosts.logs").glob("*.log"):
            for title, seconds in _steps(log.read_text()):
                if title.startswith(("init --config", "join ")):
                    kind = title.split()[0]
                    found[kind] = max(found.get(kind, 0.0), seconds)
        return sum(found.values())


def _steps(log: str) -> Iterator[tuple[str, float]]:
    """The steps of a host's log, with their seconds."""
    title, at = "", ""
    for line in log.splitlines():
        if begun := _BEGUN.match(line):
            at, title = begun[1], begun[2]
        elif (ended := _ENDED.match(line)) and title:
            yield title, (datetime.fromisoformat(ended[1]) - datetime.fromisoformat(at)).total_seconds()
            title = ""
