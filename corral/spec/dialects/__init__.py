"""Job documents of other systems, each translated into the canonical one field by field, or refused where it cannot be."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from corral.spec.objects import ObjectKind


def object_kinds() -> tuple[ObjectKind, ...]:
    """Every foreign sort of object that a cluster may have jobs as."""
    from corral.spec.dialects.alnair_object import AlnairKind
    from corral.spec.dialects.framework_object import FrameworkKind

    return (AlnairKind(), FrameworkKind())
