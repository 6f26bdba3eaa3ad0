"""Limits that a queue's managers set below the queue's own are enforced: in total, per user and per group."""

from __future__ import annotations

import pytest

from corral.control.initial_configuration import seed
from corral.model.accounts import Group, User
from corral.spec.configuration_file import load_document
from tests.control.harness import House, short

SITE = "kind: Queue\nname: vision\nlimit: {devices: 4}\nuserLimit: {devices: 4}\n"
ABOVE = "kind: Queue\nname: above\nlimit: {devices: 4}\nmanagerLimits: {limit: {devices: 1}}\n---\n"
BELOW = "kind: Queue\nname: vision\nparent: above\n"


async def begun(house: House, site: str) -> None:
    await house.store.put_group(Group("team"))
    for name in ("ada", "bob"):
        await house.store.add_user(User(name, groups=("team",)))
    await seed(house.store, load_document(site), file="site.yaml", clock=house.clock)
    await house.begin()


@pytest.mark.parametrize(
    ("site", "other", "reason", "says"),
    [
        (SITE, "bob", "", ""),
        (SITE + "managerLimits: {limit: {devices: 1}}\n", "bob", "queue-limit", "Queue vision may hold 1"),
        (SITE + "managerLimits: {userLimit: {devices: 1}}\n", "ada", "user-limit", "ada may hold 1"),
        (SITE + "managerLimits: {userLimit: {devices: 1}}\n", "bob", "", ""),
        (SITE + "managerLimits: {groupLimit: {devices: 1}}\n", "bob", "group-limit", "team may hold 1"),
        (ABOVE + BELOW, "bob", "queue-limit", "Queue above may hold 1"),
    ],
)
async def test_jobs_hold_no_more_than_managers_let_them(
    house: House, site: str, other: str, reason: str, says: str
) -> None:
    await begun(house, site)
    first = await house.submit(short("first", devices=1, queue="vision", preemptible=False), user="ada")
    await house.until(first, "running")
    second = await house.submit(short("second", devices=1, queue="vision", preemptible=False), user=other)
    if not reason:
        await house.until(second, "running")
        return
    record = await house.when(
        second, lambda job: job.summary.waiting is not None and job.summary.waiting.code == reason
    )
    assert record.phase == "waiting" and record.summary.waiting is not None
    assert says in record.summary.waiting.message
