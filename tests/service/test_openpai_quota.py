"""Where a queue owns cells, a job of OpenPAI fills as many as its largest need, and never asks for more than there are."""

from __future__ import annotations

from typing import Any

import pytest

from corral.kernel.errors import Conflict
from corral.model.accounts import QueueRecord
from corral.model.inventory import Node
from corral.service import Service
from corral.store import Store
from tests.service.conftest import ANN, Door
from tests.spec.openpai_files import job_file, role_of

OWNER = "vc1"


@pytest.fixture
async def cells(store: Store, door: Door, machines: list[Node]) -> None:
    """A virtual cluster that owns four cells of one A100; each comes with 4 processors and 8 GiB."""
    await store.put_queues([QueueRecord("default"), QueueRecord(OWNER, {"cells": [{"cell": "device", "count": 4}]})])
    share = {"engine": "local", "level": "device", "model": "A100", "devices": 1, "owned": 4}
    door.answers["/overview/queues"] = [{"name": "default"}, {"name": OWNER, "ownedDevices": 4, "cells": [share]}]
    door.answers["/fit"] = None


async def devices_of(
    service: Service,
    instances: int,
    *,
    gpu: int,
    cpu: int = 1,
    memory: int = 64,
    queue: str = OWNER,
    gang: bool = True,
    **hived: Any,
) -> int:
    resources = {"cpu": cpu, "memoryMB": memory, "gpu": gpu}
    text = job_file(
        defaults={"virtualCluster": queue},
        extras={"gangAllocation": gang} | ({"hivedScheduler": hived} if hived else {}),
        taskRoles={"worker": role_of(instances=instances, resourcePerInstance=resources)},
    )
    result = await service.submit(ANN, text, no_image=True)
    assert result.detail is not None
    count: int = result.detail.document["spec"]["roles"][0]["resources"]["devices"]["count"]
    return count


@pytest.mark.parametrize(
    ("asked", "taken"),
    [
        ({"gpu": 1}, 1),
        ({"gpu": 1, "cpu": 9}, 3),
        ({"gpu": 1, "memory": 12 * 1024}, 2),
        ({"gpu": 2, "cpu": 4, "memory": 64}, 2),
        ({"gpu": 0, "cpu": 9}, 0),
    ],
)
async def test_a_task_takes_the_cells_that_its_largest_need_fills(
    service: Service, cells: None, asked: Any, taken: int
) -> None:
    assert await devices_of(service, 1, **asked) == taken


async def test_without_cells_a_task_has_the_devices_that_it_asks_for(service: Service, cells: None) -> None:
    assert await devices_of(service, 1, gpu=1, cpu=9, queue="default") == 1


async def test_more_than_the_virtual_cluster_owns_is_refused(service: Service, cells: None) -> None:
    with pytest.raises(Conflict) as refused:
        await devices_of(service, 5, gpu=1)
    assert refused.value.code == "no-enough-quota" and "5 cells" in refused.value.message
    with pytest.raises(Conflict, match="H100"):
        await devices_of(service, 1, gpu=1, taskRoles={"worker": {"skuType": "H100"}})
    assert await devices_of(service, 4, gpu=1, taskRoles={"worker": {"skuType": "A100"}}) == 1


async def test_tasks_that_need_not_start_together_have_no_quota(service: Service, cells: None) -> None:
    assert await devices_of(service, 5, gpu=1, gang=False) == 1


async def test_an_opportunistic_job_has_no_quota(service: Service, cells: None) -> None:
    assert await devices_of(service, 5, gpu=1, jobPriorityClass="oppo") == 1


async def test_while_control_does_not_answer_a_job_is_accepted_and_waits(
    service: Service, cells: None, door: Door
) -> None:
    door.answers.clear()
    assert await devices_of(service, 5, gpu=1) == 1
