"""Do the steps of all hosts at once, in order on each; a host that fails does not stop the others."""

from __future__ import annotations

import asyncio
import base64
import binascii
import fcntl
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, TextIO

from corral.deploy.checks.connection import Refusal
from corral.deploy.hosts.reader import Host, Hosts
from corral.deploy.remote.joining import Ask, Starts, joining_text
from corral.deploy.remote.portal import portal_text
from corral.deploy.remote.registry_keys import MOST_BYTES, registry_keys
from corral.deploy.remote.sending import PACKAGES, RECEIVED, archive_of, receiver
from corral.deploy.remote.ssh import AT_ONCE, NotReached, Ssh, as_root
from corral.deploy.remote.survey import known_hosts_of
from corral.deploy.steps.hadoop import JOIN_HADOOP, START_MASTER
from corral.deploy.steps.installation import WRITE_CERTIFICATE
from corral.deploy.steps.node import JOIN_CLUSTER, JOIN_PLANE, START_CLUSTER
from corral.deploy.steps.outcome import Outcome, failure_of, log_entry
from corral.deploy.steps.plan import INSTALL
from corral.deploy.steps.registry import MAKE_KEYS, TRUST
from corral.deploy.steps.registry import START as START_REGISTRY
from corral.deploy.steps.script import question_of, script_of
from corral.deploy.steps.step import HostPlan, Joining, Step
from corral.kernel.errors import Conflict, CorralError, InvalidInput, NotFound

_SECONDS: Final = 2400
"""Seconds that a step may take; those of packages have bounds of their own below it."""
_MOST_OUTPUT: Final = 4 * 1024 * 1024
_MOST_PACKAGES: Final = 256 * 1024 * 1024
_FUNCTIONS: Final = tuple(Path(__file__).with_name(name) for name in ("do.sh", "hadoop.sh", "registry.sh"))
_PACKAGE_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+_~%:-]{0,200}\.deb")
Told = Callable[[str, str], None]
"""Called with a host's name and what is done there now, or came of it."""


def packages_of(folder: Path) -> tuple[Path, ...]:
    """The .deb files of a folder. Raises NotFound, or InvalidInput where there are none or too many."""
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
    return tuple(files)


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
    hosts: Hosts, plans: Mapping[str, HostPlan], list_path: Path, logs: Path, packages: Sequence[Path], told: Told
) -> dict[str, Outcome]:
    """Do what is needed on every host of the plans; each host has a log in the folder `logs`."""
    async with Ssh(known_hosts_of(list_path), list_path.parent) as ssh:
        return await do_steps_over(ssh, hosts, plans, list_path, logs, packages, told)


async def do_steps_over(
    ssh: Ssh, hosts: Hosts, plans: Mapping[str, HostPlan], list_path: Path, logs: Path, packages: Sequence[Path],
    told: Told,
) -> dict[str, Outcome]:  # fmt: skip
    """The same over connections that the caller keeps."""
    places = asyncio.Semaphore(AT_ONCE)
    functions = "".join(path.read_text(encoding="utf-8") for path in _FUNCTIONS)
    starts, masters, registries = Starts(), Starts(), Starts()
    for plan in plans.values():
        if _starts_registry(plan):
            registries.expect(plan.name)
        if _starts(plan):
            starts.expect(plan.name)
        if _starts_master(plan):
            masters.expect(plan.name)

    async def ask(name: str, what: str) -> tuple[int, str]:
        """Ask another host what a function prints, such as a token."""
        host = hosts.named(name)
        assert host is not None
        text = question_of(functions, what)
        answer = await ssh.ask(host, f"{as_root(host)}sh -s", text, most=_MOST_OUTPUT, seconds=_SECONDS)
        return answer.code, answer.output.decode(errors="replace")

    async def do(host: Host) -> tuple[str, Outcome]:
        plan = plans[host.name]
        async with places:
            with (logs / f"{host.name}.log").open("a", encoding="utf-8") as log:
                work = _Work(
                    ssh, host, functions, packages, log, lambda says: told(host.name, says),
                    starts, masters, registries, ask, list_path.parent,
                )  # fmt: skip
                try:
                    return host.name, await work.do(plan)
                finally:
                    starts.tell(host.name, good=False)
                    masters.tell(host.name, good=False)
                    registries.tell(host.name, good=False)

    # Those that join wait for those that start, so the latter have the first places.
    chosen = [host for host in hosts.hosts if host.name in plans]
    awaited = (_starts, _starts_master, _starts_registry)
    first = {name for name, plan in plans.items() if any(each(plan) for each in awaited)}
    ordered = sorted(chosen, key=lambda host: host.name not in first)
    return dict(await asyncio.gather(*(do(host) for host in ordered)))


def _keys(step: Step) -> bytes:
    """The keys of the registry. Raises NotReached."""
    assert step.portal is not None
    try:
        return registry_keys(step.portal.address)
    except CorralError as error:
        why = Refusal(f"cannot {step.title}: {error.message}", "Run up with an installation of Corral's server.")
        raise NotReached(why) from None


