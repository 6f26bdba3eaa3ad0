"""Detect the dialect of a job document by apiVersion and kind, and translate it."""

from __future__ import annotations

from typing import Any, Final

from corral.compat.alnair.language import job as alnair
from corral.compat.frameworkcontroller.language import framework
from corral.spec.dialects.field_reader import Fields
from corral.spec.dialects.translation import Translate, Translation
from corral.spec.errors import SpecError
from corral.spec.yaml_source import Source

_DIALECTS: Final[dict[tuple[str, str], Translate]] = {
    (alnair.API_VERSION, alnair.KIND): alnair.translate,
    (framework.API_VERSION, framework.KIND): framework.translate,
}
KINDS: Final = tuple(_DIALECTS)
"""`apiVersion` and `kind` of every foreign document that becomes a job."""


def is_foreign(data: Any) -> bool:
    """Whether data is a job document of another system."""
    return isinstance(data, dict) and any(
        data.get("apiVersion") == version and data.get("kind") == kind for version, kind in KINDS
    )


def translated(source: Source) -> Translation:
    """The canonical document of the foreign one in `source`, not yet validated.

    Raises SpecError with every field that a job cannot express.
    """
    data = source.data
    fields, translation = Fields(source, data), Translation()
    _DIALECTS[data["apiVersion"], data["kind"]](fields, translation)
    if fields.problems:
        raise SpecError(fields.problems)
    return translation
