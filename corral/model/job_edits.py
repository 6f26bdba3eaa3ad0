"""Edit a waiting job's priority, longest duration and queue. Front checks an edit, control applies it."""

from __future__ import annotations

import json

import msgspec

from corral.kernel.units import format_duration
from corral.spec.job import UnifiedJob


class Edit(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """New values for fields of a waiting job; None leaves a field."""

    priority: str | None = None
    """As in a job file: a class or a number."""
    max_duration_seconds: int | None = None
    """0 is no limit."""
    queue: str | None = None


class EditedField(msgspec.Struct, frozen=True):
    """One field that an edit changes, with both values as people write them."""

    field: str
    """`priority`, `maxDuration` or `queue`."""
    before: str
    after: str


class EditView(msgspec.Struct, frozen=True, rename="camel"):
    """The result of an edit of a waiting job; `changes` is empty if the job had these values already."""

    id: str
    name: str
    changes: tuple[EditedField, ...] = ()
    dry_run: bool = False
    """Whether this was a dry run, which stores nothing."""


def edited(text: str, edit: Edit) -> str:
    """The job's canonical document with the edit applied, in the same JSON encoding."""
    document = json.loads(text)
    document["spec"] |= msgspec.to_builtins(edit)
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False, sort_keys=True)


def edited_fields(before: UnifiedJob, after: UnifiedJob) -> tuple[EditedField, ...]:
    """The fields that differ between a job and its edited copy."""
    pairs = (
        ("priority", str(before.priority), str(after.priority)),
        ("maxDuration", _duration(before), _duration(after)),
        ("queue", before.spec.queue, after.spec.queue),
    )
    return tuple(EditedField(field, was, now) for field, was, now in pairs if was != now)


def edits_in_words(changes: tuple[EditedField, ...]) -> str:
    """The changes as a clause: `priority from 10 to 100, queue from default to vision`."""
    return ", ".join(f"{each.field} from {each.before} to {each.after}" for each in changes)


def _duration(job: UnifiedJob) -> str:
    seconds = job.spec.max_duration_seconds
    return format_duration(seconds) if seconds else "no limit"
