"""Filters and orders of OpenPAI's job list agree in both databases, including JSON fields and nulls."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from corral.compat.openpai.records.terms import ORDERS, STATES, OpenPaiFilter
from corral.compat.openpai.tables.job_lists import OpenPaiLists
from corral.compat.openpai.tables.listing import Listing
from corral.kernel.errors import Conflict, NotFound
from corral.kernel.ids import JobId
from corral.model.exits import classify
from corral.model.phases import phase
from corral.model.records import TaskCounts
from corral.model.runs import JobRun, Retries
from corral.model.states import JobState
from corral.model.store_writes import IntentKind, JobWrite, NewJob
from corral.store import Store
from tests.store.makers import ME, START, batch, new_job


def submitted(name: str, *, priority: str | None = None, tasks: int = 1, devices: int = 0, **fields: Any) -> NewJob:
    """A job in OpenPAI's language; its label differs from its name."""
    made = new_job(f"label-{name.lower()}", job_type="openpai", **fields)
    summary = msgspec.structs.replace(made.summary, tasks=TaskCounts(tasks, tasks), devices=devices)
    listing = Listing(name, priority, 2).stored()
    return msgspec.structs.replace(made, summary=summary, submitted_as=listing, unique_name="ever")


async def stands(store: Store, epoch: int, job: NewJob, state: JobState, code: int | None = None, **run: Any) -> None:
    """Store a job's state."""
    completion = None if code is None else classify(code)
    after = JobRun(job=job.id, state=state, completion=completion, **run)
    live = state is not JobState.COMPLETED
    await store.commit(batch(epoch, jobs=(JobWrite(job.id, after, phase(after), job.summary, live=live),)))


async def names(store: Store, **wanted: Any) -> list[str]:
    return [job.name for job in (await OpenPaiLists(store).page(OpenPaiFilter(**wanted))).jobs]


@pytest.fixture
async def jobs(store: Store) -> dict[str, NewJob]:
    """Four jobs: One waits, Two is between two attempts, Three failed and Four succeeded before it."""
    made = {
        "One": submitted("One", priority="prod", tasks=4, tags=("night",)),
        "Two": submitted("Two", user="bob", tasks=10, devices=2, tags=("night", "day")),
        "Three": submitted("Three", priority="oppo", devices=16, queue="vision"),
        "Four": submitted("Four", priority="test", devices=8),
    }
    for job in made.values():
        await store.submit(job)
    lease = await store.lead(ME)
    assert lease is not None
    await stands(store, lease.epoch, made["One"], JobState.CREATION_REQUESTED)
    await stands(store, lease.epoch, made["Two"], JobState.ATTEMPT_COMPLETED, 1, ended_at=START, retries=Retries(12, 3))
    await stands(store, lease.epoch, made["Three"], JobState.COMPLETED, 9, ended_at=START + 200, retries=Retries(2))
    await stands(store, lease.epoch, made["Four"], JobState.COMPLETED, 0, ended_at=START + 100)
    return made


@pytest.mark.parametrize(
    ("order", "ascending"),
    [
        ("submissionTime", ["One", "Two", "Three", "Four"]),
        ("jobName", ["Four", "One", "Three", "Two"]),
        ("username", ["One", "Three", "Four", "Two"]),
        ("vc", ["One", "Two", "Four", "Three"]),
        ("retries", ["One", "Four", "Three", "Two"]),
        ("totalTaskNumber", ["Three", "Four", "One", "Two"]),
        ("totalGpuNumber", ["One", "Two", "Four", "Three"]),
        ("state", ["Three", "Two", "Four", "One"]),
        ("completionTime", ["Four", "Three", "One", "Two"]),
        ("jobPriority", ["Three", "One", "Four", "Two"]),
    ],
)
async def test_every_order_goes_both_ways(
    store: Store, jobs: dict[str, NewJob], order: str, ascending: list[str]
) -> None:
    assert order in ORDERS
    assert await names(store, order=order, descending=False) == ascending
    assert await names(store, order=order, descending=True) == ascending[::-1]


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({"states": ("WAITING",)}, ["One"]),
        ({"states": ("RUNNING",)}, ["Two"]),
        ({"states": ("FAILED", "SUCCEEDED")}, ["Four", "Three"]),
        ({"states": ("STOPPING", "STOPPED")}, []),
        ({"states": STATES}, ["Four", "Three", "Two", "One"]),
        ({"users": ("bob", "eve")}, ["Two"]),
        ({"queues": ("vision",)}, ["Three"]),
        ({"keyword": "ou"}, ["Four"]),
        ({"keyword": "OU"}, []),
        ({"name": "Four"}, ["Four"]),
        ({"name": "Fou"}, []),
        ({"keyword": "isio"}, ["Three"]),
        ({"tags": ("day", "none")}, ["Two"]),
        ({"without_tags": ("night",)}, ["Four", "Three"]),
        ({"priorities": (None,)}, ["Two"]),
        ({"priorities": ("prod", None)}, ["Two", "One"]),
        ({"offset": 1, "limit": 2}, ["Three", "Two"]),
        ({"limit": 0}, []),
    ],
)
async def test_every_filter_lets_through_what_it_names(
    store: Store, jobs: dict[str, NewJob], wanted: dict[str, Any], expected: list[str]
) -> None:
    assert await names(store, **wanted) == expected
    counted = await OpenPaiLists(store).page(OpenPaiFilter(**{**wanted, "offset": 0, "limit": 0}, count=True))
    if not {"offset", "limit"} & wanted.keys():
        assert counted.total == len(expected)


