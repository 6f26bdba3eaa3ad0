"""Whatever the API server does, the reflector's copy ends equal to the cluster, and every deletion is reported."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from hypothesis import given, settings
from hypothesis import strategies as st

from corral.engines.kubernetes.api.resources import PODS
from corral.engines.kubernetes.watch.pod_structs import Pod
from corral.engines.kubernetes.watch.reflector import Reflector
from corral.engines.kubernetes.watch.watch_source import Pace
from tests.engines.kubernetes.model_server import FAULTS, ModelServer
from tests.engines.kubernetes.virtual_time import virtually
from tests.examples import examples

NAMES = ["a", "b", "c", "d", "e", "f", "g"]
ACTIONS = st.one_of(
    st.tuples(st.sampled_from(["put", "delete"]), st.sampled_from(NAMES)),
    st.tuples(st.just("fault"), st.sampled_from(FAULTS)),
    st.tuples(st.just("wait"), st.sampled_from(["0", "0.001", "0.03", "1", "50", "700"])),
    st.tuples(st.just("take"), st.sampled_from(["1", "100"])),
    st.tuples(st.sampled_from(["miss", "swap"]), st.sampled_from(NAMES)),
    st.sampled_from([("compact", ""), ("sever", "")]),
)
"""`miss` and `swap` change the cluster unseen, so the reflector must list anew afterwards."""


class Consumer:
    """The state that a reader of the changes derives."""

    def __init__(self, reflector: Reflector[Pod]) -> None:
        self.reflector = reflector
        self.by_uid: dict[str, str] = {}
        self.by_name: dict[str, str] = {}
        self.ever: set[str] = set()
        self.ended: set[str] = set()

    async def take(self, most: int) -> None:
        """Read waiting changes, if any arrives within a moment."""
        with contextlib.suppress(TimeoutError):
            for change in await asyncio.wait_for(self.reflector.take(most), 0.001):
                meta = change.object.metadata
                assert meta.uid not in self.ended, "what was gone came back"
                if change.gone:
                    self.ended.add(meta.uid)
                    self.by_uid.pop(meta.uid, None)
                    self.by_name.pop(meta.name, None)
                    assert not change.final or change.object.status.phase == "Failed"
                else:
                    self.ever.add(meta.uid)
                    self.by_uid[meta.uid] = meta.resource_version
                    self.by_name[meta.name] = meta.uid


@asynccontextmanager
async def following(server: ModelServer, pace: Pace | None = None) -> AsyncIterator[Reflector[Pod]]:
    reflector = Reflector(server, PODS, Pod, pace=pace or Pace(page=2), seed=7)
    task = asyncio.create_task(reflector.run())
    try:
        yield reflector
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def happen(server: ModelServer, verb: str, what: str) -> None:
    """One action on the cluster."""
    if verb in {"sever", "miss", "swap"}:
        server.sever()
    if verb in {"delete", "miss", "swap"}:
        server.delete(what)
    if verb in {"put", "swap"}:
        server.put(what)
    if verb in {"compact", "miss", "swap"}:
        server.compact()
    if verb == "fault":
        server.faults.append(what)


async def follow(actions: list[tuple[str, str]]) -> None:
    server = ModelServer()
    async with following(server) as reflector:
        consumer = Consumer(reflector)
        synced = asyncio.create_task(_state_when_synced(reflector))
        for verb, what in actions:
            if verb == "take":
                await consumer.take(int(what))
            elif verb == "wait":
                await asyncio.sleep(float(what))
            else:
                happen(server, verb, what)
        server.faults.clear()
        await asyncio.sleep(1_000)
        while len(reflector._mirror):
            await consumer.take(2)
    assert reflector.synced.is_set()
    assert await synced in server.history.values()
    here = server.state()
    assert {key: pod.metadata.resource_version for key, pod in reflector.items.items()} == here
    assert consumer.by_uid == here
    assert consumer.by_name == {name: pod["metadata"]["uid"] for name, pod in server.pods.items()}
    assert consumer.ever - consumer.ended == set(here)


async def _state_when_synced(reflector: Reflector[Pod]) -> dict[str, str]:
    await reflector.synced.wait()
    return {key: pod.metadata.resource_version for key, pod in reflector.items.items()}


@settings(max_examples=examples(300))
@given(st.lists(ACTIONS, max_size=40))
def test_the_copy_becomes_the_cluster_whatever_happened(actions: list[tuple[str, str]]) -> None:
    virtually(follow(actions))
