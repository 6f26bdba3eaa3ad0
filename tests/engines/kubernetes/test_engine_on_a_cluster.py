"""The Kubernetes engine on a real API server with kwok's nodes: the guarantees that control relies on."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
from collections.abc import Iterator
from functools import partial
from ipaddress import IPv4Address
from pathlib import Path

import pytest

from corral.engines.kubernetes.watch import cluster_state, reflector
from corral.engines.kubernetes.watch.watch_source import Pace
from corral.kernel.errors import Conflict, Forbidden, InvalidInput, NotFound, Unavailable
from corral.kernel.ids import AttemptId
from corral.model.inventory import Device, Node
from corral.model.launch import EngineLost, Exited, InventoryChanged, PortRequest, RuntimePlan, SecretDelivery, Started
from tests.engines.kubernetes.engine_harness import MERGE, Harness, launch, new_attempt, until
from tests.engines.kubernetes.permitted import Permitted
from tests.testbeds.kubernetes.controlplane import ControlPlane
from tests.testbeds.kubernetes.kwok import DEVICES, Kwok

pytestmark = pytest.mark.kubernetes
ZONE, RACK = "topology.kubernetes.io/zone", "topology.kubernetes.io/rack"


@pytest.fixture(scope="module")
def nodes(kwok: Kwok, control_plane: ControlPlane) -> Iterator[list[str]]:
    made = kwok.add_nodes(3, prefix="engine", levels={ZONE: 2, RACK: 1})
    yield made
    for name in made:
        control_plane.request("DELETE", f"/api/v1/nodes/{name}")


@pytest.fixture
def at(control_plane: ControlPlane, namespace: str, nodes: list[str], tmp_path: Path) -> Harness:
    return Harness(control_plane, namespace, tmp_path)


def devices(*indexes: int) -> tuple[Device, ...]:
    return tuple(Device(index, f"{DEVICES}#{index}") for index in indexes)


async def test_the_cluster_tells_its_version(at: Harness) -> None:
    async with at:
        told = await at.engine.version()
    assert told == at.plane.request("GET", "/version")["gitVersion"] and told.startswith("v1.")


async def test_a_task_is_one_write_runs_and_is_told(at: Harness, nodes: list[str]) -> None:
    task = launch(nodes[0], "true", devices=devices(2, 3), ports=(PortRequest("http", 2),), cpu_millis=500)
    async with at:
        before = at.plane.writes()
        await at.engine.start(task)
        written = at.plane.writes() - before
        assert {what: count for what, count in written.items() if what[1] != "pods/status"} == {("create", "pods"): 1}
        started = await at.started(task.attempt)
        assert started.ports == {"http": (20000, 20001)}
        pod = await at.pod(task.attempt)
        assert pod is not None
        assert (started.process, started.host) == (pod["metadata"]["uid"], str(IPv4Address(pod["status"]["podIP"])))
        assert pod["spec"]["nodeName"] == nodes[0]
        assert pod["spec"]["containers"][0]["resources"]["limits"] == {DEVICES: "2", "cpu": "500m"}
        assert at.engine.attempts() == {task.attempt}


async def test_a_start_is_repeated_without_a_second_pod(at: Harness, nodes: list[str]) -> None:
    task = launch(nodes[0])
    async with at:
        await asyncio.gather(*(at.engine.start(task) for _ in range(3)))
        await at.started(task.attempt)
        await at.engine.start(task)
        assert len(await at.pods()) == 1
        assert at.count(Started, task.attempt) == 1


async def test_a_start_by_the_server_before_is_found_by_its_name(
    at: Harness, control_plane: ControlPlane, namespace: str, tmp_path: Path, nodes: list[str]
) -> None:
    task = launch(nodes[0])
    async with at:
        await at.engine.start(task)
        await at.started(task.attempt)
    other = Harness(control_plane, namespace, tmp_path)
    found = await other.engine._pod_creator.create(task, nodes[0]) if await _opened(other) else None
    assert found is not None and found.pod is not None and found.end is None
    assert len(await at.pods()) == 1
    await other.engine.close()


async def _opened(harness: Harness) -> bool:
    """Open the transport alone: the pod is unknown when it is created again."""
    await harness.engine._transport.open()
    return True


async def test_a_pod_of_that_name_that_is_not_ours_is_reported_and_left_alone(
    at: Harness, control_plane: ControlPlane, namespace: str, tmp_path: Path, nodes: list[str]
) -> None:
    task = launch(nodes[0])
    async with at, Harness(control_plane, namespace, tmp_path, server="another") as other:
        await at.engine.start(task)
        with pytest.raises(Conflict, match="another Corral server"):
            await other.engine.start(task)
        assert other.engine.attempts() == frozenset()
        await other.engine.stop(task.attempt, grace_seconds=1)
        assert (await other.exited(task.attempt)).code == -210
        await other.engine.forget([task.attempt])
        assert await at.pod(task.attempt) is not None


async def test_a_task_ends_with_its_code_and_is_forgotten(at: Harness, nodes: list[str]) -> None:
    task = launch(nodes[0])
    async with at:
        await at.engine.start(task)
        await at.started(task.attempt)
        with pytest.raises(Conflict, match="still runs"):
            await at.engine.forget([task.attempt])
        await at.annotate(task.attempt, ends_after="10ms", exit_code="7")
        assert (await at.exited(task.attempt)).code == 7
        assert await at.pod(task.attempt) is not None
        await at.engine.stop(task.attempt, grace_seconds=1)
        await at.engine.forget([task.attempt])
        await at.engine.forget([task.attempt])
        assert await at.pod(task.attempt) is None
        assert at.engine.attempts() == frozenset()
        assert at.count(Exited, task.attempt) == 1


async def test_a_stop_is_told_when_the_pod_is_gone(at: Harness, nodes: list[str]) -> None:
    task = launch(nodes[0])
    async with at:
        await at.engine.start(task)
        await at.started(task.attempt)
        await at.engine.stop(task.attempt, grace_seconds=5)
        await at.engine.stop(task.attempt, grace_seconds=1)
        await at.exited(task.attempt)
        assert await at.pod(task.attempt) is None
        assert at.log(task.attempt) == "[corral: the pod is gone; what it printed last may be missing]\n"
        await at.engine.stop(task.attempt, grace_seconds=1)
        await at.engine.forget([task.attempt])
        assert at.engine.attempts() == frozenset()


async def test_what_was_stopped_before_it_started_never_starts(at: Harness, nodes: list[str]) -> None:
    task = launch(nodes[0])
    async with at:
        await at.engine.stop(task.attempt, grace_seconds=1)
        assert (await at.exited(task.attempt)).code == -210
        await at.engine.start(task)
        assert await at.pods() == []


async def test_everything_is_found_again_by_the_next_server(
    at: Harness, control_plane: ControlPlane, namespace: str, tmp_path: Path, nodes: list[str]
) -> None:
    runs, ends = launch(nodes[0], devices=devices(4)), launch(nodes[1])
    async with at:
        for task in (runs, ends):
            await at.engine.start(task)
            await at.started(task.attempt)
    await at.annotate(ends.attempt, ends_after="10ms", exit_code="5")
    await until(lambda: _over(at, ends.attempt))
    async with Harness(control_plane, namespace, tmp_path) as after:
        assert after.engine.attempts() == {runs.attempt, ends.attempt}
        assert await after.started(runs.attempt) == await at.started(runs.attempt)
        assert (await after.exited(ends.attempt)).code == 5
        assert after.engine._ledger.devices_on(nodes[0]) == {4}
        await after.engine.start(runs)
        await after.engine.stop(runs.attempt, grace_seconds=1)
        await after.exited(runs.attempt)


async def _over(at: Harness, which: AttemptId) -> bool:
    pod = await at.pod(which)
    return pod is not None and pod["status"]["phase"] in ("Failed", "Succeeded")


async def test_a_pod_deleted_by_hand_is_a_transient_end(at: Harness, nodes: list[str]) -> None:
    task = launch(nodes[0])
    async with at:
        await at.engine.start(task)
        await at.started(task.attempt)
        await at.ask("DELETE", at.path(task.attempt))
        assert (await at.exited(task.attempt)).code == -101


async def test_a_pod_made_by_hand_under_the_name_of_a_task_is_removed(at: Harness, nodes: list[str]) -> None:
    task = launch(nodes[0])
    async with at:
        await at.engine.start(task)
        await at.started(task.attempt)
        ours = await at.pod(task.attempt)
        assert ours is not None
        await at.ask("DELETE", at.path(task.attempt), {"gracePeriodSeconds": 0})
        meta = {"name": ours["metadata"]["name"], "labels": ours["metadata"]["labels"]}
        await at.ask("POST", at.path(), {"metadata": meta, "spec": ours["spec"]})
        assert (await at.exited(task.attempt)).code == -101
        await until(lambda: _none(at))
        assert (at.count(Started, task.attempt), at.count(Exited, task.attempt)) == (1, 1)


async def _none(at: Harness) -> bool:
    return await at.pods() == []


async def test_a_quota_is_a_conflict_that_says_whose(at: Harness, nodes: list[str]) -> None:
    quota = {"metadata": {"name": "small"}, "spec": {"hard": {"pods": "0"}}}
    await at.ask("POST", f"/api/v1/namespaces/{at.namespace}/resourcequotas", quota)
    path = f"/api/v1/namespaces/{at.namespace}/resourcequotas/small"
    await until(lambda: _counted(at, path))
    async with at:
        exited = await at.run(launch(nodes[0]))
        assert exited.code == 251
        assert "exceeded quota: small" in exited.reason


async def _counted(at: Harness, path: str) -> bool:
    return "hard" in (await at.ask("GET", path)).get("status", {})


async def test_a_namespace_that_is_not_there_is_named(
    control_plane: ControlPlane, tmp_path: Path, nodes: list[str]
) -> None:
    async with Harness(control_plane, "nowhere", tmp_path) as at:
        exited = await at.run(launch(nodes[0]))
        assert exited.code == 251
        assert "nowhere" in exited.reason


async def test_a_missing_permission_names_the_verb(control_plane: ControlPlane, namespace: str, tmp_path: Path) -> None:
    nobody = Harness(control_plane, namespace, tmp_path, kubeconfig=control_plane.kubeconfig_for("nobody"))
    with pytest.raises(Forbidden, match="the verb list on pods"):
        await nobody.engine.open()


async def test_a_node_that_is_gone_is_a_lost_node(at: Harness) -> None:
    async with at:
        assert (await at.run(launch("no-such-node"))).code == -1001


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"image": ""}, "names no image"),
        ({"runtime": RuntimePlan(inputs=(("file:///a", "a"),))}, "CORRAL_RUNTIME_IMAGE"),
    ],
)
async def test_what_cannot_run_is_refused_before_anything_is_written(
    at: Harness, nodes: list[str], fields: dict[str, object], message: str
) -> None:
    async with at:
        with pytest.raises(InvalidInput, match=message):
            await at.engine.start(launch(nodes[0], **fields))
        assert await at.pods() == []
        assert at.engine.attempts() == frozenset()


async def test_secrets_of_a_job_are_one_secret_and_stand_in_no_pod(at: Harness, nodes: list[str]) -> None:
    first = launch(nodes[0], secrets=(SecretDelivery("hunter2", env="PASSWORD"),))
    job = first.attempt.partition(".")[0]
    second = launch(
        nodes[0],
        attempt=AttemptId(f"{job}.0.chief.0.0"),
        secrets=(SecretDelivery("hunter2", env="PASSWORD"), SecretDelivery("hunter3", file="token")),
    )
    async with at:
        for task in (first, second):
            await at.engine.start(task)
            await at.started(task.attempt)
        secrets = (await at.ask("GET", f"/api/v1/namespaces/{at.namespace}/secrets"))["items"]
        assert [secret["metadata"]["name"] for secret in secrets] == [f"corral-{job}"]
        assert len(secrets[0]["data"]) == 3
        assert "hunter" not in str(await at.pods())
        for task in (first, second):
            await at.engine.stop(task.attempt, grace_seconds=1)
            await at.exited(task.attempt)
        await at.engine.forget([first.attempt])
        assert await _secrets(at) == [f"corral-{job}"]
        await at.engine.forget([second.attempt])
        await until(lambda: _has_no_secrets(at))


async def test_what_a_killed_server_left_is_collected_by_the_next(
    at: Harness, control_plane: ControlPlane, namespace: str, nodes: list[str], tmp_path: Path
) -> None:
    lasting = launch(nodes[0], secrets=(SecretDelivery("hunter2", env="PASSWORD"),))
    gone = launch(nodes[0], secrets=(SecretDelivery("hunter2", env="PASSWORD"),))
    async with at:
        for task in (lasting, gone):
            await at.engine.start(task)
            await at.started(task.attempt)
    await at.ask("DELETE", at.path(gone.attempt))
    await until(lambda: _is_gone(at, gone.attempt))
    async with Harness(control_plane, namespace, tmp_path) as after:
        kept = f"corral-{lasting.attempt.partition('.')[0]}"
        await until(lambda: _are(after, [kept]))


async def _is_gone(at: Harness, which: AttemptId) -> bool:
    return await at.pod(which) is None


async def _secrets(at: Harness) -> list[str]:
    found = (await at.ask("GET", f"/api/v1/namespaces/{at.namespace}/secrets"))["items"]
    return [secret["metadata"]["name"] for secret in found]


async def _has_no_secrets(at: Harness) -> bool:
    return await _secrets(at) == []


async def _are(at: Harness, names: list[str]) -> bool:
    return await _secrets(at) == names


async def test_the_apiserver_dies_and_comes_back(
    at: Harness, control_plane: ControlPlane, kwok: Kwok, nodes: list[str]
) -> None:
    runs, ends, new = launch(nodes[0]), launch(nodes[0]), launch(nodes[1])
    async with at:
        for task in (runs, ends):
            await at.engine.start(task)
            await at.started(task.attempt)
        control_plane.kill_apiserver()
        with pytest.raises(Unavailable):
            await at.engine.start(new)
        with pytest.raises(Unavailable):
            await at.engine.stop(runs.attempt, grace_seconds=1)
        control_plane.start_apiserver()  # in the main thread: the daemon ends with the thread that started it
        await until(lambda: _again(at, ends.attempt))
        await at.engine.start(new)
        await at.started(new.attempt)
        assert (await at.exited(ends.attempt)).code == 4
        assert at.count(Exited, runs.attempt) == 0
        assert len(await at.pods()) == 3


async def _again(at: Harness, which: AttemptId) -> bool:
    with contextlib.suppress(OSError, http.client.HTTPException):
        await at.annotate(which, ends_after="10ms", exit_code="4")
        return True
    return False


async def test_a_cluster_that_is_silent_for_long_is_lost_and_comes_back(
    at: Harness, control_plane: ControlPlane, nodes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_state, "LOST_SECONDS", 1.0)
    async with at:
        beyond = len(at.seen)
        control_plane.kill_apiserver()
        try:
            lost = await at.told(EngineLost, beyond)
            assert isinstance(lost, EngineLost) and "could not be reached" in lost.reason
            with pytest.raises(Unavailable):
                await at.engine.inventory()
            beyond = len(at.seen)
        finally:
            control_plane.start_apiserver()  # in the main thread: the daemon ends with the thread that started it
        await at.told(InventoryChanged, beyond)
        assert len((await at.engine.inventory()).nodes) >= 3


async def test_a_watch_that_may_no_more_is_told_and_what_happened_meanwhile_when_it_may(
    control_plane: ControlPlane, namespace: str, tmp_path: Path, nodes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An open watch goes on without its permission until it ends, so watches are short here."""
    monkeypatch.setattr(cluster_state, "LOST_SECONDS", 1.0)
    monkeypatch.setattr(
        reflector, "Pace", partial(Pace, watch_shortest=2.0, watch_longest=3.0, backoff_high=1.0, at_once=0.1)
    )
    account = await asyncio.to_thread(Permitted, control_plane, f"watcher-of-{namespace}")
    task = launch(nodes[0])
    async with Harness(control_plane, namespace, tmp_path, kubeconfig=account.kubeconfig) as at:
        await at.engine.start(task)
        await at.started(task.attempt)
        beyond, may = len(at.seen), f"allow its account ({account.user}) the verb watch on pods"
        async with account.losing("pods", "list", "watch"):
            lost = await at.told(EngineLost, beyond)
            assert isinstance(lost, EngineLost)
            assert lost.reason == f"Corral may not watch pods in all namespaces: {may}."
            with pytest.raises(Unavailable, match="the verb watch on pods"):
                await at.engine.inventory()
            await at.annotate(task.attempt, ends_after="10ms", exit_code="4")
            beyond = len(at.seen)
        await at.told(InventoryChanged, beyond)
        assert (await at.exited(task.attempt)).code == 4
        assert len((await at.engine.inventory()).nodes) >= 3
    await asyncio.to_thread(account.remove)


