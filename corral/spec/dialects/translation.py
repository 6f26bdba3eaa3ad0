"""Why: a translated document is checked as ours, and its problems are told where the author wrote what caused them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from corral.spec.dialects.fields import Fields
from corral.spec.errors import Path, did_you_mean

QUEUE_ANNOTATION: Final = "corral.dev/queue"
"""In foreign documents, which have no word for it, the queue that the job is of."""
PRIORITY_ANNOTATION: Final = "corral.dev/priority"
"""Likewise its priority: a class or a number."""
REPLICAS_ANNOTATION: Final = "corral.dev/replicas"
"""Likewise how many replicas an elastic one asks for now, between its bounds."""
ORIGIN_ANNOTATION: Final = "corral.dev/translated-from"
NAMESPACE_ANNOTATION: Final = "corral.dev/namespace"
_SERVERS_OWN: Final = (
    "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds",
    "managedFields", "ownerReferences", "finalizers", "selfLink",
)  # fmt: skip
_KUBECTL: Final = "kubectl.kubernetes.io/"


@dataclass
class Translation:
    """The canonical document that a foreign one becomes, and where in the foreign one each part was said."""

    document: dict[str, Any] = field(default_factory=dict)
    origins: dict[Path, Path] = field(default_factory=dict)
    """By canonical path the foreign one; what is below a path that is here was said at the same place or below it."""

    def said_at(self, path: Path) -> Path:
        """Where the foreign document says what the canonical one says at `path`."""
        for end in range(len(path), 0, -1):
            origin = self.origins.get(path[:end])
            if origin is not None:
                return (*origin, *path[end:])
        return path


Translate = Callable[[Fields, Translation], None]


def head(fields: Fields, translation: Translation, origin: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The canonical metadata of a foreign document, and the spec that its annotations say; both go on to be filled."""
    metadata = fields.inner("metadata", needed=True)
    name = metadata.text("name", None)
    metadata.refuse("generateName", "a job has a name; write it as metadata.name")
    namespace = metadata.text("namespace")
    annotations = {key: value for key, value in metadata.texts("annotations").items() if not key.startswith(_KUBECTL)}
    metadata.ignore(_SERVERS_OWN)
    labels = metadata.texts("labels")
    metadata.done()
    spec: dict[str, Any] = {}
    for key, annotation in (("queue", QUEUE_ANNOTATION), ("priority", PRIORITY_ANNOTATION)):
        if annotation in annotations:
            spec[key] = annotations.pop(annotation)
            translation.origins["spec", key] = ("metadata", "annotations", annotation)
    annotations.pop(REPLICAS_ANNOTATION, None)
    for key in annotations:
        if key.startswith("corral.dev/") and key not in (ORIGIN_ANNOTATION, NAMESPACE_ANNOTATION):
            known = (QUEUE_ANNOTATION, PRIORITY_ANNOTATION, REPLICAS_ANNOTATION)
            metadata.problem(("annotations", key), f"unknown annotation{did_you_mean(key, known)}", at_key=True)
    annotations[ORIGIN_ANNOTATION] = origin
    if namespace:
        annotations[NAMESPACE_ANNOTATION] = namespace
    return {"name": name, "labels": labels, "annotations": annotations}, spec
