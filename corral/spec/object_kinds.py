"""The kinds of Kubernetes objects that Corral can turn into jobs, and the selection of them by name."""

from __future__ import annotations

from corral.kernel.errors import InvalidInput
from corral.spec.dialects.registry import dialects
from corral.spec.errors import did_you_mean
from corral.spec.job_objects import ObjectKind, UnifiedJobKind


def object_kinds() -> tuple[ObjectKind, ...]:
    """All kinds of objects that can become jobs."""
    return (UnifiedJobKind(), *(kind for each in dialects() for kind in each.object_kinds()))


def chosen_kinds(names: str) -> tuple[ObjectKind, ...]:
    """The kinds listed in `names`, separated by commas or blanks.

    Raises InvalidInput for an unknown name.
    """
    known = {kind.title: kind for kind in object_kinds()}
    wanted = list(dict.fromkeys(names.replace(",", " ").split()))
    for name in wanted:
        if name not in known:
            message = f"object_kinds names {name[:100]}, which Corral cannot take{did_you_mean(name, known)}."
            raise InvalidInput("bad-setting", message)
    return tuple(known[name] for name in wanted)
