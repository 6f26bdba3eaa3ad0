"""The scheduler's machine tells its system, the program of its containers, and exporters that are read, as they are now."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from corral.control import machine_parts as control_parts
from corral.control.machine_parts import machine_parts
from corral.control.metrics.node_collection import Exporters
from corral.devices.figures.exporter_page import NODE_EXPORTER, exporter_url
from corral.runtime.platform_facts import versions_of
from tests.conftest import IN_CI
from tests.reserved import free_port
from tests.testbeds import prometheus


@asynccontextmanager
async def exporter(answer: bytes | None) -> AsyncIterator[int]:
    """The port of an exporter with one answer; None never answers."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        if answer is None:
            await reader.read()
        else:
            writer.write(answer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


def page(body: bytes, status: bytes = b"200 OK") -> bytes:
    return b"HTTP/1.1 %b\r\nContent-Length: %d\r\n\r\n%b" % (status, len(body), body)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What answers has time for it, however slow this machine is."""
    monkeypatch.setattr(control_parts, "_MOST_SECONDS", 60.0)


async def asked(answer: bytes | None) -> tuple[str, str, tuple[str, ...]]:
    """State, version and reasons of an exporter."""
    async with exporter(answer) as port:
        _, part = await machine_parts("", Exporters(node=f"http://127.0.0.1:{port}/metrics").urls())
    assert (part.kind, part.name) == ("exporter", f"node exporter at 127.0.0.1:{port}")
    return part.state, part.version, part.reasons


def program(folder: Path, script: str) -> str:
    file = folder / "docker"
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    return str(file)


def test_the_system_is_read_from_its_files(tmp_path: Path) -> None:
    told = {
        "proc/sys/kernel/osrelease": "6.1.0-18-amd64\n",
        "etc/os-release": 'ID=debian\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n',
        "sys/module/nvidia/version": "550.54.15\n",
    }
    for name, text in told.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert versions_of(str(tmp_path)) == ("6.1.0-18-amd64", ("Debian GNU/Linux 12 (bookworm)", "nvidia 550.54.15"))
    assert versions_of(str(tmp_path / "none")) == ("", ())
    (of_machine := tmp_path / "proc/1/root/etc/os-release").parent.mkdir(parents=True)
    of_machine.write_text('PRETTY_NAME="Ubuntu 24.04.2 LTS"\n')
    assert versions_of(str(tmp_path))[1][0] == "Ubuntu 24.04.2 LTS", (
        "an agent's image has another system than its machine"
    )


async def test_the_machine_is_told_by_its_name_and_its_kernel() -> None:
    (machine,) = await machine_parts("kubernetes", ())  # not a program of this machine
    assert (machine.kind, machine.name, machine.state) == ("machine", socket.gethostname(), "ok")
    assert machine.version == os.uname().release


@pytest.mark.parametrize(
    ("script", "state", "version"),
    [
        ('[ "$*" = "version --format {{.Server.Version}}" ] && echo 24.0.7', "ok", "24.0.7"),
        ("echo cannot connect >&2; exit 1", "away", ""),
        ("head -c 1000 /dev/zero | tr '\\0' x", "away", ""),
    ],
)
@pytest.mark.usefixtures("patient")
async def test_what_starts_containers_is_asked_and_is_away_without_a_version(
    tmp_path: Path, script: str, state: str, version: str
) -> None:
    _, part = await machine_parts(program(tmp_path, script), ())
    assert (part.kind, part.name, part.state, part.version) == ("containers", "docker", state, version)
    assert bool(part.reasons) == (state == "away")


async def test_a_container_program_that_does_not_answer_is_away(tmp_path: Path) -> None:
    _, part = await machine_parts(program(tmp_path, "exec sleep 600"), ())
    assert (part.state, part.version) == ("away", "") and part.reasons


async def test_a_container_program_is_ended_where_no_answer_is_wanted_any_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control_parts, "_MOST_SECONDS", 600.0)
    asking = asyncio.create_task(machine_parts(program(tmp_path, f"echo $$ > {tmp_path}/pid; exec sleep 600"), ()))
    async with asyncio.timeout(60):
        while not (written := tmp_path / "pid").exists() or not written.read_text().strip():
            await asyncio.sleep(0.02)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        while Path(f"/proc/{written.read_text().strip()}").exists():
            await asyncio.sleep(0.02)


async def test_a_container_program_that_is_not_started_in_time_is_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def stands(*_: object, **__: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(asyncio, "create_subprocess_exec", stands)
    async with asyncio.timeout(60):
        _, part = await machine_parts(program(tmp_path, "echo 24.0.7"), ())
    assert part.state == "away"


async def test_a_container_program_that_is_gone_is_away(tmp_path: Path) -> None:
    _, part = await machine_parts(str(tmp_path / "docker"), ())
    assert part.state == "away"


@pytest.mark.usefixtures("patient")
async def test_an_exporter_tells_its_version_or_why_it_cannot_be_read() -> None:
    built = b'# TYPE node_exporter_build_info gauge\nnode_exporter_build_info{goversion="go1.19",version="1.5.0"} 1\n'
    assert await asked(page(built)) == ("ok", "1.5.0", ())
    assert await asked(page(b"node_load1 0.5\n")) == ("ok", "", ())
    assert await asked(page(b"", b"500 No")) == ("away", "", ("Node exporter answers with the status 500.",))
    assert await asked(b"nonsense\r\n\r\n") == ("away", "", ("Node exporter cannot be read: BadStatusLine.",))


async def test_an_exporter_that_does_not_answer_is_away() -> None:
    state, _, (reason,) = await asked(None)
    assert state == "away" and "within 1 s" in reason


@pytest.mark.timeout(360)
@pytest.mark.usefixtures("patient")
async def test_debians_node_exporter_tells_its_version() -> None:
    if reason := prometheus.missing():
        pytest.fail(reason) if IN_CI else pytest.skip(reason)
    program = await asyncio.to_thread(prometheus.program, "prometheus-node-exporter")
    said = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=60, check=True)
    port = free_port()
    serving = await asyncio.create_subprocess_exec(
        program, f"--web.listen-address=127.0.0.1:{port}", stderr=asyncio.subprocess.PIPE
    )
    try:
        assert serving.stderr is not None
        async for line in serving.stderr:
            if b"Listening on" in line:
                break
        (_, part) = await machine_parts("", [exporter_url(f"http://127.0.0.1:{port}", NODE_EXPORTER)])
    finally:
        serving.kill()
        await serving.communicate()
    assert part.state == "ok" and part.version
    assert f"version {part.version} " in said.stdout + said.stderr
