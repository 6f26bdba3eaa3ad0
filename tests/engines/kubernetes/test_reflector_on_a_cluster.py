"""The reflector and the transport on a real kube-apiserver that is killed, stopped and compacted."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import yaml

from corral.engines.kubernetes.api.access import kubeconfig_access
from corral.engines.kubernetes.api.errors import Expired, refusal
from corral.engines.kubernetes.api.resources import NODES, PODS, Call
from corral.engines.kubernetes.api.transport import MERGE_PATCH, Transport
from corral.engines.kubernetes.pods.manifest import pod_manifest
from corral.engines.kubernetes.watch.decoder import Failed, Reader
from corral.engines.kubernetes.watch.pod_structs import Pod
from corral.engines.kubernetes.watch.reflector import Reflector
from corral.engines.kubernetes.watch.watch_source import Pace
from corral.kernel.errors import Conflict, Forbidden, InvalidInput, NotFound, Unavailable
from tests.engines.kubernetes.test_pods import full
from tests.testbeds.kubernetes import binaries
from tests.testbeds.kubernetes.certificates import Authority
from tests.testbeds.kubernetes.controlplane import ControlPlane

pytestmark = pytest.mark.kubernetes


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    """A control plane of these tests' own, without controllers, since they break it."""
    if reason := binaries.missing():
        pytest.skip(reason)
    with ControlPlane(controllers="") as made:
        made.add_namespace("x")
        yield made


@pytest.fixture(autouse=True)
def _emptied(plane: ControlPlane) -> Iterator[None]:
    yield
    plane.request("DELETE", "/api/v1/namespaces/x/pods")


@asynccontextmanager
async def reaching(kubeconfig: Path) -> AsyncIterator[Transport]:
    transport = Transport(kubeconfig_access(str(kubeconfig)))
    await transport.open()
    try:
        yield transport
    finally:
        await transport.close()


