"""Give HDFS' metadata back: to the NameNode first, and then every DataNode joins it again."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from corral.deploy.checks.connection import Refusal
from corral.deploy.hosts.backup import NAME_NODE, Manifest
from corral.deploy.hosts.reader import Host, Hosts
from corral.deploy.remote.backup import functions_text, must_be_good, sent_and_done
from corral.deploy.remote.ssh import AT_ONCE, NotReached, Ssh, as_root
from corral.deploy.remote.survey import known_hosts_of
from corral.deploy.steps.hadoop_files import FOLDERS_FILE, FORMAT_FILE, USER
from corral.deploy.steps.outcome import last_error
from corral.deploy.steps.script import alone_script_of

_SECONDS: Final = 1800
_MOST_OUTPUT: Final = 1024 * 1024
_CLUSTER: Final = re.compile(r"^corral-hdfs-cluster ([A-Za-z0-9-]{1,200})$", re.MULTILINE)
_KEPT: Final = re.compile(r"^corral-hdfs-kept$", re.MULTILINE)
_SECONDS_TO_JOIN: Final = 300
"""In which all DataNodes are to be there."""


async def give_back_hdfs(
    hosts: Hosts, list_path: Path, manifest: Manifest, files: Mapping[str, Path], *, asked: bool
) -> str | None:  # fmt: skip
    """Restore the NameNode's image; returns how HDFS is then. Raises NotReached, also where a DataNode does not join.

    A NameNode that has the HDFS of the backup is left as it is unless this was `asked` for; returns None then.
    """
    assert hosts.hadoop is not None
    master = hosts.named(hosts.hadoop.master)
    assert master is not None
    functions, places = functions_text(), asyncio.Semaphore(AT_ONCE)
    async with Ssh(known_hosts_of(list_path), list_path.parent) as ssh:
        call = ("restore_hdfs", FORMAT_FILE, USER, *(["asked"] if asked else []))
        said = await sent_and_done(ssh, master, manifest, {NAME_NODE: files[NAME_NODE]}, call, "restore HDFS")
        if _KEPT.search(said):
            return None
        found = _CLUSTER.search(said)
        if found is None:
            raise NotReached(
                Refusal(f"{master.name} did not say which HDFS it has now", "Look at corral deploy status.")
            )
        cluster = found[1]

        async def done(host: Host, what: str, *words: str) -> str:
            async with places:
                text = alone_script_of(functions, *words)
                answer = await ssh.ask(host, f"{as_root(host)}sh -s", text, most=_MOST_OUTPUT, seconds=_SECONDS)
            must_be_good(host, answer.code, answer.output, what)
            return last_error(answer.output.decode(errors="replace"))

        workers = [host for host in hosts.hosts if host.name in hosts.hadoop_workers]
        joined = await asyncio.gather(
            *(done(host, "join HDFS again", "rejoin_hdfs", FOLDERS_FILE, cluster) for host in workers),
            return_exceptions=True,
        )
        for each in joined:
            if isinstance(each, BaseException):
                raise each
        seconds = str(_SECONDS_TO_JOIN)
        return await done(master, "bring HDFS up", "print_hdfs_state", str(len(workers)), seconds, USER)
