"""Why SSH did not reach a host, from what OpenSSH's client says: one sentence, and what to do."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from corral.deploy.hosts.reader import Host
from corral.spec.errors import shorten


class Refusal(NamedTuple):
    """Why a host was not reached, and what to do about it."""

    message: str
    remedy: str


_NOISE: Final = re.compile(r"^(Warning: |\*\* WARNING|debug\d: |Connection to .* closed|.*post-quantum)", re.IGNORECASE)


def refusal_of(host: Host, complaint: str, known_hosts: str) -> Refusal:
    """The reason in what ssh printed on standard error."""
    said = " ".join(complaint.split())
    where, who = f"{host.address} port {host.access.port}", host.access.user or "the account"
    if "REMOTE HOST IDENTIFICATION HAS CHANGED" in said or "Host key verification failed" in said:
        return Refusal(
            "its host key is not the one that was pinned at the first look",
            f"Find out why. If the machine was installed anew: ssh-keygen -f '{known_hosts}' -R {host.name}",
        )
    if "Permission denied" in said or "Too many authentication failures" in said:
        return Refusal(
            f"{where} does not let {who} in with the keys that were offered",
            f"Check ssh.user and ssh.key, then: ssh-copy-id -p {host.access.port} {_target(host)}",
        )
    if "Could not resolve hostname" in said:
        return Refusal(f"the name {host.address} has no address", "Check the address in the list, and DNS.")
    if "Connection refused" in said:
        return Refusal(f"nothing listens at {where}", "Start the SSH server there, or correct ssh.port.")
    if "timed out" in said or "No route to host" in said or "Network is unreachable" in said or "Host is down" in said:
        return Refusal(f"{where} does not answer", "Is the machine on, and does a firewall let SSH through?")
    if "Connection closed" in said or "Connection reset" in said or "kex_exchange_identification" in said:
        return Refusal(f"{where} closed the connection before anybody signed in", "Read the SSH server's log there.")
    lines = [line.strip() for line in complaint.splitlines() if line.strip() and not _NOISE.match(line.strip())]
    last = shorten(lines[-1], 200) if lines else "nothing"
    return Refusal(f"ssh ended without a session, and said: {last}", "Try ssh by hand with the same account and key.")


def no_answer(host: Host, seconds: float) -> Refusal:
    """The refusal of a host that was connected and did not answer in time."""
    return Refusal(
        f"{host.address} port {host.access.port} did not answer within {seconds:g} s",
        "Try ssh by hand; a full disk, a dead network drive or an overloaded machine holds a session up. Or: --timeout.",
    )


def too_much(host: Host, most: int) -> Refusal:
    """The refusal of a host that printed more than a probe can."""
    return Refusal(
        f"it printed more than {most} bytes instead of an answer",
        "Look at what its shell prints for a session without a terminal (~/.bashrc, /etc/profile).",
    )


def garbled(why: str) -> Refusal:
    """The refusal of an answer that is no list of facts."""
    return Refusal(
        f"its answer cannot be read: {why}",
        "Look at what its shell prints for a session without a terminal, and whether /bin/sh is a POSIX shell.",
    )


def _target(host: Host) -> str:
    return f"{host.access.user}@{host.address}" if host.access.user else host.address