@asynccontextmanager
async def following(transport: Transport, pace: Pace) -> AsyncIterator[Reflector[Pod]]:
    reflector = Reflector(transport, PODS, Pod, namespace="x", pace=pace)
    task = asyncio.create_task(reflector.run())
    try:
        yield reflector
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def pod(name: str) -> bytes:
    return json.dumps({"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}]}}).encode()


async def make(transport: Transport, name: str) -> None:
    with contextlib.suppress(Conflict):  # the repeated call finds the object of the first one
        await transport.ask(Call("create", PODS, "x"), body=pod(name), deadline=60, repeatable=True)


async def remove(transport: Transport, name: str) -> None:
    with contextlib.suppress(NotFound):
        await transport.ask(Call("delete", PODS, "x", name), deadline=60, repeatable=True)


async def listed(transport: Transport) -> dict[str, str]:
    page = Reader(Pod).page(await transport.ask(Call("list", PODS, "x"), deadline=60))
    return {thing.key: thing.metadata.resource_version for thing in page.objects}


def copied(reflector: Reflector[Pod]) -> dict[str, str]:
    return {key: thing.metadata.resource_version for key, thing in reflector.items.items()}


async def until(true: Callable[[], Awaitable[bool]], seconds: float = 150) -> None:
    async with asyncio.timeout(seconds):
        while not await true():
            await asyncio.sleep(0.05)


async def restarted(plane: ControlPlane, *, compacted: bool = False) -> None:
    """Kill the apiserver, let all clients notice, and restart it.

    This runs in the caller's thread, because a daemon ends with the thread that started it.
    """
    plane.kill_apiserver()
    if compacted:
        plane.compact()
    await asyncio.sleep(0.5)
    plane.start_apiserver()


async def test_the_copy_follows_through_kills_and_a_compaction_and_every_end_is_told(plane: ControlPlane) -> None:
    """Pods are created, changed and deleted while the apiserver is killed twice, once with its history compacted."""
    ended: set[str] = set()
    alive: dict[str, str] = {}

    async def consume(reflector: Reflector[Pod]) -> None:
        while True:
            for change in await reflector.take():
                if change.gone:
                    ended.add(change.object.key)
                    alive.pop(change.object.key, None)
                else:
                    assert change.object.key not in ended
                    alive[change.object.key] = change.object.metadata.resource_version

    enough = asyncio.Event()

    async def churn(transport: Transport, lane: int) -> None:
        for number in itertools.count():
            name = f"p-{lane}-{number % 7}"
            await make(transport, name)
            label = json.dumps({"metadata": {"labels": {"n": str(number)}}}).encode()
            with contextlib.suppress(NotFound):
                patch = Call("patch", PODS, "x", name)
                await transport.ask(patch, body=label, content=MERGE_PATCH, deadline=60, repeatable=True)
            if number % 3:
                await remove(transport, name)
            if enough.is_set():
                return

    async with reaching(plane.kubeconfig) as transport, following(transport, Pace(page=5)) as reflector:
        consumer = asyncio.create_task(consume(reflector))
        lanes = [asyncio.create_task(churn(transport, lane)) for lane in range(3)]
        await reflector.synced.wait()
        await until(lambda: _true(len(ended) > 10))
        for compacted in (False, True):
            before = len(ended)
            await restarted(plane, compacted=compacted)
            await until(lambda: _true(reflector.trouble is None and len(ended) > before + 10))  # noqa: B023
        enough.set()
        await asyncio.gather(*lanes)

        async def equal() -> bool:
            here = await listed(transport)
            return copied(reflector) == here == alive

        await until(equal)
        assert not ended & alive.keys()
        consumer.cancel()


async def _true(value: bool) -> bool:
    return value


async def test_a_place_that_etcd_forgot_is_answered_410_and_listed_anew(plane: ControlPlane) -> None:
    async with reaching(plane.kubeconfig) as transport, following(transport, Pace(page=2)) as reflector:
        for name in ("a", "b", "c"):
            await make(transport, name)
        await until(lambda: _true(len(reflector.items) == 3))
        page = Reader(Pod).page(await transport.ask(Call("list", PODS, "x"), params={"limit": "1"}))
        await remove(transport, "a")
        await until(lambda: _equal(reflector, transport))
        reflector._version = page.version  # as if it had been cut off since then
        await restarted(plane, compacted=True)
        with pytest.raises(Expired):
            await transport.ask(Call("list", PODS, "x"), params={"limit": "1", "continue": page.proceed}, deadline=30)
        with pytest.raises(Expired):
            await _watch_once(transport, page.version)
        await until(lambda: _true(reflector.lists == 2))
        await until(lambda: _equal(reflector, transport))


async def _watch_once(transport: Transport, version: str) -> None:
    """Raise the error of a watch from there, be it a status or an event."""
    params = {"watch": "1", "resourceVersion": version, "timeoutSeconds": "5"}
    call = Call("watch", PODS, "x")
    async with transport.stream(call, params=params) as chunks:
        reader = Reader(Pod)
        async for chunk in chunks:
            for event in reader.feed(chunk):
                if isinstance(event, Failed):
                    raise refusal(call, event.object)


async def _equal(reflector: Reflector[Pod], transport: Transport) -> bool:
    return copied(reflector) == await listed(transport)


async def test_an_apiserver_that_hangs_is_noticed_and_followed_again_when_it_goes_on(plane: ControlPlane) -> None:
    pace = Pace(idle=1.0, list_deadline=2.0, backoff_high=1.0)
    async with reaching(plane.kubeconfig) as transport, following(transport, pace) as reflector:
        await make(transport, "before")
        await until(lambda: _true(len(reflector.items) == 1))
        lists = reflector.lists
        os.kill(plane.apiserver.pid, signal.SIGSTOP)
        try:
            await until(lambda: _true(reflector.trouble is not None))
        finally:
            os.kill(plane.apiserver.pid, signal.SIGCONT)
        await make(transport, "after")
        await until(lambda: _true(len(reflector.items) == 2))
        assert reflector.lists == lists


async def test_what_a_real_apiserver_refuses_is_said_in_a_sentence(plane: ControlPlane) -> None:
    async with reaching(plane.kubeconfig_for("bob")) as transport:
        with pytest.raises(Forbidden) as caught:
            await transport.ask(Call("create", PODS, "x"), body=pod("a"))
        said = "Corral may not create pods in namespace x: allow its account (bob) the verb create on pods."
        assert caught.value.message == said
        with pytest.raises(
            Forbidden, match=r"^Corral may not watch nodes: allow its account \(bob\) the verb watch on nodes"
        ):
            async with transport.stream(Call("watch", NODES), params={"watch": "1"}):
                raise AssertionError("no stream may begin")
    async with reaching(plane.kubeconfig) as transport:
        await transport.ask(Call("create", PODS, "x"), body=pod("twice"))
        with pytest.raises(Conflict) as exists:
            await transport.ask(Call("create", PODS, "x"), body=pod("twice"))
        assert exists.value.code == "kubernetes-exists"
        with pytest.raises(
            InvalidInput, match=r"^The cluster refused to create pods in namespace x: Pod .* is invalid"
        ):
            await transport.ask(Call("create", PODS, "x"), body=pod("Not A Name"))
        with pytest.raises(NotFound):
            await transport.ask(Call("get", PODS, "x", "nobody"))
        with pytest.raises(NotFound):
            await transport.ask(Call("create", PODS, "nowhere"), body=pod("a"))


async def test_the_fullest_pod_is_one_that_a_real_apiserver_takes_field_by_field(plane: ControlPlane) -> None:
    plane.request("POST", "/api/v1/namespaces/x/serviceaccounts", {"metadata": {"name": "trainer"}})
    manifest = pod_manifest(*full())
    async with reaching(plane.kubeconfig) as transport:
        params = {"dryRun": "All", "fieldValidation": "Strict"}
        answer = await transport.ask(Call("create", PODS, "x"), body=json.dumps(manifest).encode(), params=params)
    made = json.loads(answer)
    sent, taken = manifest["spec"]["containers"][0], made["spec"]["containers"][0]
    assert {name: taken[name] for name in sent if name not in {"volumeMounts", "ports", "env"}} == {
        name: sent[name] for name in sent if name not in {"volumeMounts", "ports", "env"}
    }
    assert made["metadata"]["labels"].items() >= manifest["metadata"]["labels"].items()
    assert made["spec"]["nodeName"] == "n1"


async def test_an_apiserver_that_the_kubeconfig_does_not_trust_is_told_apart(
    plane: ControlPlane, tmp_path: Path
) -> None:
    other = Authority(tmp_path / "pki")
    document = plane.kubeconfig.read_text()
    config = yaml.safe_load(document)
    config["clusters"][0]["cluster"]["certificate-authority"] = str(other.certificate)
    config["clusters"][0]["cluster"].pop("certificate-authority-data", None)
    path = tmp_path / "config"
    path.write_text(yaml.safe_dump(config))
    async with reaching(path) as transport:
        with pytest.raises(Unavailable) as caught:
            await transport.ask(Call("list", PODS, "x"), deadline=60.0)
    assert caught.value.code == "kubernetes-certificate"
    assert caught.value.message.startswith("The cluster's certificate is not accepted, so Corral could not list pods")
    assert caught.value.details["sent"] is False
