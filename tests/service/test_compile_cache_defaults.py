"""Defaults for compiled code: a queue or the server asks for it, and it is shared no further than a job could say."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from corral.kernel.ids import JobId, attempt_id
from corral.kernel.tokens import mint_job_token
from corral.model.accounts import Group, QueueRecord
from corral.service.actor import Actor
from corral.service.jobs.account_limits import Allowance
from corral.service.service import Service
from corral.spec.configuration_file import load_document
from corral.spec.errors import SpecError
from corral.spec.queue import QueueDocument
from corral.storage.code_archives import blob_store
from corral.store import Store
from tests.service.conftest import ANN, BOB, KEY, START, job_text
from tests.service.test_compile_caches import bundle

FACTS = {"torch": "2.5.1"}
SITE = """
kind: Queue
name: company
compileCache: user
---
kind: Queue
name: vision
parent: company
---
kind: Queue
name: lean
parent: company
compileCache: none
---
kind: Queue
name: alone
parent: lean
compileCache: job
---
kind: Queue
name: plain
"""


@pytest.fixture
async def site(service: Service, store: Store, tmp_path: Path) -> Service:
    service.context.caches = blob_store(tmp_path, None, "caches")
    service.context.caches.open()
    queues = [each for each in load_document(SITE) if isinstance(each, QueueDocument)]
    await store.put_queues([QueueRecord(each.name, each.to_document()) for each in queues])
    return service


class Task:
    """The task of a new job in a queue, with the job's token."""

    def __init__(self, service: Service, job: JobId, actor: Actor) -> None:
        self.caches, self.job, self.actor = service.compile_caches, job, actor
        self.attempt = attempt_id(job, 0, "worker", 0, 0)

    async def offered(self) -> str:
        """The digest of the bundle for it, "" for none yet, or why it has no cache."""
        offer = await self.caches.offer(self.actor, attempt=self.attempt, facts=FACTS)
        return offer.digest or offer.refusal

    async def publish(self) -> str:
        async def chunks() -> AsyncIterator[bytes]:
            yield bundle()

        offer = await self.caches.offer(self.actor, attempt=self.attempt, facts=FACTS)
        digest = hashlib.sha256(bundle()).hexdigest()
        return await self.caches.publish(
            self.actor, chunks(), attempt=self.attempt, key=offer.key, after=offer.digest, files=1, digest=digest
        )


async def task(service: Service, name: str, queue: str, own: str = "", owner: Actor = ANN) -> Task:
    more = f"queue: {queue}\n" + (f"compileCache: {own}\n" if own else "")
    detail = (await service.submission.submit(owner, job_text(name, more=more))).detail
    assert detail is not None
    actor = await service.authentication.authenticate(mint_job_token(KEY, JobId(detail.id), START + 1000))
    return Task(service, JobId(detail.id), actor)


@pytest.mark.parametrize(
    ("queue", "own", "server", "share", "source", "by"),
    [
        ("company", "", "none", "user", "queue", "company"),
        ("vision", "", "none", "user", "queue", "company"),
        ("vision", "", "job", "user", "queue", "company"),
        ("lean", "", "user", "none", "queue", "lean"),
        ("alone", "", "user", "job", "queue", "alone"),
        ("plain", "", "none", "none", "server", ""),
        ("plain", "", "user", "user", "server", ""),
        ("vision", "none", "user", "none", "job", ""),
        ("vision", "job", "none", "job", "job", ""),
        ("lean", "user", "none", "user", "job", ""),
    ],
)
async def test_the_nearest_word_decides_and_is_named(
    site: Service, queue: str, own: str, server: str, share: str, source: str, by: str
) -> None:
    site.context.allowance = Allowance(compile_cache=server)
    own_task = await task(site, "train", queue, own)
    said = await site.compile_caches.of_job(ANN, own_task.job)
    assert (said.share, said.source, said.queue) == (share, source, by)
    assert await own_task.offered() == (f"the {source} asks for none" if share == "none" else "")
    trial = (await site.submission.submit(ANN, job_text("again", more=_more(queue, own)), dry_run=True)).trial
    validation = await site.submission.validate(ANN, job_text("again", more=_more(queue, own)))
    assert trial is not None
    told = [note for note in trial.notes if "compile" in note]
    assert told == [note for note in validation.notes if "compile" in note]
    if source == "job" or share == "none":
        assert told == []
    else:
        origin = f"the queue {by}" if by else "the server"
        assert f"{origin} says compileCache: {share}; compileCache: none in the job file turns it off." in told[0]


def _more(queue: str, own: str) -> str:
    return f"queue: {queue}\n" + (f"compileCache: {own}\n" if own else "")


async def test_a_default_shares_with_the_owners_other_jobs_alone(site: Service, store: Store) -> None:
    for user in ("ann", "bob"):
        if user == "ann":
            await store.put_group(Group("team"))
        await store.change_user(user, groups=("team",))
    first = await task(site, "first", "vision")
    digest = await first.publish()
    assert await (await task(site, "second", "company")).offered() == digest, "another queue with the same default"
    assert await (await task(site, "says-so", "plain", "user")).offered() == digest, "a job that says user itself"
    group = "{share: group, group: team}"
    for name, queue, own, owner in (
        ("own", "alone", "", ANN),
        ("off", "vision", "none", ANN),
        ("foreign", "vision", "", BOB),
        ("member", "vision", group, BOB),
        ("same-group", "vision", group, ANN),
    ):
        assert await (await task(site, name, queue, own, owner)).offered() != digest, name


async def test_a_default_that_was_changed_counts_from_the_next_task(site: Service, store: Store) -> None:
    waiting = await task(site, "train", "plain")
    assert await waiting.offered() == "the server asks for none"
    queue = QueueDocument(name="plain", compile_cache="job")
    await store.put_queues([QueueRecord("plain", queue.to_document())])
    assert await waiting.offered() == ""
    assert (await site.compile_caches.of_job(ANN, waiting.job)).queue == "plain"


@pytest.mark.parametrize("word", ["group", "default", "everyone", "{share: user}"])
def test_a_queue_says_only_words_that_need_no_job(word: str) -> None:
    with pytest.raises(SpecError, match="compileCache"):
        load_document(f"kind: Queue\nname: vision\ncompileCache: {word}\n")
