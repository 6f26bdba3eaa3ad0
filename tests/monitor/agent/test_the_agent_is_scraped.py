"""`corral node-agent` is a process that Prometheus can read, and refuses what would tell names to strangers."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import httpx2
import pytest
from prometheus_client.parser import text_string_to_metric_families

from corral.devices.nvidia_clocks import MOST_SECONDS, Clocks
from corral.kernel.errors import Unavailable
from corral.model.metrics.samples import Samples, Value
from corral.model.metrics.task_families import TaskMetric
from corral.monitor.agent.clock_fixes import PATH, ClockFixes
from corral.monitor.agent.collector import Collector
from corral.monitor.agent.rounds import Rounds
from corral.monitor.scraping.addresses import Address
from corral.monitor.scraping.agent_client import Target, post
from corral.nodeagent import MetricsListener
from tests.monitor.agent.test_tasks_are_measured import Tree, named
from tests.reserved import free_port

AGENT: Final = [sys.executable, "-m", "corral.cli.main", "node-agent"]
TOKEN: Final = "s3cret-of-the-site"


class Agent:
    """An agent on a free port of loopback."""

    def __init__(self, folder: Path, *more: str, env: Mapping[str, str] | None = None) -> None:
        (folder / "token").write_text(TOKEN + "\n")
        options = ["--listen", "127.0.0.1:0", "--token-file", str(folder / "token"), "--seconds", "0.2", *more]
        self.process = subprocess.Popen([*AGENT, *options], stderr=subprocess.PIPE, text=True, env=env)
        assert self.process.stderr is not None
        line = ""
        while "the agent runs" not in line:
            line = self.process.stderr.readline()
            assert line, "the agent has ended"
        found = re.search(r"http://127\.0\.0\.1:\d+", line)
        assert found is not None
        self.url = found[0]

    def page(self, token: str = "") -> httpx2.Response:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return httpx2.get(f"{self.url}/metrics", headers=headers)

    def end(self) -> int:
        self.process.terminate()
        self.process.communicate(timeout=60)
        return self.process.returncode


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    made = Agent(tmp_path)
    yield made
    assert made.end() == 0


def test_an_agent_tells_tasks_to_those_with_its_token_alone(agent: Agent) -> None:
    tree = Tree(named(free_port()))
    job = tree.attempt.partition(".")[0]
    try:
        found: set[str] = set()
        end = time.monotonic() + 120
        while not {"task_cpu_percent", "task_mem_usage_byte"} <= found and time.monotonic() < end:
            families = text_string_to_metric_families(agent.page(TOKEN).text)
            series = [each for family in families for each in family.samples]
            found = {each.name for each in series if each.labels.get("job_instance_id") == job}
            time.sleep(0.1)
        assert {"task_cpu_percent", "task_mem_usage_byte"} <= found
        everybody = agent.page()
        assert everybody.status_code == 200 and "node_memory_MemTotal_bytes" in everybody.text
        assert "node_cpu_seconds_total" in everybody.text and "corral_agent_tasks" in everybody.text
        assert job not in everybody.text and "digits" not in everybody.text
    finally:
        tree.end()
    assert agent.page("wrong").status_code == 401
    assert httpx2.get(f"{agent.url}/samples").status_code == 401
    assert httpx2.get(f"{agent.url}/samples", headers={"Authorization": "Bearer wrong"}).status_code == 401
    assert httpx2.get(f"{agent.url}/healthz").text == "ok\n"
    assert httpx2.get(f"{agent.url}/other").status_code == 404
    assert httpx2.post(f"{agent.url}/metrics").status_code == 405
    assert httpx2.get(f"{agent.url}/metrics", headers={"X": "x" * 9000}).status_code == 431


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--listen", "0.0.0.0:0"], "give the agent a --token-file"),
        (["--fix-gpu-clocks"], "--fix-gpu-clocks needs a --token-file"),
        (["--listen", "9102"], "--listen needs HOST:PORT"),
        (["--listen", "127.0.0.1:0", "--checks", "/nope"], "There is no folder /nope with check scripts."),
        (["--parts", "gpus"], "There is no part 'gpus' to measure: devices, tasks, machine are known."),
    ],
)
def test_options_that_cannot_be_followed_are_refused(options: list[str], said: str) -> None:
    done = subprocess.run([*AGENT, *options], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode not in (0, 1) and said in done.stderr and "Traceback" not in done.stderr


class _Fixed(Rounds):
    """Rounds whose samples are given."""

    def __init__(self, samples: Samples) -> None:
        super().__init__(Collector(parts=()), lambda attempt, pid: None, 5.0)
        self.fixed = samples

    def samples(self) -> Samples:
        return self.fixed


async def _asked(listener: MetricsListener, *lines: str) -> bytes:
    path = f"/tmp/agent-{os.getpid()}-{free_port()}.sock"
    server = await asyncio.start_unix_server(listener.answer, path, limit=8192)
    try:
        reader, writer = await asyncio.open_unix_connection(path)
        writer.write("\r\n".join([*lines, "", ""]).encode())
        writer.write_eof()
        found = await reader.read()
        writer.close()
        return found
    finally:
        server.close()
        os.unlink(path)


async def test_a_page_is_made_once_for_each_round(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[bool] = []

    def page(samples: Samples, *, everybody: bool) -> bytes:
        made.append(everybody)
        return str(len(samples.values)).encode()

    monkeypatch.setattr("corral.nodeagent.page", page)
    rounds = _Fixed(Samples((Value(TaskMetric.TASKS, ("measured",), 1.0),)))
    listener = MetricsListener(rounds, None)
    for _ in range(3):
        assert (await _asked(listener, "GET /metrics HTTP/1.1")).endswith(b"\r\n\r\n1")
    rounds.fixed = Samples()
    assert (await _asked(listener, "GET /metrics HTTP/1.1")).endswith(b"\r\n\r\n0") and made == [True, True]


async def test_a_server_has_an_agent_run_nvidia_smi(tmp_path: Path) -> None:
    recorded = Path(__file__).parents[2] / "devices" / "recorded"
    tool = tmp_path / "nvidia-smi"
    answers = f'"-q -x") cat {recorded}/nvidia-smi-535.xml;; *clocks=*) cat {recorded}/supported-clocks-a100.csv;;'
    tool.write_text(f'#!/bin/sh\necho "$*" >> {tmp_path}/calls\ncase "$*" in {answers} esac\n')
    tool.chmod(0o755)
    agent = Agent(tmp_path, "--fix-gpu-clocks", env=os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"})
    try:
        target = Target(Address(False, "127.0.0.1", int(agent.url.rpartition(":")[2])), "127.0.0.1")
        said = await post(target, TOKEN, f"{PATH}1", MOST_SECONDS)
        assert said == "Its clocks are now 1410 MHz, and 1593 MHz of its memory."
        with pytest.raises(Unavailable, match="less than an hour ago"):
            await post(target, TOKEN, f"{PATH}1", MOST_SECONDS)
        with pytest.raises(Unavailable, match="The token is not that of the agent's token file"):
            await post(target, "wrong", f"{PATH}1", MOST_SECONDS)
    finally:
        agent.end()
    assert "-i 00000000:0F:00.0 -ac 1593,1410" in (tmp_path / "calls").read_text().splitlines()


async def test_clocks_are_set_for_those_with_the_token_if_that_is_allowed_and_once_an_hour(
    tmp_path: Path,
) -> None:
    token, now, done = tmp_path / "token", [0.0], []

    def set_clocks(minor: int) -> Clocks:
        done.append(minor)
        if minor == 9:
            raise Unavailable("nvidia-smi-failed", "nvidia-smi ended with 9.")
        return Clocks(1593, 1410)

    token.write_text(TOKEN)
    listener = MetricsListener(_Fixed(Samples()), token)

    async def asked(gpu: str, given: str = TOKEN) -> tuple[int, str]:
        lines = (f"POST /fix-nvidia-gpu-low-perf/{gpu} HTTP/1.1", f"Authorization: Bearer {given}")
        head, _, body = (await _asked(listener, *lines)).partition(b"\r\n\r\n")
        return int(head.split()[1]), body.decode().strip()

    assert await asked("0") == (403, "This agent may not set clocks: it was started without --fix-gpu-clocks.")
    listener.fixes = ClockFixes(set_clocks, lambda: now[0])
    assert (await asked("0", "wrong"))[0] == 401 and done == []
    for wrong in ("", "-1", "0%3b", "12345"):
        assert (await asked(wrong))[0] == 404
    assert await asked("0") == (200, "Its clocks are now 1410 MHz, and 1593 MHz of its memory.")
    assert await asked("9") == (502, "nvidia-smi ended with 9.")
    assert (await asked("0"))[0] == 429 and (await asked("9"))[0] == 429 and done == [0, 9]
    now[0] += 3600.0
    assert (await asked("0"))[0] == 200 and done == [0, 9, 0]


async def test_a_token_without_a_token_file_and_broken_requests_are_refused() -> None:
    listener = MetricsListener(_Fixed(Samples()), None)
    for lines, status in (
        (("GET /metrics HTTP/1.1", "Authorization: Bearer x"), b"401"),
        (("GET /metrics HTTP/1.1", "Authorization: Basic x"), b"401"),
        (("",), b"405"),
        (("\x00\xff",), b"405"),
    ):
        assert (await _asked(listener, *lines)).startswith(b"HTTP/1.1 " + status)
