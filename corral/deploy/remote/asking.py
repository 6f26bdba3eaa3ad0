"""Ask hosts how their parts of the cluster are, and renew certificates on control planes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from corral.deploy.checks.components import MOST_BYTES, GarbledStatus, Status, parse_status
from corral.deploy.hosts.reader import Host
from corral.deploy.remote.ssh import AT_ONCE, NotReached, Ssh, as_root
from corral.deploy.remote.survey import known_hosts_of
from corral.deploy.steps.script import alone_script_of

_STATUS: Final = Path(__file__).with_name("status.sh")
_FUNCTIONS: Final = Path(__file__).with_name("do.sh")
_SECONDS_OF_A_RENEWAL: Final = 1200
_MOST_OUTPUT: Final = 1024 * 1024


async def statuses(
    hosts: Sequence[Host], list_path: Path, *, seconds: float
) -> tuple[dict[str, Status], dict[str, str]]:  # fmt: skip
    """What each host says of its parts, and why others say nothing."""
    script = _STATUS.read_bytes()
    places = asyncio.Semaphore(AT_ONCE)
    found: dict[str, Status] = {}
    lost: dict[str, str] = {}
    async with Ssh(known_hosts_of(list_path), list_path.parent) as ssh:

        async def ask(host: Host) -> None:
            async with places:
                try:
                    answer = await ssh.ask(host, f"{as_root(host)}sh -s", script, most=MOST_BYTES, seconds=seconds)
                    found[host.name] = parse_status(host.name, answer.output)
                except NotReached as error:
                    lost[host.name] = error.refusal.message
                except GarbledStatus as error:
                    lost[host.name] = f"it tells no status: {error}"

        await asyncio.gather(*(ask(host) for host in hosts))
    return found, lost


async def renew(host: Host, list_path: Path) -> tuple[int, str]:
    """Renew the certificates of a control plane; returns the exit code and what was printed. Raises NotReached."""
    script = alone_script_of(_FUNCTIONS.read_text(encoding="utf-8"), "renew_certificates")
    async with Ssh(known_hosts_of(list_path), list_path.parent) as ssh:
        answer = await ssh.ask(
            host, f"{as_root(host)}sh -s", script, most=_MOST_OUTPUT, seconds=_SECONDS_OF_A_RENEWAL
        )  # fmt: skip
    return answer.code, answer.output.decode(errors="replace")
