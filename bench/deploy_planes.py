"""Lose one of three control planes: how long the API is away, jobs that go on, the lost host replaced, and an upgrade.

All three hosts are workers, too. Corral and its database run on another host than the one that is lost, which is the one
that the cluster began with.
"""

from __future__ import annotations

import json
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tests.deploy.cluster_on_hosts import Cluster
    from tests.deploy.corral_on_hosts import Portal

LOST, STAYING = "head", ("gpu1", "gpu2")
_GUARD: Final = 900
"""Seconds against hanging."""
_PAUSE: Final = 0.2
"""Seconds between two questions to the API."""
_BEAT: Final = "i=0; while true; do i=$((i+1)); echo beat $i; sleep 1; done"
_VOLUMES: Final = "volumes: {scratch: {host: gpu2, folder: /srv/scratch, size: 1Gi}}\n"
_ASK: Final = "timeout 60 kubectl --kubeconfig /etc/kubernetes/admin.conf --request-timeout=5s get --raw /readyz"


def measure() -> dict[str, float]:
    """The seconds of each part, as root. Raises RuntimeError where something is not as it should be."""
    from tests.deploy.cluster_on_hosts import Cluster
    from tests.testbeds.hosts.machines import Machines

    machines = Machines((LOST, *STAYING))
    try:
        with tempfile.TemporaryDirectory(prefix="corral-deploy-") as name:
            return _Lab(Cluster(machines, Path(name))).measure()
    finally:
        machines.stop()


class _Outages:
    """Asks the API from a host all the time, by its balancer, and keeps how long it did not answer."""

    def __init__(self, lab: Cluster, host: str) -> None:
        self._lab, self._host = lab, host
        self._ended = threading.Event()
        self.longest, self.answers = 0.0, 0
        self._thread = threading.Thread(target=self._ask, daemon=True)

    def __enter__(self) -> _Outages:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join(_GUARD)

    def until_answers(self, count: int) -> None:
        """Wait until the API has answered so many times more."""
        wanted, begun = self.answers + count, time.monotonic()
        while self.answers < wanted:
            if time.monotonic() - begun > _GUARD:
                raise RuntimeError("the API does not answer any more")
            time.sleep(_PAUSE)

    def _ask(self) -> None:
        answered = time.monotonic()
        while not self._ended.wait(_PAUSE):
            good = self._answers()
            self.longest = max(self.longest, time.monotonic() - answered)
            if good:
                answered, self.answers = time.monotonic(), self.answers + 1

    def _answers(self) -> bool:
        try:
            self._lab.machines.run(self._host, _ASK)
        except RuntimeError:
            return False
        return True


