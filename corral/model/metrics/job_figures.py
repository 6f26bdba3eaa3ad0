"""The figures that a job's program reports of its work, as families of series. `/metrics` does not tell them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from corral.kernel.ids import JobId
from corral.model.metrics.families import FAMILIES, Family, Kind
from corral.model.metrics.samples import Value
from corral.model.runs import WorkReport

JOB: Final = "job"
JOB_LABELS: Final = (JOB, "job_instance_id")
"""Labels with the id of a job; such series are told to those who may read the job's metrics. Tasks have the second."""

SCALAR: Final = "corral_job_scalar"
_FIGURES: Final = {
    "progress": "The fraction of its work that is done, from 0 to 1",
    "step": "Steps that are done",
    "throughput": "Work per second of the whole job, in its own unit",
    "loss": "Its loss",
    "gradient_noise": "The gradient noise scale, in examples",
    "batch_size": "Examples of one step of the whole job",
}
JOB_FIGURES: Final[Mapping[str, Family]] = {
    f"corral_job_{name}": Family(f"corral_job_{name}", Kind.GAUGE, f"{meaning}, as the job reports it.", (JOB,))
    for name, meaning in _FIGURES.items()
} | {
    SCALAR: Family(
        SCALAR,
        Kind.GAUGE,
        "A scalar of the event files that a task writes for TensorBoard: `run` is the folder of its file.",
        (JOB, "task", "run", "tag"),
    )
}
"""All figures of jobs by the name of their family."""


def family_of(name: str) -> Family | None:
    """The family of this name, of the server or of jobs; None if there is none. `_count` and `_sum` are a histogram's."""
    found = FAMILIES.get(name) or JOB_FIGURES.get(name)
    if found is None:
        for suffix in ("_count", "_sum"):
            whole = FAMILIES.get(name.removesuffix(suffix)) if name.endswith(suffix) else None
            if whole is not None and whole.kind is Kind.HISTOGRAM:
                return Family(name, Kind.COUNTER, whole.help, whole.labels)
    return found


def job_of(family: Family, values: Sequence[str]) -> str:
    """The id of the job that a series is of, from the values of its family's labels; "" if it is of none."""
    for name, value in zip(family.labels, values, strict=False):
        if name in JOB_LABELS:
            return value
    return ""


def figures_of(job: JobId, report: WorkReport) -> list[Value]:
    """What a report says, as values of the job's series."""
    values = ((name, getattr(report, name)) for name in _FIGURES)
    return [Value(f"corral_job_{name}", (job,), value) for name, value in values if value is not None]