def _starts(plan: HostPlan) -> bool:
    return any(step.call[0] == START_CLUSTER for step in plan.doable)


def _starts_master(plan: HostPlan) -> bool:
    return any(step.call == START_MASTER for step in plan.doable)


def _starts_registry(plan: HostPlan) -> bool:
    return any(step.call[0] == START_REGISTRY for step in plan.doable)


class _Work:
    """The steps of one host, and its log."""

    def __init__(
        self, ssh: Ssh, host: Host, functions: str, packages: Sequence[Path], log: TextIO, told: Callable[[str], None],
        starts: Starts, masters: Starts, registries: Starts, ask: Ask, folder: Path,
    ) -> None:  # fmt: skip
        self._folder = folder
        self._ssh, self._host, self._functions, self._packages = ssh, host, functions, packages
        self._log, self._told, self._starts, self._masters, self._question = log, told, starts, masters, ask
        self._registries = registries

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
            if step.call[0] == START_CLUSTER:
                self._starts.tell(self._host.name, good=True)
            if step.call == START_MASTER:
                self._masters.tell(self._host.name, good=True)
            if step.call[0] == START_REGISTRY:
                self._registries.tell(self._host.name, good=True)
        return Outcome("prepared", tuple(done))

    async def _step(self, step: Step) -> tuple[int, str]:
        """Do one step; returns its exit code and what it printed. Raises NotReached."""
        sent, folder = [(each.path, each.target.lstrip("/")) for each in step.files], RECEIVED
        if step.call[0] == INSTALL:
            sent, folder = [(path, path.name) for path in self._packages], PACKAGES
        if sent:
            code, output = await self._ask(receiver(folder), archive_of(sent))
            if code:
                return code, output
        if step.call[0] in (JOIN_CLUSTER, JOIN_PLANE):
            return await self._join(step)
        if step.call[0] == JOIN_HADOOP:
            await self._started(step, self._masters)
        if step.call[0] == TRUST:
            step = replace(step, content=await self._access(step))
        if step.call[0] == MAKE_KEYS:
            step = replace(step, content=_keys(step))
        if step.call[0] == WRITE_CERTIFICATE:
            step = replace(step, content=self._portal(step))
        return await self._ask("sh -s", script_of(self._functions, step, from_folder=bool(self._packages)))

    async def _join(self, step: Step) -> tuple[int, str]:
        """Join the control plane once it has started; control planes join one after the other. Raises NotReached."""
        async with self._starts.turn if step.call[0] == JOIN_PLANE else nullcontext():
            step = replace(step, content=await self._joining(step))
            return await self._ask("sh -s", script_of(self._functions, step, from_folder=False))

    async def _access(self, step: Step) -> bytes:
        """The certificates by which a host asks the registry, once that runs. Raises NotReached."""
        joining = await self._started(step, self._registries)
        code, output = await self._question(joining.first, "print_registry_access")
        try:
            found = base64.b64decode("".join(output.split()), validate=True)
        except binascii.Error:
            found = b""
        if code or not found or len(found) > MOST_BYTES:
            why = f"{joining.first} gave no certificates for its registry"
            raise NotReached(Refusal(why, f"Read the log of {joining.first}, then run up again."))
        return found

    async def _joining(self, step: Step) -> bytes:
        """What kubeadm is told of the control plane, once that has started. Raises NotReached."""
        return await joining_text(self._host, await self._started(step, self._starts), self._question)

    async def _started(self, step: Step, starts: Starts) -> Joining:
        """What a host joins, once that has started. Raises NotReached."""
        joining = step.joining
        if joining is None or not await starts.wait(joining):
            first = joining.first if joining else "the control plane"
            what = "join Hadoop" if step.call[0] == JOIN_HADOOP else step.title
            raise NotReached(Refusal(f"cannot {what}: {first} has not started", f"Mend {first}, then run up again."))
        return joining

    def _portal(self, step: Step) -> bytes:
        """The portal's key and certificate. Raises NotReached."""
        assert step.portal is not None
        try:
            return portal_text(step.portal, self._folder)
        except CorralError as error:
            why = Refusal(f"cannot write the portal's certificate: {error.message}", "Mend it, then run up again.")
            raise NotReached(why) from None

    async def _ask(self, command: str, text: bytes | Iterable[bytes]) -> tuple[int, str]:
        command = as_root(self._host) + command
        answer = await self._ssh.ask(self._host, command, text, most=_MOST_OUTPUT, seconds=_SECONDS)
        return answer.code, answer.output.decode(errors="replace")

    def _write(self, says: str, output: str = "") -> None:
        """Add to the log, at once: what a killed `up` did is in it, too."""
        self._log.write(log_entry(datetime.now(UTC), says, output))
        self._log.flush()