async def test_nodes_with_levels_and_devices_less_what_others_hold(at: Harness, nodes: list[str]) -> None:
    async with at:
        found = {node.name: node for node in (await at.engine.inventory()).nodes}
        first = found[f"kubernetes/{nodes[0]}"]
        await until(lambda: _ready(at, nodes[0]))
        assert first.cells == (("zone", "zone-0"), ("rack", "rack-0"))
        assert len(first.devices) == 8
        task = launch(nodes[0], devices=devices(7))
        await at.engine.start(task)
        beyond = len(at.seen)
        asked = {"limits": {DEVICES: "3"}, "requests": {"cpu": "2"}}
        spec = {"nodeName": nodes[0], "containers": [{"name": "c", "image": "i", "resources": asked}]}
        await at.ask("POST", at.path(), {"metadata": {"name": "others"}, "spec": spec})
        await at.told(InventoryChanged, beyond)
        after = await until(lambda: _with_cpu(at, first.name, first.cpu_millis - 2000))
        assert [device.index for device in after.devices if not device.healthy] == [4, 5, 6]


async def _with_cpu(at: Harness, name: str, millis: int) -> Node | None:
    """A node, once it has exactly this much processor left."""
    found = next(node for node in (await at.engine.inventory()).nodes if node.name == name)
    return found if found.cpu_millis == millis else None


