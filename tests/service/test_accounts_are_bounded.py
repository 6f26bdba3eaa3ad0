"""Limits on an account's waiting and running jobs and its stored data, and the view of its usage."""

from __future__ import annotations

import asyncio
import hashlib
import io
import tarfile
from collections.abc import AsyncIterator, Callable

import pytest

from corral.kernel.errors import Forbidden, InvalidInput, NotFound, TooLarge, TooManyRequests, Unavailable
from corral.kernel.ids import JobId
from corral.model.kubernetes_objects import Birth, ObjectRef
from corral.model.store_writes import ControlBatch
from corral.model.views import Amount
from corral.service.jobs.account_limits import Allowance
from corral.service.service import Service
from corral.store import Store
from tests.service.conftest import ANN, BOB, ROOT
from tests.service.test_submitting import job_text
from tests.store.makers import ended

Bounded = Callable[..., Service]


@pytest.fixture
def bounded(service: Service) -> Bounded:
    """The service with these limits for every account."""

    def of(**bounds: int) -> Service:
        service.context.allowance = Allowance(**bounds)
        return service

    return of


async def test_an_account_with_all_its_tasks_is_refused_and_others_are_not(bounded: Bounded, store: Store) -> None:
    service = bounded(tasks=5)
    await service.submission.submit(ANN, job_text("first", replicas=3), wait_for_capacity=True)
    with pytest.raises(TooManyRequests) as refused:
        await service.submission.submit(ANN, job_text("second", replicas=3), wait_for_capacity=True)
    assert refused.value.code == "too-many-tasks"
    assert refused.value.message == (
        "ann has 3 waiting and running tasks, and may have 5; this asks for 3 more. "
        "Wait until some have ended, or stop some."
    )
    assert {record.name for record in await store.load_live()} == {"first"}, "nothing of a refused job is stored"
    await service.submission.submit(ANN, job_text("small", replicas=2), wait_for_capacity=True)
    await service.submission.submit(BOB, job_text("second", replicas=3), wait_for_capacity=True)


async def test_the_jobs_of_an_array_count_together(bounded: Bounded, store: Store) -> None:
    service = bounded(tasks=5)
    with pytest.raises(TooManyRequests):
        await service.submission.submit(ANN, job_text("many", more="array: {size: 6}\n"), wait_for_capacity=True)
    assert await store.load_live() == []
    await service.submission.submit(ANN, job_text("many", more="array: {size: 5}\n"), wait_for_capacity=True)
    assert (await service.accounts.use_of(ANN, "ann")).tasks == Amount(5, 5)


async def test_of_jobs_sent_at_once_no_more_are_taken_than_of_jobs_sent_in_turn(bounded: Bounded) -> None:
    service = bounded(tasks=5)
    sent = [service.submission.submit(ANN, job_text(f"j{number}"), wait_for_capacity=True) for number in range(20)]
    answers = await asyncio.gather(*sent, return_exceptions=True)
    assert sum(isinstance(answer, TooManyRequests) for answer in answers) == 15


async def test_a_job_grows_within_the_bound_and_may_always_shrink(bounded: Bounded, store: Store) -> None:
    service = bounded(tasks=6)
    wide = job_text("wide").replace("replicas: 1", "replicas: {min: 1, max: 8, replicas: 2}")
    await service.submission.submit(ANN, wide, wait_for_capacity=True)
    await service.submission.submit(ANN, job_text("other", replicas=3), wait_for_capacity=True)
    assert (await service.accounts.use_of(ANN, "ann")).tasks == Amount(5, 6), "what is asked for counts, not the most"
    with pytest.raises(TooManyRequests) as refused:
        await service.job_commands.scale(ROOT, "ann~wide", replicas=8)
    assert refused.value.code == "too-many-tasks"
    assert refused.value.message == (
        "ann has 5 waiting and running tasks, and may have 6; this asks for 6 more. "
        "Wait until some have ended, or stop some."
    )
    await service.job_commands.scale(ANN, "wide", replicas=3)
    with pytest.raises(TooManyRequests):
        await service.submission.submit(ANN, job_text("third"), wait_for_capacity=True)
    service.context.allowance = Allowance(tasks=1)
    await service.job_commands.scale(ANN, "wide", replicas=1)
    assert [intent.data["replicas"] for intent in (await store.intents(0))[2:]] == [3, 1]


async def test_of_jobs_that_grow_at_once_no_more_are_taken_than_in_turn(bounded: Bounded) -> None:
    service = bounded(tasks=14)
    for number in range(10):
        wide = job_text(f"wide{number}").replace("replicas: 1", "replicas: {min: 1, max: 4, replicas: 1}")
        await service.submission.submit(ANN, wide, wait_for_capacity=True)
    asked = [service.job_commands.scale(ANN, f"wide{number}", replicas=2) for number in range(10)]
    answers = await asyncio.gather(*asked, return_exceptions=True)
    assert sum(isinstance(answer, TooManyRequests) for answer in answers) == 6


