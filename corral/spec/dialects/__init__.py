"""Job documents of other systems, translated to the canonical document field by field, or refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from corral.spec.job_objects import ObjectKind


def object_kinds() -> tuple[ObjectKind, ...]:
    """The kinds of Kubernetes objects of other systems that can become jobs."""
    from corral.compat.alnair.language.job_object import AlnairKind
    from corral.compat.frameworkcontroller.language.framework_object import FrameworkKind

    return (AlnairKind(), FrameworkKind())
