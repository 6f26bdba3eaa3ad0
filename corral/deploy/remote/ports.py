"""Try the ports between all pairs of hosts: each listens for a moment at those of its roles, and then all call."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

from corral.deploy.checks.between_hosts import LEAST_MTU, PortTrial, cluster_address, mtu_of
from corral.deploy.checks.connection import Refusal
from corral.deploy.checks.facts import Facts
from corral.deploy.checks.ours import begun
from corral.deploy.checks.port_rules import VXLAN, Call, calls_among, packets_among, ports_of
from corral.deploy.hosts.reader import Host
from corral.deploy.remote.ssh import AT_ONCE, NotReached, Session, Ssh

_PROBE: Final = Path(__file__).with_name("ports_probe.py")
_COMMAND: Final = "exec python3 -c 'import sys; exec(sys.stdin.read(int(sys.stdin.readline())))'"
"""Runs a program that comes on standard input after its length; what follows it stays to be read by the program."""
_MOST_OUTPUT: Final = 1024 * 1024
_BOUND: Final = ("free", "taken", "denied", "absent", "failed")
_UDP: Final = "udp"
"""Ports of UDP are negative numbers among those that were bound: TCP may have the same ones."""
T = TypeVar("T")
_RESULTS: Final = ("open", "refused", "silent", "unreachable")
_OF_PACKETS: Final = ("open", "small", "silent")


async def try_ports(ssh: Ssh, hosts: Sequence[Host], facts: Mapping[str, Facts], *, seconds: float) -> PortTrial:
    """Let hosts listen and call each other; those without Python 3 or an address take no part."""
    addresses = {host.name: cluster_address(host, facts[host.name]) for host in hosts}
    untried = {
        host.name: "python3 is not installed" if "python3" not in facts[host.name].tools else "it has no known address"
        for host in hosts
        if "python3" not in facts[host.name].tools or not addresses[host.name]
    }
    able = [host for host in hosts if host.name not in untried]
    places = asyncio.Semaphore(AT_ONCE)
    bound: dict[tuple[str, int], str] = {}
    calls: dict[Call, str] = {}
    packets: dict[Call, str] = {}
    async with contextlib.AsyncExitStack() as listening:
        started = await asyncio.gather(
            *(
                _in_turn(places, _listen(listening, ssh, host, facts[host.name], addresses[host.name], seconds))
                for host in able
            ),
            return_exceptions=True,
        )
        for host, found in zip(able, started, strict=True):
            _note(host, found, untried)
            bound |= {(host.name, port): word for port, word in found.items()} if isinstance(found, dict) else {}
        able = [host for host in able if host.name not in untried]
        wanted = [each for each in calls_among(able) if bound.get((each.listener, each.port)) in ("free", "taken")]
        sent = [
            each for each in packets_among(able) if {(each.caller, -VXLAN), (each.listener, -VXLAN)} <= bound.keys()
        ]
        sizes = {host.name: mtu_of(host, facts[host.name]) or LEAST_MTU for host in able}
        called = await asyncio.gather(
            *(_in_turn(places, _call(ssh, host, wanted, sent, sizes[host.name], addresses, seconds)) for host in able),
            return_exceptions=True,
        )
        for host, results in zip(able, called, strict=True):
            _note(host, results, untried)
            for call, word in results.items() if isinstance(results, dict) else ():
                (packets if call.port == VXLAN else calls)[call] = word
    tcp = {(name, port): word for (name, port), word in bound.items() if port > 0}
    return PortTrial(tcp, calls, packets, untried)


async def _in_turn(places: asyncio.Semaphore, work: Coroutine[Any, Any, T]) -> T:
    """Do some work as soon as there is a place."""
    async with places:
        return await work


def _note(host: Host, found: object, untried: dict[str, str]) -> None:
    """Write down why a host took no part; errors of our own go on."""
    if isinstance(found, NotReached):
        untried[host.name] = found.refusal.message
    elif isinstance(found, BaseException):
        raise found


def _program(task: Mapping[str, object]) -> bytes:
    program = _PROBE.read_text()
    return f"{len(program)}\n{program}{task!r}\n".encode()


async def _listen(
    listening: contextlib.AsyncExitStack, ssh: Ssh, host: Host, own: Facts, address: str, seconds: float
) -> dict[int, str]:
    """Begin to listen on a host, until the stack is closed; returns what became of each port."""
    ports = ports_of(host)
    if begun(own):  # a kubelet that is just being restarted must find its port free
        return {port: "taken" for port in ports if port in own.listens}
    if not ports:
        return {}
    session = await listening.enter_async_context(ssh.session(host, _COMMAND))
    udp = [VXLAN] if host.in_kubernetes else []
    await session.send(_program({"address": address, "ports": ports, "udp": udp}))
    found: dict[int, str] = {}
    try:
        async with asyncio.timeout(seconds):
            while (words := await _words(session)) != ["ready"]:
                if len(words) == 3 and words[1].isdecimal() and int(words[1]) in ports and words[2] in _BOUND:
                    found[int(words[1])] = words[2]
                elif words == [_UDP, str(VXLAN), "free"]:
                    found[-VXLAN] = "free"
    except TimeoutError:
        raise NotReached(_unclear("it did not begin to listen in time")) from None
    return found


async def _words(session: Session) -> list[str]:
    """The words of the next line. Raises NotReached at the end of what it prints."""
    line = await session.line()
    if not line:
        raise NotReached(_unclear("its Python 3 could not run the probe"))
    return line.decode(errors="replace").split()


async def _call(
    ssh: Ssh,
    host: Host,
    wanted: Sequence[Call],
    sent: Sequence[Call],
    size: int,
    addresses: Mapping[str, str],
    seconds: float,
) -> dict[Call, str]:
    """Call the ports of others from one host, and send packets to them of up to `size` bytes."""
    wanted = [each for each in wanted if each.caller == host.name]
    sent = [each for each in sent if each.caller == host.name]
    if not wanted and not sent:
        return {}
    task = {
        "calls": [(addresses[each.listener], each.port) for each in wanted],
        "packets": [(addresses[each.listener], each.port) for each in sent],
        "size": size,
    }
    answer = await ssh.ask(host, _COMMAND, _program(task), most=_MOST_OUTPUT, seconds=seconds)
    lines = [line.split() for line in answer.output.decode(errors="replace").splitlines()]
    if ["done"] not in lines:
        raise NotReached(_unclear("its Python 3 could not run the probe"))
    found: dict[Call, str] = {}
    for words in lines:
        among, known = {"call": (wanted, _RESULTS), "packet": (sent, _OF_PACKETS)}.get(
            words[0] if words else "", ((), ())
        )
        if len(words) != 3 or words[2] not in known:
            continue
        number = int(words[1]) if words[1].isdecimal() and len(words[1]) < 9 else len(among)
        if number < len(among):
            found[among[number]] = words[2]
    return found


def _unclear(message: str) -> Refusal:
    return Refusal(message, "")
