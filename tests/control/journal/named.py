"""A journal in which every name, and every free text, has a mark by which a search finds it."""

from __future__ import annotations

import json
from random import Random
from typing import Any, Final

from msgspec import structs

from corral.control.core.configuration import Configured
from corral.control.core.driver import Work
from corral.control.core.inputs import ConfigurationRead
from corral.control.journal.rules import Rules
from corral.kernel.ids import JobId, job_id
from corral.model.accounts import User
from corral.model.configuration import configuration_of
from corral.model.cordons import Cordon
from corral.model.events import PlaceLost, StartRefused
from corral.model.inventory import ELSEWHERE, Device, Inventory, Mismatch, Node, Taint
from corral.model.launch import EngineLost, Noted
from corral.model.outcome import Completion, ExitClass
from corral.model.store_writes import IntentKind
from corral.runtime.error_block import END, START
from corral.scheduler import EngineUnknown
from corral.spec.configuration_file import load_site
from corral.spec.job_reader import load_job
from tests.control.core.virtual import BEGIN, new_job
from tests.control.journal.journals import Journaled

MARK: Final = "q8q"
"""In every name and text; the new names cannot have it, as they have no 8 before a letter."""
BLOCK: Final = f"{MARK} of the log\n{START}\nexitCode: 220\n{END}"


