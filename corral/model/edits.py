"""What may be changed of a waiting job: its priority, longest duration and queue. Front checks it, control applies it."""

from __future__ import annotations

import json

import msgspec

from corral.kernel.units import format_duration
from corral.spec.job import UnifiedJob


class Edit(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Other terms of a waiting job; None leaves a field."""

    priority: str | None = None
    """As a job file says it: a class or a number."""
    max_duration_seconds: int | None = None
    """0 is no limit."""
    queue: str | None = None


class EditedField(msgspec.Struct, frozen=True):
    """One field that is another now, as people write it."""

    field: str
    """`priority`, `maxDuration` or `queue`."""
    before: str
    after: str


class EditView(msgspec.Struct, frozen=True, rename="camel"):
    """What is changed of a waiting job; no changes: it was so already."""

    id: str
    name: str
    changes: tuple[EditedField, ...] = ()
    dry_run: bool = False
    """Whether nothing was stored."""


def edited(text: str, edit: Edit) -> str:
    """A job's canonical document with other terms, in the same encoding."""
    document = json.loads(text)
    document["spec"] |= msgspec.to_builtins(edit)
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False, sort_keys=True)


def edited_fields(before: UnifiedJob, after: UnifiedJob) -> tuple[EditedField, ...]:
    """What differs between a job and the same with other terms."""
    pairs = (
        ("priority", str(before.priority), str(after.priority)),
        ("maxDuration", _duration(before), _duration(after)),
        ("queue", before.spec.queue, after.spec.queue),
    )
    return tuple(EditedField(field, was, now) for field, was, now in pairs if was != now)


def edits_in_words(changes: tuple[EditedField, ...]) -> str:
    """`priority from 10 to 100, queue from default to vision`."""
    return ", ".join(f"{each.field} from {each.before} to {each.after}" for each in changes)


def _duration(job: UnifiedJob) -> str:
    seconds = job.spec.max_duration_seconds
    return format_duration(seconds) if seconds else "no limit"
