"""Owners change the tags of their jobs, and everybody saves filters of the list of jobs that nobody else sees."""

from __future__ import annotations

import msgspec
import pytest

from corral.kernel.errors import Conflict, Forbidden, InvalidInput, NotFound
from corral.model.saved_filters import MOST_FILTERS, SavedFilter
from corral.model.store_writes import IntentKind
from corral.service.jobs.job_tags import MOST_TAGS
from corral.service.service import Service
from corral.store import Store
from tests.service.conftest import ANN, BOB, ROOT
from tests.service.test_jobs import _submit

pytestmark = pytest.mark.usefixtures("machines")


async def test_tags_are_changed_together_told_to_control_and_audited(service: Service, store: Store) -> None:
    job = await _submit(service)
    assert (await service.job_tags.change(ANN, job, add=["paper", "draft"])).tags == ("paper", "draft")
    changed = await service.job_tags.change(ANN, job, add=["final", "paper"], remove=["draft", "unknown"])
    assert changed.tags == ("paper", "final")
    assert await store.tags_of(job) == ("final", "paper")
    told = [intent.data["tags"] for intent in await store.intents(0) if intent.kind == IntentKind.TAGS]
    assert told == [["paper", "draft"], ["paper", "final"]]
    line = (await store.audit()).items[0]
    assert (line.actor, line.action, line.allowed) == ("ann", "job.tag", True)
    (newest, *_) = await store.events_of(job, kinds=(IntentKind.TAGS,))
    assert newest.message == "ann gave the job the tag final and took the tag draft from it"
    assert (await service.jobs.document(ANN, job))["spec"].get("tags", []) == [], "the document stays as submitted"


async def test_a_change_that_changes_nothing_leaves_no_event(service: Service, store: Store) -> None:
    job = await _submit(service)
    await service.job_tags.change(ANN, job, add=["paper"])
    await service.job_tags.change(ANN, job, add=["paper"], remove=["other"])
    assert len(await store.events_of(job, kinds=(IntentKind.TAGS,))) == 1


@pytest.mark.parametrize(
    ("add", "remove", "code"),
    [
        ([], [], "nothing-to-change"),
        ([""], [], "invalid-tag"),
        ([" spaced"], [], "invalid-tag"),
        (["a\0b"], [], "invalid-tag"),
        (["a\nb"], [], "invalid-tag"),
        (["x" * 101], [], "invalid-tag"),
        (["both"], ["both"], "invalid-tag"),
        (["array:1m83"], [], "own-tag"),
        ([], ["array:1m83"], "own-tag"),
    ],
)
async def test_tags_that_no_job_may_have_are_refused(
    service: Service, add: list[str], remove: list[str], code: str
) -> None:
    job = await _submit(service)
    with pytest.raises(InvalidInput) as refused:
        await service.job_tags.change(ANN, job, add=add, remove=remove)
    assert refused.value.code == code


async def test_a_job_has_as_many_tags_as_its_file_may_have(service: Service) -> None:
    job = await _submit(service)
    await service.job_tags.change(ANN, job, add=[f"t{number}" for number in range(MOST_TAGS)])
    with pytest.raises(Conflict, match="100 tags at most"):
        await service.job_tags.change(ANN, job, add=["more"])
    assert len((await service.job_tags.change(ANN, job, add=["more"], remove=["t0"])).tags) == MOST_TAGS


async def test_others_may_not_tag_a_job_and_administrators_may(service: Service) -> None:
    job = await _submit(service)
    with pytest.raises(Forbidden, match="bob may not change the tags of the job"):
        await service.job_tags.change(BOB, job, add=["mine"])
    assert (await service.job_tags.change(ROOT, job, add=["seen"])).tags == ("seen",)
    with pytest.raises(NotFound):
        await service.job_tags.change(ANN, "no-such-job", add=["x"])


async def test_filters_are_saved_replaced_and_deleted_by_name(service: Service) -> None:
    failed = SavedFilter("my failed", state=("failed",), user="ann", order="ended")
    await service.saved_filters.save(ANN, failed)
    await service.saved_filters.save(ANN, SavedFilter("corpus", tag="corpus", group="user"))
    assert [each.name for each in await service.saved_filters.all(ANN)] == ["corpus", "my failed"]
    again = msgspec.structs.replace(failed, queue="default")
    await service.saved_filters.save(ANN, again)
    assert (await service.saved_filters.all(ANN))[1] == again
    assert await service.saved_filters.all(BOB) == [], "everybody has their own"
    with pytest.raises(NotFound, match="no filter corpus of yours"):
        await service.saved_filters.forget(BOB, "corpus")
    await service.saved_filters.forget(ANN, "corpus")
    assert await service.saved_filters.all(ANN) == [again]


@pytest.mark.parametrize(
    ("saved", "code"),
    [
        (SavedFilter(""), "invalid-name"),
        (SavedFilter("a/b"), "invalid-name"),
        (SavedFilter("x" * 61), "invalid-name"),
        (SavedFilter(".."), "invalid-name"),
        (SavedFilter("a", state=("resting",)), "invalid-state"),
        (SavedFilter("a", order="backwards"), "invalid-order"),
        (SavedFilter("a", group="moon"), "invalid-group"),
        (SavedFilter("a", q="a\0"), "invalid-filter"),
    ],
)
async def test_filters_that_no_list_takes_are_refused(service: Service, saved: SavedFilter, code: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        await service.saved_filters.save(ANN, saved)
    assert refused.value.code == code


async def test_filters_are_bounded_and_go_with_the_account(service: Service) -> None:
    for number in range(MOST_FILTERS):
        await service.saved_filters.save(BOB, SavedFilter(f"f{number}"))
    await service.saved_filters.save(BOB, SavedFilter("f0", q="again"))
    with pytest.raises(Conflict, match="50 saved filters already"):
        await service.saved_filters.save(BOB, SavedFilter("more"))
    await service.accounts.delete(ROOT, "bob")
    assert await service.saved_filters.all(BOB) == []
