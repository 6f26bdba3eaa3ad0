"""The credentials for a job's registry come from its roles, its queue and the queues above it."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from corral.control.initial_configuration import seed
from corral.kernel.ids import AttemptId
from corral.model.launch import TaskLaunch
from corral.spec.configuration_file import load_document
from tests.control.harness import House, PaperEngine, short

SITE = """
kind: Queue
name: company
imagePullSecrets: [company-registry]
---
kind: Queue
name: team
parent: company
imagePullSecrets: [team-registry, company-registry]
"""


class Engine(PaperEngine):
    """Records its starts."""

    async def start(self, launch: TaskLaunch) -> None:
        """Start the task."""
        self.launched[launch.attempt] = launch
        await super().start(launch)

    launched: dict[AttemptId, TaskLaunch]


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    engine = Engine(nodes=1, devices=4)
    engine.launched = {}
    made = House(tmp_path, engine)
    await made.open()
    yield made
    await made.close()


async def test_a_job_has_its_own_its_queues_and_those_above_once(house: House) -> None:
    await seed(house.store, load_document(SITE), file="site.yaml", clock=house.clock)
    await house.begin()
    asked = dataclasses.replace(house.control.context, queue_secrets=house.control.configured.image_pull_secrets)
    house.control.context = asked
    document = json.loads(short("private", queue="team"))
    document["roles"]["worker"]["imagePullSecrets"] = ["mine"]
    job = await house.submit(json.dumps(document))
    await house.until(job, "running")
    assert isinstance(house.engine, Engine)
    (launch,) = house.engine.launched.values()
    assert launch.image_pull_secrets == ("mine", "team-registry", "company-registry")
