"""Read a job from text or data, in the short or canonical form, or in a dialect of another system."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from dataclasses import field as dataclass_field
from typing import Any, Final

from pydantic import ValidationError

from corral.spec.dialects.dialect import Asked, Dialect, Document, own_file, without_parameters
from corral.spec.dialects.registry import dialect_of, of_job_type, readable
from corral.spec.document_splitter import the_job
from corral.spec.errors import Path, SpecError, describe, did_you_mean
from corral.spec.job import API_VERSION, KIND, UnifiedJob
from corral.spec.own_file import OwnFile
from corral.spec.short_form import ShortJob
from corral.spec.templates import render
from corral.spec.validation_messages import problems_of
from corral.spec.yaml_source import MAX_DEPTH, MAX_NODES, Source, parse_source, plain_json

TEXT_UNDER: Final = frozenset({"env", "labels", "annotations", "nodeSelector", "command", "parameters"})
"""Keys below which an unquoted `yes`, `3.10` or `0755` stays text."""

_PADDING: Final = re.compile(r"\A\n+(?=---\s)")
"""Empty lines that keep a document of a longer file at its line."""

BUILT_IN_JOB_TYPES: Final = (
    "pytorch", "tensorflow", "jax", "mpi", "horovod", "cntk", "shell", "notebook", "external",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ReadJob:
    """A job, and the secrets in its file, which are stored beside the job and never in it."""

    job: UnifiedJob
    secrets: Mapping[str, str] = dataclass_field(default_factory=dict, repr=False)
    others: tuple[str, ...] = ()
    """Documents of other programs in the same text, by name and line."""
    file: OwnFile | None = None
    """None when the job came as data, or when a secret may remain in its text."""


def load_job(
    document: str | bytes | Mapping[str, Any],
    *,
    parameters: Mapping[str, str] | None = None,
    filename: str = "job.yaml",
    name: str | None = None,
    job_types: Collection[str] | None = None,
) -> UnifiedJob:
    """The job of a document in the short or canonical form, or in a dialect of another system.

    `read_job` also returns the secrets in the file.
    """
    return read_job(document, parameters=parameters, filename=filename, name=name, job_types=job_types).job


def read_job(
    document: str | bytes | Mapping[str, Any],
    *,
    parameters: Mapping[str, str] | None = None,
    filename: str = "job.yaml",
    name: str | None = None,
    job_types: Collection[str] | None = None,
    user: str = "",
    fs_uri: str = "",
    folder: str = "",
    sealed: Mapping[str, str] = {},
) -> ReadJob:
    """Read a job and the secrets in its file from YAML, JSON or data.

    `parameters` override the document's own, `name` replaces its name, and `job_types`, when given, are the only
    frameworks accepted. The other arguments are for dialects: `user` is the submitter, `fs_uri` the file system of paths
    that name none, `folder` the user's own on storages, and `sealed` the secrets of placeholders.

    Raises SpecError with every problem, each with file, line and column when text was given. A text of several
    documents must have exactly one job.
    """
    asked = Asked(filename, parameters or {}, name, user, fs_uri, folder, sealed)
    if not isinstance(document, str | bytes):
        return _read_one(document, asked, job_types)
    whole = readable(document)
    alone, others = the_job(whole, filename, TEXT_UNDER)
    read = _read_one(alone, asked, job_types)
    if read.file is None:
        return replace(read, others=others)
    text = read.file.text
    if alone is whole is not document and not read.file.secrets:
        text = _text(document)  # keeps the comments that `readable` blanked out
    return replace(read, others=others, file=replace(read.file, text=_PADDING.sub("", text)))


def _text(document: str | bytes) -> str:
    return document.decode("utf-8", "replace") if isinstance(document, bytes) else document


def _read_one(document: Document, asked: Asked, job_types: Collection[str] | None) -> ReadJob:
    if isinstance(document, str | bytes):
        quick = plain_json(document, asked.filename, TEXT_UNDER)
        dialect = dialect_of(quick.data) if quick is not None else None
        if quick is not None and not (dialect is not None and dialect.reads_text):
            try:
                return _load(_shown(quick), document, asked, job_types)
            except SpecError:
                pass  # parsed again below, with line and column
    return _load(_source(document, asked.filename), document, asked, job_types)


def _load(source: Source, document: Document, asked: Asked, job_types: Collection[str] | None) -> ReadJob:
    if not isinstance(source.data, dict):
        raise SpecError([source.problem((), f"expected a job (a mapping of fields), got {describe(source.data)}")])
    dialect = dialect_of(source.data)
    if dialect is not None:
        return _read_foreign(dialect, source, document, asked)
    return ReadJob(_load_own(source, asked, job_types), file=own_file(document))


def _load_own(source: Source, asked: Asked, job_types: Collection[str] | None) -> UnifiedJob:
    canonical = bool(source.data.keys() & {"apiVersion", "kind", "spec"})
    home = source.data.get("spec") if canonical else source.data
    given = home.get("parameters") if isinstance(home, dict) else None
    if canonical and isinstance(home, dict) and _filled_in_elsewhere(home.get("jobType")):
        without_parameters(asked.parameters, source.filename)
    else:
        source.data = render(source, given, asked.parameters, TEXT_UNDER)
    _override(source.data, canonical, asked.parameters, asked.name)
    job = _read_canonical(source) if canonical else _read_short(source)
    if job_types is not None and job.spec.job_type not in job_types:
        path: Path = ("spec", "jobType") if canonical else ("framework",)
        message = f"no framework is called {describe(job.spec.job_type)}{did_you_mean(job.spec.job_type, job_types)}"
        raise SpecError([source.problem(path, message)])
    return job


def _filled_in_elsewhere(job_type: Any) -> bool:
    """Whether templates that a canonical document of this job type still has are filled in by the task."""
    return isinstance(job_type, str) and of_job_type(job_type) is not None


def read_canonical(document: Mapping[str, Any], filename: str = "document") -> UnifiedJob:
    """The job of a canonical document, without filling in its templates; `UnifiedJob.from_document` calls it."""
    return _read_canonical(_source(document, filename))


def _source(document: str | bytes | Mapping[str, Any], filename: str) -> Source:
    if isinstance(document, str | bytes):
        return _shown(parse_source(document, filename, TEXT_UNDER))
    source = Source(filename, dict(document))
    _bound(source)
    return _shown(source)


def _shown(source: Source) -> Source:
    """Unwrap a job as `corral get -o yaml` and the API show it, so that it can be submitted again."""
    data = source.data
    if not (isinstance(data, dict) and {"id", "state", "document"} <= data.keys()):
        return source
    document = data["document"]
    if not (isinstance(document, dict) and document.get("kind") == KIND):
        return source
    values = {path[1:]: mark for path, mark in source.values.items() if path[:1] == ("document",)}
    keys = {path[1:]: mark for path, mark in source.keys.items() if path[:1] == ("document",) and path[1:]}
    return Source(source.filename, document, values, keys)


def _bound(source: Source) -> None:
    """Refuse data that exceeds the depth or number of values allowed in text."""
    count, level = 0, [source.data]
    for _ in range(MAX_DEPTH):
        inner: list[Any] = []
        for value in level:
            if isinstance(value, dict):
                inner.extend(value.values())
            elif isinstance(value, list):
                inner.extend(value)
        count += len(inner)
        if count > MAX_NODES:
            raise SpecError([source.problem((), f"more than {MAX_NODES} values")])
        if not inner:
            return
        level = inner
    raise SpecError([source.problem((), f"nested deeper than {MAX_DEPTH} levels")])


def _override(data: dict[str, Any], canonical: bool, parameters: Mapping[str, str], name: str | None) -> None:
    if parameters:
        home = data["spec"] if canonical else data
        home["parameters"] = {**home["parameters"], **parameters}
    if name is not None and canonical:
        metadata = data.get("metadata")
        data["metadata"] = {**(metadata if isinstance(metadata, dict) else {}), "name": name}
    elif name is not None:
        data["name"] = name


def _read_canonical(source: Source) -> UnifiedJob:
    for field, expected in (("kind", KIND), ("apiVersion", API_VERSION)):
        got = source.data.get(field)
        if got == "Cluster":
            raise SpecError([source.problem((field,), "this is a cluster document, and a job was expected")])
        if got != expected:
            what = f"expected {expected}, got {describe(got)}" if field in source.data else f"missing; write {expected}"
            raise SpecError([source.problem((field,), what)])
    try:
        return UnifiedJob.model_validate(source.data, by_alias=True, by_name=False)
    except ValidationError as error:
        raise SpecError(problems_of(error, UnifiedJob, source)) from None


def _read_foreign(dialect: Dialect, source: Source, document: Document, asked: Asked) -> ReadJob:
    """The job of a document in a dialect; errors name the fields of that document."""
    found = dialect.read(source, document, asked)
    try:
        job = UnifiedJob.model_validate(found.document, by_alias=True, by_name=False)
    except ValidationError as error:
        raise SpecError(problems_of(error, UnifiedJob, found.source, found.said_at)) from None
    return ReadJob(job, found.secrets, file=found.file)


def _read_short(source: Source) -> UnifiedJob:
    try:
        short = ShortJob.model_validate(source.data, by_alias=True, by_name=False)
    except ValidationError as error:
        raise SpecError(problems_of(error, ShortJob, source)) from None
    if findings := short.findings():
        raise SpecError([source.problem(path, message) for path, message in findings])
    try:
        return UnifiedJob.model_validate(short.canonical(API_VERSION, KIND), by_alias=True, by_name=False)
    except ValidationError as error:
        raise SpecError(problems_of(error, UnifiedJob, source, short.written_path)) from None
