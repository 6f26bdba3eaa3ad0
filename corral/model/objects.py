"""Why: a job may be born as an object of a cluster; which one is kept for as long as both live."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from corral.kernel.ids import JobId

if TYPE_CHECKING:
    from corral.spec.objects import ObjectKind


class ObjectAddress(msgspec.Struct, frozen=True):
    """Where the objects of one sort are at an API server."""

    group: str
    version: str
    plural: str

    @classmethod
    def of(cls, kind: ObjectKind) -> ObjectAddress:
        """Where a sort of object is."""
        return cls(kind.group, kind.version, kind.plural)

    @property
    def title(self) -> str:
        """As `kubectl` writes it: `unifiedjobs.corral.dev`."""
        return f"{self.plural}.{self.group}"


class ObjectRef(msgspec.Struct, frozen=True):
    """One object, for ever: another one of the same name has another UID."""

    kind: str
    """Its address's title."""
    namespace: str
    name: str
    uid: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


class ObjectLink(msgspec.Struct, frozen=True):
    """Which job an object became."""

    ref: ObjectRef
    job: JobId
    fingerprint: str
    """Of the part of the object that cannot change while the job lives."""
    at: float
    """When it was submitted: seconds since 1970."""


class Birth(msgspec.Struct, frozen=True):
    """As which object a job is born."""

    ref: ObjectRef
    fingerprint: str
    suspended: bool = False
    """Whether it is held until its object, or a person, lets it go on."""


class DocumentChange(msgspec.Struct, frozen=True):
    """The latest about one object: as it is now, or as it was last seen before it went."""

    kind: str
    document: dict[str, Any]
    gone: bool = False
