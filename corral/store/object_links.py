"""Link Kubernetes objects to the jobs made from them, so that an object becomes a job at most once.

The link is by UID, so it holds however often an object is seen.
"""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import bindparam, delete, insert, select, update

from corral.kernel.ids import JobId
from corral.model.kubernetes_objects import ObjectLink, ObjectRef
from corral.model.store_writes import Submitted
from corral.store import tables
from corral.store.database import Database, rows
from corral.store.writer import Transaction

_objects = tables.objects
_BY_UID: Final = select(_objects.c.job).where(_objects.c.uid == bindparam("u"))


class Objects(Database):
    """Links between objects and jobs."""

    async def object_links(self) -> list[ObjectLink]:
        """Every link."""
        return [_link(row) for row in await self.read(lambda connection: rows(connection, select(_objects)))]

    async def link_of(self, uid: str) -> ObjectLink | None:
        """The link of an object, looked up after all pending writes of this process; None when there is none."""
        query = select(_objects).where(_objects.c.uid == uid)
        found = await self.write(lambda transaction: transaction.read(query).first())
        return None if found is None else _link(found)

    async def object_of(self, job: JobId) -> ObjectLink | None:
        """The object that a job was made from; None for a job without one."""
        query = select(_objects).where(_objects.c.job == job)
        found = await self.read(lambda connection: connection.execute(query).first())
        return None if found is None else _link(found)

    async def keep_fingerprint(self, uid: str, fingerprint: str) -> None:
        """Store a new fingerprint: the object's text changed, its meaning did not."""
        await self.change(update(_objects).where(_objects.c.uid == uid).values(fingerprint=fingerprint))

    async def unlink(self, uid: str) -> None:
        """Delete the link of an object that is gone; its job stays as an ordinary job."""
        await self.change(delete(_objects).where(_objects.c.uid == uid))


def already_linked(transaction: Transaction, new: ObjectLink | None) -> Submitted | None:
    """The job that an object has become already; None when there is none."""
    found = None if new is None else transaction.read(_BY_UID, {"u": new.ref.uid}).first()
    return None if found is None else Submitted(JobId(found.job), False, 0)


def link(transaction: Transaction, new: ObjectLink) -> None:
    """Store the link between an object and its new job."""
    ref = new.ref
    row = {"uid": ref.uid, "kind": ref.kind, "namespace": ref.namespace, "name": ref.name}
    transaction.write(insert(_objects), {**row, "job": new.job, "fingerprint": new.fingerprint, "at": new.at})


def _link(row: Any) -> ObjectLink:
    ref = ObjectRef(row.kind, row.namespace, row.name, row.uid)
    return ObjectLink(ref, JobId(row.job), row.fingerprint, row.at)
