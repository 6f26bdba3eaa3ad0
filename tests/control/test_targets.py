"""The scheduler alone sets `targetReplicas` of every job: stored with each change of placement, and shown with the job."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio

from corral.kernel.ids import JobId
from corral.model.store_writes import IntentKind
from corral.model.views import JobDetail
from corral.service.actor import Actor
from corral.service.context import Context
from corral.service.service import Service
from corral.spec.errors import SpecError
from tests.control.harness import House, PaperEngine, short

ADA = Actor("ada", token_id="t-ada")
ELASTIC = {"min": 2, "max": 8}


@pytest_asyncio.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    made = House(tmp_path, PaperEngine())
    await made.open()
    yield made
    await made.close()


@pytest.fixture
def service(house: House) -> Service:
    return Service(Context(house.store, key=b"k" * 32, clock=house.clock))


def targets(job: JobDetail) -> dict[str, int]:
    found: dict[str, int] = job.document["spec"]["replicaSpec"]["targetReplicas"]
    return found


async def shown_with(house: House, service: Service, job: JobId, replicas: int) -> JobDetail:
    """The job as the API shows it once the scheduler gives it `replicas` replicas."""
    while True:
        shown = await service.jobs.get(ADA, job)
        if sum(targets(shown).values()) == replicas:
            return shown
        await house.store.wakeup.wait(0.05)


async def test_a_job_that_is_not_elastic_has_targets_too(house: House, service: Service) -> None:
    await house.begin()
    job = await house.submit(short("fixed", replicas=3, devices=2))
    shown = await shown_with(house, service, job, 3)
    assert sorted(targets(shown).values()) == [1, 2]
    assert shown.status.placements == {"worker": targets(shown)}
    assert (await service.jobs.document(ADA, job))["spec"]["replicaSpec"]["targetReplicas"] == targets(shown)


async def test_targets_are_of_the_counted_role_and_placements_of_every_role(house: House, service: Service) -> None:
    await house.begin()
    document = msgspec.json.decode(short("both", replicas=2, devices=4))
    document["roles"]["server"] = {"replicas": 3, "resources": {"cpu": 1}, "command": ["true"]}
    job = await house.submit(msgspec.json.encode(document).decode())
    shown = await shown_with(house, service, job, 2)
    assert targets(shown) == {"local/node0": 1, "local/node1": 1}
    assert shown.status.placements["worker"] == targets(shown)
    assert sum(shown.status.placements["server"].values()) == 3


async def test_targets_follow_an_elastic_job_down_and_up_again_and_over_a_restart(
    house: House, service: Service
) -> None:
    await house.begin()
    job = await house.submit(short("elastic", replicas=ELASTIC, devices=1))
    assert targets(await shown_with(house, service, job, 8)) == {"local/node0": 4, "local/node1": 4}
    other = await house.submit(short("other", replicas=4, devices=1))
    await house.until(other, "running")
    shrunk = await shown_with(house, service, job, 4)
    assert shrunk.document["spec"]["replicaSpec"]["replicas"] == 8, "what is asked for does not change"
    await house.abandon()
    await house.begin()
    assert targets(await service.jobs.get(ADA, job)) == targets(shrunk)
    await house.store.add_intent(other, IntentKind.STOP, {}, actor="ada", at=house.clock.now())
    await shown_with(house, service, job, 8)
    await house.store.add_intent(job, IntentKind.STOP, {}, actor="ada", at=house.clock.now())
    await house.until(job, "stopped")
    ended = await service.jobs.get(ADA, job)
    assert targets(ended) == {} and ended.status.placements == {}


async def test_scale_sets_what_is_asked_for_and_never_beyond_the_bounds(house: House, service: Service) -> None:
    await house.begin()
    job = await house.submit(short("elastic", replicas=ELASTIC, devices=1))
    await shown_with(house, service, job, 8)
    await service.job_commands.scale(ADA, job, replicas=3)
    shown = await shown_with(house, service, job, 3)
    assert shown.document["spec"]["replicaSpec"]["replicas"] == 3
    for beyond in (1, 9):
        with pytest.raises(SpecError, match="expected 2 to 8"):
            await service.job_commands.scale(ADA, job, replicas=beyond)
    assert (await service.jobs.get(ADA, job)).document["spec"]["replicaSpec"]["replicas"] == 3


async def test_targets_that_a_document_says_are_left_out(service: Service) -> None:
    told = '{"name": "copied", "framework": "shell", "roles": {"main": {"command": "true"}}}'
    found = await service.submission.validate(ADA, told)
    assert found.document is not None
    found.document["spec"]["replicaSpec"]["targetReplicas"] = {"local/node1": 1}
    again = await service.submission.validate(ADA, msgspec.json.encode(found.document))
    assert again.document is not None
    assert again.document["spec"]["replicaSpec"]["targetReplicas"] == {}
