"""A translated document, with the origin of each part, so that errors name the author's fields."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from corral.spec.dialects.field_reader import Fields
from corral.spec.errors import Path, did_you_mean

QUEUE_ANNOTATION: Final = "corral.dev/queue"
"""Annotation that gives the queue in foreign documents, which have no field for it."""
PRIORITY_ANNOTATION: Final = "corral.dev/priority"
"""Annotation that gives the priority, a class or a number, in foreign documents."""
REPLICAS_ANNOTATION: Final = "corral.dev/replicas"
"""Annotation with the number of replicas that an elastic job requests now, between its bounds."""
ORIGIN_ANNOTATION: Final = "corral.dev/translated-from"
NAMESPACE_ANNOTATION: Final = "corral.dev/namespace"
_SERVERS_OWN: Final = (
    "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds",
    "managedFields", "ownerReferences", "finalizers", "selfLink",
)  # fmt: skip
_KUBECTL: Final = "kubectl.kubernetes.io/"


@dataclass
class Translation:
    """The canonical document of a foreign one, and the foreign path of each part."""

    document: dict[str, Any] = field(default_factory=dict)
    origins: dict[Path, Path] = field(default_factory=dict)
    """Canonical path to foreign path; a path below an entry maps below that entry's foreign path."""

    def said_at(self, path: Path) -> Path:
        """The path in the foreign document of the canonical `path`."""
        for end in range(len(path), 0, -1):
            origin = self.origins.get(path[:end])
            if origin is not None:
                return (*origin, *path[end:])
        return path


Translate = Callable[[Fields, Translation], None]


def head(fields: Fields, translation: Translation, origin: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The canonical metadata of a foreign document, and a spec with the fields from its annotations.

    The caller completes both.
    """
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
