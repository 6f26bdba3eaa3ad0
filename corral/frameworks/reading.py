"""Why: a well-formed document can still ask of its framework what it cannot do; that too is said before it is stored."""

from __future__ import annotations

from collections.abc import Mapping

from corral.frameworks.registry import framework, job_types
from corral.spec.errors import Problem, SpecError
from corral.spec.job import UnifiedJob
from corral.spec.reading import load_job


def load_runnable_job(
    text: str | bytes, *, parameters: Mapping[str, str] | None = None, filename: str = "job.yaml"
) -> UnifiedJob:
    """The job in `text`, which its framework can run.

    Raises SpecError with every problem of the document, or every one that the framework has with it; InvalidInput when
    its framework's plug-in cannot be loaded.
    """
    job = load_job(text, parameters=parameters, filename=filename, job_types=job_types())
    findings = framework(job.spec.job_type).check(job)
    if findings:
        raise SpecError([Problem(message, path, filename=filename) for path, message in findings])
    return job
