"""Bundles of compiled code: a task reads and publishes within its own user's scope, and the first writer wins."""

from __future__ import annotations

import gzip
import hashlib
import io
import itertools
import tarfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from corral.kernel.errors import Conflict, Forbidden, InvalidInput, NotFound, TooLarge
from corral.kernel.ids import JobId, attempt_id
from corral.kernel.tokens import mint_job_token
from corral.model.accounts import Group
from corral.service.actor import Actor
from corral.service.jobs.account_limits import Allowance
from corral.service.jobs.compile_caches import Measured
from corral.service.service import Service
from corral.storage.code_archives import blob_store
from corral.store import Store
from corral.store.compile_caches import NewBundle
from tests.service.conftest import ANN, BOB, KEY, ROOT, START, job_text

_NUMBERS = itertools.count()
FACTS = {"torch": "2.5.1", "cpu": "abc"}


def bundle(text: str = "code", *, link: str = "") -> bytes:
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb", mtime=0) as packed, tarfile.open(fileobj=packed, mode="w") as archive:
        member = tarfile.TarInfo("triton/kernel")
        member.size = len(text)
        archive.addfile(member, io.BytesIO(text.encode()))
        if link:
            member = tarfile.TarInfo("link")
            member.type, member.linkname = tarfile.SYMTYPE, link
            archive.addfile(member)
    return out.getvalue()


@pytest.fixture
def caches(service: Service, tmp_path: Path) -> Service:
    service.context.caches = blob_store(tmp_path, None, "caches")
    service.context.caches.open()
    return service


class Task:
    """A task of a job, with the job's token."""

    def __init__(self, service: Service, job: JobId, actor: Actor) -> None:
        self.caches, self.job, self.actor = service.compile_caches, job, actor
        self.attempt = attempt_id(job, 0, "worker", 0, 0)
        self.key = self.digest = ""

    async def offered(self, facts: dict[str, str] = FACTS) -> str:
        offer = await self.caches.offer(self.actor, attempt=self.attempt, facts=facts)
        self.key, self.digest = offer.key, offer.digest
        return offer.digest or offer.refusal

    async def publish(self, content: bytes, *, after: str | None = None, digest: str = "") -> str:
        async def chunks() -> AsyncIterator[bytes]:
            yield content

        return await self.caches.publish(
            self.actor,
            chunks(),
            attempt=self.attempt,
            key=self.key,
            after=self.digest if after is None else after,
            files=1,
            digest=digest or hashlib.sha256(content).hexdigest(),
        )

    async def read(self, digest: str) -> bytes:
        return (await self.caches.bundle(self.actor, digest, attempt=self.attempt)).read_bytes()


async def task(service: Service, owner: Actor = ANN, share: str = "user") -> Task:
    """A task of a new job of `owner`."""
    name = f"train-{next(_NUMBERS)}"
    detail = (await service.submission.submit(owner, job_text(name, more=f"compileCache: {share}\n"))).detail
    assert detail is not None
    job = JobId(detail.id)
    actor = await service.authentication.authenticate(mint_job_token(KEY, job, START + 1000))
    return Task(service, job, actor)


async def test_the_next_job_of_the_user_gets_what_was_published(caches: Service) -> None:
    first, second = await task(caches), await task(caches)
    assert await first.offered() == ""
    digest = await first.publish(bundle())
    assert await second.offered() == digest and await second.read(digest) == bundle()
    third = await task(caches)
    assert await third.offered(FACTS | {"torch": "2.6"}) == "", "other versions have a key of their own"


async def test_nobody_reads_the_bundle_of_another_user(caches: Service) -> None:
    first, foreign = await task(caches), await task(caches, BOB)
    await first.offered()
    digest = await first.publish(bundle())
    assert await foreign.offered() == ""
    with pytest.raises(NotFound):
        await foreign.read(digest)
    with pytest.raises(NotFound):
        await caches.compile_caches.remove(BOB, (await caches.compile_caches.list(ANN)).items[0].id)
    with pytest.raises(Forbidden):
        await caches.compile_caches.offer(ANN, attempt=first.attempt, facts=FACTS)


async def test_a_job_shares_nothing_unless_it_says_so(caches: Service) -> None:
    alone, other, silent = await task(caches, share="job"), await task(caches), await task(caches, share="none")
    await alone.offered()
    digest = await alone.publish(bundle())
    assert await other.offered() == "" and await silent.offered() == "the job asks for none"
    with pytest.raises(NotFound):
        await other.read(digest)


async def test_a_group_shares_only_with_members_whose_jobs_name_it(caches: Service, store: Store) -> None:
    await store.put_group(Group("vision"))
    share = "{share: group, group: vision}"
    outside = await task(caches, BOB, share)
    assert await outside.offered() == "bob is not in the group vision"
    await store.change_user("ann", groups=("vision",))
    first = await task(caches, ANN, share)
    await first.offered()
    digest = await first.publish(bundle())
    with pytest.raises(NotFound):
        await outside.read(digest)
    await store.change_user("bob", groups=("vision",))
    member, own = await task(caches, BOB, share), await task(caches, BOB)
    assert await member.offered() == digest
    assert await own.offered() == "", "a job that does not name the group takes nothing of it"
    await store.remove_group("vision")
    assert (await caches.compile_caches.list(ROOT, everyone=True)).items == ()


