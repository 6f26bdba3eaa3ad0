"""The records of a journal with new names and without free text.

`RULES` says for each field with text what becomes of it. A text without a rule becomes "".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from enum import Enum
from functools import lru_cache
from typing import Any, Final

import msgspec

from corral.control.core.inputs import CordonsRead, InputsLocated, InputsSought, Underway
from corral.control.core.intents import IntentsRead
from corral.control.core.machines import MachinesSeen, Remembered
from corral.control.journal.anonymous.documents import anonymous_documents, anonymous_job
from corral.control.journal.anonymous.names import Names
from corral.control.journal.records import COMMANDS, Begun, Decision, DocumentsRead, Record, State, Step, configured
from corral.control.journal.rules import Rules
from corral.kernel.ids import TaskKey
from corral.launcher import LaunchPolicy
from corral.model.cordons import CORDONS_CHANGED, Cordon
from corral.model.document_revisions import CONFIGURED
from corral.model.events import PlaceLost, StartRefused
from corral.model.exits import PREEMPTED_PHRASE
from corral.model.framework_exits import EXIT_TABLES, classify_by
from corral.model.input_bytes import InputBytes
from corral.model.inventory import Device, Inventory, Mismatch, Node, PinnedCell, Taint
from corral.model.launch import EngineLost, Exited, Noted, Started
from corral.model.outcome import Completion, Trigger
from corral.model.placement import TaskPlacement
from corral.model.plan import Rule
from corral.model.queues import QueueUsage, UserUsage
from corral.model.receipts import LedgerEntry, Receipt
from corral.model.records import ENDED_PHASES, LIVE_PHASES, JobSummary
from corral.model.runs import JobRun, Served, TaskRun, WorkReport, Yield
from corral.model.store_writes import Intent, IntentKind, LiveJob
from corral.runtime.error_block import END, START, told_code
from corral.scheduler import EngineUnknown, GuaranteeLost
from corral.scheduler.planners.hived.pod_mapping import MARK, BoundTask, read, written
from corral.scheduler.policy.future_fairness import Schedule
from corral.spec.priority import PRIORITY_CLASSES

Rename = Callable[["Anonymous", Any], Any]
"""Gives the new form of a field's value."""
_KINDS: Final = frozenset({*IntentKind, CONFIGURED, CORDONS_CHANGED})
_RFC3339: Final = re.compile(r"[0-9]{4,}-[0-9]{2}-[0-9]{2}T[0-9:.]{8,15}Z")
_VERSION: Final = re.compile(r"[0-9][0-9a-z.+]{0,40}")
_EFFECTS: Final = frozenset({"NoSchedule", "NoExecute", "PreferNoSchedule"})
_DOCUMENTS: Final = 4096
"""Job documents whose new form is kept."""


