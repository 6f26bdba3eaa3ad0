"""The CustomResourceDefinition of Alnair's `UnifiedJob`.

Alnair's own definition uses an API that Kubernetes no longer serves (v1beta1). Fields and bounds are Alnair's.
"""

from __future__ import annotations

from corral.compat.alnair.language.job import JOB_TYPES
from corral.compat.alnair.language.job_object import AlnairKind
from corral.spec.dialects.foreign_crds import FLAG, TEXT, Schema, added_fields, definition_of, number, object_of


def definition() -> Schema:
    """The definition, with the fields that Corral adds to the status."""
    work = object_of(
        "image", "unifiedArgs", image=TEXT, unifiedArgs={"type": "array", "items": TEXT}, reschedulable=FLAG
    )
    targets = {
        "type": "object",
        "additionalProperties": {"type": "integer"},
        "x-kubernetes-map-type": "atomic",
    }
    counts = object_of(minReplicas=number(0), maxReplicas=number(0), targetReplicas=targets)
    status = object_of(
        jobStatus=TEXT, itersCompleted={"type": "integer"}, itersTotal={"type": "integer"}, **added_fields()
    )
    root = object_of(
        jobType={"type": "string", "enum": list(JOB_TYPES)},
        spec=object_of(jobSpec=work, replicaSpec=counts, reschedulable=FLAG),
        status=status,
    )
    columns = (("Type", ".jobType"), ("Status", ".status.jobStatus"), ("Job", ".status.jobId"))
    return definition_of(AlnairKind(), root, columns, shorts=["ujob"])
