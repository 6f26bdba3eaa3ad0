"""Over real sockets: a driver registers, prepares each claim once, and never gives one device to two claims."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import pytest

from corral.devices.dra import messages
from corral.devices.dra.driver import Allocated
from corral.devices.dra.health_check import check
from corral.devices.dra.kubelet_server import Sockets
from corral.kernel.errors import InvalidInput, Unavailable
from tests.devices.dra.kubelet import Kubelet
from tests.devices.dra.node import DRIVER, Cluster, Node, environment, given


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
async def node(tmp_path: Path, cluster: Cluster) -> AsyncIterator[Node]:
    node = Node(tmp_path, cluster)
    await node.server.start()
    yield node
    await node.server.stop()
    node.ledger.close()


@pytest.fixture
async def kubelet(node: Node) -> Kubelet:
    kubelet = Kubelet(node.root)
    await kubelet.register()
    return kubelet


async def test_the_kubelet_learns_who_the_driver_is(node: Node) -> None:
    info = await Kubelet(node.root).register()
    assert (info.type, info.name, list(info.supported_versions)) == ("DRAPlugin", DRIVER, ["v1.DRAPlugin"])
    assert info.endpoint == str(node.root / "plugins" / DRIVER / "dra.sock") and Path(info.endpoint).is_absolute()


async def test_messages_are_the_kubelets_on_the_wire() -> None:
    """Field numbers and types as k8s.io/kubelet has them, spelt out in bytes."""
    info = messages.registration["PluginInfo"](type="T", name="N", endpoint="/e", supported_versions=["v"])
    assert info.SerializeToString() == b"\n\x01T\x12\x01N\x1a\x02/e\x22\x01v"
    request = messages.dra["NodePrepareResourcesRequest"].FromString(b"\n\x09\n\x01n\x12\x01u\x1a\x01c")
    assert [(claim.namespace, claim.uid, claim.name) for claim in request.claims] == [("n", "u", "c")]
    answer = messages.dra["NodePrepareResourcesResponse"]()
    answer.claims["u"].devices.add(request_names=["r"], pool_name="p", device_name="d", cdi_device_ids=["i"])
    device = b"\n\x01r\x12\x01p\x1a\x01d\x22\x01i"
    assert answer.SerializeToString() == b"\n\x13\n\x01u\x12\x0e\n\x0c" + device
    status = messages.registration["RegistrationStatus"].FromString(b"\x08\x01\x12\x01e")
    assert (status.plugin_registered, status.error) == (True, "e")


async def test_every_meeting_with_the_kubelet_has_the_slices_looked_at(node: Node) -> None:
    kubelet = Kubelet(node.root)
    for _ in range(2):
        before = node.announced
        await kubelet.register()
        assert node.announced > before
    assert node.server.registered
    await kubelet.register(error="no such version")
    assert not node.server.registered


async def test_only_this_user_may_call_it(node: Node) -> None:
    modes = {os.stat(path).st_mode & 0o777 for path in (node.sockets.calls, node.sockets.registration)}
    assert modes == {0o600}


async def test_a_claim_gets_its_devices(node: Node, kubelet: Kubelet, cluster: Cluster) -> None:
    cluster.allocate("c", given("npu-1", "npu-3"))
    part = (await kubelet.prepare("c"))["c"]
    assert part.error == ""
    assert [(list(d.request_names), d.pool_name, d.device_name) for d in part.devices] == [
        (["r"], "n1", "npu-1"),
        (["r"], "n1", "npu-3"),
    ]
    ids = [cdi_id for device in part.devices for cdi_id in device.cdi_device_ids]
    assert environment(node.documents()["c"], *ids) == {
        "CORRAL_DEVICES": "1,3",
        "CORRAL_REQUEST_R": "1,3",
        "CORRAL_DEVICE_NPU_1": "npu-1",
        "CORRAL_DEVICE_NPU_3": "npu-3",
        "NPU_VISIBLE_DEVICES": "1,3",
        "NPU_1_SLOT": "s1",
        "NPU_3_SLOT": "s3",
    }
    assert node.held() == {"c": ["npu-1", "npu-3"]}


async def test_a_container_of_one_request_sees_only_its_devices(node: Node, kubelet: Kubelet, cluster: Cluster) -> None:
    cluster.allocate("c", given("npu-0", request="rank-0") + given("npu-2", "npu-1", request="rank-1"))
    part = (await kubelet.prepare("c"))["c"]
    ids = {name: [] for name in ("rank-0", "rank-1")}
    for device in part.devices:
        ids[device.request_names[0]] += device.cdi_device_ids
    document = node.documents()["c"]
    assert environment(document, *ids["rank-0"])["NPU_VISIBLE_DEVICES"] == "0"
    seen = environment(document, *ids["rank-1"])
    assert seen["NPU_VISIBLE_DEVICES"] == seen["CORRAL_REQUEST_RANK_1"] == "2,1"
    assert "CORRAL_DEVICE_NPU_0" not in seen
    whole = environment(document, *ids["rank-0"], *ids["rank-1"])
    assert {name for name in whole if name.startswith("CORRAL_DEVICE_")} == {f"CORRAL_DEVICE_NPU_{n}" for n in range(3)}


async def test_a_prioritized_request_is_known_by_its_own_name(kubelet: Kubelet, cluster: Cluster) -> None:
    cluster.allocate("c", given("npu-0", request="r/second-choice"))
    part = (await kubelet.prepare("c"))["c"]
    assert list(part.devices[0].request_names) == ["r"]


async def test_a_device_of_another_claim_is_refused_until_that_is_unprepared(
    node: Node, kubelet: Kubelet, cluster: Cluster
) -> None:
    cluster.allocate("a", given("npu-0", "npu-1"))
    cluster.allocate("b", given("npu-1", "npu-2"))
    cluster.allocate("c", given("npu-3"))
    parts = await kubelet.prepare("a", "b", "c")
    assert parts["b"].error == "Device npu-1 is prepared for claim x/a (a); it is given once at a time."
    assert not parts["b"].devices and parts["a"].devices and parts["c"].devices
    assert node.documents().keys() == {"a", "c"} == node.held().keys()
    assert (await kubelet.unprepare("a"))["a"].error == ""
    assert (await kubelet.prepare("b"))["b"].error == ""


async def test_one_of_two_claims_that_come_at_once_gets_the_device(
    node: Node, kubelet: Kubelet, cluster: Cluster
) -> None:
    names = [f"c{number}" for number in range(12)]
    for name in names:
        cluster.allocate(name, given("npu-2"))
    parts = await asyncio.gather(*(kubelet.prepare(name) for name in names))
    given_to = [name for name, part in zip(names, parts, strict=True) if not part[name].error]
    assert len(given_to) == 1 and list(node.held()) == given_to == list(node.documents())


async def test_pods_that_share_a_claim_prepare_it_once(node: Node, kubelet: Kubelet, cluster: Cluster) -> None:
    cluster.allocate("c", given("npu-0"))
    cluster.waits = asyncio.Event()
    calls = [asyncio.create_task(kubelet.prepare("c")) for _ in range(8)]
    await until_asked(cluster)
    cluster.waits.set()
    answers = [(await call)["c"].SerializeToString() for call in calls]
    assert len(set(answers)) == 1 and cluster.asked == ["c"]
    await kubelet.prepare("c")
    assert cluster.asked == ["c"], "a prepared claim is answered without the cluster"


async def until_asked(cluster: Cluster) -> None:
    async with asyncio.timeout(120):
        while not cluster.asked:
            await asyncio.sleep(0.001)


async def test_a_call_that_the_kubelet_gives_up_is_carried_out_whole(
    node: Node, kubelet: Kubelet, cluster: Cluster
) -> None:
    cluster.allocate("c", given("npu-0"))
    cluster.waits = asyncio.Event()
    given_up = asyncio.create_task(kubelet.prepare("c"))
    await until_asked(cluster)
    given_up.cancel()
    with pytest.raises(asyncio.CancelledError):
        await given_up
    cluster.waits.set()
    assert (await kubelet.prepare("c"))["c"].error == ""
    assert cluster.asked == ["c"]
    assert node.documents().keys() == {"c"} == node.held().keys()


@pytest.mark.parametrize(
    ("allocated", "sentence"),
    [
        (None, "Nothing was allocated to the claim x/c (c) yet."),
        ((), "Nothing of node n1 was allocated to the claim x/c (c)."),
        (
            given("npu-0", pool="n2"),
            "Nothing of node n1 was allocated to the claim x/c (c); it has devices of n2.",
        ),
        (given("npu-9"), "Node n1 has no device npu-9, given to the claim x/c (c)."),
        (given("npu-0", "npu-0"), "Device npu-0 is given to the claim x/c (c) twice."),
    ],
)
async def test_a_claim_without_a_device_here_is_an_error(
    node: Node, kubelet: Kubelet, cluster: Cluster, allocated: tuple[object, ...] | None, sentence: str
) -> None:
    cluster.allocate("c", allocated)  # type: ignore[arg-type]
    part = (await kubelet.prepare("c"))["c"]
    assert part.error == sentence and not part.devices
    assert not node.documents() and not node.held()


async def test_a_claim_that_took_anothers_name_is_an_error(node: Node, kubelet: Kubelet, cluster: Cluster) -> None:
    cluster.allocate("c", given("npu-0"), uid="new")
    parts = await kubelet.prepare("old", names=["c"])
    assert parts["old"].error == "The claim x/c (old) is gone; another of its name (new) took its place."
    assert "there is no claim gone" in (await kubelet.prepare("gone"))["gone"].error


@pytest.mark.parametrize("uid", ["../../etc/cron.d/x", "", "a/b", "a" * 64, "-a"])
async def test_a_uid_that_is_no_uid_touches_no_file(node: Node, kubelet: Kubelet, cluster: Cluster, uid: str) -> None:
    cluster.allocate("c", given("npu-0"), uid=uid)
    for answer in (await kubelet.prepare(uid, names=["c"]), await kubelet.unprepare(uid)):
        assert answer[uid].error == "The claim's UID is not one that Kubernetes gives."
    assert not node.held()


async def test_unprepare_may_come_twice_and_for_what_was_never_prepared(
    node: Node, kubelet: Kubelet, cluster: Cluster
) -> None:
    cluster.allocate("c", given("npu-0"))
    await kubelet.prepare("c")
    for _ in range(2):
        parts = await kubelet.unprepare("c", "never")
        assert [parts[uid].error for uid in ("c", "never")] == ["", ""]
        assert len(parts) == 2
    assert not node.documents() and not node.held()


async def test_an_administrators_claim_shares_devices(node: Node, kubelet: Kubelet, cluster: Cluster) -> None:
    cluster.allocate("a", given("npu-0"))
    cluster.allocate("watch", given("npu-0", "npu-1", shared=True))
    cluster.allocate("b", given("npu-1"))
    parts = await kubelet.prepare("a", "watch", "b")
    assert [parts[uid].error for uid in ("a", "watch", "b")] == ["", "", ""]


async def test_a_broken_device_is_given_to_nobody_new(tmp_path: Path, cluster: Cluster) -> None:
    node = Node(
        tmp_path,
        cluster,
        document=f"{{driver: {DRIVER}, devices: [{{kind: npu, unhealthy: [{{number: 0, reason: fan}}]}}]}}",
    )
    await node.server.start()
    kubelet = Kubelet(tmp_path)
    await kubelet.register()
    cluster.allocate("c", given("npu-0"))
    assert (await kubelet.prepare("c"))["c"].error == "Device npu-0, given to the claim x/c (c), is broken: fan."
    await node.server.stop()
    node.ledger.close()


async def test_a_device_that_is_taken_off_the_description_stays_its_claims(
    node: Node, kubelet: Kubelet, cluster: Cluster
) -> None:
    cluster.allocate("c", given("npu-0"))
    before = (await kubelet.prepare("c"))["c"].SerializeToString()
    node.driver.known = {}
    assert (await kubelet.prepare("c"))["c"].SerializeToString() == before
    assert (await kubelet.unprepare("c"))["c"].error == ""


async def test_a_full_disk_gives_nothing_and_keeps_nothing(
    node: Node, kubelet: Kubelet, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.allocate("c", given("npu-0"))
    cluster.allocate("d", given("npu-0"))

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        # The undo must reach the disk too, so a second error follows the first.
        assert "No space left on device" in (await kubelet.prepare("c"))["c"].error
    assert not node.documents()
    assert "prepared for claim x/c" in (await kubelet.prepare("d"))["d"].error, "what is on disk is not known"
    assert (await kubelet.prepare("c"))["c"].error == ""
    assert node.documents().keys() == {"c"} == node.held().keys()


async def test_without_the_api_server_new_claims_wait_and_prepared_ones_do_not(
    node: Node, kubelet: Kubelet, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.allocate("old", given("npu-0"))
    cluster.allocate("new", given("npu-1"))
    await kubelet.prepare("old")

    async def away(namespace: str, name: str) -> Allocated:
        raise Unavailable("kubernetes-unreachable", "The cluster could not be reached.")

    with monkeypatch.context() as patched:
        patched.setattr(node.driver, "_look", away)
        parts = await kubelet.prepare("old", "new")
        assert [parts[uid].error for uid in ("old", "new")] == ["", "The cluster could not be reached."]
        assert node.held().keys() == {"old"}
    assert (await kubelet.prepare("new"))["new"].error == ""


async def test_the_driver_tells_whether_it_is_live_and_ready(node: Node) -> None:
    kubelet = Kubelet(node.root)
    kubelet.endpoint = str(node.sockets.calls)
    assert await kubelet.healthy("") and not await kubelet.healthy("ready")
    await kubelet.register()
    assert await kubelet.healthy("ready")
    assert await asyncio.to_thread(check, node.root, DRIVER, "ready")
    with pytest.raises(grpc.RpcError) as refused:
        await kubelet.healthy("other")
    assert refused.value.code() is grpc.StatusCode.NOT_FOUND


def test_a_driver_that_does_not_run_is_not_live(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="Nothing answers at"):
        check(tmp_path, DRIVER, "", seconds=2)


async def test_a_driver_that_ends_takes_its_sockets_away_and_one_that_was_killed_is_no_hindrance(
    tmp_path: Path, cluster: Cluster
) -> None:
    sockets = Sockets(tmp_path, DRIVER)
    for path in (sockets.calls, sockets.registration):
        path.parent.mkdir(parents=True)
        path.touch()
    node = Node(tmp_path, cluster)
    await node.server.start()
    await Kubelet(tmp_path).register()
    await node.server.stop()
    node.ledger.close()
    assert not list(tmp_path.rglob("*.sock"))


def test_a_root_too_deep_for_sockets_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="too long for a socket"):
        Sockets(tmp_path / ("deep" * 30), DRIVER)
