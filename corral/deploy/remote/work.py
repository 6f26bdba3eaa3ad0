"""Do the steps of all hosts at once, in order on each; a host that fails does not stop the others."""

from __future__ import annotations

import asyncio
import fcntl
import io
import re
import tarfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, TextIO

from corral.deploy.hosts.reader import Host, Hosts
from corral.deploy.remote.ssh import AT_ONCE, NotReached, Ssh
from corral.deploy.remote.survey import known_hosts_of
from corral.deploy.steps.outcome import Outcome, failure_of
from corral.deploy.steps.plan import INSTALL
from corral.deploy.steps.script import script_of
from corral.deploy.steps.step import HostPlan, Step
from corral.kernel.errors import Conflict, CorralError, InvalidInput, NotFound

_SECONDS: Final = 2400
"""Seconds that a step may take; those of packages have bounds of their own below it."""
_MOST_OUTPUT: Final = 4 * 1024 * 1024
_MOST_PACKAGES: Final = 256 * 1024 * 1024
_FUNCTIONS: Final = Path(__file__).with_name("do.sh")
_PACKAGE_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+_~%:-]{0,200}\.deb")
_RECEIVE: Final = (
    "sh -c 'd=/var/lib/corral/deploy/packages; umask 022; rm -rf $d && mkdir -p $d && "
    "exec tar --no-same-owner -xf - -C $d' 2>&1"
)

Told = Callable[[str, str], None]
"""Called with a host's name and what is done there now, or came of it."""


def packages_of(folder: Path) -> bytes:
    """The .deb files of a folder as an archive. Raises NotFound, or InvalidInput where there are none or too many."""
    if not folder.is_dir():
        raise NotFound("no-such-folder", f"There is no folder {folder}.")
    files = sorted(path for path in folder.iterdir() if path.suffix == ".deb")
    if not files:
        raise InvalidInput("no-packages", f"{folder} has no .deb file.")
    for path in files:
        if not _PACKAGE_NAME.fullmatch(path.name) or not path.is_file():
            raise InvalidInput(
                "odd-package",
                f"Rename {path.name!r} in {folder}: a package's file has a name such as socat_1.8_amd64.deb.",
            )
    if sum(path.stat().st_size for path in files) > _MOST_PACKAGES:
        raise InvalidInput("large-packages", f"The .deb files of {folder} are larger than {_MOST_PACKAGES >> 20} MiB.")
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for path in files:
            archive.add(path, path.name, filter=_of_nobody)
    return packed.getvalue()


def _of_nobody(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mode = 0o644
    return member


@contextmanager
def logs_at(folder: Path) -> Iterator[None]:
    """Make the folder of logs, and let no other `up` write to it. Raises Conflict, or CorralError."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = (folder / ".lock").open("w")
    except OSError as error:
        raise CorralError("unwritable-logs", f"{folder} cannot be written: {error.strerror}.") from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Conflict("runs-already", f"Another corral deploy up writes its logs to {folder}.") from None
        yield


async def do_steps(
    hosts: Hosts, plans: Mapping[str, HostPlan], list_path: Path, logs: Path, packages: bytes, told: Told
) -> dict[str, Outcome]:
    """Do what is needed on every host of the plans; each host has a log in the folder `logs`."""
    places = asyncio.Semaphore(AT_ONCE)
    functions = _FUNCTIONS.read_text(encoding="utf-8")
    async with Ssh(known_hosts_of(list_path), list_path.parent) as ssh:

        async def do(host: Host) -> tuple[str, Outcome]:
            plan = plans[host.name]
            async with places:
                with (logs / f"{host.name}.log").open("a", encoding="utf-8") as log:
                    work = _Work(ssh, host, functions, packages, log, lambda says: told(host.name, says))
                    return host.name, await work.do(plan)

        return dict(await asyncio.gather(*(do(host) for host in hosts.hosts if host.name in plans)))


class _Work:
    """The steps of one host, and its log."""

    def __init__(
        self, ssh: Ssh, host: Host, functions: str, packages: bytes, log: TextIO, told: Callable[[str], None]
    ) -> None:
        self._ssh, self._host, self._functions, self._packages = ssh, host, functions, packages
        self._log, self._told = log, told
        self._sudo = "exec " if host.access.user == "root" else "exec sudo -n "

    async def do(self, plan: HostPlan) -> Outcome:
        done: list[str] = []
        for at, step in enumerate(plan.doable, 1):
            says = f"[{at}/{len(plan.doable)}] {step.title}"
            self._told(says)
            self._write(says)
            try:
                code, output = await self._step(step)
            except NotReached as error:
                self._write(f"lost: {error.refusal.message}")
                return Outcome("failed", tuple(done), error.refusal)
            self._write(f"ended with {code}", output)
            if code:
                return Outcome("failed", tuple(done), failure_of(step, output))
            done.append(step.title)
        return Outcome("prepared", tuple(done))

    async def _step(self, step: Step) -> tuple[int, str]:
        """Do one step; returns its exit code and what it printed. Raises NotReached."""
        if step.call[0] == INSTALL and self._packages:
            code, output = await self._ask(_RECEIVE, self._packages)
            if code:
                return code, output
        return await self._ask("sh -s", script_of(self._functions, step, from_folder=bool(self._packages)))

    async def _ask(self, command: str, text: bytes) -> tuple[int, str]:
        answer = await self._ssh.ask(self._host, self._sudo + command, text, most=_MOST_OUTPUT, seconds=_SECONDS)
        return answer.code, answer.output.decode(errors="replace")

    def _write(self, says: str, output: str = "") -> None:
        """Add to the log, at once: what a killed `up` did is in it, too."""
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        shown = "".join(char if char.isprintable() or char == "\n" else "·" for char in output)
        self._log.write(f"{now} {says}\n" + "".join(f"  {line}\n" for line in shown.splitlines()))
        self._log.flush()
