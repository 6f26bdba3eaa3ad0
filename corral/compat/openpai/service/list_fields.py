"""Fields of OpenPAI's job list that only the protocol contains, read once at submission."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from corral.compat.openpai.language.names import JOB_TYPE, NAME, PROTOCOL
from corral.compat.openpai.tables.listing import Listing
from corral.spec.job import UnifiedJob


class HivedRoleGlance(msgspec.Struct, frozen=True, rename="camel"):
    """The HiveD terms of a role that are shown."""

    affinity_group_name: str | None = None


class HivedGlance(msgspec.Struct, frozen=True, rename="camel"):
    """The HiveD terms of a job that are shown."""

    job_priority_class: str | None = None
    lazy_preemption_enable: bool = False
    task_roles: dict[str, HivedRoleGlance | None] | None = None


class _Extras(msgspec.Struct, frozen=True, rename="camel"):
    hived_scheduler: HivedGlance | None = None
    gang_allocation: Any = True


class _Protocol(msgspec.Struct, frozen=True):
    extras: _Extras | None = None


_LONGEST_NAME: Final = 255
"""Most characters of a stored name; an annotation has no limit, but an index has one."""
_DEFAULT_GROUP: Final = "default"
_PROTOCOL: Final = msgspec.json.Decoder(_Protocol)


def hived_glance(protocol: str) -> HivedGlance:
    """The HiveD terms of a protocol (JSON text); empty if there are none or it cannot be read."""
    if not protocol:
        return HivedGlance()
    try:
        extras = _PROTOCOL.decode(protocol).extras
    except msgspec.DecodeError:
        return HivedGlance()
    return (extras and extras.hived_scheduler) or HivedGlance()


def affinity_groups(protocol: str, roles: Iterable[str], job: str) -> dict[str, str]:
    """HiveD's affinity group for each of OpenPAI's roles; `protocol` is JSON text, and `job` is `user~job`.

    A gang that names no group is one group. Otherwise each task of a role without a name is a group of its own, which
    is left out.
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


def listing_of(job: UnifiedJob) -> Listing | None:
    """The fields by which OpenPAI's list shows and finds a job; None for another job type."""
    annotations = job.metadata.annotations
    if job.spec.job_type != JOB_TYPE:
        return None
    priority = hived_glance(annotations.get(PROTOCOL, "")).job_priority_class
    return Listing(annotations.get(NAME, job.name)[:_LONGEST_NAME], priority, len(job.spec.roles))