class Anonymous:
    """Gives the new forms of records."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self.job_document = lru_cache(_DOCUMENTS)(self._job_document)
        self._rules: Rules = Rules()

    def record(self, record: Record) -> Record:
        """A record with new names; raises InvalidInput for one that cannot be read or made anonymous."""
        begun = record if isinstance(record, Begun) else getattr(record, "begun", None)
        if begun is not None:
            self._rules = begun.rules
        made: Record = self.value(record)
        return made

    def value(self, given: Any) -> Any:
        """The new form of any value; a text becomes ""."""
        if (whole := WHOLE.get(type(given))) is not None:
            return whole(self, given)
        if isinstance(given, msgspec.Struct):
            return self._struct(given)
        if given is None or isinstance(given, (bool, int, float, bytes, Enum)):
            return given
        if isinstance(given, TaskKey):
            return TaskKey(self.names.role(given.role), given.index)
        if isinstance(given, (tuple, list, frozenset)):
            return type(given)(map(self.value, given))
        if isinstance(given, Mapping):
            return {self.value(key): self.value(each) for key, each in given.items() if not isinstance(key, str)}
        return ""

    def documents(self, read: DocumentsRead) -> DocumentsRead:
        """The documents in force."""
        return anonymous_documents(self.names, configured(read, self._rules))

    def _struct(self, given: msgspec.Struct) -> msgspec.Struct:
        rules = RULES.get(type(given), {})
        fields = {name: self._field(rules.get(name), getattr(given, name)) for name in given.__struct_fields__}
        return type(given)(**fields)

    def _field(self, rule: Rename | None, value: Any) -> Any:
        return self.value(value) if rule is None or value is None else rule(self, value)

    def _job_document(self, text: str) -> str:
        return anonymous_job(self.names, text)


# ---- what becomes of a field


def _kept(_: Anonymous, value: Any) -> Any:
    return value


def _none(_: Anonymous, value: Any) -> None:
    return None


def _empty(_: Anonymous, value: Any) -> Any:
    return type(value)()


def _named(method: str) -> Rename:
    """The new name by a method of `Names`."""

    def rename(anonymous: Anonymous, value: Any) -> Any:
        return getattr(anonymous.names, method)(value)

    return rename


def _each(rename: Rename) -> Rename:
    return lambda anonymous, values: type(values)(rename(anonymous, each) for each in values)


def _by(rename: Rename, inner: Rename = lambda anonymous, value: anonymous.value(value)) -> Rename:
    """A mapping with new keys."""
    return lambda anonymous, values: {rename(anonymous, key): inner(anonymous, each) for key, each in values.items()}


def _first(rename: Rename) -> Rename:
    """Rows of which the first column is a name."""
    return _each(lambda anonymous, row: (rename(anonymous, row[0]), *row[1:]))


_USER, _GROUP, _JOB, _TAG = map(_named, ("user", "group", "job", "tag"))
_QUEUE, _NODE, _ENGINE, _ROLE, _MODEL = map(_named, ("queue", "node", "engine", "role", "model"))
_ID, _ATTEMPT, _RESOURCE, _LEVEL, _CHAIN = map(_named, ("job_id", "attempt", "resource", "level", "chain"))


def _labels(anonymous: Anonymous, labels: Mapping[str, str]) -> dict[str, str]:
    names = anonymous.names
    return {names.label(key): names.value(key, value) for key, value in labels.items()}


def _taint(anonymous: Anonymous, taint: Taint) -> Taint:
    names, effect = anonymous.names, taint.effect if taint.effect in _EFFECTS else ""
    return Taint(names.label(taint.key), names.value(taint.key, taint.value), effect)


def _taints(anonymous: Anonymous, tainted: Mapping[str, tuple[tuple[Taint, float], ...]]) -> dict[str, Any]:
    return {
        anonymous.names.node(node): tuple((_taint(anonymous, taint), since) for taint, since in taints)
        for node, taints in tainted.items()
    }


def _cells(anonymous: Anonymous, cells: tuple[str, ...]) -> tuple[str, ...]:
    """The cells of a placement, or what HiveD's algorithm writes instead."""
    names = anonymous.names
    if cells and cells[0] == MARK:
        bound = read(cells)
        types = tuple(map(names.cell_type, bound.owned_types))
        return written(BoundTask(names.cell_type(bound.chain), names.pinned_cell(bound.pinned_cell), types))
    return tuple(map(names.cell_path, cells))


def _document(anonymous: Anonymous, text: str) -> str:
    return anonymous.job_document(text)


def _exited(anonymous: Anonymous, end: Exited) -> Exited:
    """An end without its reason, but for the code of an error block, which says whether it is tried again."""
    told = told_code(end.code, end.reason) if START in end.reason else end.code
    reason = "" if told == end.code else f"{START}\nexitCode: {told}\n{END}"
    return msgspec.structs.replace(end, attempt=anonymous.names.attempt(end.attempt), reason=reason)


def _completion(anonymous: Anonymous, end: Completion) -> Completion:
    """An end without its diagnostics; its phrase stays if it is one of Corral's own tables."""
    known = {PREEMPTED_PHRASE, *(classify_by(table, end.code).phrase for table in EXIT_TABLES)}
    phrase = end.phrase if end.phrase in known else ""
    trigger = anonymous.value(end.trigger)
    return msgspec.structs.replace(end, phrase=phrase, diagnostics="", trigger=trigger)


