"""Take the backup of a cluster from its control plane and from Hadoop's master, and give it back."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from corral.deploy.checks.connection import Refusal
from corral.deploy.hosts.backup import HDFS, KEY, MOST_BYTES, PARTS, STORE, Manifest
from corral.deploy.hosts.reader import Host, Hosts
from corral.deploy.remote import backup_file
from corral.deploy.remote.sending import RECEIVED, archive_of, receiver
from corral.deploy.remote.ssh import NotReached, Ssh, as_root
from corral.deploy.remote.survey import known_hosts_of
from corral.deploy.steps.bundle import BundleFile, listing
from corral.deploy.steps.hadoop_files import FORMAT_FILE, USER
from corral.deploy.steps.outcome import last_error
from corral.deploy.steps.script import alone_script_of, question_of, script_of
from corral.deploy.steps.step import Step
from corral.kernel.errors import InvalidInput

_SECONDS: Final = 4 * 3600
_SECONDS_TO_ANSWER: Final = 60
_MOST_OUTPUT: Final = 4 * 1024 * 1024
Told = Callable[[str, str], None]
"""Called with a host's name and why another one is asked."""
_FUNCTIONS: Final = tuple(Path(__file__).with_name(name) for name in ("do.sh", "hadoop.sh"))


async def take(
    hosts: Hosts, heads: Sequence[Host], list_path: Path, target: Path, told: Told
) -> tuple[Manifest, Refusal | None]:  # fmt: skip
    """Write the backup of a cluster to a new file, by the first control plane that answers and by Hadoop's master.

    Returns also why HDFS is not in it. Raises NotReached, or CorralError, also for a list of Hadoop alone.
    """
    functions = functions_text()
    async with Ssh(known_hosts_of(list_path), list_path.parent) as ssh:
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".corral-backup-") as scratch:
            files: dict[str, Path] = {}
            refusal: Refusal | None = None
            if hosts.corral is not None:
                head = await _first_that_answers(ssh, heads, functions, told)
                words = ("prepare_backup", hosts.corral.namespace)
                files |= await _gathered(ssh, head, functions, words, Path(scratch), PARTS)
            master = hosts.named(hosts.hadoop.master) if hosts.hadoop is not None else None
            if master is not None:
                of_hdfs = ("prepare_hdfs_backup", FORMAT_FILE, USER)
                try:
                    files |= await _gathered(ssh, master, functions, of_hdfs, Path(scratch), HDFS)
                except (NotReached, InvalidInput) as error:
                    if not files:
                        raise
                    refusal = error.refusal if isinstance(error, NotReached) else Refusal(error.message.rstrip("."), "")
            made = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            return backup_file.write(target, hosts.cluster, made, files), refusal


async def _gathered(
    ssh: Ssh, host: Host, functions: str, call: Sequence[str], folder: Path, wanted: Sequence[str]
) -> dict[str, Path]:  # fmt: skip
    """The parts that a host gathers by this call, as files of `folder`; nothing of them stays there."""
    root, sent = f"{as_root(host)}sh -s", folder / "sent.tar"
    answer = await ssh.ask(host, root, alone_script_of(functions, *call), most=_MOST_OUTPUT, seconds=_SECONDS)
    must_be_good(host, answer.code, answer.output, "gather what a backup has")
    try:
        with sent.open("wb") as into:
            text = question_of(functions, "print_backup")
            code = await ssh.save(host, root, text, into, most=MOST_BYTES, seconds=_SECONDS)
    finally:
        await ssh.ask(host, root, question_of(functions, "drop_backup"), most=_MOST_OUTPUT, seconds=_SECONDS)
    must_be_good(host, code, b"", "send the backup")
    found = backup_file.unpack(sent, folder / "parts", wanted)
    sent.unlink()
    return found


async def give_back(
    hosts: Hosts, heads: Sequence[Host], list_path: Path, manifest: Manifest, files: dict[str, Path], told: Told
) -> str:  # fmt: skip
    """Restore Corral's store and key where Corral is installed, by the first control plane that answers.

    Returns what it said. Raises NotReached.
    """
    assert hosts.corral is not None
    call = ("restore_corral", hosts.corral.namespace, hosts.corral.image)
    async with Ssh(known_hosts_of(list_path), list_path.parent) as ssh:
        head = await _first_that_answers(ssh, heads, functions_text(), told)
        said = await sent_and_done(
            ssh, head, manifest, {name: files[name] for name in (STORE, KEY)}, call, "restore Corral's store"
        )
    return last_error(said)


async def sent_and_done(
    ssh: Ssh, host: Host, manifest: Manifest, files: Mapping[str, Path], call: tuple[str, ...], what: str
) -> str:  # fmt: skip
    """Send parts of a backup to a host and let it do a function with them; returns what it said. Raises NotReached."""
    parts = [
        BundleFile(path, name.rpartition("/")[2], manifest.parts[name].digest, manifest.parts[name].size)
        for name, path in files.items()
    ]
    step = Step("chart", what, call=call, content=listing(parts))
    sent = archive_of([(each.path, each.target) for each in parts])
    command = as_root(host) + receiver(RECEIVED)
    answer = await ssh.ask(host, command, sent, most=_MOST_OUTPUT, seconds=_SECONDS)
    must_be_good(host, answer.code, answer.output, "receive the backup")
    text = script_of(functions_text(), step, from_folder=False)
    answer = await ssh.ask(host, f"{as_root(host)}sh -s", text, most=_MOST_OUTPUT, seconds=_SECONDS)
    must_be_good(host, answer.code, answer.output, what)
    return answer.output.decode(errors="replace")


def functions_text() -> str:
    """The functions that hosts call."""
    return "".join(path.read_text(encoding="utf-8") for path in _FUNCTIONS)


async def _first_that_answers(ssh: Ssh, heads: Sequence[Host], functions: str, told: Told) -> Host:
    """The first control plane that is reached and whose Kubernetes answers it.

    Raises NotReached with the refusal of the last one.
    """
    text = question_of(functions, "answers")
    refusal = Refusal("the list has no control plane", "Add one to the list.")
    for head in heads:
        try:
            answer = await ssh.ask(head, f"{as_root(head)}sh -s", text, most=_MOST_OUTPUT, seconds=_SECONDS_TO_ANSWER)
            must_be_good(head, answer.code, answer.output, "ask its Kubernetes")
        except NotReached as error:
            refusal = error.refusal
            if head is not heads[-1]:
                told(head.name, f"{refusal.message}; asking the next control plane")
        else:
            return head
    raise NotReached(refusal)


def must_be_good(head: Host, code: int, output: bytes, what: str) -> None:
    """Raises NotReached where a host did not do what it was asked."""
    if code:
        said = last_error(output.decode(errors="replace"))
        raise NotReached(Refusal(f"{head.name} cannot {what}: it said {said}", "Look at corral deploy status."))
