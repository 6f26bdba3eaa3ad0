"""Where a queue owns cells, an OpenPAI job requests cells for its largest need, and never more than the queue has."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from corral.compat.openpai.language.names import PROTOCOL
from corral.compat.openpai.language.protocol import ProtocolError
from corral.compat.openpai.service.errors import OpenPaiRefusal
from corral.compat.openpai.service.tenant import OpenPai
from corral.kernel.errors import Conflict
from corral.model.accounts import QueueRecord
from corral.model.inventory import Device, Node
from corral.service.service import Service
from corral.spec.job_reader import load_job
from corral.store import Store
from tests.service.conftest import ANN, START, FakeControl
from tests.spec.openpai_files import job_file, role_of

NUMBERS = itertools.count()
pytestmark = pytest.mark.usefixtures("openpai")
OWNER = "vc1"
SMALL = Node("local/n3", devices=(Device(0, "n3:0", model="K80"),), cpu_millis=1000, memory_bytes=1024**3)
"""A machine with one device of a model that the virtual cluster lacks, and little else."""


@pytest.fixture
async def cells(store: Store, fake_control: FakeControl, machines: list[Node]) -> None:
    """A virtual cluster that owns four cells of one A100; each has 4 processors and 8 GiB."""
    await store.put_queues([QueueRecord("default"), QueueRecord(OWNER, {"cells": [{"cell": "device", "count": 4}]})])
    share = {"engine": "local", "level": "device", "model": "A100", "devices": 1, "owned": 4}
    fake_control.answers["/overview/queues"] = [
        {"name": "default"},
        {"name": OWNER, "ownedDevices": 4, "cells": [share]},
    ]
    fake_control.answers["/fit"] = None


async def devices_of(service: Service, instances: int, **asked: Any) -> int:
    count: int = (await role_in(service, instances, **asked))["resources"]["devices"]["count"]
    return count


async def role_in(
    service: Service,
    instances: int,
    *,
    gpu: int,
    cpu: int = 1,
    memory: int = 64,
    queue: str = OWNER,
    gang: bool = True,
    **hived: Any,
) -> dict[str, Any]:
    resources = {"cpu": cpu, "memoryMB": memory, "gpu": gpu}
    text = job_file(
        name=f"j{next(NUMBERS)}",
        defaults={"virtualCluster": queue},
        extras={"gangAllocation": gang} | ({"hivedScheduler": hived} if hived else {}),
        taskRoles={"worker": role_of(instances=instances, resourcePerInstance=resources)},
    )
    result = await service.submission.submit(ANN, text, no_image=True)
    assert result.detail is not None
    role: dict[str, Any] = result.detail.document["spec"]["roles"][0]
    return role


@pytest.mark.parametrize(
    ("asked", "taken"),
    [
        ({"gpu": 1}, 1),
        ({"gpu": 1, "cpu": 9}, 3),
        ({"gpu": 1, "memory": 12 * 1024}, 2),
        ({"gpu": 2, "cpu": 4, "memory": 64}, 2),
        ({"gpu": 0, "cpu": 9}, 3),
        ({"gpu": 0, "memory": 12 * 1024}, 2),
        ({"gpu": 0, "cpu": 0, "memory": 0}, 0),
        ({"gpu": 1, "cpu": 9, "taskRoles": {"worker": {"skuNum": 2}}}, 2),
        ({"gpu": 0, "taskRoles": {"worker": {"skuNumber": 4}}}, 4),
        ({"gpu": 3, "taskRoles": {"worker": {"skuNum": 2}}}, 3),
    ],
)
async def test_a_task_takes_the_cells_that_its_largest_need_fills(
    service: Service, cells: None, asked: Any, taken: int
) -> None:
    assert await devices_of(service, 1, **asked) == taken


async def test_without_cells_a_task_has_the_devices_that_it_asks_for(service: Service, cells: None) -> None:
    assert await devices_of(service, 1, gpu=1, cpu=9, queue="default") == 1


async def test_more_than_the_virtual_cluster_owns_is_refused(service: Service, cells: None) -> None:
    with pytest.raises(Conflict, match="5 cells of A100") as refused:
        await devices_of(service, 5, gpu=1, taskRoles={"worker": {"skuType": "A100"}})
    assert refused.value.code == "no-enough-quota"
    assert await devices_of(service, 4, gpu=1, taskRoles={"worker": {"skuType": "A100"}}) == 1


async def test_a_job_without_a_sku_is_a_wrong_protocol_above_all_cells(
    service: Service, openpai: OpenPai, cells: None
) -> None:
    with pytest.raises(ProtocolError, match="asks for 5 cells, and virtual cluster vc1 has 4 of all SKUs"):
        await devices_of(service, 5, gpu=1)
    with pytest.raises(ProtocolError, match="asks for 6 cells"):
        await devices_of(service, 2, gpu=0, taskRoles={"worker": {"skuNum": 3}})
    text = job_file(defaults={"virtualCluster": OWNER}, taskRoles={"worker": role_of(instances=5)})
    with pytest.raises(OpenPaiRefusal) as refused:
        await openpai.jobs.submit(ANN, text)
    assert (refused.value.status, refused.value.code) == (400, "InvalidProtocolError")
    assert await devices_of(service, 4, gpu=1) == 1


async def test_a_gang_without_a_sku_needs_its_cells_of_one_sku(
    service: Service, cells: None, fake_control: FakeControl
) -> None:
    shares = [
        {"engine": "local", "level": "device", "model": model, "devices": 1, "owned": 4} for model in ("A100", "H100")
    ]
    fake_control.answers["/overview/queues"] = [
        {"name": "default"},
        {"name": OWNER, "ownedDevices": 8, "cells": shares},
    ]
    with pytest.raises(ProtocolError, match="6 cells of one SKU, and virtual cluster vc1 has 4 of A100, 4 of H100"):
        await devices_of(service, 6, gpu=1)
    assert await devices_of(service, 6, gpu=1, gang=False) == 1
    assert await devices_of(service, 6, gpu=1, jobPriorityClass="oppo") == 1


async def test_cells_of_pinned_jobs_are_counted_too(service: Service, cells: None) -> None:
    pinned = {"taskRoles": {"worker": {"pinnedCellId": "quiet"}}}
    with pytest.raises(Conflict, match="5 cells"):
        await devices_of(service, 5, gpu=1, **pinned)
    assert await devices_of(service, 4, gpu=1, **pinned) == 1


async def test_no_task_has_more_cells_than_a_task_can_have(service: Service, cells: None) -> None:
    with pytest.raises(Conflict, match="5000 cells"):
        await devices_of(service, 1, gpu=0, gang=False, taskRoles={"worker": {"skuNum": 5000}})


async def test_a_sku_that_no_machine_has_is_refused_in_openpais_words(service: Service, cells: None) -> None:
    for classed in ({}, {"jobPriorityClass": "oppo"}):
        with pytest.raises(ProtocolError) as refused:
            await devices_of(service, 1, gpu=1, taskRoles={"worker": {"skuType": "H100"}}, **classed)
        assert refused.value.wire == "Taskrole worker has unknown skuType H100, allow A100."
        assert refused.value.problems[0].path == ("extras", "hivedScheduler", "taskRoles", "worker", "skuType")


async def test_a_kind_of_devices_is_no_sku(
    service: Service, cells: None, store: Store, epoch: int, machines: list[Node]
) -> None:
    nameless = Node("local/n3", devices=(Device(0, "n3:0"),), cpu_millis=1000, memory_bytes=1024**3)
    await store.put_nodes(epoch, "local", [*machines, nameless], START)
    with pytest.raises(ProtocolError) as refused:
        await devices_of(service, 1, gpu=1, jobPriorityClass="oppo", taskRoles={"worker": {"skuType": "gpu"}})
    assert refused.value.wire == "Taskrole worker has unknown skuType gpu, allow A100."


async def test_programs_of_openpai_are_told_a_wrong_sku_as_a_wrong_protocol(openpai: OpenPai, cells: None) -> None:
    text = job_file(
        defaults={"virtualCluster": OWNER}, extras={"hivedScheduler": {"taskRoles": {"worker": {"skuType": "H100"}}}}
    )
    with pytest.raises(OpenPaiRefusal) as refused:
        await openpai.jobs.submit(ANN, text)
    assert (refused.value.status, refused.value.code) == (400, "InvalidProtocolError")
    assert refused.value.message == "Taskrole worker has unknown skuType H100, allow A100."


async def test_a_sku_of_others_is_refused_but_to_opportunistic_jobs(
    service: Service, cells: None, store: Store, epoch: int, machines: list[Node]
) -> None:
    await store.put_nodes(epoch, "local", [*machines, SMALL], START)
    asked = {"taskRoles": {"worker": {"skuType": "K80"}}}
    with pytest.raises(ProtocolError) as refused:
        await devices_of(service, 1, gpu=1, **asked)
    assert refused.value.wire == f"Taskrole worker has skuType K80, VC {OWNER} only allows A100."
    assert await devices_of(service, 1, gpu=1, cpu=4, jobPriorityClass="oppo", **asked) == 4
    assert await devices_of(service, 1, gpu=1, cpu=4, queue="default", **asked) == 1


async def test_cells_of_any_kind_are_counted_by_the_least_that_the_virtual_cluster_owns(
    service: Service, cells: None, store: Store, epoch: int, machines: list[Node]
) -> None:
    await store.put_nodes(epoch, "local", [*machines, SMALL], START)
    assert await devices_of(service, 1, gpu=0, cpu=4) == 1
    assert await devices_of(service, 1, gpu=0, cpu=4, jobPriorityClass="oppo") == 4


async def test_a_task_without_gpus_keeps_its_sku_and_its_one_process(service: Service, cells: None) -> None:
    named = {"taskRoles": {"worker": {"skuType": "A100"}}}
    role = await role_in(service, 1, gpu=0, cpu=9, **named)
    assert (role["resources"]["devices"]["count"], role["resources"]["devices"]["model"]) == (3, "A100")
    assert role["processesPerReplica"] == 1
    elsewhere = (await role_in(service, 1, gpu=0, cpu=9, queue="default", **named))["resources"]["devices"]
    assert (elsewhere["count"], elsewhere["model"]) == (0, "")


async def test_a_virtual_cluster_of_unknown_models_refuses_none_that_is_there(
    service: Service, cells: None, fake_control: FakeControl
) -> None:
    share = {"engine": "local", "level": "device", "model": "", "devices": 1, "owned": 4}
    fake_control.answers["/overview/queues"] = [{"name": OWNER, "ownedDevices": 4, "cells": [share]}]
    asked = {"taskRoles": {"worker": {"skuType": "A100"}}}
    assert await devices_of(service, 4, gpu=1, **asked) == 1
    with pytest.raises(Conflict, match="5 cells,"):
        await devices_of(service, 5, gpu=1, **asked)


async def test_a_canonical_document_whose_protocol_cannot_be_read_fills_cells_by_its_needs(
    service: Service, cells: None
) -> None:
    for at, broken in enumerate(({}, {PROTOCOL: "[]"}, {PROTOCOL: "{}"})):
        document = load_job(job_file(name=f"c{at}")).to_document()
        document["spec"]["queue"] = OWNER
        document["metadata"]["annotations"] = broken
        result = await service.submission.submit(ANN, json.dumps(document), no_image=True)
        assert result.detail is not None
        assert result.detail.document["spec"]["roles"][0]["resources"]["devices"]["count"] == 1


async def test_tasks_that_need_not_start_together_have_no_quota(service: Service, cells: None) -> None:
    assert await devices_of(service, 5, gpu=1, gang=False) == 1


async def test_an_opportunistic_job_has_no_quota(service: Service, cells: None) -> None:
    assert await devices_of(service, 5, gpu=1, jobPriorityClass="oppo") == 1


async def test_while_control_does_not_answer_a_job_is_accepted_and_waits(
    service: Service, cells: None, fake_control: FakeControl
) -> None:
    fake_control.answers.clear()
    assert await devices_of(service, 5, gpu=1) == 1