async def test_a_job_born_as_an_object_is_refused_before_its_object_is_asked(bounded: Bounded) -> None:
    service = bounded(tasks=2)
    wide = job_text("wide").replace("replicas: 1", "replicas: {min: 1, max: 4, replicas: 1}")
    birth = Birth(ObjectRef("unifiedjobs.corral.dev", "team", "wide", "uid-1"), "f")
    await service.submission.submit(ANN, wide, wait_for_capacity=True, birth=birth)
    with pytest.raises(TooManyRequests):
        await service.job_commands.scale(ANN, "wide", replicas=3)
    with pytest.raises(Unavailable):  # the stand-in for control knows no object
        await service.job_commands.scale(ANN, "wide", replicas=2)


async def test_a_job_that_is_over_is_restarted_within_the_bound(bounded: Bounded, store: Store, epoch: int) -> None:
    service = bounded(tasks=4)
    first = (await service.submission.submit(ANN, job_text("first", replicas=3), wait_for_capacity=True)).detail
    assert first is not None
    stored = await store.load_job(JobId(first.id))
    assert stored is not None
    await store.commit(ControlBatch(epoch, jobs=(ended(stored),)))
    await service.submission.submit(ANN, job_text("second", replicas=2), wait_for_capacity=True)
    with pytest.raises(TooManyRequests) as refused:
        await service.job_commands.restart(ANN, first.id)
    assert refused.value.code == "too-many-tasks"
    await service.job_commands.restart(ANN, "second")


async def test_a_repeated_submission_is_answered_though_nothing_more_would_be_taken(bounded: Bounded) -> None:
    service = bounded(tasks=2)
    text = job_text("once", replicas=2)
    first = await service.submission.submit(ANN, text, wait_for_capacity=True, idempotency_key="k")
    again = await service.submission.submit(ANN, text, wait_for_capacity=True, idempotency_key="k")
    assert first.created and not again.created


async def test_code_is_kept_up_to_the_bound_and_the_same_again_costs_nothing(bounded: Bounded) -> None:
    one, other = archive("a.py"), archive("b.py")
    service = bounded(code_bytes=len(one) + len(other) - 1)
    uploaded = await service.code_archives.put(ANN, chunks(one))
    for declared in (None, len(other)):
        with pytest.raises(TooLarge) as refused:
            await service.code_archives.put(ANN, chunks(other), declared=declared)
        assert (
            service.context.blobs is not None
            and await service.context.blobs.size(hashlib.sha256(other).hexdigest()) is None
        )
        assert refused.value.code == "too-much-code" and refused.value.message.startswith("ann keeps 0.0 MiB of code")
    assert (await service.code_archives.put(ANN, chunks(one))).digest == uploaded.digest
    again = await service.code_archives.put(ANN, chunks(one), declared=len(one), digest=uploaded.digest)
    assert again.digest == uploaded.digest
    assert (await service.accounts.use_of(ANN, "ann")).code_bytes == Amount(len(one), len(one) + len(other) - 1)
    await service.code_archives.put(BOB, chunks(other))


async def test_a_digest_opens_no_way_past_the_bound(bounded: Bounded) -> None:
    one, other = archive("a.py"), archive("b.py", "something more")
    service = bounded(code_bytes=len(one) + 1)
    kept = (await service.code_archives.put(ANN, chunks(one))).digest
    told = hashlib.sha256(other).hexdigest()

    async def unread() -> AsyncIterator[bytes]:
        raise AssertionError("nothing of it is read")
        yield b""

    for claimed, length in ((kept, len(other)), (told, len(other)), ("", len(one)), (told, len(one))):
        with pytest.raises(TooLarge):
            await service.code_archives.put(ANN, unread(), declared=length, digest=claimed)
    with pytest.raises(TooLarge):
        await service.code_archives.put(BOB, unread(), declared=len(one) + 2, digest=kept)
    with pytest.raises(InvalidInput) as refused:
        await service.code_archives.put(ANN, chunks(other), declared=len(one), digest=kept)
    assert refused.value.code == "digest-mismatch"
    assert service.context.blobs is not None and await service.context.blobs.size(told) is None


def archive(name: str, content: str = "") -> bytes:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w:gz") as tar:
        entry = tarfile.TarInfo(name)
        entry.size = len(content)
        tar.addfile(entry, io.BytesIO(content.encode()))
    return raw.getvalue()


async def chunks(data: bytes) -> AsyncIterator[bytes]:
    yield data


async def test_what_an_account_uses_is_shown_to_it_and_to_administrators(bounded: Bounded) -> None:
    service = bounded(tasks=9, log_bytes=7, folder_bytes=8)
    await service.submission.submit(ANN, job_text("first", replicas=3), wait_for_capacity=True)
    for actor in (ANN, ROOT):
        use = await service.accounts.use_of(actor, "ann")
        assert use.tasks == Amount(3, 9) and use.code_bytes == Amount(0, 0)
        assert (use.log_bytes_of_stream, use.folder_bytes_of_task) == (7, 8)
    with pytest.raises(Forbidden):
        await service.accounts.use_of(BOB, "ann")
    with pytest.raises(NotFound):
        await service.accounts.use_of(ROOT, "nobody")
