"""Alnair's `UnifiedJob` as a dialect."""

from __future__ import annotations

from typing import Any

from corral.compat.alnair.language.definition import definition
from corral.compat.alnair.language.job import API_VERSION, KIND, translate
from corral.compat.alnair.language.job_object import AlnairKind
from corral.spec.dialects.dialect import DocumentKind, ObjectDialect
from corral.spec.dialects.translation import Translate
from corral.spec.job_objects import ObjectKind


class AlnairDialect(ObjectDialect):
    """Documents of Alnair, which are Kubernetes objects, too."""

    name = "alnair"
    kinds = (DocumentKind(API_VERSION, KIND),)

    @property
    def translate(self) -> Translate:
        """The translation of all fields."""
        return translate

    def object_kinds(self) -> tuple[ObjectKind, ...]:
        """The one kind of objects."""
        return (AlnairKind(),)

    def definitions(self) -> dict[str, dict[str, Any]]:
        """The definition of the kind."""
        return {"alnair": definition()}
