"""DRA claims on a real API server with kwok's nodes: the order of writes, and the end of claims."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from corral.engines.kubernetes.devices.claim_state import Ours
from corral.engines.kubernetes.devices.managed_nodes import LISTED, SHARED
from corral.engines.kubernetes.pods.exit_codes import PodExit
from corral.engines.kubernetes.pods.manifest import pod_name
from corral.kernel.ids import AttemptId, parse_attempt_id
from corral.model.inventory import Device, Node
from corral.model.launch import TaskLaunch
from corral.model.placement import DeviceShare
from tests.engines.kubernetes.engine_harness import MERGE, Harness, launch, new_attempt, until
from tests.engines.kubernetes.permitted import Permitted
from tests.testbeds.kubernetes.controlplane import ControlPlane
from tests.testbeds.kubernetes.kwok import Kwok
from tests.testbeds.kubernetes.slices import DRIVER, TAINT, device, managed, publish, withdraw

pytestmark = pytest.mark.kubernetes
FINALIZER = "resource.kubernetes.io/delete-protection"


@pytest.fixture(scope="module")
def nodes(kwok: Kwok, control_plane: ControlPlane) -> Iterator[list[str]]:
    made = kwok.add_nodes(2, prefix="dra", devices=0, describe=managed, taints=[TAINT])
    publish(control_plane, made, [device(number) for number in range(8)])
    yield made
    withdraw(control_plane, made)
    for name in made:
        control_plane.request("DELETE", f"/api/v1/nodes/{name}")


@pytest.fixture
def at(control_plane: ControlPlane, namespace: str, nodes: list[str], tmp_path: Path) -> Harness:
    return Harness(control_plane, namespace, tmp_path)


async def seen(at: Harness, node: str) -> Node:
    return next(each for each in (await at.engine.inventory()).nodes if each.name == f"kubernetes/{node}")


async def task(at: Harness, node: str, *indexes: int, **fields: Any) -> TaskLaunch:
    """A task with these devices of a node."""
    by_index = {each.index: each for each in (await seen(at, node)).devices}
    return launch(node, devices=tuple(by_index[index] for index in indexes), **fields)


async def gang(at: Harness, node: str, *sets: tuple[int, ...]) -> list[TaskLaunch]:
    """The tasks of one job on one node."""
    job = parse_attempt_id(new_attempt()).job
    attempts = [AttemptId(f"{job}.0.worker.{number}.0") for number in range(len(sets))]
    made = [await task(at, node, *each, beside=len(sets) - 1) for each in sets]
    return [msgspec.structs.replace(each, attempt=attempt) for each, attempt in zip(made, attempts, strict=True)]


def claims_path(at: Harness, name: str = "") -> str:
    return f"/apis/resource.k8s.io/v1/namespaces/{at.namespace}/resourceclaims" + (f"/{name}" if name else "")


async def claims(at: Harness) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await at.ask("GET", claims_path(at)))["items"]
    return found


def given(claim: dict[str, Any]) -> dict[str, str]:
    """The device of each request."""
    results = claim["status"]["allocation"]["devices"]["results"]
    return {result["request"]: result["device"] for result in results}


def reserved(claim: dict[str, Any]) -> set[str]:
    return {each["name"] for each in claim["status"].get("reservedFor", ())}


def starting(at: Harness, before: Counter[tuple[str, str]]) -> dict[tuple[str, str], int]:
    """The writes since `before` that start tasks, as the API server counted them."""
    written = at.plane.writes() - before
    return {what: count for what, count in written.items() if what[0] != "delete" and what[1] != "pods/status"}


async def test_a_drivers_devices_are_cells_and_models_of_a_node_that_is_corrals(at: Harness, nodes: list[str]) -> None:
    async with at:
        found = await seen(at, nodes[0])
        assert [each.id for each in found.devices] == [f"{DRIVER}/{nodes[0]}/gpu-{number}" for number in range(8)]
        assert {(each.model, each.kind, each.healthy, each.counted) for each in found.devices} == {
            ("a2", "gpu", True, False)
        }
        assert [dict(each.cells)["pcie-switch"] for each in found.devices] == ["pci0"] * 4 + ["pci1"] * 4
        assert found.taints == ()


async def test_a_task_with_devices_is_three_writes_and_gets_just_those(at: Harness, nodes: list[str]) -> None:
    async with at:
        asked = await task(at, nodes[0], 2, 5)
        before = at.plane.writes()
        await at.engine.start(asked)
        assert starting(at, before) == {
            ("create", "resourceclaims"): 1,
            ("create", "pods"): 1,
            ("patch", "resourceclaims/status"): 1,
        }
        await at.started(asked.attempt)
        (claim,) = await claims(at)
        assert claim["metadata"]["finalizers"] == [FINALIZER]
        results = claim["status"]["allocation"]["devices"]["results"]
        assert [(each["request"], each["device"]) for each in results] == [("r0", "gpu-2"), ("r0", "gpu-5")]
        assert reserved(claim) == {pod_name(asked.attempt)}
        pod = await at.pod(asked.attempt)
        assert pod is not None
        assert pod["spec"]["containers"][0]["resources"]["claims"] == [{"name": "devices-0"}]


async def test_a_gangs_tasks_on_one_node_share_a_claim(at: Harness, nodes: list[str]) -> None:
    async with at:
        tasks = await gang(at, nodes[0], *((number,) for number in range(8)))
        before = at.plane.writes()
        await asyncio.gather(*(at.engine.start(each) for each in tasks))
        assert starting(at, before) == {
            ("create", "resourceclaims"): 1,
            ("create", "pods"): 8,
            ("patch", "resourceclaims/status"): 1,
        }
        (claim,) = await claims(at)
        assert sorted(given(claim).values()) == [f"gpu-{number}" for number in range(8)]
        assert reserved(claim) == {pod_name(each.attempt) for each in tasks}
        for each in tasks:
            pod = await at.pod(each.attempt)
            assert pod is not None
            (use,) = pod["spec"]["containers"][0]["resources"]["claims"]
            assert given(claim)[use["request"]] == f"gpu-{each.devices[0].index}"


async def test_tasks_with_several_devices_do_not_share(at: Harness, nodes: list[str]) -> None:
    async with at:
        tasks = await gang(at, nodes[0], (0, 1), (2, 3))
        await asyncio.gather(*(at.engine.start(each) for each in tasks))
        assert len(await claims(at)) == 2


async def test_a_device_of_a_shared_claim_is_used_again_in_it(at: Harness, nodes: list[str]) -> None:
    async with at:
        first, second = await gang(at, nodes[0], (0,), (1,))
        await asyncio.gather(at.engine.start(first), at.engine.start(second))
        await at.started(first.attempt)
        await at.annotate(first.attempt)
        await at.engine.stop(first.attempt, grace_seconds=0)
        await at.exited(first.attempt)
        await at.engine.forget([first.attempt])
        wide = await task(at, nodes[0], 0, 4)
        await at.engine.start(wide)
        await at.started(wide.attempt)
        old, new = sorted(await claims(at), key=lambda claim: len(given(claim)), reverse=True)
        assert sorted(given(old).values()) == ["gpu-0", "gpu-1"]
        assert list(given(new).values()) == ["gpu-4"]
        assert reserved(old) == {pod_name(second.attempt), pod_name(wide.attempt)}
        assert reserved(new) == {pod_name(wide.attempt)}


async def test_a_device_that_another_pod_has_is_never_given(at: Harness, nodes: list[str]) -> None:
    """Whatever its present number: a driver that loses a device may number the others anew."""
    async with at:
        first = await task(at, nodes[0], 1)
        await at.engine.start(first)
        await at.started(first.attempt)
        exited = await at.run(await task(at, nodes[0], 1, 2))
        assert exited.code == 251 and pod_name(first.attempt) in exited.reason
        assert len(await claims(at)) == len(await at.pods()) == 1


async def test_parts_of_a_device_are_one_claim(at: Harness, nodes: list[str]) -> None:
    async with at:
        halves = [await task(at, nodes[0], 6, share=DeviceShare(500_000, 500_000)) for _ in range(2)]
        for each in halves:
            await at.engine.start(each)
            await at.started(each.attempt)
        (claim,) = await claims(at)
        assert reserved(claim) == {pod_name(each.attempt) for each in halves}


async def test_a_claim_goes_when_its_last_pod_is_gone(at: Harness, nodes: list[str]) -> None:
    async with at:
        tasks = await gang(at, nodes[0], (0,), (1,))
        await asyncio.gather(*(at.engine.start(each) for each in tasks))
        for number, each in enumerate(tasks):
            assert len(await claims(at)) == 1, f"after {number} ends"
            await at.engine.stop(each.attempt, grace_seconds=0)
            await at.exited(each.attempt)
        await until(lambda: _none(at))


async def test_what_a_killed_server_did_not_finish_is_finished(
    at: Harness, control_plane: ControlPlane, namespace: str, nodes: list[str], tmp_path: Path
) -> None:
    """The claim exists, and one of its two pods; the status was never written."""
    async with at:
        first, second = await gang(at, nodes[0], (0,), (1,))

        async def killed(*_: object) -> None:
            raise asyncio.CancelledError

        at.engine._claiming.settle = killed  # type: ignore[method-assign]
        await asyncio.gather(at.engine.start(first), at.engine.start(second), return_exceptions=True)
        assert len(await at.pods()) == 2
        await at.ask("DELETE", f"{at.path(second.attempt)}?gracePeriodSeconds=0")
    other = Harness(control_plane, namespace, tmp_path)
    async with other:
        await other.engine.start(first)
        await other.engine.start(second)
        for each in (first, second):
            await other.started(each.attempt)

        async def settled() -> bool:
            (claim,) = await claims(other)
            both = reserved(claim) >= {pod_name(first.attempt), pod_name(second.attempt)}
            return both and sorted(given(claim).values()) == ["gpu-0", "gpu-1"]

        await until(settled)


async def test_a_claim_that_no_pod_came_for_is_collected(
    at: Harness, nodes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("corral.engines.kubernetes.devices.claim_state.UNUSED_SECONDS", 0.1)
    async with at:
        asked = await task(at, nodes[0], 0)

        async def refused(*_: object, **__: object) -> None:
            raise asyncio.CancelledError

        at.engine._launching._post = refused  # type: ignore[method-assign, assignment]
        with pytest.raises(asyncio.CancelledError):
            await at.engine.start(asked)
        await until(lambda: _none(at))


async def test_a_claim_whose_status_others_wiped_is_put_right(at: Harness, nodes: list[str]) -> None:
    async with at:
        asked = await task(at, nodes[0], 3)
        await at.engine.start(asked)
        (claim,) = await claims(at)
        wiped = {"status": {"reservedFor": None, "allocation": None}}
        await at.ask("PATCH", claims_path(at, claim["metadata"]["name"]) + "/status", wiped, MERGE)

        async def back() -> bool:
            (found,) = await claims(at)
            return bool(found.get("status")) and reserved(found) == {pod_name(asked.attempt)}

        await until(back)


async def test_a_claim_that_others_gave_other_devices_is_a_conflict(at: Harness, nodes: list[str]) -> None:
    async with at:
        asked = await task(at, nodes[0], 3)
        settle, told = at.engine._claiming.settle, list[tuple[AttemptId, PodExit]]()

        async def late(claim: Ours) -> None:
            (pod,) = await at.pods()
            user = {"resource": "pods", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}
            result = {"request": "r0", "driver": DRIVER, "pool": nodes[0], "device": "gpu-7"}
            stolen = {"allocation": {"devices": {"results": [result]}}, "reservedFor": [user]}
            await at.ask("PATCH", claims_path(at, claim.name) + "/status", {"status": stolen}, MERGE)
            await settle(claim)

        at.engine._claiming.settle = late  # type: ignore[method-assign]
        at.engine._tending._fail = lambda attempt, why: told.append((attempt, why))
        await at.engine.start(asked)
        await until(lambda: told)
        assert told[0][0] == asked.attempt and "somebody else gave its claim" in told[0][1].reason


async def test_devices_that_others_claims_hold_are_not_to_be_had(at: Harness, nodes: list[str]) -> None:
    exactly = {"deviceClassName": DRIVER}
    body = {"metadata": {"name": "others"}, "spec": {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}}
    async with at:
        await at.ask("POST", claims_path(at), body)
        result = {"request": "r", "driver": DRIVER, "pool": nodes[1], "device": "gpu-6"}
        taken = {"status": {"allocation": {"devices": {"results": [result]}}}}
        await at.ask("PATCH", claims_path(at, "others") + "/status", taken, MERGE)

        async def not_to_be_had() -> list[Device]:
            return [each for each in (await seen(at, nodes[1])).devices if not each.healthy]

        (held,) = await until(not_to_be_had)
        assert held.index == 6 and f"{at.namespace}/others" in held.health_reason
        await at.ask("DELETE", claims_path(at, "others"))

        async def free() -> bool:
            return not await not_to_be_had()

        await until(free)


async def test_on_a_shared_node_drivers_devices_are_not_corrals_to_give(
    at: Harness, kwok: Kwok, control_plane: ControlPlane
) -> None:
    (node,) = kwok.add_nodes(1, prefix="shared", devices=0)
    publish(control_plane, [node], [device(0)])
    try:
        async with at:
            await until(lambda: _has(at, node, 1))
            (found,) = (await seen(at, node)).devices
            assert (found.healthy, found.health_reason) == (False, SHARED)
            exited = await at.run(launch(node, devices=(found,)))
            assert exited.code == 251 and found.id in exited.reason
    finally:
        withdraw(control_plane, [node])
        control_plane.request("DELETE", f"/api/v1/nodes/{node}")


async def test_listed_devices_are_given_by_their_vendors_variable(
    at: Harness, kwok: Kwok, control_plane: ControlPlane
) -> None:
    def describe(index: int) -> dict[str, Any]:
        listed = "GPU-a;numa=0,GPU-b;numa=0,GPU-c;numa=1,GPU-d;numa=1;model=h100"
        return {**managed(index), "annotations": {LISTED: listed}}

    (node,) = kwok.add_nodes(1, prefix="listed", devices=4, describe=describe, taints=[TAINT])
    try:
        async with at:
            await until(lambda: _has(at, node, 4))
            found = (await seen(at, node)).devices
            assert [(each.id, dict(each.cells)["numa"], each.model) for each in found] == [
                ("GPU-a", "0", ""),
                ("GPU-b", "0", ""),
                ("GPU-c", "1", ""),
                ("GPU-d", "1", "h100"),
            ]
            for asked, variable in ((launch(node, devices=found[1:3]), "GPU-b,GPU-c"), (launch(node), "void")):
                before = at.plane.writes()
                await at.engine.start(asked)
                await at.started(asked.attempt)
                assert starting(at, before) == {("create", "pods"): 1}
                pod = await at.pod(asked.attempt)
                assert pod is not None
                (container,) = pod["spec"]["containers"]
                assert {"name": "NVIDIA_VISIBLE_DEVICES", "value": variable} in container["env"]
                assert "resources" not in container or not container["resources"]
    finally:
        control_plane.request("DELETE", f"/api/v1/nodes/{node}")


async def _has(at: Harness, node: str, count: int) -> bool:
    found = [each for each in (await at.engine.inventory()).nodes if each.name == f"kubernetes/{node}"]
    return bool(found) and len(found[0].devices) == count


async def _none(at: Harness) -> bool:
    return not await claims(at)


async def test_a_verb_on_claims_that_goes_missing_is_a_conflict_that_leaves_no_pod(
    control_plane: ControlPlane, namespace: str, nodes: list[str], tmp_path: Path
) -> None:
    group, account = "resource.k8s.io", await asyncio.to_thread(Permitted, control_plane, f"corral-of-{namespace}")
    async with Harness(control_plane, namespace, tmp_path, kubeconfig=account.kubeconfig) as at:
        for resource, verb in (("resourceclaims", "create"), ("resourceclaims/status", "patch")):
            async with account.losing(resource, verb, group=group):
                asked = await task(at, nodes[0], 3)
                exited = await at.run(asked)
                assert exited.code == 251
                assert f"the verb {verb} on resourceclaims.resource.k8s.io" in exited.reason
                assert await at.pod(asked.attempt) is None
                await at.engine.forget([asked.attempt])
        again = await task(at, nodes[0], 3)
        await at.engine.start(again)
        await at.started(again.attempt)
        assert [pod["metadata"]["name"] for pod in await at.pods()] == [pod_name(again.attempt)]
    await asyncio.to_thread(account.remove)
