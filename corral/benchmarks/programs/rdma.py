"""Latency and bandwidth of RDMA writes between each pair of tasks, by perftest's `ib_write_lat` and `ib_write_bw`."""

from __future__ import annotations

import select
import shutil
import socket
import subprocess
import time
from pathlib import Path
from typing import Final

from corral.benchmarks.programs.given import Given, NotMeasurable
from corral.benchmarks.programs.pairs import PATIENCE, ask, in_turn, line, reach

_DEVICES = Path("/sys/class/infiniband")
_LATENCY, _BANDWIDTH = "ib_write_lat", "ib_write_bw"
_HEADS: Final = {_LATENCY: "t_typical[usec]", _BANDWIDTH: "BW average[Gb/sec]"}
"""The column of perftest's table that counts; of a bandwidth it is told in Gb/s by `--report_gbits`."""
_COLUMNS: Final = {_LATENCY: 4, _BANDWIDTH: 3}
_LATENCY_BYTES: Final = 8
_LONGEST: Final = 300
_PAUSE: Final = 0.1
"""Seconds between two tries to connect."""


def measure(given: Given) -> dict[str, float]:
    """Return, on rank 0, latency in microseconds and GB/s of each pair, and the worst of them.

    Raises NotMeasurable where no task has an RDMA device, and RuntimeError where some have none, or perftest fails.
    """
    size, times = given.parameters["size_kib"] * 2**10, given.parameters["iterations"]

    def way(address: str) -> tuple[float, float]:
        latency = _run(_LATENCY, address, _LATENCY_BYTES, times)
        return latency, _run(_BANDWIDTH, address, size, times) / 8

    return in_turn(given, way, _answer, lambda: _check(given))


def _check(given: Given) -> None:
    """Look whether every task can be measured."""
    lacking = {0: _lacks()} | {at: ask(each, "lacks") for at, each in enumerate(given.addresses) if at}
    lacking = {at: why for at, why in lacking.items() if why != "nothing"}
    if not lacking:
        return
    if len(lacking) == len(given.addresses) and len(set(lacking.values())) == 1:
        raise NotMeasurable(f"RDMA is not measured: {lacking[0]} on any of the nodes.")
    found = "; ".join(f"task {at}: {why}" for at, why in lacking.items())
    raise RuntimeError(f"RDMA cannot be measured between all tasks: {found}"[:_LONGEST])


def _lacks() -> str:
    """Why this task cannot be measured; "nothing" if it can."""
    if device_of(_DEVICES) is None:
        return "there is no RDMA device with an active port"
    absent = [program for program in (_LATENCY, _BANDWIDTH) if shutil.which(program) is None]
    return f"{absent[0]} is not there (Debian's package perftest)" if absent else "nothing"


def device_of(folder: Path) -> tuple[str, int] | None:
    """Return the first RDMA device with an active port, and that port's number; None if there is none."""
    for port in sorted(folder.glob("*/ports/*"), key=lambda each: (each.parts[-3], each.name)):
        try:
            state = (port / "state").read_text(encoding="ascii", errors="replace")
        except OSError:
            continue
        if state.startswith("4:") and port.name.isdigit():  # `4: ACTIVE`
            return port.parts[-3], int(port.name)
    return None


def _answer(order: str, caller: socket.socket) -> None:
    """Serve one measurement: start perftest, tell its port, and wait until it has ended."""
    if order == "lacks":
        caller.sendall(f"{_lacks()}\n".encode())
        return
    program, size, times = order.split()
    if program not in _HEADS:
        return
    with socket.socket() as found:  # another program may take the port in between; perftest then says so
        found.bind(("", 0))
        port = int(found.getsockname()[1])
    with _start(program, int(size), int(times), port) as process:
        caller.sendall(f"{port}\n".encode())
        text, problem = _ended(process)
    caller.sendall((f"failed {problem or _why(text)}"[:190] if process.returncode else "done").encode() + b"\n")


def _run(program: str, address: str, size: int, times: int) -> float:
    """The figure that a program tells of the way to an address. Raises RuntimeError with what it says."""
    host = address.rpartition(":")[0]
    until = time.monotonic() + PATIENCE
    with reach(address) as there:
        there.sendall(f"{program} {size} {times}\n".encode())
        port = int(line(there))
        while True:
            with _start(program, size, times, port, host) as process:
                text, problem = _ended(process)
            early = "Couldn't connect" in text  # the peer's program does not listen yet, unless it has ended
            if not early or time.monotonic() > until or select.select([there], [], [], _PAUSE)[0]:
                break
        peer = line(there)
    if peer != "done" and (early or not process.returncode):
        raise RuntimeError(f"{program} on {host}: {peer.removeprefix('failed ')}"[:_LONGEST])
    if process.returncode:
        raise RuntimeError(f"{program} to {host}: {problem or _why(text)}"[:_LONGEST])
    return told_by(program, text)


def _start(program: str, size: int, times: int, port: int, host: str = "") -> subprocess.Popen[str]:
    device = device_of(_DEVICES)
    if device is None:
        raise RuntimeError("the RDMA device is gone, or its port is no longer active")
    words = [program, f"--ib-dev={device[0]}", f"--ib-port={device[1]}", f"--port={port}", f"--size={size}"]
    words += [f"--iters={times}", "--CPU-freq"]  # without a fixed frequency of processors it would refuse
    words += ["--report_gbits"] if program == _BANDWIDTH else []
    words += [host] if host else []
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")


def _ended(process: subprocess.Popen[str]) -> tuple[str, str]:
    """What a program printed, and what is wrong where it takes too long."""
    try:
        return process.communicate(timeout=PATIENCE)[0], ""
    except subprocess.TimeoutExpired:
        process.kill()
        return process.communicate()[0], f"it did not end within {PATIENCE:.0f} s"


def told_by(program: str, text: str) -> float:
    """Return the figure of perftest's table: Gb/s, or microseconds. Raises RuntimeError where there is no such table."""
    head = _HEADS[program]
    lines = iter(text.splitlines())
    if any(each.lstrip().startswith("#bytes") and head in each for each in lines):
        for each in lines:
            cells = each.split()
            if len(cells) > _COLUMNS[program] and cells[0].isdigit() and cells[1].isdigit():
                try:
                    figure = float(cells[_COLUMNS[program]])
                except ValueError:
                    continue
                if 0 < figure < float("inf"):
                    return figure
    raise RuntimeError(f"{program} told no {head}: {_why(text)}"[:_LONGEST])


def _why(text: str) -> str:
    """The last line of a program's output that says something."""
    said = [each.strip() for each in text.splitlines() if any(letter.isalpha() for letter in each)]
    return said[-1] if said else "it said nothing"
