"""Fifteen tasks of an administrator, each from the first page on."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import expect

from tests.portal.hand import Hand, Task

NODE = "local/node4"


def make_an_account(hand: Hand) -> None:
    hand.way("Users")
    hand.click("button", "New user")
    hand.fill("Name", "ursa", hand.window)
    hand.click("button", "Make it", hand.window)
    hand.click("button", "Make a link", hand.window)
    hand.sees("#link=", hand.window)
    hand.click("button", "Done", hand.window)


def put_into_a_group(hand: Hand) -> None:
    hand.way("Users")
    hand.click("link", "Groups")
    hand.click("link", "readers", hand.main)
    group = hand.page.get_by_role("region", name="Group readers")
    hand.fill("A user", "ursa", group)
    hand.click("button", "Put in", group)
    hand.sees("ursa", group.get_by_role("group", name="2 members"))


def give_a_link(hand: Hand) -> None:
    hand.way("Users")
    hand.click("button", "Make a sign-in link for ursa")
    hand.click("button", "Make a link", hand.window)
    hand.sees("#link=", hand.window)


def disable_an_account(hand: Hand) -> None:
    hand.way("Users")
    hand.click("button", "Disable ursa")
    hand.click("button", "Disable", hand.window)
    hand.sees("disabled", hand.page.locator("[data-user=ursa]"))


def make_many_accounts(hand: Hand) -> None:
    hand.way("Users")
    hand.click("link", "Many at once")
    hand.fill("The list, as CSV", "name,groups\nvito,readers\nwanda,readers\n")
    hand.click("button", "Apply the list")
    hand.sees("The list is applied: 2 new")


def cordon(hand: Hand) -> None:
    hand.way("Nodes")
    hand.click("button", "node4", hand.main)
    hand.click("button", "Cordon")
    hand.fill("Why", "new cables", hand.window)
    hand.click("button", "Cordon", hand.window)
    hand.sees("cordoned by root: new cables", hand.page.locator(f"tr[data-node='{NODE}']"))


def open_again(hand: Hand) -> None:
    hand.way("Nodes")
    hand.click("button", "node4", hand.main)
    hand.click("button", "Uncordon")
    hand.click("button", "Uncordon", hand.window)
    expect(hand.page.locator(f"tr[data-node='{NODE}']")).not_to_contain_text("⊘")


def drain(hand: Hand) -> None:
    hand.way("Nodes")
    hand.click("button", "node4", hand.main)
    hand.click("button", "Drain")
    hand.fill("Why", "a new board", hand.window)
    hand.click("button", "Drain", hand.window)
    hand.sees("drained by root: a new board", hand.page.locator(f"tr[data-node='{NODE}']"))


def silence(hand: Hand) -> None:
    hand.way("Alerts")
    hand.click("button", "Silence NodeNotReady")
    hand.fill("Why", "new fans", hand.window)
    hand.click("button", "Silence", hand.window)
    hand.sees("NodeNotReady", hand.page.get_by_role("table", name="Silenced"))


def change_a_queue(hand: Hand) -> None:
    hand.way("Configuration")
    hand.click("link", "Queue vision")
    hand.click("button", "Edit")
    editor = hand.page.get_by_role("textbox", name="Document, YAML")
    expect(editor).to_contain_text("kind:")
    editor.fill("kind: Queue\nname: vision\nlimit: {devices: 12}\nmembersOnly: true\n")
    hand.fields += 1
    hand.click("button", "Apply…")
    hand.fill("Why, for the history", "four more", hand.window)
    hand.click("button", "Apply", hand.window)
    hand.sees("four more")


def roll_back(hand: Hand) -> None:
    hand.way("Configuration")
    hand.click("link", "Queue vision")
    hand.press(hand.page.get_by_role("button", name="Roll back to revision").first, "Roll back")
    hand.click("button", "Roll back", hand.window)
    hand.sees("rolled back to revision")


def make_a_storage(folder: Path) -> Task:
    def do(hand: Hand) -> None:
        hand.way("Storages")
        hand.click("button", "New storage")
        hand.fill("Name", "attic", hand.window)
        hand.fill("Folder", str(folder), hand.window)
        hand.click("button", "Make it", hand.window)
        hand.fill("A group", "readers")
        hand.click("button", "Grant")
        hand.sees("readers", hand.page.get_by_role("group", name="Granted to"))

    return Task("Make a storage, and grant it to a group", do)


def set_a_budget(hand: Hand) -> None:
    hand.way("Usage")
    hand.click("button", "New budget")
    hand.choose("Queue", "research", hand.window)
    hand.fill("Device-hours in each week", "500", hand.window)
    hand.click("button", "Set it", hand.window)
    expect(hand.page.locator("tr[data-budget='queue/research/week']")).to_contain_text("open")


def take_use(hand: Hand) -> None:
    hand.way("Usage")
    hand.choose("Summed by", "queue")
    assert "device_seconds" in hand.fetch("button", "CSV").read_text().splitlines()[0]


def ask_what_if(hand: Hand) -> None:
    hand.way("Queues")
    hand.click("link", "What if")
    form = hand.page.get_by_role("form", name="Question")
    hand.fill("Add nodes", "1", form)
    hand.choose("like", "local/node1", form)
    hand.click("button", "Ask", form)
    hand.sees("With 1 node like local/node1 added.", hand.page.get_by_role("region", name="Answer"))


def tasks(folder: Path) -> list[Task]:
    """The tasks in their order; `folder` becomes a storage."""
    return [
        Task("Make an account with a sign-in link", make_an_account),
        Task("Put somebody into a group", put_into_a_group),
        Task("Give somebody who forgot the password a link", give_a_link),
        Task("Disable an account", disable_an_account),
        Task("Make several accounts from a list", make_many_accounts),
        Task("Cordon a node with a reason", cordon),
        Task("Open a node again", open_again),
        Task("Drain a node", drain),
        Task("Silence an alert", silence),
        Task("Change the limit of a queue", change_a_queue),
        Task("Go back to the revision before", roll_back),
        make_a_storage(folder),
        Task("Set a budget", set_a_budget),
        Task("Take the use of each queue as a file", take_use),
        Task("Ask what another node would change", ask_what_if),
    ]
