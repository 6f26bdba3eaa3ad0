"""Read the configuration documents of a site from one file, as `corral apply` takes it.

Each document is checked alone. `corral.spec.quota_check` checks them against each other (parents, sums, capacity).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic import ValidationError

from corral.spec.cluster import ClusterDocument, load_cluster
from corral.spec.errors import SpecError, describe, did_you_mean
from corral.spec.hived.configuration import hived_of, is_hived
from corral.spec.hived.importer import documents_of
from corral.spec.policy import PolicyDocument
from corral.spec.prices import PricesDocument
from corral.spec.queue import QueueDocument
from corral.spec.storage import StorageDocument
from corral.spec.validation_messages import problems_of
from corral.spec.yaml_source import Source, parse_sources

Document = ClusterDocument | QueueDocument | PolicyDocument | StorageDocument | PricesDocument

KINDS: Final[dict[str, type[Document]]] = {
    "Cluster": ClusterDocument,
    "Queue": QueueDocument,
    "VirtualCluster": QueueDocument,
    "Policy": PolicyDocument,
    "Storage": StorageDocument,
    "Prices": PricesDocument,
}
_TEXT_UNDER: Final = frozenset({"labels"})


@dataclass(frozen=True)
class Loaded:
    """The documents of a file.

    `replaces_virtual_clusters` is True when one of them is HiveD's configuration, whose list of virtual clusters is
    complete.
    """

    documents: list[Document]
    replaces_virtual_clusters: bool


def load_document(text: str | bytes | Mapping[str, Any], *, filename: str = "configuration.yaml") -> list[Document]:
    """Every document of YAML text (separated by `---`) or JSON text, or one given as parsed data, in order.

    HiveD's configuration becomes a Cluster, a Queue for each virtual cluster, and a Policy with the *hived* preset.
    Raises SpecError as `load_documents` does.
    """
    return load_documents(text, filename=filename).documents


def load_documents(text: str | bytes | Mapping[str, Any], *, filename: str = "configuration.yaml") -> Loaded:
    """Like `load_document`, and also tells whether the file replaces virtual clusters that it does not name.

    Raises SpecError with every problem of the first document that has any, with line and column when text was given.
    """
    if isinstance(text, str | bytes):
        sources = parse_sources(text, filename, _TEXT_UNDER)
    else:
        sources = [Source(filename, dict(text))]
    given = [source for source in sources if source.data is not None]
    if not given:
        raise SpecError([sources[0].problem((), f"expected a document ({', '.join(KINDS)}), got nothing")])
    loaded: dict[tuple[str, str], Document] = {}
    for source in given:
        for document in _load(source):
            key = identity(document)
            if key in loaded:
                raise SpecError([source.problem(("name",), f"{key[0]}/{key[1]} is already there")])
            loaded[key] = document
    whole = any(isinstance(source.data, dict) and is_hived(source.data) for source in given)
    return Loaded(list(loaded.values()), whole)


def load_site(text: str | bytes, *, filename: str) -> list[Document]:
    """The documents of a file that is given at the start; raises SpecError as `load_whole_site` does."""
    return load_whole_site(text, filename=filename).documents


def load_whole_site(text: str | bytes, *, filename: str) -> Loaded:
    """Read a file that is given at the start: the documents of `corral apply`, or a cluster without a kind.

    Raises SpecError with every problem.
    """
    sources = parse_sources(text, filename, _TEXT_UNDER)
    data = sources[0].data
    if len(sources) == 1 and isinstance(data, dict) and "kind" not in data and not is_hived(data):
        return Loaded([load_cluster(text, filename=filename)], False)
    return load_documents(text, filename=filename)


def is_configuration(text: str | bytes) -> bool:
    """Whether the first document of a text is configuration of the cluster; False for text that cannot be parsed."""
    try:
        data = parse_sources(text, "", _TEXT_UNDER)[0].data
    except SpecError:
        return False
    return isinstance(data, dict) and (is_hived(data) or data.get("kind") in KINDS)


def identity(document: Document) -> tuple[str, str]:
    """The kind and name under which a document is stored, shown and rolled back."""
    if isinstance(document, ClusterDocument):
        return ("Cluster", document.engine)
    return ("Queue" if isinstance(document, QueueDocument) else document.kind, document.name)


def _load(source: Source) -> list[Document]:
    data = source.data
    if not isinstance(data, dict):
        raise SpecError([source.problem((), f"expected a document (a mapping of fields), got {describe(data)}")])
    if is_hived(data):
        return [*documents_of(hived_of(source), filename=source.filename)]
    kind = data.get("kind")
    model = KINDS.get(kind) if isinstance(kind, str) else None
    if model is None:
        said = "missing" if kind is None else f"got {describe(kind)}"
        hint = did_you_mean(kind, KINDS) if isinstance(kind, str) else ""
        raise SpecError([source.problem(("kind",), f"expected one of {', '.join(KINDS)}; {said}{hint}")])
    try:
        return [model.model_validate(data, by_alias=True, by_name=False)]
    except ValidationError as error:
        raise SpecError(problems_of(error, model, source)) from None