async def _ready(at: Harness, name: str) -> bool:
    return any(node.ready for node in (await at.engine.inventory()).nodes if node.name.endswith(f"/{name}"))


async def test_a_node_that_falls_silent_is_not_ready(at: Harness, kwok: Kwok, nodes: list[str]) -> None:
    async with at:
        await until(lambda: _ready(at, nodes[2]))
        await asyncio.to_thread(kwok.lose, nodes[2])
        await until(lambda: _not_ready(at, nodes[2]))
        await asyncio.to_thread(kwok.find, nodes[2])
        await until(lambda: _ready(at, nodes[2]))


async def _not_ready(at: Harness, name: str) -> bool:
    return not await _ready(at, name)


async def test_commands_beside_what_does_not_run_are_not_found(at: Harness) -> None:
    async with at:
        with pytest.raises(NotFound):
            await at.engine.exec(new_attempt(), ["true"], tty=False)


async def test_a_network_with_rdma_is_seen_and_given(at: Harness, kwok: Kwok) -> None:
    (name,) = kwok.add_nodes(1, prefix="rdma")
    amounts = {"status": {"capacity": {"rdma/hca_a": "63"}, "allocatable": {"rdma/hca_a": "63"}}}
    await at.ask("PATCH", f"/api/v1/nodes/{name}/status", amounts, MERGE)
    task = launch(name, rdma=True)
    async with at:
        await until(lambda: _has_rdma(at, name))
        await at.engine.start(task)
        pod = await at.pod(task.attempt)
        assert pod is not None
        assert pod["spec"]["containers"][0]["resources"]["limits"] == {"rdma/hca_a": "1"}
        await at.engine.stop(task.attempt, grace_seconds=1)
        await at.exited(task.attempt)
    await at.ask("DELETE", f"/api/v1/nodes/{name}")


async def _has_rdma(at: Harness, name: str) -> bool:
    nodes = (await at.engine.inventory()).nodes
    return any(node.name.endswith(f"/{name}") and node.labels.get("corral.dev/rdma") == "true" for node in nodes)