class _Lab:
    def __init__(self, lab: Cluster) -> None:
        from tests.deploy.cluster_on_hosts import SETTINGS
        from tests.deploy.corral_on_hosts import SECTION
        from tests.testbeds.hosts import bundle
        from tests.testbeds.hosts.fetched import with_balancer

        self.lab = lab
        self.settings = SETTINGS + SECTION + f"  address: {lab.machines.address[STAYING[0]]}\n" + _VOLUMES
        self.later = bundle.with_corral(lab.folder, with_balancer(lab.folder / "later", bundle.later()))
        lab.given = bundle.with_corral(lab.folder, with_balancer(lab.folder / "balanced", bundle.bundle()))
        self._write_list()

    def _write_list(self) -> None:
        """Write the list: each host is a control plane and a worker."""
        self.lab.write_list(self.settings)
        text = self.lab.listed.read_text()
        for role in ("[control-plane]", "[worker]"):
            text = text.replace(role, "[control-plane, worker]")
        self.lab.listed.write_text(text)

    def measure(self) -> dict[str, float]:
        from tests.deploy.cluster_on_hosts import as_found

        lab = self.lab
        before = {name: as_found(lab.machines, name) for name in STAYING}
        begun = time.monotonic()
        self._good("up")
        found = {"up": time.monotonic() - begun}
        volumes = self._kubectl("get persistentvolumes -o name")
        if volumes.split() != ["persistentvolume/scratch"] or "scratch" not in lab.machines.run(STAYING[1], "ls /srv"):
            raise RuntimeError(f"the local volume is not there: {volumes}")
        begun = time.monotonic()
        text = self._good("up")
        found["again"] = time.monotonic() - begun
        person = self._person(text)
        found |= self._lose(person)
        found["replaced"] = self._replace()
        found |= self._upgrade()
        self._good("reset", "--cluster", "lab")
        changed = [name for name, text in before.items() if as_found(lab.machines, name) != text]
        if changed:
            raise RuntimeError(f"not as they were found: {changed}")
        return found

    def _person(self, text: str) -> Portal:
        """Who signs in by the link that `up` ended with."""
        from tests.deploy.corral_on_hosts import LINK, Portal

        link = LINK.search(text)
        if link is None:
            raise RuntimeError("up ended with no link")
        person = Portal(self.lab.folder / "ada", link[0].partition("/sign-in")[0], self.lab.folder / "hosts.portal.pem")
        person.corral("login", "--ca", str(person.ca), link[0])
        return person

    def _lose(self, person: Portal) -> dict[str, float]:
        """Cut the power of the host that the cluster began with, while a job runs; another one is submitted then."""
        from tests.deploy.corral_on_hosts import on_a_worker

        steady = person.submit(on_a_worker("steady", STAYING[1], _BEAT))
        person.until_printed(steady, "main-0", "beat 1")
        with _Outages(self.lab, STAYING[1]) as asked:
            asked.until_answers(3)
            self._say("cut the power of the first control plane")
            begun = time.monotonic()
            self.lab.machines.cut_power(LOST)
            beats = person.corral("logs", steady, "main-0").count("beat")
            person.until_printed(steady, "main-0", f"beat {beats + 20}")
            after = person.submit(on_a_worker("after", STAYING[0], "echo hello"))
            person.until(after, "succeeded")
            next_job = time.monotonic() - begun
            asked.until_answers(10)
        job = json.loads(person.corral("get", steady, "-o", "json"))
        if job["state"] != "running" or person.corral("logs", steady, "main-0").split("\n").count("beat 1") != 1:
            raise RuntimeError(f"the job did not go on: {job}")
        person.corral("stop", steady)
        person.until(steady, "stopped")
        if f"✘  {LOST}  ssh" not in self._good("status", code=4):
            raise RuntimeError("the status does not name the lost host")
        return {"away": asked.longest, "next_job": next_job}

    def _replace(self) -> float:
        """Take the lost control plane out, and let another machine of its name and address join."""
        begun = time.monotonic()
        code, text, said = self.lab.ask_of("remove-node", LOST, "--cluster", "lab", "--lost")
        if code:
            raise RuntimeError(f"it is not removed: {text}{said}{self.lab.logs()[-4000:]}")
        self.lab.machines.replace(LOST)
        pinned = self.lab.listed.with_name("hosts.known_hosts")
        pinned.write_text("".join(line for line in pinned.read_text().splitlines(True) if not line.startswith(LOST)))
        self._good("up")
        planes = self._kubectl("get nodes")
        if planes.count(" Ready ") != len(self.lab.machines.address):
            raise RuntimeError(f"not all control planes are ready: {planes}")
        return time.monotonic() - begun

    def _upgrade(self) -> dict[str, float]:
        """Upgrade one control plane after the other, while the last one asks the API."""
        from tests.testbeds.hosts import bundle

        self.lab.version, self.lab.given = bundle.LATER, self.later
        self._write_list()
        begun = time.monotonic()
        with _Outages(self.lab, STAYING[1]) as asked:
            self._good("upgrade", "--end-tasks")
            seconds = time.monotonic() - begun
        return {"upgrade": seconds, "upgrade_away": asked.longest}

    def _good(self, *words: str, code: int = 0) -> str:
        """What a command of `corral deploy` prints. Raises RuntimeError where it ends otherwise."""
        from tests.deploy.cluster_on_hosts import FULL, TIMEOUT

        more: tuple[str, ...] = (
            (*TIMEOUT, *FULL, "--bundle", str(self.lab.given)) if words[0] in ("up", "upgrade") else ()
        )
        self._say(" ".join(words))
        ended, text, said = self.lab.ask(*words, *more)
        if ended != code:
            raise RuntimeError(f"{words} ended with {ended}: {text}\n{said}\n{self.lab.logs()[-6000:]}")
        return text

    def _kubectl(self, words: str) -> str:
        """What kubectl prints on a host that is not lost."""
        return self.lab.machines.run(STAYING[0], f"kubectl --kubeconfig /etc/kubernetes/admin.conf {words}")

    @staticmethod
    def _say(what: str) -> None:
        print(f"{time.strftime('%H:%M:%S')} {what}", file=sys.stderr, flush=True)
