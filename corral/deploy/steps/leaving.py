"""A host that leaves HDFS and YARN: what is asked of their master, what stands in the way, and what a failure says."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import Final

from corral.deploy.checks.between_hosts import cluster_address
from corral.deploy.checks.connection import Refusal
from corral.deploy.checks.ours import has_hadoop
from corral.deploy.checks.report import Survey
from corral.deploy.hosts.reader import Host, Hosts
from corral.deploy.steps.hadoop_files import EXCLUDED_FILE, HDFS_SETTINGS
from corral.deploy.steps.outcome import last_error

LEAVE: Final = "move its blocks of HDFS and wait for its containers of YARN"
"""What is done of a worker of Hadoop that is removed, before it is reset."""
_IN_THE_WAY: Final = re.compile(r"^corral: leaves: ([a-z]+)((?: [0-9]{1,18})*)(?: (.{1,400}))?$", re.MULTILINE)
"""What `sees_hadoop` prints: a word, and numbers or a reason."""
_AGAIN: Final = "then run it again"


@dataclass(frozen=True, slots=True)
class Leaving:
    """What the master of Hadoop is told of a host that leaves."""

    master: Host
    address: str
    """The address of the host that leaves, in the cluster."""


def leaving_of(hosts: Hosts, host: Host, survey: Survey, *, lost: bool) -> Leaving | Refusal | None:
    """How a host leaves Hadoop, or why it cannot; None where it has no part of it, by the list and by the master."""
    chosen = hosts.hadoop
    if chosen is None or not hosts.has_hadoop(host):
        return None
    if host.name == chosen.master:
        return Refusal(
            "it is Hadoop's master, without which there is no HDFS",
            "Keep it; a reset of all hosts (corral deploy reset) takes Hadoop away with its data.",
        )
    master = hosts.named(chosen.master)
    assert master is not None
    if master.name not in survey.seen:
        why = survey.refusals[master.name].message
        return Refusal(f"{master.name}, Hadoop's master, was not reached: {why}", f"Mend {master.name}, {_AGAIN}.")
    facts = survey.seen[master.name].facts
    if not has_hadoop(facts):
        return None
    if EXCLUDED_FILE not in facts.files:
        return Refusal(
            f"{master.name}, Hadoop's master, does not keep the list of hosts that leave yet",
            f"Run corral deploy up, which makes it; {_AGAIN}.",
        )
    seen = survey.seen.get(host.name)
    address = cluster_address(host, seen.facts) if seen is not None else host.internal_address or host.address
    if not _is_ipv4(address):
        return Refusal("its address in the cluster is not known", f"Give it an internalAddress in the list, {_AGAIN}.")
    own = seen.facts.files.get(HDFS_SETTINGS, b"") if seen is not None else b""
    if own and f">{address}:".encode() not in own:
        return Refusal(
            f"its DataNode is not at {address}, the address that it has in the cluster now",
            f"Run corral deploy up, which writes its settings; {_AGAIN}.",
        )
    return Leaving(master, address) if seen is not None or lost else None


def is_late(output: str) -> bool:
    """Whether a host only needs more time to leave, by what the master printed."""
    found = _IN_THE_WAY.search(output)
    return found is not None and found[1] in ("tasks", "blocks", "safe")


def refusal_of_leaving(name: str, output: str, seconds: int) -> Refusal:
    """Why a host has not left Hadoop, from what the master printed; `seconds` are how long was waited."""
    found = _IN_THE_WAY.search(output)
    says = _words(name, found[1], [int(each) for each in found[2].split()], found[3] or "", seconds) if found else None
    return says or Refusal(f"it does not leave Hadoop: it said {last_error(output)}", f"Read its log, {_AGAIN}.")


def _words(name: str, what: str, counts: list[int], reason: str, seconds: int) -> Refusal | None:
    """The refusal of a word with these numbers; None where they do not belong together."""
    back = "To use it again: corral deploy up."
    match what, counts:
        case "last", []:
            return Refusal(
                "its DataNode is the only one of HDFS, so its blocks have no other place",
                f"Add a host of the role hadoop to the list and run corral deploy up, {_AGAIN}.",
            )
        case "copies", [copies, left]:
            return Refusal(
                f"HDFS keeps {copies} copies of each block, and {_counted(left, 'DataNode')} would be left",
                f"Write replication: {left} below hadoop in the list and run corral deploy up, {_AGAIN}.",
            )
        case "safe", []:
            return Refusal("HDFS is in its safe mode, and copies no blocks", f"See hdfs dfsadmin -report, {_AGAIN}.")
        case "missing", [blocks]:
            return Refusal(
                f"its DataNode is not live, and HDFS misses {_counted(blocks, 'block')}",
                f"Start it (corral deploy up), so that what it has is copied; {_AGAIN}.",
            )
        case "lives", [ago]:
            return Refusal(
                f"its DataNode told HDFS of itself {ago} s ago, so it is not lost",
                f"Mend the way to it and leave out --lost, or turn it off and wait for half a minute; {_AGAIN}.",
            )
        case "others", [held]:
            return Refusal(
                f"{_counted(held, 'container')} of YARN would end on other hosts that leave, too",
                "Remove those first, or take them back (corral deploy up); then run it again.",
            )
        case "tasks", [0]:
            return Refusal("YARN has not begun to let it go", f"See journalctl -u corral-resourcemanager, {_AGAIN}.")
        case "tasks", [held]:
            return Refusal(
                f"{_counted(held, 'container')} of YARN ran on it after {seconds} s",
                f"It takes no new ones. Move them (corral drain yarn/{name}), {_AGAIN}; or: --end-tasks. {back}",
            )
        case "blocks", [few, alone, opened]:
            return Refusal(
                f"{_counted(few, 'block')} of it had too few copies elsewhere after {seconds} s, {alone} of them none, "
                f"and {opened} of files that are open",
                f"HDFS goes on to copy them: run it again, with a longer --drain-timeout. {back}",
            )
        case "silent", []:
            return Refusal(f"Hadoop's master does not answer: {reason}", f"See corral deploy status, {_AGAIN}.")
    return None


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _is_ipv4(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).version == 4
    except ValueError:
        return False
