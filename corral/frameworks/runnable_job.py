"""Read a job file and check that its framework can run the job, before it is stored."""

from __future__ import annotations

from collections.abc import Mapping

from corral.frameworks.registry import framework, job_types
from corral.spec.errors import Problem, SpecError
from corral.spec.job import UnifiedJob
from corral.spec.job_reader import ReadJob, read_job


def load_runnable_job(
    text: str | bytes, *, parameters: Mapping[str, str] | None = None, filename: str = "job.yaml"
) -> UnifiedJob:
    """Read a job that its framework can run; see `read_runnable_job`."""
    return read_runnable_job(text, parameters=parameters, filename=filename).job


def read_runnable_job(
    text: str | bytes,
    *,
    parameters: Mapping[str, str] | None = None,
    filename: str = "job.yaml",
    user: str = "",
    fs_uri: str = "",
    folder: str = "",
    sealed: Mapping[str, str] = {},
) -> ReadJob:
    """Read a job that its framework can run, and the secrets in its text.

    For dialects, `user` is the submitter, `fs_uri` the default file system, `folder` the user's folder on storages,
    and `sealed` the secrets that placeholders stand for. Raises SpecError with every problem of the document,
    or with every problem that the framework finds; InvalidInput if its framework's plug-in cannot be loaded.
    """
    read = read_job(
        text,
        parameters=parameters,
        filename=filename,
        job_types=job_types(),
        user=user,
        fs_uri=fs_uri,
        folder=folder,
        sealed=sealed,
    )
    findings = framework(read.job.spec.job_type).check(read.job)
    if findings:
        raise SpecError([Problem(message, path, filename=filename) for path, message in findings])
    return read
