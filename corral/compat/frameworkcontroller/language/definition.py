"""The CustomResourceDefinition of FrameworkController's `Framework`.

FrameworkController writes its own at start and lets everybody write the status; this one does not. Fields and bounds are
FrameworkController's.
"""

from __future__ import annotations

from corral.compat.frameworkcontroller.language.framework import CREATE, START, STOP
from corral.compat.frameworkcontroller.language.framework_object import FrameworkKind
from corral.spec.dialects.foreign_crds import FLAG, KEPT, TEXT, Schema, added_fields, definition_of, number, object_of
from corral.spec.job_parts import MAX_REPLICAS


def definition() -> Schema:
    """The definition, with the fields that Corral adds to the status."""
    policy = object_of(fancyRetryPolicy=FLAG, maxRetryCount=number(-2))
    completion = object_of(minFailedTaskCount=number(-1), minSucceededTaskCount=number(-1))
    named = {"type": "string", "pattern": "^[a-z0-9]{1,63}$"}
    task = object_of(retryPolicy=policy, podGracefulDeletionTimeoutSec={**number(0), "nullable": True}, pod=KEPT)
    role = object_of(
        name=named, taskNumber=number(0, MAX_REPLICAS), frameworkAttemptCompletionPolicy=completion, task=task
    )
    spec = object_of(
        description=TEXT,
        executionType={"type": "string", "enum": [CREATE, START, STOP]},
        retryPolicy=policy,
        taskRoles={"type": "array", "items": role},
    )
    status = {**object_of(**added_fields()), "nullable": True, "x-kubernetes-preserve-unknown-fields": True}
    root = object_of(metadata=object_of(name=named), spec=spec, status=status)
    columns = (("Execution", ".spec.executionType"), ("State", ".status.state"), ("Job", ".status.jobId"))
    return definition_of(FrameworkKind(), root, columns, shorts=[])
