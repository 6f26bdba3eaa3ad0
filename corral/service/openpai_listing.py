"""Why: what OpenPAI's list shows of a job and only its protocol tells is read once, when the job is submitted."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from corral.model.openpai import OpenPaiListing
from corral.spec.job import UnifiedJob
from corral.spec.openpai.names import JOB_TYPE, NAME, PROTOCOL


class HivedRoleGlance(msgspec.Struct, frozen=True, rename="camel"):
    """What is shown of a role's cells."""

    affinity_group_name: str | None = None


class HivedGlance(msgspec.Struct, frozen=True, rename="camel"):
    """What is shown of what a job asks of HiveD."""

    job_priority_class: str | None = None
    lazy_preemption_enable: bool = False
    task_roles: dict[str, HivedRoleGlance | None] | None = None


class _Extras(msgspec.Struct, frozen=True, rename="camel"):
    hived_scheduler: HivedGlance | None = None
    gang_allocation: Any = True


class _Protocol(msgspec.Struct, frozen=True):
    extras: _Extras | None = None


_LONGEST_NAME: Final = 255
"""An annotation may be of any length, and what an index holds may not."""
_DEFAULT_GROUP: Final = "default"
_PROTOCOL: Final = msgspec.json.Decoder(_Protocol)


def hived_glance(protocol: str) -> HivedGlance:
    """What a protocol, as JSON text, asks of HiveD; nothing where it says nothing, or what nobody can read."""
    if not protocol:
        return HivedGlance()
    try:
        extras = _PROTOCOL.decode(protocol).extras
    except msgspec.DecodeError:
        return HivedGlance()
    return (extras and extras.hived_scheduler) or HivedGlance()


def affinity_groups(protocol: str, roles: Iterable[str], job: str) -> dict[str, str]:
    """What HiveD calls the affinity group of each of OpenPAI's roles; `protocol` is JSON text, and `job` is `user~job`.

    A gang that names none is one; else each task of a role that names none is a group of its own, which is not told.
    """
    said = hived_glance(protocol).task_roles or {}
    named = {role: terms.affinity_group_name for role, terms in said.items() if terms and terms.affinity_group_name}
    rest = _DEFAULT_GROUP if protocol and not named and _is_gang(protocol) else None
    groups = {role: named.get(role, rest) for role in roles}
    return {role: f"{job}/{group}" for role, group in groups.items() if group}


def _is_gang(protocol: str) -> bool:
    try:
        extras = _PROTOCOL.decode(protocol).extras
    except msgspec.DecodeError:
        return False
    return extras is None or extras.gang_allocation not in (False, "false")


def listing_of(job: UnifiedJob) -> OpenPaiListing | None:
    """How OpenPAI's list shows a job and finds it; None for a job in another language."""
    annotations = job.metadata.annotations
    if job.spec.job_type != JOB_TYPE:
        return None
    priority = hived_glance(annotations.get(PROTOCOL, "")).job_priority_class
    return OpenPaiListing(annotations.get(NAME, job.name)[:_LONGEST_NAME], priority, len(job.spec.roles))
