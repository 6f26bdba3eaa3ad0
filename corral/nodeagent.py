"""Run a node's agent: the collector as a process of its own, with a listener for Prometheus.

The listener serves `/metrics`, `/samples` for a server and `/healthz`, and sets the clocks of GPUs if that is allowed. It
is written for that alone, because a web framework would take more memory than the collector.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import os
import signal
import socket
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import structlog

import corral
from corral import logs
from corral.devices.figures.reader import reader_finder
from corral.devices.nvidia_clocks import MOST_SECONDS
from corral.kernel.errors import InvalidInput, Unavailable
from corral.model.metrics import agent_page
from corral.model.metrics.agent_page import CheckTold
from corral.model.metrics.samples import Samples
from corral.monitor.agent.clock_fixes import PATH as FIX
from corral.monitor.agent.clock_fixes import ClockFixes
from corral.monitor.agent.collector import Collector
from corral.monitor.agent.job_labels import LabelFolders
from corral.monitor.agent.node_exporter import machine_source
from corral.monitor.agent.rounds import Rounds, parts_of
from corral.monitor.agent.task_names import names_in_environment
from corral.monitor.health.check_rounds import ChecksOfNode
from corral.runtime.platform_facts import versions_of
from corral.service.metrics.exposition import CONTENT_TYPE, page
from corral.service.metrics.process import ProcessFigures

log = structlog.get_logger()
DEFAULT_PORT: Final = 9102
"""The port of job-exporter, for which sites have scrape rules."""
_MOST_HEAD: Final = 8192
"""Bytes of a request's head."""
_PATIENCE: Final = 10.0
"""Seconds that a caller has to send its request, and to take the answer."""
_MOST_CALLERS: Final = 32
_MOST_TOKEN: Final = 4096


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a node's agent."""

    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    token_file: Path | None = None
    """Whose bearer token opens the series that name users and jobs; without one nobody is told them."""
    seconds: float = 5.0
    parts: str = "devices,tasks,machine"
    log_level: str = "info"
    dcgm_folder: Path | None = None
    """Where DCGM exporter looks for the jobs of each GPU; None writes nothing."""
    amd_folder: Path | None = None
    node: str = ""
    """The node's name; "" is that of `NODE_NAME` or the machine."""
    fix_gpu_clocks: bool = False
    """Whether a server may have the clocks of slow GPUs set; it needs root."""
    dcgm_exporter: str = ""
    """The address of DCGM exporter, which is read instead of NVIDIA's library; "" reads the devices themselves."""
    amd_exporter: str = ""
    node_exporter: str = ""
    """The address of node exporter, which is read instead of the kernel's files."""
    checks: Path | None = None
    """The folder of check scripts; None runs none."""
    check_seconds: float = 60.0
    check_limit_seconds: float = 10.0


def run(options: Options) -> int:
    """Serve until SIGTERM or SIGINT.

    Raises InvalidInput for options that cannot be followed, and Unavailable if the address cannot be listened on.
    """
    logs.configure(options.log_level)
    if options.token_file is None and not _is_loopback(options.host):
        raise InvalidInput(
            "agent-without-token",
            f"{options.host} can be reached from other machines: give the agent a --token-file, or listen on 127.0.0.1.",
        )
    if options.fix_gpu_clocks and options.token_file is None:
        raise InvalidInput(
            "agent-without-token", "--fix-gpu-clocks needs a --token-file: only a server may ask for it."
        )
    if options.checks is not None and not options.checks.is_dir():
        raise InvalidInput("bad-checks", f"There is no folder {options.checks} with check scripts.")
    node = options.node or os.environ.get("NODE_NAME", "") or socket.gethostname()
    folders = LabelFolders(options.dcgm_folder, options.amd_folder)
    find = reader_finder(options.dcgm_exporter, options.amd_exporter)
    machine = machine_source(options.node_exporter)
    collector = Collector(parts=parts_of(options.parts), find=find, machine=machine, host=node, labels=folders)
    asyncio.run(_serve(options, Rounds(collector, names_in_environment, options.seconds), node))
    return 0


async def _serve(options: Options, rounds: Rounds, node: str) -> None:
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    listener = MetricsListener(rounds, options.token_file, ProcessFigures("node-agent"), node=node)
    listener.fixes = ClockFixes() if options.fix_gpu_clocks else None
    if options.checks is not None:
        listener.checks = ChecksOfNode(
            options.checks, node, every=options.check_seconds, limit=options.check_limit_seconds
        )
    await rounds.collect()
    try:
        server = await asyncio.start_server(listener.answer, options.host, options.port, limit=_MOST_HEAD)
    except OSError as error:
        where = f"{options.host}:{options.port}"
        raise Unavailable("agent-address", f"The agent cannot listen on {where}: {error.strerror}.") from error
    port = server.sockets[0].getsockname()[1]
    log.info("the agent runs", address=f"http://{options.host}:{port}/metrics")
    running = [asyncio.create_task(rounds.run())]
    if listener.checks is not None:
        running.append(asyncio.create_task(listener.checks.run()))
    try:
        await ended.wait()
    finally:
        server.close()
        for each in running:
            each.cancel()
        await asyncio.gather(*running, return_exceptions=True)


