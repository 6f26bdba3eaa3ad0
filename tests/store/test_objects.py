"""A cluster object becomes a job at most once, and is known as long as it exists."""

from __future__ import annotations

import asyncio

import msgspec

from corral.model.kubernetes_objects import ObjectLink, ObjectRef
from corral.store import Store
from tests.store.makers import new_job

REF = ObjectRef("unifiedjobs.corral.dev", "team", "digits", "uid-1")


async def test_an_object_becomes_one_job_however_often_it_is_submitted(store: Store) -> None:
    jobs = [new_job(name="digits") for _ in range(5)]
    born = [msgspec.structs.replace(job, object=ObjectLink(REF, job.id, f"print-{job.id}", 5.0)) for job in jobs]
    submitted = await asyncio.gather(*(store.submit(job) for job in born))
    assert sum(each.created for each in submitted) == 1
    assert len({each.id for each in submitted}) == 1
    (link,) = await store.object_links()
    assert (link.ref, link.job, link.fingerprint) == (REF, submitted[0].id, f"print-{submitted[0].id}")
    assert await store.object_of(submitted[0].id) == link


async def test_another_object_of_the_same_name_is_another_job(store: Store) -> None:
    first, second = new_job(), new_job()
    again = msgspec.structs.replace(REF, uid="uid-2")
    await store.submit(msgspec.structs.replace(first, object=ObjectLink(REF, first.id, "", 0.0)))
    assert (await store.submit(msgspec.structs.replace(second, object=ObjectLink(again, second.id, "", 0.0)))).created
    await store.keep_fingerprint("uid-2", "other")
    await store.unlink("uid-1")
    assert [(link.ref.uid, link.fingerprint) for link in await store.object_links()] == [("uid-2", "other")]
    assert await store.object_of(first.id) is None
