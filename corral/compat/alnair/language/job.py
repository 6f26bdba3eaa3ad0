"""Translate Alnair's `UnifiedJob`: an image, arguments, and bounds on the number of devices.

In Alnair a replica is one device. Elastic jobs (EHJob, EPJob) become elastic roles with one device per task, which
Corral starts under `horovodrun` and `torchrun` itself. A BaseJob is one task. Source: CentaurusInfra/alnair,
unified-training.
"""

from __future__ import annotations

import re
from typing import Any, Final

from corral.spec.dialects.field_reader import Fields
from corral.spec.dialects.translation import REPLICAS_ANNOTATION, Translation, head
from corral.spec.errors import describe

API_VERSION: Final = "ai.centauruscloud.io/v1alpha1"
KIND: Final = "UnifiedJob"
BASE, ELASTIC_HOROVOD, ELASTIC_PYTORCH, HOROVOD = "BaseJob", "EHJob", "EPJob", "HJob"
JOB_TYPES: Final = {BASE: "shell", ELASTIC_HOROVOD: "horovod", ELASTIC_PYTORCH: "pytorch", HOROVOD: "horovod"}
"""The framework that starts each of Alnair's job types."""
ROLE: Final = "worker"
_COUNT: Final = re.compile("[0-9]{1,9}")
DEVICE_KIND: Final = "gpu"
"""The kind of Alnair's devices, which are always `nvidia.com/gpu`."""


def translate(fields: Fields, translation: Translation) -> None:
    """Fill `translation` with the canonical form of an Alnair UnifiedJob."""
    fields.ignore(("apiVersion", "kind", "status"))
    kind = fields.text("jobType", None, choices=tuple(JOB_TYPES))
    metadata, spec = head(fields, translation, f"{API_VERSION} {kind}")
    given = fields.inner("spec", needed=True)
    work = given.inner("jobSpec", needed=True)
    counts = given.inner("replicaSpec", needed=True)
    spec["preemptible"] = _reschedulable(given, work)
    role: dict[str, Any] = {"name": ROLE, "image": work.text("image", None), "command": _command(work, kind)}
    least, most = _bounds(counts, kind)
    single = kind == BASE
    devices = {"count": least if single else 1, "kind": DEVICE_KIND if most else ""}
    role["resources"] = {"cpu": "0", "memory": "0", "devices": devices}
    spec["roles"] = [role]
    spec["jobType"] = JOB_TYPES.get(kind, "shell")
    size = {"replicas": 1} if single else {"replicas": most, "minReplicas": least, "maxReplicas": most}
    spec["replicaSpec"] = {"role": ROLE, **size, **_asked_for(fields)}
    for part in (work, counts, given, fields):
        part.done()
    translation.document.update(metadata=metadata, spec=spec)
    translation.origins |= {
        ("spec", "replicaSpec", "replicas"): ("metadata", "annotations", REPLICAS_ANNOTATION),
        ("metadata",): ("metadata",),
        ("spec", "jobType"): ("jobType",),
        ("spec", "preemptible"): ("spec", "reschedulable"),
        ("spec", "roles"): ("spec", "jobSpec"),
        ("spec", "roles", 0, "image"): ("spec", "jobSpec", "image"),
        ("spec", "roles", 0, "command"): ("spec", "jobSpec", "unifiedArgs"),
        ("spec", "roles", 0, "resources"): ("spec", "replicaSpec"),
        ("spec", "replicaSpec"): ("spec", "replicaSpec"),
    }


def _reschedulable(given: Fields, work: Fields) -> bool:
    """Read `reschedulable`; Alnair's schema has it under spec, its guide under jobSpec."""
    outer, inner = "reschedulable" in given, "reschedulable" in work
    if outer and inner:
        work.problem(("reschedulable",), "spec.reschedulable says it already; give one of the two", at_key=True)
    return (work if inner and not outer else given).flag("reschedulable")


def _asked_for(fields: Fields) -> dict[str, int]:
    """The number of replicas that an annotation requests; {} without one, which requests the maximum."""
    annotations = fields.inner("metadata").inner("annotations")
    text = annotations.text(REPLICAS_ANNOTATION)
    if text and not _COUNT.fullmatch(text):
        annotations.problem((REPLICAS_ANNOTATION,), f"expected a whole number, got {describe(text)}")
        return {}
    return {"replicas": int(text)} if text else {}


def _command(work: Fields, kind: str) -> list[str]:
    """The command line: Alnair joins the arguments with blanks and runs them in a shell after its launcher."""
    words = work.words("unifiedArgs")
    line = " ".join(words).strip()
    if not line:
        work.problem(("unifiedArgs",), "missing; say what the job runs")
    if kind != ELASTIC_PYTORCH:
        return ["sh", "-c", line]
    if line.startswith("-") and not line.startswith(("-m ", "-c ")):
        why = "torchelastic's own options are Corral's to give; begin with the program's file"
        work.problem(("unifiedArgs", 0), why)
    return ["sh", "-c", f"exec python -u {line}"]


def _bounds(counts: Fields, kind: str) -> tuple[int, int]:
    """The minimum and maximum number of devices; `targetReplicas`, which the scheduler writes, is ignored."""
    counts.ignore(("targetReplicas",))
    known = len(counts.problems)
    least, most = counts.whole("minReplicas", most=10_000), counts.whole("maxReplicas", most=10_000)
    if len(counts.problems) > known:
        return 1, 1
    if least > most:
        counts.problem(("minReplicas",), f"{least} is more than maxReplicas, which is {most}")
        most = least
    if kind == HOROVOD and least != most:
        why = "HJob is Horovod of one size: minReplicas and maxReplicas have to be equal"
        counts.problem(("minReplicas",), f"{why}; for a range write {ELASTIC_HOROVOD}")
    if kind in (ELASTIC_HOROVOD, ELASTIC_PYTORCH, HOROVOD) and not most:
        counts.problem(("maxReplicas",), f"a job of the type {kind} needs at least 1 device")
    return (max(1, least) if most else 0), max(1, most) if kind != BASE else most
