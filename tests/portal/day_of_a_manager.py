"""Ten tasks of somebody who manages a queue, each from the first page on."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from corral.client import Client
from tests.portal.hand import Hand, Task
from tests.portal.harness import job_text


def prepare(member: Client) -> None:
    """Submit jobs of a member in the queue: two that run, and three that wait behind them."""
    for name, devices in (("holder", 3), ("guest", 1)):
        job = member.submit(
            job_text(name, "echo begun; sleep 3600", devices=devices, replicas=2, more='"queue": "vision"')
        )
        next(iter(member.log(job["id"], "worker", 0, follow=True)))
    for name in ("one", "two", "three"):
        member.submit(job_text(name, "sleep 3600", devices=4, replicas=2, more='"queue": "vision"'))


def see_the_queue(hand: Hand) -> None:
    hand.way("Queues")
    hand.click("link", "vision")
    hand.sees("For members only", hand.page.get_by_role("region", name="Queue vision"))


def see_who_waits(hand: Hand) -> None:
    hand.way("Queues")
    hand.click("link", "Waiting list")
    hand.choose("Queue", "vision")
    expect(hand.page.locator("tr[data-waiting]")).to_have_count(3)


def put_first(hand: Hand) -> None:
    hand.way("Queues")
    hand.click("link", "Waiting list")
    hand.click("button", "Move three")
    hand.click("button", "Move", hand.window)
    expect(hand.window).to_have_count(0)
    expect(hand.page.locator("tr[data-waiting]").filter(has_text="vision").first).to_contain_text("three")


def suspend_a_members_job(hand: Hand) -> None:
    hand.job("guest")
    hand.click("button", "Suspend")
    hand.click("button", "Suspend", hand.window)
    expect(hand.page.get_by_role("button", name="Resume", exact=True)).to_be_visible()


def stop_a_members_job(hand: Hand) -> None:
    hand.job("one")
    hand.click("button", "Stop")
    hand.click("button", "Stop", hand.window)
    expect(hand.page.locator("header dl [data-state=stopped]")).to_be_visible()


def limit_members(hand: Hand) -> None:
    hand.way("Queues")
    hand.click("link", "vision")
    hand.click("button", "Set limits")
    hand.fill("devices, one user", "6", hand.window)
    hand.click("button", "Set them", hand.window)
    hand.sees("6", hand.page.get_by_role("table", name="Limits that its managers set"))


def see_who_used_it(hand: Hand) -> None:
    hand.way("Usage")
    hand.choose("Queue", "vision")
    hand.click("button", "7 days")
    expect(hand.page).to_have_url(re.compile(r"(?=.*queue=vision)(?=.*days=7)"))
    hand.sees("Device-hours")


def see_the_budget(hand: Hand) -> None:
    hand.way("Usage")
    expect(hand.page.locator("tr[data-budget='queue/vision/month']")).to_contain_text("open")


def see_fairness(hand: Hand) -> None:
    hand.way("Usage")
    hand.click("link", "Fairness")
    hand.sees("Weights and deserved amounts")


def see_receipts(hand: Hand) -> None:
    hand.way("Queues")
    hand.click("link", "Receipts")
    hand.sees("guest")


TASKS = [
    Task("See what my queue uses, lends and borrows", see_the_queue),
    Task("See who waits in my queue, and why", see_who_waits),
    Task("Put a waiting job first", put_first),
    Task("Suspend a member's job", suspend_a_members_job),
    Task("Stop a member's job", stop_a_members_job),
    Task("Limit what one member holds", limit_members),
    Task("See which members used the queue this week", see_who_used_it),
    Task("See what is left of the queue's budget", see_the_budget),
    Task("See what each queue was owed and got in a week", see_fairness),
    Task("See which jobs had to yield, and for whom", see_receipts),
]