class Named(Journaled):
    """Jobs of several users in several queues on machines, all with names drawn from a seed."""

    def __init__(self, seed: int, policy: str = "fair") -> None:
        self.draw = Random(seed)
        self._names: set[str] = set()
        self.users = [self.name() for _ in range(4)]
        self.queues = [self.name() for _ in range(3)]
        self.model, self.engine, self.level = self.name(), self.name(), self.name()
        self.label, self.value = f"{self.name()}.example/{self.name()}", self.name()
        self.tags, self.claim, self.role = [self.name(), self.name()], self.name(), self.name()
        super().__init__(Rules(policy), machines=self._machines())
        self.driver.store.users |= {user: User(user, groups=(self.name(),)) for user in self.users}
        self.driver.at(BEGIN, ConfigurationRead(self._configured(policy)))
        self._jobs: list[JobId] = []

    def name(self) -> str:
        """A name with the mark that no other thing has; it comes anywhere among the others."""
        while True:
            letters = "".join(self.draw.choice("abdmz") for _ in range(self.draw.randint(1, 3)))
            name = f"{letters}{MARK}{self.draw.randint(0, 120)}"
            if name not in self._names:
                self._names.add(name)
                return name

    def _machines(self) -> Inventory:
        racks = [self.name() for _ in range(2)]
        names = {f"{self.engine}/{self.name()}.example.org" for _ in range(4)}
        nodes = tuple(
            Node(
                name=name,
                cells=((self.level, self.draw.choice(racks)),),
                devices=tuple(
                    Device(at, f"GPU-{self.name()}", model=self.model, cells=(("numa", self.name()),), described=True)
                    for at in range(4)
                ),
                cpu_millis=64_000,
                memory_bytes=2**38,
                resources={self.name(): 3},
                labels={self.label: self.value, f"{ELSEWHERE}{self.claim}": "", "zone": f"{MARK}-east", "tier": "7"},
                mismatches=(Mismatch(self.name(), self.name(), self.name()),),
            )
            for name in self.draw.sample(sorted(names), len(names))
        )
        return Inventory(self.engine, nodes, levels=("block", self.level, "node", "numa", "device"))

    def _configured(self, policy: str) -> Configured:
        queues: list[dict[str, Any]] = [
            {
                "kind": "Queue", "name": name, "deserved": {"devices": str(at * 3), f"devices/{self.model}": "2"},
                "userLimit": {"devices": "9"}, "imagePullSecrets": [self.name()],
            }
            for at, name in enumerate(self.queues)
        ]  # fmt: skip
        storage: dict[str, Any] = {"kind": "Storage", "name": self.name(), "type": "nfs", "server": self.name()}
        storage["path"] = f"/{MARK}"
        texts = [json.dumps({"apiVersion": "corral.dev/v1alpha1", **each}) for each in (*queues, storage)]
        now = configuration_of(load_site("\n---\n".join(texts), filename="site.yaml"), 7)
        return Configured(Rules(policy).chosen(now), now)

    def add(self, at: float, seconds: float, **more: Any) -> JobId:
        """Have a job be submitted that has a text in every field."""
        self._number += 1
        user, name = self.draw.choice(self.users), self.name()
        self.works[name] = Work(seconds, code=self.draw.choice((0, 0, 1)))
        role = self.role if self.draw.random() < 0.5 else self.name()
        document = load_job(json.dumps(self._document(name, role, **more)))
        identity = job_id(int((BEGIN + at) * 1000), self._number)
        new = new_job(identity, document, BEGIN + at)
        summary = structs.replace(new.summary, user=user, tags=tuple(self.tags))
        self.driver.at(BEGIN + at, structs.replace(new, user=user, summary=summary))
        self._jobs.append(identity)
        return identity

    def _document(self, name: str, role: str, *, devices: int = 1, replicas: int = 1, **spec: Any) -> dict[str, Any]:
        resources: dict[str, Any] = {"cpu": 1, "devices": {"count": devices, "model": self.model}}
        return {
            "apiVersion": "corral.dev/v1alpha1",
            "kind": "UnifiedJob",
            "metadata": {
                "name": name, "labels": {self.name(): self.name()}, "annotations": {"mail": f"{MARK}@example.org"},
            },
            "spec": {
                "jobType": "pytorch",
                "queue": self.draw.choice(self.queues),
                "tags": [self.draw.choice(self.tags)],
                "speeds": {self.model: 2.0},
                "code": {"uri": f"file:///{MARK}/code"},
                "inputs": [{"uri": f"pvc://{self.claim}x/{MARK}", "path": f"data/{MARK}"}],
                "outputs": [{"uri": f"file:///{MARK}/out", "path": MARK}],
                "parameters": {f"p_{MARK}": self.name()},
                "checkpoint": {"path": f"{MARK}/last", "signal": "SIGUSR1"},
                "report": {"file": f"{MARK}.json", "steps": 40},
                "nodes": {
                    "exclude": [f"{MARK}-elsewhere"],
                    "expressions": [{"key": "tier", "operator": "Gt", "values": ["3"]}],
                    "tolerations": [{"key": f"{MARK}-taint", "operator": "Exists"}],
                },
                "sharing": {"antiAffinity": {"tags": [self.name()], "level": self.level}},
                "topology": {"preferred": self.level},
                "replicaSpec": {"role": role, "replicas": replicas},
                "roles": [{
                    "name": role,
                    "image": f"registry.{MARK}.org/{MARK}:1",
                    "imagePullSecrets": [self.name()],
                    "command": ["python", f"/{MARK}/train.py"],
                    "workingDir": f"/{MARK}",
                    "env": {f"E_{MARK}": self.name()},
                    "secrets": [{"name": self.name(), "env": f"S_{MARK}"}],
                    "ports": [{"name": f"port{MARK}", "count": 2}],
                    "resources": resources,
                    "nodeSelector": {self.label: self.value},
                    "kubernetes": {"podTemplate": {"metadata": {"labels": {MARK: MARK}}}},
                }],
                **spec,
            },
        }  # fmt: skip

    def disturb(self) -> None:
        """Have engines and people say something about whatever runs."""
        for attempt in sorted(self.driver.running)[:2]:
            self.driver.at(self.driver.now, Noted(attempt, f"Failed{MARK}", f"the mount {MARK} of {self.name()}"))
            self.driver.at(self.driver.now, PlaceLost(attempt, f"port of {MARK} is taken"))
            refusal = Completion(-8000, f"Refused{MARK}", ExitClass.PERMANENT, f"{MARK} has no quota")
            self.driver.at(self.driver.now, StartRefused(attempt, self.driver.now, refusal))
        self.driver.at(self.driver.now, EngineUnknown(self.engine, f"{MARK} is away"))
        self.driver.at(self.driver.now, EngineLost(self.engine, f"{MARK} refused the connection"))
        self.settle()
        last = self.machines.nodes[-1]
        self.see(structs.replace(last, ready=False, ready_reason=f"kubelet of {MARK}", taints=(Taint(MARK, MARK),)))
        self.close(Cordon(self.machines.nodes[0].name, self.users[0], f"{MARK} is to be mended", self.driver.now))
        for kind in (IntentKind.SUSPEND, IntentKind.RESUME, IntentKind.RESTART):
            self.driver.request(self.draw.choice(self._jobs), kind, self.users[1], note=f"{MARK}")
        waiting = self.draw.choice(self._jobs)
        self.driver.request(waiting, IntentKind.TAGS, self.users[2], tags=[self.name()])
        self.driver.request(waiting, IntentKind.EDIT, self.users[2], queue=self.draw.choice(self.queues))
        self.driver.request(waiting, IntentKind.ORDER, self.users[2], place="first", queue=self.queues[0])
        if roles := self.stored(waiting).run.roles:
            self.driver.request(waiting, IntentKind.SCALE, self.users[2], role=next(iter(roles)), replicas=1)
        self.driver.request(waiting, IntentKind("job.work-reported"), jobAttempt=0, report={"at": 1.0, "loss": 0.5})
        self.settle()
        self.close()
        self.see(last)
