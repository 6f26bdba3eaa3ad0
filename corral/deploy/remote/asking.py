"""Ask hosts how their parts of the cluster are, renew certificates of control planes, and reset hosts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from corral.deploy.checks.components import MOST_BYTES, GarbledStatus, Status, parse_status
from corral.deploy.hosts.reader import CONTROL_PLANE, Host
from corral.deploy.remote.ssh import AT_ONCE, NotReached, Ssh, as_root
from corral.deploy.remote.survey import known_hosts_of
from corral.deploy.steps.outcome import last_error
from corral.deploy.steps.script import alone_script_of

_STATUS: Final = Path(__file__).with_name("status.sh")
_FUNCTIONS: Final = Path(__file__).with_name("do.sh")
_OF_NODES: Final = Path(__file__).with_name("nodes.sh")
_OF_PARTS: Final = tuple(Path(__file__).with_name(name) for name in ("hadoop.sh", "registry.sh"))
_SECONDS: Final = 1200
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


async def do_on(host: Host, list_path: Path, *words: str) -> tuple[int, str]:
    """Call a function of the scripts; returns the exit code and what was printed. Raises NotReached."""
    functions = "".join(path.read_text(encoding="utf-8") for path in (_FUNCTIONS, _OF_NODES, *_OF_PARTS))
    script = alone_script_of(functions, *words)
    async with Ssh(known_hosts_of(list_path), list_path.parent) as ssh:
        answer = await ssh.ask(host, f"{as_root(host)}sh -s", script, most=_MOST_OUTPUT, seconds=_SECONDS)
    return answer.code, answer.output.decode(errors="replace")


async def reset(hosts: Sequence[Host], list_path: Path, told: Callable[[str, str], None]) -> dict[str, str]:
    """Take back what `up` made on these hosts, control planes last and one by one; returns why it failed, by host."""
    places = asyncio.Semaphore(AT_ONCE)
    failed: dict[str, str] = {}

    async def of(host: Host) -> None:
        async with places:
            told(host.name, "taking back what up made")
            try:
                code, text = await do_on(host, list_path, "reset_host")
            except NotReached as error:
                code, text = 1, error.refusal.message
            if code:
                failed[host.name] = last_error(text)
            told(host.name, f"failed: {failed[host.name]}" if code else "is as it was")

    planes = [host for host in hosts if CONTROL_PLANE in host.roles]
    await asyncio.gather(*(of(host) for host in hosts if host not in planes))
    # Each takes its own member out of etcd, which needs more than half of the others for that.
    for host in planes:
        await of(host)
    return failed
