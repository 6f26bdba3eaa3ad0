"""The launch agent: lets `mpirun` and `horovodrun` of one task start processes in other tasks, without ssh servers.

```
agent lead --name TASK --slots N --wait-for N [--bare] [--idle-seconds S] -- LAUNCHER …
                                                                       in the leading task: run a launcher over all
tasks
agent join --name TASK --slots N [--leave-seconds S]                   in every other task: run the leader's commands
agent remote SOCKET [ssh's options] HOST WORD …                        called by the launcher as `ssh` and `rsh`
agent hosts SOCKET                                                     called by Horovod to list hosts: `TASK:N` lines
```
The leader's address and the secret come from the environment: CORRAL_AGENT_HOST, CORRAL_AGENT_PORT,
CORRAL_AGENT_SECRET. The secret is removed from it before any program is started.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import sys
from collections.abc import Sequence
from typing import Any

UNREACHABLE = 255
"""ssh's exit code if the command could not be run on the host."""
_WITH_VALUE = ("-o", "-p", "-i", "-l", "-F")


def main(argv: Sequence[str]) -> int:
    """Run one of the four modes; the exit code of the process."""
    parser = argparse.ArgumentParser(prog="agent")
    modes = parser.add_subparsers(dest="mode", required=True)
    for mode in ("lead", "join"):
        options = modes.add_parser(mode)
        options.add_argument("--name", required=True)
        options.add_argument("--slots", type=int, required=True)
        if mode == "lead":
            options.add_argument("--wait-for", type=int, required=True)
            options.add_argument("--bare", action="store_true")
            options.add_argument("--idle-seconds", type=float)
            options.add_argument("launcher", nargs="+")
        else:
            options.add_argument("--leave-seconds", type=float, default=0)
    remote = modes.add_parser("remote")
    remote.add_argument("socket")
    remote.add_argument("words", nargs=argparse.REMAINDER)
    hosts = modes.add_parser("hosts")
    hosts.add_argument("socket")
    given = parser.parse_args(argv)
    if given.mode == "remote":
        return run_remote(given.socket, given.words)
    if given.mode == "hosts":
        return list_hosts(given.socket)
    return _run_agent(given)


def _run_agent(given: argparse.Namespace) -> int:
    import asyncio  # only here: the ssh replacements start once per task, and must be quick

    return asyncio.run(_agent(given))


async def _agent(given: argparse.Namespace) -> int:
    from corral.runtime.agent_lead import make_leader
    from corral.runtime.agent_member import Member

    host, port = os.environ["CORRAL_AGENT_HOST"], int(os.environ["CORRAL_AGENT_PORT"])
    secret = os.environ.pop("CORRAL_AGENT_SECRET")
    if given.mode == "join":
        return await Member(given.name, given.slots, host, port, secret, given.leave_seconds).run()
    leader, folder = make_leader(given.name, given.slots, secret)
    with folder:
        bounds = {"wait_for": given.wait_for, "idle_seconds": given.idle_seconds}
        return await leader.run(given.launcher, host, port, bare=given.bare, **bounds)


def run_remote(path: str, words: Sequence[str]) -> int:
    """Replace ssh: run the words in the named task and return their exit code, or 255 if that is impossible."""
    host, *rest = _without_options(words) or [""]
    command = _without_options(rest)  # like ssh, accept options after the host too
    if not host or not command:
        print("corral agent: a host and a command were expected", file=sys.stderr)
        return UNREACHABLE
    answer = _ask(path, {"host": host, "command": " ".join(command)})
    return int(answer.get("exit", UNREACHABLE))


def _without_options(words: Sequence[str]) -> list[str]:
    rest = list(words)
    while rest and rest[0].startswith("-"):
        del rest[: 2 if rest[0] in _WITH_VALUE else 1]
    return rest


def list_hosts(path: str) -> int:
    """Print the tasks that have joined, one `TASK:SLOTS` per line."""
    answer = _ask(path, {})
    print("\n".join(answer.get("hosts", [])))
    return 0 if answer else 1


def _ask(path: str, request: dict[str, str]) -> dict[str, Any]:
    try:
        with socket.socket(socket.AF_UNIX) as door:
            door.connect(path)
            door.sendall(json.dumps(request).encode() + b"\n")
            with door.makefile("rb") as answers:
                line = answers.readline()
    except OSError as error:
        print(f"corral agent: the leading agent does not answer: {error}", file=sys.stderr)
        return {}
    return dict(json.loads(line)) if line else {}


if __name__ == "__main__":
    sys.exit(main(sys.argv[2:] if sys.argv[1:2] == ["agent"] else sys.argv[1:]))
