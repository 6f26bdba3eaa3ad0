"""FrameworkController's `Framework` as a dialect."""

from __future__ import annotations

from typing import Any

from corral.compat.frameworkcontroller.language.definition import definition
from corral.compat.frameworkcontroller.language.framework import API_VERSION, KIND, translate
from corral.compat.frameworkcontroller.language.framework_object import FrameworkKind
from corral.spec.dialects.dialect import DocumentKind, ObjectDialect
from corral.spec.dialects.translation import Translate
from corral.spec.job_objects import ObjectKind


class FrameworkDialect(ObjectDialect):
    """Documents of FrameworkController, which are Kubernetes objects, too."""

    name = "frameworkcontroller"
    kinds = (DocumentKind(API_VERSION, KIND),)

    @property
    def translate(self) -> Translate:
        """The translation of all fields."""
        return translate

    def object_kinds(self) -> tuple[ObjectKind, ...]:
        """The one kind of objects."""
        return (FrameworkKind(),)

    def definitions(self) -> dict[str, dict[str, Any]]:
        """The definition of the kind."""
        return {"framework": definition()}
