"""What the scheduler's own machine runs: its system, what starts containers of jobs there, and exporters that are read."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from corral.devices.figures.exporter_page import ExporterUrl, fetched, version_in
from corral.model.server_parts import AWAY, OK, ServerPart
from corral.runtime.platform_facts import versions_of

_MOST_SECONDS: Final = 1.0
"""Seconds that each of them has to answer; what asks for the parts waits for 2."""
_MOST_VERSION: Final = 100
_READERS: Final = ThreadPoolExecutor(2, "exporters")
"""Threads of their own: a name server that does not answer holds one for long, and control has other work for its own."""


async def machine_parts(containers: str, exporters: Sequence[ExporterUrl]) -> list[ServerPart]:
    """The machine, and what answers on it; `containers` is the program that starts them, "" for none of this machine."""
    asked = [_exporter(each) for each in exporters]
    if Path(containers).is_absolute():
        asked.insert(0, _containers(containers))
    machine, *others = await asyncio.gather(asyncio.to_thread(_machine), *asked)
    return [machine, *others]


def _machine() -> ServerPart:
    kernel, runs_on = versions_of()
    return ServerPart("machine", socket.gethostname(), OK, kernel, runs_on=runs_on)


async def _containers(program: str) -> ServerPart:
    name = Path(program).name
    try:
        async with asyncio.timeout(_MOST_SECONDS):  # its start included: on a busy machine that alone can take as long
            code, told = await _answer_of(program)
    except (OSError, TimeoutError):
        return _silent(name)
    said = told.decode(errors="replace").strip()
    if code != 0 or not said.isprintable() or not 0 < len(said) <= _MOST_VERSION:
        return _silent(name)
    return ServerPart("containers", name, OK, said)


async def _answer_of(program: str) -> tuple[int | None, bytes]:
    """Exit code and output of the program that tells its server's version. Raises OSError."""
    asked = await asyncio.create_subprocess_exec(
        program, "version", "--format", "{{.Server.Version}}",
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        told, _ = await asked.communicate()
    finally:  # also where nobody waits for the answer any more
        if asked.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                asked.kill()
    return asked.returncode, told


def _silent(name: str) -> ServerPart:
    return ServerPart(
        "containers",
        name,
        AWAY,
        reasons=("It does not answer: tasks of this machine that name an image do not start.",),
    )


async def _exporter(url: ExporterUrl) -> ServerPart:
    host = f"[{url.host}]" if ":" in url.host else url.host
    name = f"{url.exporter.name} at {host}:{url.port}"
    try:
        async with asyncio.timeout(_MOST_SECONDS):
            page = await asyncio.get_running_loop().run_in_executor(_READERS, fetched, url, _MOST_SECONDS)
    except TimeoutError:
        return ServerPart("exporter", name, AWAY, reasons=(f"It does not answer within {_MOST_SECONDS:g} s.",))
    except (OSError, ValueError) as error:
        return ServerPart("exporter", name, AWAY, reasons=(f"{str(error)[:1].upper()}{str(error)[1:]}.",))
    return ServerPart("exporter", name, OK, version_in(page, url.exporter))