def _documents(anonymous: Anonymous, read: DocumentsRead) -> DocumentsRead:
    return anonymous.documents(read)


def _version(_: Anonymous, text: str) -> str:
    """The version of Corral."""
    return text if _VERSION.fullmatch(text) else ""


def _decisions(anonymous: Anonymous, decisions: tuple[Decision, ...]) -> tuple[Decision, ...]:
    return tuple(anonymous.value(each) for each in decisions if each.verb in COMMANDS)


def _intent_job(anonymous: Anonymous, job: str) -> str:
    return anonymous.names.job_id(job) if job else ""


def _intent_kind(_: Anonymous, kind: str) -> str:
    return kind if kind in _KINDS else "unknown"


def _intent_data(anonymous: Anonymous, data: Mapping[str, Any]) -> dict[str, Any]:
    """What the core reads of a request."""
    return {name: _DATA[name](anonymous, value) for name, value in data.items() if name in _DATA}


def _report(_: Anonymous, report: Any) -> dict[str, float]:
    known = report if isinstance(report, Mapping) else {}
    return {
        name: value for name, value in known.items()
        if name in WorkReport.__struct_fields__ and isinstance(value, (int, float))
    }  # fmt: skip


def _priority(_: Anonymous, value: Any) -> Any:
    return value if value in PRIORITY_CLASSES or str(value).lstrip("-").isdigit() else ""


def _judged(anonymous: Anonymous, judged: Any) -> dict[str, Any]:
    return _intent_data(anonymous, judged) if isinstance(judged, Mapping) else {}


def _number(_: Anonymous, value: Any) -> int:
    return value if isinstance(value, int) else 0


def _numbers(_: Anonymous, values: Any) -> list[int]:
    return [each for each in values if isinstance(each, int)]


def _chosen(*words: str) -> Rename:
    """A word of Corral's own list; another becomes ""."""
    known = frozenset(words)
    return lambda _, value: value if value in known else ""


def _time(_: Anonymous, text: str | None) -> str | None:
    """A time of RFC 3339."""
    return text if text is not None and _RFC3339.fullmatch(text) else None


_DATA: Final[Mapping[str, Rename]] = {
    "role": _ROLE, "replicas": _number, "index": _number, "remove": _numbers, "jobAttempt": _number,
    "place": _chosen("first", "last", "before", "own"), "before": _named("named_job"), "queue": _QUEUE,
    "priority": _priority, "maxDurationSeconds": _number, "judged": _judged, "tags": _each(_TAG), "report": _report,
    "preempt": lambda _, value: value is True, "idle": lambda _, value: "it left devices idle",
    "hang": lambda _, value: "it hung", "budget": lambda _, value: "a budget is used up",
}  # fmt: skip
"""What is kept of a request's data, by key."""
_RULE: Final = _chosen(*Rule)

WHOLE: Final[Mapping[type, Rename]] = {
    DocumentsRead: _documents,
    Exited: _exited,
    Completion: _completion,
    Taint: _taint,
}
"""The rules of values whose fields depend on each other."""

