"""A start that the cluster refuses leaves nothing behind; one with an unknown result keeps the objects for the retry."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from corral.engines.kubernetes.api.resources import Call
from corral.engines.kubernetes.api.transport import Transport
from corral.engines.kubernetes.devices.claim_allocation import ClaimAllocator
from corral.engines.kubernetes.engine import KubernetesEngine
from corral.engines.kubernetes.pods.calls import PodCalls
from corral.engines.kubernetes.pods.creation import REFUSED_FOR_NOW, PodCreator
from corral.engines.kubernetes.pods.manifest import pod_name
from corral.engines.kubernetes.pods.owned_objects import OwnedObjects
from corral.engines.kubernetes.pods.runtime import Runtimes
from corral.engines.kubernetes.settings import KubernetesSettings
from corral.kernel.errors import CorralError, Forbidden, InvalidInput, NotFound, Unavailable
from corral.kernel.ids import AttemptId
from corral.model.launch import PortRequest, RuntimePlan, TaskLaunch
from corral.storage.log_files import LogStore
from tests.engines.kubernetes.empty_cluster import EmptyCluster
from tests.engines.kubernetes.virtual_time import virtually

FIRST = AttemptId("0mabcdefgh123.0.worker.0.0")
SETTINGS = KubernetesSettings(server="me", default_image="base:1")
QUOTA = Forbidden("kubernetes-quota", "A resource quota of the cluster forbids it.")


class Cluster:
    """Stores Secrets by name; refuses the calls that a test names."""

    def __init__(self, refused: Mapping[str, CorralError]) -> None:
        self.refused = refused
        self.secrets: set[str] = set()
        self.plan: Mapping[str, Any] = {}
        """What the runtime of the last pod is given."""

    async def ask(self, call: Call, body: Mapping[str, Any] | None = None, **_: Any) -> bytes:
        if error := self.refused.get(f"{call.verb} {call.resource.plural}"):
            raise error
        if call.resource.plural == "secrets" and call.verb == "create":
            assert body is not None
            self.secrets.add(body["metadata"]["name"])
            self.plan = msgspec.json.decode(base64.b64decode(body["data"]["plan"]))
        if call.resource.plural == "secrets" and call.verb == "delete":
            if call.name not in self.secrets:
                raise NotFound("kubernetes-not-found", "no such Secret")
            self.secrets.remove(call.name)
        return msgspec.json.encode({"metadata": {"name": pod_name(FIRST), "uid": "u1"}})


def creator(cluster: Cluster, *, image: str = "") -> PodCreator:
    calls, runtimes = cast(PodCalls, cluster), Runtimes(None, image=image)
    owned_objects = OwnedObjects(calls, SETTINGS, runtimes, lambda: frozenset({FIRST}))
    return PodCreator(calls, SETTINGS, cast(ClaimAllocator, None), runtimes, owned_objects)


def launch() -> TaskLaunch:
    return TaskLaunch(FIRST, "ada", "kubernetes/a", ("true",), {}, runtime=RuntimePlan(barrier=True))


async def test_a_task_that_starts_keeps_what_only_it_may_know() -> None:
    cluster = Cluster({})
    result = await creator(cluster).create(launch(), "a")
    assert result.pod is not None and result.end is None
    assert cluster.secrets == {pod_name(FIRST)}


async def test_the_container_beside_a_notebook_knows_the_port_at_which_it_is_asked_whether_somebody_works_in_it() -> (
    None
):
    cluster = Cluster({})
    runtime = RuntimePlan(notebook="/proxy/job/worker-0/notebook/")
    ports, env = (PortRequest("notebook"),), {"JUPYTER_TOKEN": "$(secret:notebook)"}
    task = TaskLaunch(FIRST, "ada", "kubernetes/a", ("jupyter",), env, ports=ports, runtime=runtime)
    await creator(cluster, image="corral:1").create(task, "a")
    assert cluster.plan["notebook"] == runtime.notebook
    known = {name: cluster.plan["env"][name] for name in ("CORRAL_PORT_NOTEBOOK", "JUPYTER_TOKEN")}
    assert known == {"CORRAL_PORT_NOTEBOOK": str(SETTINGS.first_port), "JUPYTER_TOKEN": "$(secret:notebook)"}


@pytest.mark.parametrize("what", ["create pods", "patch secrets"])
async def test_what_is_refused_for_now_leaves_no_secret(what: str) -> None:
    cluster = Cluster({what: QUOTA})
    result = await creator(cluster).create(launch(), "a")
    assert result.end is not None and result.end.code == REFUSED_FOR_NOW
    assert not cluster.secrets


async def test_what_is_refused_for_good_leaves_no_secret() -> None:
    cluster = Cluster({"create pods": InvalidInput("kubernetes-refused", "The cluster refused it.")})
    with pytest.raises(InvalidInput):
        await creator(cluster).create(launch(), "a")
    assert not cluster.secrets


async def test_a_start_of_which_nothing_is_known_keeps_the_secret_for_the_next_try() -> None:
    cluster = Cluster({"create pods": Unavailable("kubernetes-timeout", "slow")})
    with pytest.raises(Unavailable):
        await creator(cluster).create(launch(), "a")
    assert cluster.secrets == {pod_name(FIRST)}


class Unsure(EmptyCluster):
    """A cluster of one node that stores Secrets and loses the answer to the pod's creation."""

    def __init__(self) -> None:
        self.secrets: set[str] = set()

    async def ask(self, call: Call, *, body: bytes | None = None, **_: Any) -> bytes:
        match call.verb, call.resource.plural:
            case "create", "pods":
                raise Unavailable("kubernetes-timeout", "slow")
            case "get", _:
                raise NotFound("kubernetes-not-found", "no such thing")
            case "create", "secrets":
                assert body is not None
                self.secrets.add(msgspec.json.decode(body)["metadata"]["name"])
            case "delete", "secrets":
                self.secrets.remove(call.name)
        items = [{"metadata": {"name": "a", "uid": "a"}}] if call.resource.plural == "nodes" else []
        return msgspec.json.encode({"metadata": {"resourceVersion": "1"}, "items": items})


def test_a_start_of_which_nothing_is_known_leaves_no_secret_when_it_is_stopped_and_forgotten(tmp_path: Path) -> None:
    async def work() -> None:
        cluster = Unsure()
        engine = KubernetesEngine(cast(Transport, cluster), SETTINGS, logs=LogStore(tmp_path))
        await engine.open()
        with pytest.raises(Unavailable):
            await engine.start(launch())
        assert cluster.secrets == {pod_name(FIRST)}
        await engine.stop(FIRST, grace_seconds=1)
        await engine.forget([FIRST])
        assert not cluster.secrets
        await engine.close()

    virtually(work())
