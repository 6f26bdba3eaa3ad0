"""Kubernetes objects from which jobs are created, and the link between each object and its job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from corral.kernel.ids import JobId

if TYPE_CHECKING:
    from corral.spec.job_objects import ObjectKind


class ObjectAddress(msgspec.Struct, frozen=True):
    """The API group, version and plural of one kind of object."""

    group: str
    version: str
    plural: str

    @classmethod
    def of(cls, kind: ObjectKind) -> ObjectAddress:
        """The address of a kind of object."""
        return cls(kind.group, kind.version, kind.plural)

    @property
    def title(self) -> str:
        """The resource name in kubectl's form: `unifiedjobs.corral.dev`."""
        return f"{self.plural}.{self.group}"


class ObjectRef(msgspec.Struct, frozen=True):
    """One object, identified by its UID: a later object of the same name has another UID."""

    kind: str
    """The title of its `ObjectAddress`."""
    namespace: str
    name: str
    uid: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


class ObjectLink(msgspec.Struct, frozen=True):
    """The link from an object to the job that was created from it."""

    ref: ObjectRef
    job: JobId
    fingerprint: str
    """A hash of the object's part that cannot change while the job lives."""
    at: float
    """When it was submitted, in seconds since 1970."""


class Birth(msgspec.Struct, frozen=True):
    """The object that a new job is created from."""

    ref: ObjectRef
    fingerprint: str
    suspended: bool = False
    """Whether the job is held until its object, or a person, resumes it."""


class DocumentChange(msgspec.Struct, frozen=True):
    """The latest state of one object, or its last known state before it was deleted."""

    kind: str
    document: dict[str, Any]
    gone: bool = False
