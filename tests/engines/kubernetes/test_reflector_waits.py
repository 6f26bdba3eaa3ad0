"""When a reflector lists, when it only resumes its watch, and how long it waits in between; in virtual time."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from corral.engines.kubernetes.watch.watch_source import Pace
from corral.kernel.errors import Forbidden, TooManyRequests, Unavailable
from tests.engines.kubernetes.model_server import ModelServer
from tests.engines.kubernetes.test_reflector_rules import following
from tests.engines.kubernetes.virtual_time import virtually


def verbs(server: ModelServer) -> list[str]:
    return [call["verb"] for call in server.asked]


def gaps(server: ModelServer) -> list[float]:
    times = [float(call["time"]) for call in server.asked]
    return [after - before for before, after in itertools.pairwise(times)]


def test_a_list_comes_in_pages_and_counts_only_when_it_is_whole() -> None:
    async def work() -> None:
        server = ModelServer()
        for name in "abcde":
            server.put(name)
        async with following(server) as reflector:
            await asyncio.sleep(0.025)
            assert verbs(server) == ["list"] * 3
            assert not reflector.synced.is_set() and not reflector.items
            await asyncio.sleep(0.01)
            assert reflector.synced.is_set() and len(reflector.items) == 5
            assert len(await reflector.take()) == 5
        assert [call.get("limit") for call in server.asked[:3]] == ["2"] * 3
        assert server.asked[3]["resourceVersion"] == "6"
        assert server.asked[3]["allowWatchBookmarks"] == "true"

    virtually(work())


def test_a_watch_that_the_server_ends_in_time_is_taken_up_where_it_was_without_a_list_or_a_wait() -> None:
    async def work() -> None:
        server = ModelServer()
        async with following(server) as reflector:
            await asyncio.sleep(3_000)
            assert reflector.trouble is None
        assert verbs(server)[0] == "list" and set(verbs(server)[1:]) == {"watch"}
        spans = [int(call["timeoutSeconds"]) for call in server.asked[1:]]
        assert all(300 <= span <= 600 for span in spans) and len(set(spans)) > 3
        assert gaps(server)[1:] == pytest.approx(spans[:-1], abs=0.1)

    virtually(work())


@pytest.mark.parametrize("fault", ["break", "cut", "silence", "garbage", "end", "500", "unreachable"])
def test_a_broken_watch_goes_on_from_the_last_event_without_a_list(fault: str) -> None:
    async def work() -> None:
        server = ModelServer()
        server.put("a")
        async with following(server) as reflector:
            await reflector.synced.wait()
            server.faults.append(fault)
            server.put("b")
            await asyncio.sleep(200)
            assert len(reflector.items) == 2
            assert reflector.trouble is None
        assert verbs(server).count("list") == 1

    virtually(work())


def test_a_line_that_broke_off_is_not_joined_to_the_next_watch() -> None:
    async def work() -> None:
        server = ModelServer()
        server.put("a")
        async with following(server) as reflector:
            await reflector.synced.wait()
            await asyncio.sleep(1)
            server.faults.append("cut")
            server.sever()
            server.put("b")
            await asyncio.sleep(5)
            assert len(reflector.items) == 2
        assert verbs(server) == ["list", "watch", "watch", "watch"]

    virtually(work())


def test_a_bookmark_moves_the_place_to_go_on_from() -> None:
    async def work() -> None:
        server = ModelServer()
        async with following(server):
            await asyncio.sleep(10)
            server.version += 5  # others changed objects that this watch does not show
            await asyncio.sleep(100)
            server.compact()
            server.faults.append("unreachable")
            await asyncio.sleep(1_500)
        assert verbs(server).count("list") == 1

    virtually(work())


@pytest.mark.parametrize("fault", ["410", "400"])
def test_a_place_that_the_server_no_longer_knows_is_listed_anew(fault: str) -> None:
    async def work() -> None:
        server = ModelServer()
        server.put("a")
        async with following(server) as reflector:
            await reflector.synced.wait()
            server.faults.append(fault)
            await asyncio.sleep(700)
            server.delete("a")
            assert verbs(server)[:4] == ["list", "watch", "watch", "list"]
            await asyncio.sleep(700)
            assert not reflector.items
            assert reflector.trouble is None

    virtually(work())


def test_what_went_while_nobody_watched_is_told_with_the_last_state_that_was_seen() -> None:
    async def work() -> None:
        server = ModelServer()
        server.put("a")
        async with following(server) as reflector:
            await reflector.synced.wait()
            await reflector.take()
            server.faults.extend(["silence", "410"])
            while verbs(server).count("watch") < 2:
                await asyncio.sleep(1)
            server.delete("a")
            server.put("a")
            server.compact()
            await asyncio.sleep(300)
            old, new = await reflector.take()
            assert (old.gone, old.final, old.object.metadata.uid) == (True, False, "uid-1")
            assert (new.gone, new.object.metadata.uid) == (False, "uid-2")

    virtually(work())


def test_a_continue_token_that_keeps_expiring_ends_in_a_list_of_one_piece() -> None:
    class Hasty(ModelServer):
        async def ask(self, call, *, params=None, deadline=None):  # type: ignore[no-untyped-def]
            if "continue" in (params or {}):
                self.version += 1
                self.compact()
            return await super().ask(call, params=params, deadline=deadline)

    async def work() -> None:
        server = Hasty()
        for name in "abc":
            server.put(name)
        async with following(server) as reflector:
            await asyncio.sleep(60)
            assert len(reflector.items) == 3
        assert [call.get("limit") for call in server.asked if call["verb"] == "list"] == ["2", "2", "2", "2", None]

    virtually(work())


def test_failures_wait_longer_and_longer_up_to_a_bound_and_never_in_step() -> None:
    async def work(seed_shift: int) -> list[float]:
        server = ModelServer()
        server.faults.extend(["unreachable"] * 20)
        async with following(server) as reflector:
            await asyncio.sleep(100)
            assert isinstance(reflector.trouble, Unavailable)
            await asyncio.sleep(1_000)
            assert reflector.trouble is None and reflector.synced.is_set()
        return gaps(server)[:20]

    waits = virtually(work(0))
    for at, wait in enumerate(waits):
        span = min(30.0, 0.2 * 2**at)
        assert span / 2 <= wait <= span + 0.01
    assert waits == virtually(work(0))
    assert len({wait / min(30.0, 0.2 * 2**at) for at, wait in enumerate(waits)}) == 20


def test_a_watch_that_ends_as_soon_as_it_begins_is_not_asked_for_in_a_rush() -> None:
    async def work() -> None:
        server = ModelServer()
        async with following(server) as reflector:
            await reflector.synced.wait()
            server.faults.extend(["end"] * 1_000)
            await asyncio.sleep(1_500)
            asked = len(server.asked)
            await asyncio.sleep(600)
            assert 20 <= len(server.asked) - asked <= 41
            assert reflector.trouble is not None and reflector.trouble.code == "kubernetes-ended"

    virtually(work())


def test_an_expiry_right_after_each_list_is_not_answered_by_lists_in_a_rush() -> None:
    async def work() -> None:
        server = ModelServer()
        server.faults.extend(["", "410"] * 500)
        async with following(server):
            await asyncio.sleep(600)
            assert verbs(server).count("list") <= 50

    virtually(work())


def test_a_busy_server_is_left_alone_for_as_long_as_it_asks() -> None:
    async def work() -> None:
        server = ModelServer()
        server.faults.append("429")
        async with following(server) as reflector:
            await asyncio.sleep(6)
            assert isinstance(reflector.trouble, TooManyRequests)
            await asyncio.sleep(5)
            assert reflector.synced.is_set()
        assert 7.0 < gaps(server)[0] < 7.3

    virtually(work())


def test_a_missing_permission_is_told_and_asked_for_again_until_it_is_given() -> None:
    async def work() -> None:
        server = ModelServer()
        server.put("a")
        server.faults.extend(["403"] * 10)
        async with following(server) as reflector:
            await asyncio.sleep(20)
            assert isinstance(reflector.trouble, Forbidden)
            assert reflector.trouble.message.startswith("Corral may not list pods in all namespaces: ")
            await asyncio.sleep(300)
            assert reflector.trouble is None and len(reflector.items) == 1

    virtually(work())


def test_it_is_said_once_of_each_object_that_it_cannot_be_read_until_it_can(caplog: pytest.LogCaptureFixture) -> None:
    def said() -> list[str]:
        return [record.getMessage().partition(" cannot be read")[0] for record in caplog.records]

    async def work() -> None:
        server = ModelServer()
        server.put("a", spec="not a spec")
        async with following(server) as reflector:
            await reflector.synced.wait()
            assert said() == ["pods x/a"]
            server.put("a", spec="no spec either")
            server.put("b", spec="not a spec")
            await asyncio.sleep(1)
            server.faults.append("410")
            await asyncio.sleep(700)
            assert reflector.lists == 2 and reflector.unreadable == 5
            assert said() == ["pods x/a", "pods x/b"]
            assert "Expected `object`, got `str`" in caplog.records[1].getMessage()
            server.put("a")
            await asyncio.sleep(1)
            server.put("a", spec="not a spec")
            await asyncio.sleep(1)
            assert said() == ["pods x/a", "pods x/b", "pods x/a"]

    with caplog.at_level("WARNING", "corral.engines.kubernetes.watch.reflector"):
        virtually(work())


def test_a_pod_that_cannot_be_read_costs_only_itself_and_stays_as_last_seen() -> None:
    async def work() -> None:
        server = ModelServer()
        server.put("a")
        server.put("b")
        async with following(server) as reflector:
            await reflector.synced.wait()
            await reflector.take()
            server.put("a", spec="not a spec")
            server.put("c")
            await asyncio.sleep(1)
            assert {pod.metadata.name for pod in reflector.items.values()} == {"a", "b", "c"}
            assert reflector.unreadable == 1
            server.faults.append("410")
            await asyncio.sleep(700)  # also affects a list
            assert {pod.metadata.name for pod in reflector.items.values()} == {"a", "b", "c"}
            assert reflector.unreadable == 2 and reflector.lists == 2
            server.delete("a")
            await asyncio.sleep(1)
            changes = {change.object.metadata.name: change for change in await reflector.take()}
            assert changes["a"].gone

    virtually(work())


def test_a_consumer_that_does_not_take_stops_the_watch_and_nothing_is_lost() -> None:
    async def work() -> None:
        server = ModelServer()
        async with following(server, Pace(waiting=3)) as reflector:
            await reflector.synced.wait()
            for number in range(50):
                server.put(f"p{number}")
                await asyncio.sleep(1)
                server.delete(f"p{number}")
                await asyncio.sleep(1)
            assert len(reflector._mirror) == 3
            names: set[str] = set()
            for _ in range(20):
                names |= {change.object.metadata.name for change in await reflector.take(5) if change.gone}
                await asyncio.sleep(1)
                if len(names) == 50:
                    break
            assert names == {f"p{number}" for number in range(50)}

    virtually(work())


def test_however_often_an_object_changes_one_entry_waits() -> None:
    async def work() -> None:
        server = ModelServer()
        async with following(server) as reflector:
            await reflector.synced.wait()
            for _ in range(100):
                server.put("a")
                await asyncio.sleep(0.1)
            (change,) = await reflector.take()
            assert change.object.metadata.resource_version == "101"
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(reflector.take(), 5)

    virtually(work())
