"""Why: which sorts of objects Corral can take is one list, from which an administrator chooses by name."""

from __future__ import annotations

from corral.kernel.errors import InvalidInput
from corral.spec.dialects import object_kinds as foreign_kinds
from corral.spec.errors import did_you_mean
from corral.spec.objects import ObjectKind, UnifiedJobKind


def object_kinds() -> tuple[ObjectKind, ...]:
    """Every sort of object that can become a job."""
    return (UnifiedJobKind(), *foreign_kinds())


def chosen_kinds(names: str) -> tuple[ObjectKind, ...]:
    """Those of the sorts that `names` has, separated by commas.

    Raises InvalidInput for one that is not known.
    """
    known = {kind.title: kind for kind in object_kinds()}
    wanted = list(dict.fromkeys(names.replace(",", " ").split()))
    for name in wanted:
        if name not in known:
            message = f"object_kinds names {name[:100]}, which Corral cannot take{did_you_mean(name, known)}."
            raise InvalidInput("bad-setting", message)
    return tuple(known[name] for name in wanted)
