"""A dialect: a format of job documents of another system, which is translated to the canonical document.

A dialect is an object in the entry-point group `corral.dialects`. `Dialect` is its base class; `ObjectDialect` is that of
documents with `apiVersion` and `kind`, which are translated field by field.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from corral.spec.dialects.field_reader import Fields
from corral.spec.dialects.translation import Translate, Translation
from corral.spec.errors import Path, Problem, SpecError, shorten
from corral.spec.own_file import OwnFile
from corral.spec.yaml_source import Source

if TYPE_CHECKING:
    from corral.spec.job_objects import ObjectKind

Document = str | bytes | Mapping[str, Any]


class DocumentKind(NamedTuple):
    """The `apiVersion` and `kind` of a document."""

    api_version: str
    kind: str


@dataclass(frozen=True, slots=True)
class Asked:
    """The arguments with which a document is read."""

    filename: str
    parameters: Mapping[str, str] = field(default_factory=dict)
    """Values that override the document's own parameters."""
    name: str | None = None
    """Replaces the job's name."""
    user: str = ""
    """The submitter."""
    fs_uri: str = ""
    """The file system of paths that name none."""
    folder: str = ""
    """The submitter's own folder on storages."""
    sealed: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The secrets of placeholders, as `OwnFile.secrets` names them."""


@dataclass(frozen=True, slots=True)
class Translated:
    """A canonical document, not yet validated, and where its parts were written."""

    document: dict[str, Any]
    source: Source
    said_at: Callable[[Path], Path]
    """Maps a path of the canonical document to the path in the source."""
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The job's own secrets by name, without the dialect's prefix."""
    file: OwnFile | None = None
    """The text to keep; None when data was given, or when a secret may remain in the text."""


class Dialect:
    """The base class of dialects."""

    name: str = ""
    kinds: tuple[DocumentKind, ...] = ()
    """Its documents among others in one file; a document of the same API group and another kind is refused as a job."""
    reads_text: bool = False
    """Whether `read` parses the text itself, so that a quick parse before is of no use."""
    job_types: frozenset[str] = frozenset()
    """Its job types. The tasks fill in the templates that a canonical document of these types still has."""
    secret_prefix: str = ""
    """Prefix of its jobs' own secrets among those that a job asks for."""
    kept_folder: str = ""
    """Secrets whose file is in this folder are not written as files: only the runtime reads them."""
    registries_file: str = ""
    """The secret with this file name is Docker's `config.json` for pulling images; the task gets no such file."""

    def readable(self, text: str | bytes) -> str | bytes:
        """The text as YAML, if it is a file of this dialect that is written in something close to YAML."""
        return text

    def recognises(self, data: Any) -> bool:
        """Whether data is meant as a document of this dialect, valid or not."""
        return isinstance(data, dict) and any(
            data.get("apiVersion") == each.api_version and data.get("kind") == each.kind for each in self.kinds
        )

    def read(self, source: Source, document: Document, asked: Asked) -> Translated:
        """Translate a document that is recognised; `source` is `document` as parsed.

        Raises SpecError with every problem, each at the author's field.
        """
        raise NotImplementedError

    def object_kinds(self) -> tuple[ObjectKind, ...]:
        """The kinds of Kubernetes objects that become jobs."""
        return ()

    def definitions(self) -> dict[str, dict[str, Any]]:
        """The CustomResourceDefinitions of these kinds, by the name that `corral crd` uses."""
        return {}


class ObjectDialect(Dialect):
    """The base class of dialects whose documents have `apiVersion` and `kind`, and no parameters."""

    @property
    def translate(self) -> Translate:
        """The function that reads all fields of a document into a translation."""
        raise NotImplementedError

    def read(self, source: Source, document: Document, asked: Asked) -> Translated:
        """Translate the fields of `source`; see `Dialect.read`."""
        without_parameters(asked.parameters, source.filename)
        data = source.data
        if asked.name is not None:
            metadata = data.get("metadata")
            data["metadata"] = {**(metadata if isinstance(metadata, dict) else {}), "name": asked.name}
        fields, translation = Fields(source, data), Translation()
        self.translate(fields, translation)
        if fields.problems:
            raise SpecError(fields.problems)
        from corral.spec.job import API_VERSION, KIND

        made = {"apiVersion": API_VERSION, "kind": KIND, **translation.document}
        return Translated(made, source, translation.said_at, file=own_file(document))


def own_file(document: Document) -> OwnFile | None:
    """The text of a document that has no secrets; None for data."""
    if not isinstance(document, str | bytes):
        return None
    return OwnFile(document.decode("utf-8", "replace") if isinstance(document, bytes) else document)


def without_parameters(parameters: Mapping[str, str], filename: str) -> None:
    """Refuse parameters for a document that has none.

    Raises SpecError that names the first.
    """
    if parameters:
        word = shorten(next(iter(parameters)))
        raise SpecError([Problem(f"--set {word}: this kind of document has no parameters", filename=filename)])