async def test_a_name_is_kept_from_jobs_of_both_languages(store: Store) -> None:
    await store.submit(submitted("Taken"))
    with pytest.raises(Conflict, match="named Taken"):
        await store.submit(submitted("Taken"))
    await store.submit(submitted("Taken", user="bob"))
    await store.submit(new_job("plain", "ann"))
    with pytest.raises(Conflict, match="named plain"):
        await store.submit(submitted("plain"))
    await store.submit(submitted("taken"))
    assert sorted(await names(store)) == ["Taken", "Taken", "plain", "taken"]


async def test_a_job_is_found_by_the_name_that_it_came_with_and_is_gone_with_its_row(store: Store) -> None:
    made = submitted("Found", priority="prod")
    await store.submit(made)
    found = await OpenPaiLists(store).find("ann", "Found")
    assert found is not None
    assert (found[0].id, found[1]) == (made.id, Listing("Found", "prod", 2))
    assert await OpenPaiLists(store).find("ann", made.name) is None
    assert await OpenPaiLists(store).find("bob", "Found") is None
    lease = await store.lead(ME)
    assert lease is not None
    await store.commit(batch(lease.epoch, removed_jobs=(made.id,)))
    assert await OpenPaiLists(store).find("ann", "Found") is None
    await store.submit(submitted("Found"))


async def test_a_tag_is_given_and_taken_once_and_control_hears_of_it_while_the_job_lives(store: Store) -> None:
    made = submitted("Tagged", tags=("first",))
    await store.submit(made)
    change = {"actor": "ann", "at": START}
    assert await store.change_tag(made.id, "second", there=True, **change)
    assert not await store.change_tag(made.id, "second", there=True, **change)
    assert await store.tags_of(made.id) == ("first", "second")
    record = await store.find_job(made.id)
    assert record is not None and record.summary.tags == ("first", "second")
    assert await store.change_tag(made.id, "first", there=False, **change)
    assert not await store.change_tag(made.id, "first", there=False, **change)
    told = [intent for intent in await store.intents(0) if intent.kind == IntentKind.TAGS]
    assert [intent.data["tags"] for intent in told] == [["first", "second"], ["second"]]
    lease = await store.lead(ME)
    assert lease is not None
    await stands(store, lease.epoch, made, JobState.COMPLETED, 0)
    assert await store.change_tag(made.id, "late", there=True, **change)
    assert len([intent for intent in await store.intents(0) if intent.kind == IntentKind.TAGS]) == 2
    with pytest.raises(NotFound):
        await store.change_tag(JobId("0" * 13), "x", there=True, **change)


async def test_an_edited_job_is_listed_by_its_new_priority_and_virtual_cluster(
    store: Store, jobs: dict[str, NewJob]
) -> None:
    job, lease = jobs["One"], await store.lead(ME)
    assert lease is not None
    run, text = JobRun(job=job.id, state=JobState.CREATION_REQUESTED), job.doc.replace("{", '{"edited":1,', 1)
    for priority, shown in ((-1, "oppo"), (7, None)):
        write = JobWrite(job.id, run, "waiting", job.summary, live=True, priority=priority, queue="vision", doc=text)
        await store.commit(batch(lease.epoch, jobs=(write,)))
        found = next(each for each in (await OpenPaiLists(store).page(OpenPaiFilter())).jobs if each.name == "One")
        assert (found.job_priority, found.queue) == (shown, "vision")
        record = await store.find_job(job.id)
        assert record is not None and (record.doc, record.priority, record.queue) == (text, priority, "vision")
