"""Take the backup of a cluster from its control plane, and give it back to one."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from corral.deploy.checks.connection import Refusal
from corral.deploy.hosts.backup import KEY, MOST_BYTES, STORE, Manifest
from corral.deploy.hosts.reader import Host, Hosts
from corral.deploy.remote import backup_file
from corral.deploy.remote.sending import RECEIVED, archive_of, receiver
from corral.deploy.remote.ssh import NotReached, Ssh, as_root
from corral.deploy.remote.survey import known_hosts_of
from corral.deploy.steps.bundle import BundleFile, listing
from corral.deploy.steps.outcome import last_error
from corral.deploy.steps.script import alone_script_of, question_of, script_of
from corral.deploy.steps.step import Step

_SECONDS: Final = 4 * 3600
_SECONDS_TO_ANSWER: Final = 60
_MOST_OUTPUT: Final = 4 * 1024 * 1024
Told = Callable[[str, str], None]
"""Called with a host's name and why another one is asked."""
_FUNCTIONS: Final = Path(__file__).with_name("do.sh")


async def take(hosts: Hosts, heads: Sequence[Host], list_path: Path, target: Path, told: Told) -> Manifest:
    """Write the backup of a cluster to a new file, by the first control plane that answers.

    Raises NotReached, or CorralError.
    """
    assert hosts.corral is not None
    functions = _FUNCTIONS.read_text(encoding="utf-8")
    async with Ssh(known_hosts_of(list_path), list_path.parent) as ssh:
        head = await _first_that_answers(ssh, heads, functions, told)
        root = f"{as_root(head)}sh -s"
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".corral-backup-") as scratch:
            folder = Path(scratch)
            gather = alone_script_of(functions, "prepare_backup", hosts.corral.namespace)
            answer = await ssh.ask(head, root, gather, most=_MOST_OUTPUT, seconds=_SECONDS)
            _must_be_good(head, answer.code, answer.output, "gather what a backup has")
            try:
                with (folder / "sent.tar").open("wb") as into:
                    text = question_of(functions, "print_backup")
                    code = await ssh.save(head, root, text, into, most=MOST_BYTES, seconds=_SECONDS)
            finally:
                await ssh.ask(head, root, question_of(functions, "drop_backup"), most=_MOST_OUTPUT, seconds=_SECONDS)
            _must_be_good(head, code, b"", "send the backup")
            files = backup_file.unpack(folder / "sent.tar", folder / "parts")
            made = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            return backup_file.write(target, hosts.cluster, made, files)


async def give_back(hosts: Hosts, head: Host, list_path: Path, manifest: Manifest, files: dict[str, Path]) -> str:
    """Restore Corral's store and key where Corral is installed; returns what the control plane said. Raises NotReached."""
    assert hosts.corral is not None
    functions = _FUNCTIONS.read_text(encoding="utf-8")
    parts = [
        BundleFile(files[name], name, manifest.parts[name].digest, manifest.parts[name].size) for name in (STORE, KEY)
    ]
    call = ("restore_corral", hosts.corral.namespace, hosts.corral.image)
    step = Step("chart", "restore Corral's store", call=call, content=listing(parts))
    async with Ssh(known_hosts_of(list_path), list_path.parent) as ssh:
        sent = archive_of([(each.path, each.target) for each in parts])
        command = as_root(head) + receiver(RECEIVED)
        answer = await ssh.ask(head, command, sent, most=_MOST_OUTPUT, seconds=_SECONDS)
        _must_be_good(head, answer.code, answer.output, "receive the backup")
        text = script_of(functions, step, from_folder=False)
        answer = await ssh.ask(head, f"{as_root(head)}sh -s", text, most=_MOST_OUTPUT, seconds=_SECONDS)
        _must_be_good(head, answer.code, answer.output, "restore Corral's store")
    return last_error(answer.output.decode(errors="replace"))


async def _first_that_answers(ssh: Ssh, heads: Sequence[Host], functions: str, told: Told) -> Host:
    """The first control plane that is reached and whose Kubernetes answers it.

    Raises NotReached with the refusal of the last one.
    """
    text = question_of(functions, "answers")
    refusal = Refusal("the list has no control plane", "Add one to the list.")
    for head in heads:
        try:
            answer = await ssh.ask(head, f"{as_root(head)}sh -s", text, most=_MOST_OUTPUT, seconds=_SECONDS_TO_ANSWER)
            _must_be_good(head, answer.code, answer.output, "ask its Kubernetes")
        except NotReached as error:
            refusal = error.refusal
            if head is not heads[-1]:
                told(head.name, f"{refusal.message}; asking the next control plane")
        else:
            return head
    raise NotReached(refusal)


def _must_be_good(head: Host, code: int, output: bytes, what: str) -> None:
    if code:
        said = last_error(output.decode(errors="replace"))
        raise NotReached(Refusal(f"{head.name} cannot {what}: it said {said}", "Look at corral deploy status."))
