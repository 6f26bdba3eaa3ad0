"""Why: a well-formed document can still ask of its framework what it cannot do; that too is said before it is stored."""

from __future__ import annotations

from collections.abc import Mapping

from corral.frameworks.registry import framework, job_types
from corral.spec.errors import Problem, SpecError
from corral.spec.job import UnifiedJob
from corral.spec.reading import ReadJob, read_job


def load_runnable_job(
    text: str | bytes, *, parameters: Mapping[str, str] | None = None, filename: str = "job.yaml"
) -> UnifiedJob:
    """The job in `text`, which its framework can run; see `read_runnable_job`."""
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
    """The job in `text`, which its framework can run, and the secrets that stand in the text.

    For files of OpenPAI, `user` is who submits, `fs_uri` the file system of paths that name none, `folder` the user's own
    on storages, and `sealed` the secrets that placeholders stand for. Raises SpecError with every problem of the
    document, or every one that the framework has with it; InvalidInput when its framework's plug-in cannot be loaded.
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
