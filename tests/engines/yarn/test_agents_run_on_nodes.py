"""YARN runs Corral's agent once on each node, and a server reads what they measure, by a token of their own."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import signal
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from corral.engines.yarn.engine import YarnEngine
from corral.kernel.errors import Unauthenticated, Unavailable
from corral.model.metrics.agent_page import AgentPage, read_page
from corral.monitor.scraping.addresses import Address
from corral.monitor.scraping.agent_client import Target, ask
from tests.endtoend.platform import ROOT
from tests.engines.yarn.harness import Places, YarnPlace
from tests.engines.yarn.served import OnYarn, processes, until
from tests.engines.yarn.test_services import apps
from tests.engines.yarn.test_services import until as eventually
from tests.monitor.health.test_check_scripts import script
from tests.reserved import free_port
from tests.testbeds.hadoop.yarn import Yarn

pytestmark = [pytest.mark.timeout(600)]
AGENT = ("env", f"PYTHONPATH={ROOT}", sys.executable, "-m", "corral.cli.main", "node-agent", "--seconds", "0.5")


def agents_on(port: int) -> dict[str, int]:
    """The agents that listen at a port, by their node's name."""
    found = {}
    for pid in processes(lambda words: b"node-agent" in words and words[0] != b"env"):
        with contextlib.suppress(OSError, ValueError):  # it has ended since
            words = Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
            if words[words.index("--listen") + 1].endswith(f":{port}"):
                found[words[words.index("--node") + 1]] = pid
    return found


async def page_of(engine: YarnEngine, node: str, token: str) -> AgentPage | None:
    """What the agent of a node tells; None while it does not answer."""
    (where,) = (each for each in engine.node_agents.addresses() if each.node == node)
    target = Target(Address(False, where.host, where.port), where.host)
    try:
        return read_page(await ask(target, token))
    except Unavailable as error:
        if "token" in error.message:
            raise
        return None


async def pages(engine: YarnEngine) -> dict[str, AgentPage]:
    """What the agents of both nodes tell, once they do."""
    found: dict[str, AgentPage] = {}
    while set(found) != {"nm1", "nm2"}:
        await asyncio.sleep(0.2)
        await eventually(lambda: {each.node for each in engine.node_agents.addresses()} == {"nm1", "nm2"})
        for node in ("nm1", "nm2"):
            if (page := await page_of(engine, node, engine.node_agents.token_of(node))) is not None:
                found[node] = page
    return found


async def test_each_node_has_one_agent_which_the_next_server_takes_over_and_another_setting_ends(
    yarn: Yarn, places: Places, tmp_path: Path
) -> None:
    port = free_port()
    place = places(agent_command=AGENT, agent_port=port)
    async with place.open() as opened:
        found = await pages(opened.raw)
        assert {node: page.node for node, page in found.items()} == {"nm1": "nm1", "nm2": "nm2"}
        (app,) = apps(place)
        assert await opened.raw._services.all() == [], "a service of agents is none of a job"
        token = opened.raw.node_agents.token_of("nm1")
        of_other = opened.raw.node_agents.token_of("nm2")
        for wrong in ("", token[:-1] + "x", of_other, opened.raw._tokens.of_service(app["name"])):
            with pytest.raises(Unavailable, match="token"):
                await page_of(opened.raw, "nm1", wrong)
        with pytest.raises(Unauthenticated):
            opened.raw._tokens.owner(token)
        first = agents_on(port)
        os.kill(first["nm1"], signal.SIGKILL)
        await eventually(lambda: (now := agents_on(port)).get("nm1", first["nm1"]) != first["nm1"] and len(now) == 2)
        assert agents_on(port)["nm2"] == first["nm2"], "the other one runs on"
        await pages(opened.raw)
    before = agents_on(port)
    async with place.open() as opened:  # the next server
        await pages(opened.raw)
        assert agents_on(port) == before and [each["id"] for each in apps(place)] == [app["id"]]
    place.settings = replaced(place, agent_command=())
    async with place.open() as opened:
        await eventually(lambda: not apps(place) and not agents_on(port))
        assert opened.raw.node_agents.addresses() == ()
        folder = f"/user/{yarn.user}/.corral/{place.settings.server}"
        await eventually(lambda: not yarn.hdfs.names(folder))


def replaced(place: YarnPlace, **fields: Any) -> Any:
    import msgspec

    return msgspec.structs.replace(place.settings, **fields)


async def test_an_agent_that_cannot_run_is_told_with_its_words(
    places: Places, caplog: pytest.LogCaptureFixture
) -> None:
    place = places(agent_command=("sh", "-c", "echo no such GPU >&2; exit 7", "agent"), agent_port=free_port())
    async with place.open():
        await eventually(lambda: "the agent of nm1 has ended with 7: no such GPU" in caplog.text)


async def test_an_agent_whose_program_is_missing_is_told(places: Places, caplog: pytest.LogCaptureFixture) -> None:
    place = places(agent_command=("/no/such/corral",), agent_port=free_port())
    async with place.open():
        said = "the agent of nm2 has ended with 127: /no/such/corral cannot be started: No such file or directory"
        await eventually(lambda: said in caplog.text)


def test_a_server_reads_the_agents_that_yarn_runs_and_closes_a_node_that_their_checks_find_bad(
    yarn: Yarn, tmp_path: Path
) -> None:
    checks = tmp_path / "checks"
    checks.mkdir()
    script(checks, "fan.sh", 'echo "a fan of $CORRAL_NODE stands"; [ "$CORRAL_NODE" != nm2 ]')
    command = shlex.join([*AGENT, "--checks", str(checks), "--check-seconds", "1"])
    env = {
        "CORRAL_YARN_AGENT_COMMAND": command, "CORRAL_YARN_AGENT_PORT": str(free_port()),
        "CORRAL_HEALTH_VALIDATION": "none",
    }  # fmt: skip
    (tmp_path / "server").mkdir()
    server = OnYarn(tmp_path / "server", yarn, env=env)
    server.up()
    try:
        job = server.submit(
            {
                "name": "measured",
                "framework": "shell",
                "roles": {
                    "main": {"resources": {"cpu": "1", "memory": "128Mi", "devices": 1}, "command": "sleep 1000"}
                },
                "nodes": ["nm1"],
            }
        )
        server.until(job, lambda now: now["state"] == "running")

        def series() -> list[str] | None:
            items = server.client.series(job=job["id"])["items"]
            names = {each["family"] for each in items if any(value is not None for value in each["mean"])}
            return sorted(names) if "task_mem_usage_byte" in names else None

        assert "corral_task_processes" in until(series)
        seen = until(lambda: list(server.client.node_health()["items"]) or None)
        assert {each["node"] for each in seen} == {"yarn/nm2"}
        failed = ("check-failed", "check fan.sh: a fan of nm2 stands")

        def told() -> bool | None:  # history is stored a moment after the score
            history = server.client.node_history("yarn/nm2")["items"]
            return failed in {(each["what"], each["reason"]) for each in history} or None

        assert until(told)

        def both_answer() -> bool | None:
            with urllib.request.urlopen(f"{server.url}/metrics", timeout=120) as answer:
                return 'corral_agents{state="answering"} 2.0' in answer.read().decode() or None

        assert until(both_answer)
        server.client.stop(job["id"])
        server.ended(job)
    finally:
        server.down()
        for name in [each["name"] for each in yarn.live_apps() if "-agents-" in each["name"]]:
            try:
                yarn.ask(f"/app/v1/services/{name}", method="DELETE")
            except urllib.error.HTTPError:  # it is ending already
                continue
