"""YARN's queues and the applications in them that are not Corral's, as the ResourceManager lists them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from corral.engines.yarn.cluster_use import ClusterUseReader, use_of
from corral.engines.yarn.hadoop_rest import HadoopRest
from corral.engines.yarn.kind import YarnOptions, settings_of
from corral.kernel.errors import Unavailable
from corral.model.views import Amounts
from tests.engines.yarn.test_names_and_refusals import WHERE

SETTINGS = settings_of(YarnOptions(**WHERE, yarn_queues="vc=ml.vision"), "abc", "")


def resources(mb: int, vcores: int, gpus: int) -> dict[str, Any]:
    told = [("memory-mb", mb), ("vcores", vcores), ("yarn.io/gpu", gpus)]
    return {"resourceInformations": {"resourceInformation": [{"name": name, "value": value} for name, value in told]}}


def app(number: int, name: str, mb: int, **fields: Any) -> dict[str, Any]:
    used = {"resourceUsagesByPartition": [{"partitionName": "", "used": resources(mb, 2, 1)}]}
    given = {
        "id": f"application_1_{number}",
        "name": name,
        "user": "bob",
        "queue": "root.default",
        "state": "RUNNING",
        "applicationType": "SPARK",
        "startedTime": 1_700_000_000_000,
        "allocatedMB": mb,
        "allocatedVCores": 2,
        "runningContainers": 3,
        "resourceInfo": used,
    }
    return {**given, **fields}


def capacity(*queues: dict[str, Any]) -> dict[str, Any]:
    return {"scheduler": {"schedulerInfo": {"type": "capacityScheduler", "queues": {"queue": list(queues)}}}}


def queue(path: str, *below: dict[str, Any]) -> dict[str, Any]:
    return {
        "queueName": path.rpartition(".")[2],
        "queuePath": path,
        "state": "RUNNING",
        "absoluteCapacity": 33.333,
        "absoluteUsedCapacity": 12.5,
        "numActiveApplications": 2,
        "numPendingApplications": 1,
        "resourcesUsed": resources(1024, 4, 2),
        **({"queues": {"queue": list(below)}} if below else {}),
    }


def test_queues_are_listed_with_those_that_corral_uses_and_applications_without_corrals() -> None:
    apps = [
        app(1, "small", 512),
        app(2, "corral-abc-1m8-1", 4096),
        app(3, "large", 2048),
        app(4, "corral-other-1", 256),
    ]
    queues = capacity(queue("root.default"), queue("root.ml", queue("root.ml.vision")))
    use = use_of(queues, {"apps": {"app": apps}}, SETTINGS)
    assert [(each.name, each.corral) for each in use.queues] == [
        ("root.default", True),
        ("root.ml", False),
        ("root.ml.vision", True),
    ]
    assert use.queues[0].used == Amounts(4000, 2**30, 2)
    assert (use.queues[0].capacity, use.queues[0].running, use.queues[0].pending) == (33.3, 2, 1)
    assert [each.name for each in use.applications] == ["large", "small", "corral-other-1"], "another Corral is another"
    assert use.applications[0].started_at == "2023-11-14T22:13:20.000Z"
    assert use.others == Amounts(6000, (512 + 2048 + 256) * 2**20, 3)
    assert use.corral == Amounts(2000, 4096 * 2**20, 1)


def test_the_fair_schedulers_queues_are_read_too() -> None:
    below = {"queueName": "root.ml", "usedResources": resources(1024, 1, 0), "numActiveApps": 3}
    told = {"scheduler": {"schedulerInfo": {"type": "fairScheduler", "rootQueue": {"childQueues": {"queue": [below]}}}}}
    (found,) = use_of(told, {"apps": None}, SETTINGS).queues
    assert (found.name, found.running, found.used.memory_bytes) == ("root.ml", 3, 2**30)


def test_a_long_list_is_cut_and_its_rest_counted() -> None:
    use = use_of(capacity(), {"apps": {"app": [app(at, f"a{at}", at) for at in range(250)]}}, SETTINGS)
    assert (len(use.applications), use.left_out, use.applications[0].name) == (200, 50, "a249")
    assert use.others.devices == 250


@pytest.mark.parametrize(
    ("queues", "apps"),
    [({}, {"apps": None}), ({"scheduler": 3}, {"apps": None}), (capacity(), {}), (capacity(), {"apps": {"app": [3]}})],
)
def test_an_answer_of_another_form_is_told_as_such(queues: Any, apps: Any) -> None:
    with pytest.raises(Unavailable, match="list of queues or applications has an unknown form"):
        use_of(queues, apps, SETTINGS)


async def test_many_lookers_cost_the_resource_manager_one_question(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    async def answer(self: HadoopRest, method: str, path: str, **_: Any) -> Any:
        asked.append(path)
        return json.loads(json.dumps(capacity() if path.endswith("scheduler") else {"apps": None}))

    monkeypatch.setattr(HadoopRest, "ask", answer)
    reader = ClusterUseReader(SETTINGS, HadoopRest("ResourceManager", ["http://rm:8088"], "me"))
    first, second = await reader.read(), await reader.read()
    assert first is second
    assert len(asked) == 2