RULES: Final[Mapping[type, Mapping[str, Rename]]] = {
    Begun: {"corral": _version},
    Rules: {"policy": _kept},
    LaunchPolicy: {"closed_nodes": _each(_NODE)},
    Step: {"decisions": _decisions},
    Decision: {"verb": _chosen(*COMMANDS), "attempt": _ATTEMPT, "node": _NODE, "why": _empty},
    # what a core begins with
    State: {
        "needed": _by(_ID), "groups": _by(_USER, _each(_GROUP)), "cordons": _by(_NODE),
    },
    Underway: {"timers": _first(_ID)},
    Schedule: {"ranks": _by(_ID), "rounds": _by(_ID)},
    Remembered: {
        "not_ready_since": _by(_NODE), "tainted": _taints, "following": _each(_ENGINE), "removed": _each(_NODE),
        "cordons": _by(_NODE),
    },
    LiveJob: {
        "id": _ID, "name": _JOB, "user": _USER, "queue": _QUEUE, "doc": _document, "account": _USER,
    },
    JobRun: {
        "job": _ID, "roles": _by(_ROLE), "hold": _chosen("dependency", "suspended", "budget"), "notes": _empty,
        "over_budget": lambda _, value: "a budget is used up" if value else "",
        "targets": _by(_NODE), "placements": _by(_ROLE, _by(_NODE)),
    },
    Served: {"model_seconds": _first(_MODEL), "model_speeds": _first(_MODEL)},
    Yield: {"rule": _RULE, "message": _empty, "by": _ID},
    TaskRun: {
        "role": _ROLE, "yields_to": _ID, "host": _empty, "ports": _empty, "process": _empty,
    },
    Trigger: {"message": _empty, "role": _ROLE},
    TaskPlacement: {"role": _ROLE, "node": _NODE, "cells": _cells},
    JobSummary: {
        "id": _ID, "name": _JOB, "user": _USER, "queue": _QUEUE, "job_type": _named("framework"),
        "state": _chosen(*LIVE_PHASES, *ENDED_PHASES), "created_at": _time, "started_at": _time, "ended_at": _time,
        "exit": _none, "waiting": _none, "tags": _each(_TAG), "array": _none,
    },
    Receipt: {
        "job": _ID, "name": _JOB, "user": _USER, "queue": _QUEUE, "rule": _RULE, "message": _empty,
        "by_job": _named("named_job"), "by_queue": _QUEUE, "by_user": _USER,
    },
    LedgerEntry: {"lender": _QUEUE, "borrower": _QUEUE},
    QueueUsage: {"queue": _QUEUE, "amounts": _by(_RESOURCE)},
    UserUsage: {"queue": _QUEUE, "user": _USER, "amounts": _by(_RESOURCE)},
    GuaranteeLost: {"job": _ID, "by": _named("named_job")},
    Cordon: {"node": _NODE, "by": _USER, "why": _empty},
    # machines
    Inventory: {"engine": _ENGINE, "levels": _each(_LEVEL)},
    MachinesSeen: {"removed": _each(_NODE)},
    EngineUnknown: {"engine": _ENGINE, "reason": _empty},
    Node: {
        "name": _NODE, "cells": _each(_named("cell_pair")), "resources": _by(_RESOURCE), "labels": _labels,
        "ready_reason": _empty,
    },
    Device: {
        "id": _named("device"), "kind": _named("kind"), "model": _MODEL, "cells": _each(_named("cell_pair")),
        "health_reason": _empty, "chain": _CHAIN,
    },
    Mismatch: {"what": _empty, "configured": _empty, "reported": _empty},
    PinnedCell: {"name": _named("pinned_cell"), "level": _LEVEL, "type": _named("cell_type"), "devices": _first(_NODE)},
    # what happened
    IntentsRead: {"jobs": _by(_ID), "groups": _by(_USER, _each(_GROUP))},
    Intent: {"job": _intent_job, "kind": _intent_kind, "actor": _USER, "data": _intent_data},
    CordonsRead: {"cordons": _by(_NODE)},
    Started: {"attempt": _ATTEMPT, "host": _empty, "ports": _empty, "process": _empty},
    StartRefused: {"attempt": _ATTEMPT},
    PlaceLost: {"attempt": _ATTEMPT, "message": _empty},
    Noted: {"attempt": _ATTEMPT, "reason": _empty, "message": _empty},
    EngineLost: {"engine": _ENGINE, "reason": _empty},
    InputsSought: {"jobs": _each(_ID)},
    InputsLocated: {"job": _ID},
    InputBytes: {"held": _each(lambda anonymous, row: (_each(_NODE)(anonymous, row[0]), row[1]))},
}  # fmt: skip
"""By class and field, what becomes of a text, or of a collection of texts."""
