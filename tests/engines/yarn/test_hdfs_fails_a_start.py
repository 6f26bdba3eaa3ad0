"""Real daemons: files that no NodeManager can fetch, a NameNode that hangs, and a name that YARN keeps delay starts."""

from __future__ import annotations

import asyncio
import json

import msgspec
import pytest

from corral.engines.yarn import hadoop_rest, job_loops
from corral.engines.yarn.service_spec import service_name
from corral.engines.yarn.settings import parse_names
from corral.kernel.errors import Unavailable
from corral.kernel.ids import JobId
from corral.model.launch import TaskLaunch
from tests.engines.yarn.harness import PATIENCE, Opened, Places, YarnPlace
from tests.engines.yarn.mute_relay import relay_to
from tests.engines.yarn.test_services import apps, until
from tests.testbeds.hadoop.yarn import Yarn

pytestmark = [pytest.mark.timeout(900)]


async def told(opened: Opened, launch: TaskLaunch, words: str) -> str:
    """Repeat a start, as control does, until its delay is told in these words; returns the message."""
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                await opened.raw.start(launch)
            except Unavailable as error:
                if words in error.message:
                    return error.message
            else:
                raise AssertionError("it has started")


@pytest.fixture
def ada(yarn: Yarn) -> str:
    """A Hadoop user who is not HDFS's superuser."""
    yarn.hdfs.add_folder("/user/ada", "ada")
    return "ada"


async def test_files_that_no_node_manager_can_fetch_are_told_and_missing_ones_are_written_again(
    places: Places, yarn: Yarn, ada: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(job_loops, "_ENDED_SECONDS", 1.0)
    place = places(start_seconds=PATIENCE, users=parse_names("yarn_users", f"*={ada}", ""))
    async with place.open() as opened:
        launch = place.launch("true")
        folder = f"/apps/corral/{place.settings.server}"
        (program,) = (f"{folder}/{name}" for name in yarn.hdfs.names(folder) if name.endswith("runtime.pyz"))
        yarn.hdfs.ask("PUT", program, "SETPERMISSION", permission="600")
        said = await told(opened, launch, "No NodeManager can fetch")
        assert said == (
            f"No NodeManager can fetch {program}: HDFS does not let ada read {program}; allow it (hdfs dfs -chmod)."
        )
        # YARN's own default leaves a node to no more containers of the service after four that failed there
        await until(lambda: tried(place) > 5)
        yarn.hdfs.ask("DELETE", program, "DELETE")
        await opened.engine.start(launch)
        assert (await opened.exited(launch.attempt)).code == 0
        # an attempt may get its container before the cause is told to it
        said = f"No NodeManager can fetch {program}: it is not in HDFS any more. Corral has written it again."
        assert said in caplog.text
        await opened.engine.forget([launch.attempt])


def tried(place: YarnPlace) -> int:
    """How many containers the place's service was given, with that of its master."""
    (app,) = apps(place)
    told = place.yarn.service(app["name"], user=app["user"])
    given = [each["id"] for component in told["components"] for each in component.get("containers", ())]
    return max((int(each.rpartition("_")[2]) for each in given), default=0)


async def test_a_name_node_that_hangs_is_told_to_those_who_start_and_holds_up_no_running_task(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hadoop_rest, "CALL_SECONDS", 10.0)  # other calls are answered within it on a busy machine, too
    place = places(start_seconds=PATIENCE)
    async with relay_to(place.settings.file_systems[0]) as name_node:
        place.settings = msgspec.structs.replace(place.settings, file_systems=(name_node.url,))
        async with place.open() as opened:
            first, second = place.launch("sleep", "1000"), place.launch("true")
            await opened.engine.start(first)
            await opened.started(first.attempt)
            name_node.mute()
            said = await told(opened, second, f"The NameNode at {name_node.url} does not answer")
            assert said == f"The NameNode at {name_node.url} does not answer: it took the call and was silent for 10 s."
            await opened.engine.stop(first.attempt, grace_seconds=0, signal="KILL")
            assert (await opened.exited(first.attempt)).code == 137, "an end is told while it hangs"
            name_node.speak()
            await opened.engine.start(second)
            assert (await opened.exited(second.attempt)).code == 0
            await opened.engine.forget([first.attempt, second.attempt])


async def test_a_service_that_yarn_describes_and_does_not_list_is_waited_for(
    places: Places, yarn: Yarn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """YARN writes a service's description before it has its application, which takes long on a busy machine."""
    monkeypatch.setattr(job_loops, "_NAME_SECONDS", 0.0)
    place = places(start_seconds=PATIENCE)
    name = service_name(place.settings, JobId(place.job), 1)
    described = f"/user/{yarn.user}/.yarn/services/{name}"
    content = {"name": name, "version": "1", "components": []}
    yarn.hdfs.write(f"{described}/{name}.json", json.dumps(content).encode())
    async with place.open() as opened:
        launch = place.launch("true")
        said = await told(opened, launch, "does not list it yet")
        assert said == f"YARN has the service {name} and does not list it yet; it is not asked for a second one."
        yarn.hdfs.ask("DELETE", described, "DELETE", recursive="true")
        await until(lambda: [each["name"] for each in apps(place)] == [name])
        assert opened.raw.withdraw(launch.attempt)