async def test_the_first_writer_wins_and_a_bundle_is_replaced_only_by_its_heir(caches: Service) -> None:
    first, second = await task(caches), await task(caches)
    await first.offered()
    await second.offered()
    digest = await first.publish(bundle("one"))
    with pytest.raises(Conflict):
        await second.publish(bundle("two"))
    heir = await task(caches)
    assert await heir.offered() == digest
    newer = await heir.publish(bundle("one and two"))
    assert await (await task(caches)).offered() == newer


async def test_a_bundle_with_another_hash_or_with_links_is_refused(caches: Service) -> None:
    first = await task(caches)
    await first.offered()
    with pytest.raises(InvalidInput, match="SHA-256"):
        await first.publish(bundle(), digest="0" * 64)
    with pytest.raises(InvalidInput, match="is a link"):
        await first.publish(bundle(link="triton/kernel"))
    assert await (await task(caches)).offered() == ""


async def test_a_task_publishes_only_under_the_key_that_it_was_given(caches: Service) -> None:
    first = await task(caches)
    await first.offered()
    first.key = "f" * 64
    with pytest.raises(NotFound):
        await first.publish(bundle())


async def test_a_bundle_that_was_altered_on_the_disk_is_removed(caches: Service, tmp_path: Path) -> None:
    first, second = await task(caches), await task(caches)
    await first.offered()
    digest = await first.publish(bundle())
    await second.offered()
    file = tmp_path / "blobs" / "caches" / f"{digest}.tar.gz"
    file.write_bytes(file.read_bytes()[:-1] + b"x")
    told = Measured(refused="it is not what was published")
    await caches.compile_caches.used(second.actor, attempt=second.attempt, measured=told)
    assert await (await task(caches)).offered() == ""
    assert not (await caches.compile_caches.of_job(ANN, second.job)).uses[0].hit


async def test_a_bundle_that_a_task_slanders_stays(caches: Service) -> None:
    first, second = await task(caches), await task(caches)
    await first.offered()
    digest = await first.publish(bundle())
    await second.offered()
    await caches.compile_caches.used(second.actor, attempt=second.attempt, measured=Measured(refused="bad"))
    assert await (await task(caches)).offered() == digest


async def test_the_least_recently_used_bundle_makes_room(caches: Service) -> None:
    one, two = bundle("1" * 100), bundle("2" * 100)
    caches.context.allowance = Allowance(cache_bytes=len(one) + len(two))
    for name, content in (("one", one), ("two", two)):
        made = await task(caches)
        await made.offered({"torch": name})
        await made.publish(content)
        caches.context.clock.advance(10)  # type: ignore[attr-defined]
    await (await task(caches)).offered({"torch": "one"})
    third = await task(caches)
    await third.offered({"torch": "three"})
    await third.publish(bundle("3" * 100))
    kept = {each.facts["torch"] for each in (await caches.compile_caches.list(ANN)).items}
    assert kept == {"one", "three"}
    caches.context.allowance = Allowance(cache_bytes=50)
    large = await task(caches)
    await large.offered({"torch": "four"})
    with pytest.raises(TooLarge):
        await large.publish(bundle("4"))


async def test_saved_seconds_are_measured_against_a_cold_run_of_the_same_command(caches: Service) -> None:
    cold, warm = await task(caches), await task(caches)
    await cold.offered()
    await caches.compile_caches.used(cold.actor, attempt=cold.attempt, measured=Measured(first_step_seconds=30.0))
    digest = await cold.publish(bundle())
    assert await warm.offered() == digest
    unknown = await caches.compile_caches.of_job(ANN, warm.job)
    assert (unknown.hits, unknown.saved_seconds) == (1, None)
    told = Measured(files=1, restore_seconds=1.0, first_step_seconds=9.0, new_files=0)
    await caches.compile_caches.used(warm.actor, attempt=warm.attempt, measured=told)
    known = await caches.compile_caches.of_job(ANN, warm.job)
    assert (known.saved_seconds, known.bytes, known.uses[0].cold_seconds) == (20.0, len(bundle()), 30.0)
    assert known.uses[0].new_files == 0


async def test_removed_bundles_leave_no_file(caches: Service, store: Store) -> None:
    first = await task(caches)
    await first.offered()
    digest = await first.publish(bundle())
    (kept,) = (await caches.compile_caches.list(ANN)).items
    await caches.compile_caches.remove(ANN, kept.id)
    assert await store.unneeded_bundles() == [digest]
    again = await task(caches)
    await again.offered()
    assert await again.publish(bundle()) == digest and await store.unneeded_bundles() == []


async def test_a_later_account_of_the_same_name_inherits_no_bundle(caches: Service, store: Store) -> None:
    left = NewBundle("id", "user:bob", "a" * 64, "{}", "b" * 64, 10, 1, "bob", "job", START)
    await store.publish_cache(left, after="", most_bytes=0)
    await store.remove_user("bob")
    assert await store.unneeded_bundles() == [left.digest] and await store.cache_bundles() == []
