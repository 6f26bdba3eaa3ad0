"""What Corral asks of YARN for a job, and gives back: services, their lifetime, their containers and their files."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from corral.kernel.errors import CorralError, Unavailable
from corral.kernel.ids import JobId
from corral.model.launch import Exited, Started
from tests.engines.yarn.harness import PATIENCE, Places, YarnPlace
from tests.testbeds.hadoop.yarn import Yarn
from tests.waiting import pause

pytestmark = [pytest.mark.timeout(300)]


async def until(look: Callable[[], Any]) -> Any:
    """Wait until `look` returns something true."""
    begun = time.monotonic()
    async with asyncio.timeout(PATIENCE):
        while not (found := await asyncio.to_thread(look)):
            await asyncio.sleep(pause(begun))
        return found


def apps(place: YarnPlace) -> list[dict[str, Any]]:
    """The services of the place that have not ended."""
    prefix = f"corral-{place.settings.server[:8]}-"
    return [each for each in place.yarn.live_apps() if each["name"].startswith(prefix)]


def expiry(place: YarnPlace, app: str) -> str:
    """When YARN ends an application by itself."""
    told = place.yarn.ask(f"/ws/v1/cluster/apps/{app}/timeouts/LIFETIME")
    return str(told["timeout"]["expiryTime"])


async def test_a_service_is_prolonged_while_its_job_lives_and_deleted_with_its_files_when_it_is_over(
    yarn: Yarn, places: Places
) -> None:
    place = places(lifetime_seconds=24)
    async with place.open() as opened:
        launch = place.launch("sleep", "1000")
        await opened.engine.start(launch)
        await opened.started(launch.attempt)
        app = apps(place)[0]
        first = expiry(place, app["id"])
        await until(lambda: expiry(place, app["id"]) != first)
        folder = f"/user/{yarn.user}/.corral/{place.settings.server}"
        assert yarn.hdfs.names(folder) == [app["name"]]
        await opened.engine.stop(launch.attempt, grace_seconds=0, signal="KILL")
        await opened.exited(launch.attempt)
        opened.raw.job_over(JobId(place.job))
        await until(lambda: not apps(place))
        await until(lambda: not yarn.hdfs.names(folder))


async def test_a_retry_runs_in_the_slot_that_is_there_though_the_end_before_it_is_not_forgotten(
    places: Places,
) -> None:
    place = places()
    async with place.open() as opened:
        first = place.launch("true")
        second = place.launch("true", attempt=first.attempt[:-1] + "1")
        hosts = []
        for launch in (first, second):
            await opened.engine.start(launch)
            hosts.append((await opened.started(launch.attempt)).process.partition(":")[0])
            assert (await opened.exited(launch.attempt)).code == 0
        assert hosts[0] == hosts[1], "one container"
        await opened.engine.forget([first.attempt, second.attempt])


async def test_a_start_that_is_withdrawn_before_its_container_comes_never_runs(places: Places) -> None:
    place = places()
    async with place.open() as opened:
        first = place.launch("true")
        with pytest.raises(Unavailable):
            await opened.raw.start(first)  # a service takes longer to begin
        assert opened.raw.withdraw(first.attempt)
        second = place.launch("true", attempt=first.attempt[:-1] + "1")
        await opened.engine.start(second)
        assert not opened.raw.withdraw(second.attempt)
        assert (await opened.exited(second.attempt)).code == 0
        assert opened.raw.attempts() == {second.attempt}
        assert {each.attempt for each in opened.seen if isinstance(each, Started | Exited)} == {second.attempt}
        await opened.engine.forget([second.attempt])


async def test_containers_that_yarn_does_not_give_are_given_back_and_their_attempt_fails_with_the_reason(
    places: Places,
) -> None:
    place = places(start_seconds=3.0, idle_seconds=1.0)
    async with place.open() as opened:
        launch = place.launch("true", node="yarn/nm9")  # no node has this name
        starting = asyncio.create_task(opened.engine.start(launch))
        exited = await opened.exited(launch.attempt)
        await starting
        assert (exited.code, "YARN gave no container within 3 s" in exited.reason) == (-120, True)
        await until(lambda: not apps(place))


@pytest.mark.timeout(900)
async def test_what_yarn_does_not_give_to_a_part_of_a_gang_in_time_is_given_back_and_the_rest_runs_on(
    places: Places,
) -> None:
    place = places(start_seconds=PATIENCE)  # only the second task's shall pass, with another server
    most = 4096 * 2**20  # of the 6144 MB of the node, so that only one fits
    first, second = (place.launch("sleep", "1000", memory_bytes=most) for _ in range(2))
    async with place.open() as opened:
        await opened.engine.start(first)
        await opened.started(first.attempt)
        app = apps(place)[0]
    place.settings = msgspec.structs.replace(place.settings, start_seconds=20.0)
    async with place.open() as opened:
        starting = asyncio.create_task(opened.engine.start(second))
        await until(lambda: counts(place, app["name"]) == [2])
        assert (await opened.exited(second.attempt)).code == -120
        await starting
        await until(lambda: counts(place, app["name"]) == [1])
        assert opened.raw.attempts() == {first.attempt, second.attempt}
    place.settings = msgspec.structs.replace(place.settings, start_seconds=PATIENCE)
    async with place.open() as opened:
        again = place.launch("true", memory_bytes=most)
        waiting = asyncio.create_task(opened.engine.start(again))
        await until(lambda: counts(place, app["name"]) == [2])
        await opened.engine.stop(first.attempt, grace_seconds=0, signal="KILL")
        await waiting
        assert (await opened.exited(again.attempt)).code == 0
        assert (await opened.exited(first.attempt)).code == 128 + signal.SIGKILL


def counts(place: YarnPlace, service: str) -> list[int]:
    """How many containers of each component YARN is asked for."""
    told = place.yarn.service(service)
    return [int(each["number_of_containers"]) for each in told["components"]]


@pytest.mark.parametrize(
    ("settings", "words"),
    [({"queue": "nowhere"}, "nowhere"), ({"device_resource": "nothing.com/gpu"}, "nothing.com/gpu")],
)
async def test_what_yarn_will_never_give_is_refused_with_its_own_words(
    places: Places, settings: dict[str, str], words: str
) -> None:
    place = places(**settings)
    async with place.open() as opened:
        launch = place.launch("true", devices=place.devices(1))
        with pytest.raises(CorralError) as error:
            await opened.engine.start(launch)
        assert words in error.value.message
        assert launch.attempt not in opened.raw.attempts()
