"""Look at all hosts at once: the facts of each, and then the ports between them."""

from __future__ import annotations

import asyncio
import resource
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from corral.deploy.checks.between_hosts import PortTrial
from corral.deploy.checks.connection import Refusal, garbled
from corral.deploy.checks.facts import MOST_BYTES, GarbledFacts, parse_facts
from corral.deploy.checks.report import Seen, Survey
from corral.deploy.hosts.reader import Host, Hosts
from corral.deploy.remote.ports import try_ports
from corral.deploy.remote.ssh import AT_ONCE, NotReached, Ssh
from corral.kernel.errors import Conflict

_FILES, _FILES_OF_A_HOST = 128, 12
"""Open files that a look needs, and those of each host: the pipes of its connection and of two sessions."""
_PROBE: Final = Path(__file__).with_name("probe.sh")
_COMMAND: Final = "exec sh -s"

Told = Callable[[Host, Refusal | None], None]
"""Called for each host as soon as it answered or is given up; the refusal is None where it answered."""


async def look_at(hosts: Hosts, list_path: Path, *, seconds: float, ports: bool, told: Told) -> Survey:
    """Probe every host, and try the ports between those that answered, unless `ports` is false."""
    async with Ssh(known_hosts_of(list_path), list_path.parent) as ssh:
        survey = await look_over(ssh, hosts.hosts, seconds=seconds, told=told)
        return await with_ports(ssh, hosts, survey, seconds=seconds) if ports else survey


async def look_over(ssh: Ssh, hosts: Sequence[Host], *, seconds: float, told: Told) -> Survey:
    """Probe these hosts over connections that the caller keeps."""
    _allow_files(_FILES + _FILES_OF_A_HOST * len(hosts))
    places = asyncio.Semaphore(AT_ONCE)
    script = _PROBE.read_bytes()
    seen: dict[str, Seen] = {}
    refusals: dict[str, Refusal] = {}

    async def probe(host: Host) -> None:
        async with places:
            try:
                seen[host.name] = await _seen(ssh, host, script, seconds)
            except NotReached as error:
                refusals[host.name] = error.refusal
        told(host, refusals.get(host.name))

    await asyncio.gather(*(probe(host) for host in hosts))
    return Survey(seen, refusals)


async def with_ports(ssh: Ssh, hosts: Hosts, survey: Survey, *, seconds: float) -> Survey:
    """The survey with a trial of the ports between the hosts that answered."""
    able = [host for host in hosts.hosts if host.name in survey.seen]
    facts = {name: each.facts for name, each in survey.seen.items()}
    return replace(survey, trial=await try_ports(ssh, able, facts, seconds=seconds) if able else PortTrial())


async def look_again(ssh: Ssh, hosts: Sequence[Host], before: Survey, *, seconds: float, told: Told) -> Survey:
    """The survey after steps on these hosts: they alone are asked again."""
    names = {host.name for host in hosts}
    now = await look_over(ssh, hosts, seconds=seconds, told=told)
    kept = {name: each for name, each in before.seen.items() if name not in names}
    return Survey(kept | dict(now.seen), {**before.refusals, **now.refusals})


def _allow_files(needed: int) -> None:
    """Raise this process's own bound on open files to what is needed. Raises Conflict where the system forbids it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise Conflict(
            "too-few-files",
            f"This look needs {needed} open files, and this account may have {hard}. "
            "Name fewer hosts, or raise it (ulimit -n).",
        )
    if soft != resource.RLIM_INFINITY and soft < needed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


async def _seen(ssh: Ssh, host: Host, script: bytes, seconds: float) -> Seen:
    before = time.time()
    answer = await ssh.ask(host, _COMMAND, script, most=MOST_BYTES, seconds=seconds)
    try:
        return Seen(parse_facts(answer.output), before, time.time())
    except GarbledFacts as error:
        raise NotReached(garbled(str(error))) from None


def known_hosts_of(list_path: Path) -> Path:
    """The file of pinned host keys, beside the list."""
    return list_path.with_name(f"{list_path.stem}.known_hosts")