class MetricsListener:
    """Answers requests with the last samples. A page is made once for each round and kind of caller."""

    def __init__(
        self, rounds: Rounds, token_file: Path | None, process: ProcessFigures | None = None, *, node: str = ""
    ) -> None:
        """`process` tells what the agent itself uses; `node` is the name that `/samples` tells."""
        self._node = node
        self._values: tuple[Samples, bytes, agent_page.AgentVersions] | None = None
        self.checks: ChecksOfNode | None = None
        """The node's check scripts; None runs none."""
        self._rounds, self._token_file = rounds, token_file
        self._callers = 0
        self._process = process
        self.fixes: ClockFixes | None = None
        """Sets the clocks of GPUs; None if the administrator did not allow that."""
        self._pages: dict[bool, tuple[Samples, tuple[CheckTold, ...], bytes]] = {}

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request and close the connection."""
        self._callers += 1
        try:
            async with asyncio.timeout(_PATIENCE) as limit:
                if self._callers > _MOST_CALLERS:
                    status, kind, body = 503, "text/plain", b"Too many callers at once.\n"
                else:
                    status, kind, body = await self._response(reader, limit)
                head = f"HTTP/1.1 {status} \r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\nConnection: close"
                writer.write(head.encode() + b"\r\n\r\n" + body)
                await writer.drain()
        except (OSError, TimeoutError):
            pass  # the caller is gone, or too slow
        finally:
            self._callers -= 1
            writer.close()

    async def _response(self, reader: asyncio.StreamReader, limit: asyncio.Timeout) -> tuple[int, str, bytes]:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.LimitOverrunError:
            return 431, "text/plain", b"The request's head is longer than 8 KiB.\n"
        except asyncio.IncompleteReadError:
            return 400, "text/plain", b"The request is incomplete.\n"
        first, *lines = head.decode("latin-1").split("\r\n")
        method, _, rest = first.partition(" ")
        path = rest.partition(" ")[0].partition("?")[0]
        given = next((line.partition(":")[2] for line in lines if line.lower().startswith("authorization:")), None)
        if method == "POST" and path.startswith(FIX):
            limit.reschedule(asyncio.get_running_loop().time() + MOST_SECONDS)
            status, said = await self._fixed(path, given)
            return status, "text/plain", f"{said}\n".encode()
        if method != "GET":
            return 405, "text/plain", b"Only GET is answered.\n"
        if path == "/healthz":
            return 200, "text/plain", b"ok\n"
        if path not in ("/metrics", agent_page.PATH):
            return 404, "text/plain", b"There is only /metrics, /samples and /healthz.\n"
        if given is not None and not self._knows(given):
            return 401, "text/plain", b"The token is not that of the agent's token file.\n"
        if path == agent_page.PATH:
            if given is None:
                return 401, "text/plain", b"/samples names jobs: it needs the token of the agent's token file.\n"
            return 200, "application/json", await self._samples()
        return 200, CONTENT_TYPE, await self._page(everybody=given is None)

    async def _fixed(self, path: str, given: str | None) -> tuple[int, str]:
        if given is None or not self._knows(given):
            return 401, "The token is not that of the agent's token file."
        if self.fixes is None:
            return 403, "This agent may not set clocks: it was started without --fix-gpu-clocks."
        return await self.fixes.answer(path)

    def _knows(self, given: str) -> bool:
        """Whether a header has the token of the file, which is read each time: it may be replaced."""
        kind, _, token = given.strip().partition(" ")
        if self._token_file is None or kind.lower() != "bearer":
            return False
        try:
            with self._token_file.open("rb") as file:
                right = file.read(_MOST_TOKEN).strip()
        except OSError as error:
            log.warning("the token file cannot be read", reason=error.strerror)
            return False
        return bool(right) and hmac.compare_digest(token.strip().encode("latin-1"), right)

    async def _samples(self) -> bytes:
        samples = self._rounds.samples()
        if self._values is None or self._values[0] is not samples:
            values = await asyncio.to_thread(agent_page.encode_values, samples)
            self._values = samples, values, await asyncio.to_thread(_versions)
        _, values, versions = self._values
        return agent_page.encode_page(self._node, time.time(), values, self._checked(), versions)

    async def _page(self, *, everybody: bool) -> bytes:
        samples, checked = self._rounds.samples(), self._checked()
        made = self._pages.get(everybody)
        if made is None or made[0] is not samples or made[1] is not checked:
            told = samples if self._process is None else samples + self._process.samples()
            if self.checks is not None:
                told += Samples(self.checks.values())
            made = samples, checked, await asyncio.to_thread(page, told, everybody=everybody)
            self._pages[everybody] = made
        return made[2]

    def _checked(self) -> tuple[CheckTold, ...]:
        return () if self.checks is None else self.checks.told


def _versions() -> agent_page.AgentVersions:
    kernel, runs_on = versions_of()
    plain = (each.encode("ascii", "replace").decode() for each in runs_on)
    return agent_page.AgentVersions(corral.__version__, kernel, tuple(plain))


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
