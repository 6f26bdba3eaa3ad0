"""A researcher, a manager and an administrator do their day in the browser, and docs/portal-tasks.md has their clicks.

`python -m tests.portal.test_a_day_is_done_by_the_page_alone` writes the page's tables anew.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

from corral.client import Client
from corral.kernel.errors import NotFound
from tests.conftest import ROOT
from tests.portal import day_of_a_manager, day_of_a_researcher, day_of_an_administrator
from tests.portal.hand import Done, Hand, work
from tests.portal.harness import Portal, open_context, serving
from tests.portal.monitored import alert, end_alerts, tell_alerts

PAGE = ROOT / "docs" / "portal-tasks.md"
VISION = "kind: Queue\nname: vision\nlimit: {devices: 8}\nmembersOnly: true\n"
PEOPLE = ("hana", "lena", "milo", "ursa", "vito", "wanda")
ROLES = {"researcher": 20, "manager": 10, "administrator": 15}


@contextlib.contextmanager
def institute(portal: Portal, folder: Path) -> Iterator[None]:
    """A researcher `hana`, a manager `lena` of the queue vision and its member `milo`; all that they make is removed."""
    shelf = folder / "shelf" / "runs"
    shelf.mkdir(parents=True)
    (shelf / "loss.txt").write_text("0.1\n")
    for each in (shelf, *list(shelf.parents)[:-2]):
        each.chmod(each.stat().st_mode | 0o555)
    client = portal.client
    client.apply(VISION)
    client.apply(VISION.replace("8", "10"))
    client.apply(f"kind: Storage\nname: shelf\ntype: folder\npath: {shelf.parent}\n")
    client.create_group("leads", grant={"manages": ["vision"]})
    client.create_group("readers", grant={"storages": ["shelf"]})
    client.create_group("seers", grant={"queues": ["vision"]})
    for name, group in (("hana", "readers"), ("lena", "leads"), ("milo", "seers")):
        client.create_user(name, groups=[group])
    client.set_budget("queue", "vision", "month", 4000)
    tell_alerts(portal, alert("NodeNotReady", "fatal", "node1 does not answer.", minutes=3, node_name="node1"))
    try:
        yield
    finally:
        _clear(portal)


def _clear(portal: Portal) -> None:
    client = portal.client
    portal.clear()
    end_alerts(portal)
    for budget in client.budgets()["items"]:
        client.remove_budget(budget["kind"], budget["name"], budget["window"])
    if client.node(day_of_an_administrator.NODE)["cordon"]:
        client.uncordon(day_of_an_administrator.NODE)
    for remove, names in (
        (client.delete_user, PEOPLE),
        (client.delete_group, ("leads", "readers", "seers")),
        (lambda name: client.delete_configuration("storage", name), ("shelf", "attic")),
        (lambda name: client.delete_configuration("queue", name), ("vision",)),
    ):
        for name in names:
            with contextlib.suppress(NotFound):
                remove(name)


@contextlib.contextmanager
def signed_in(browser: Browser, portal: Portal, name: str) -> Iterator[tuple[Client, Hand]]:
    """A client and a window of one account."""
    with Client(portal.url) as client, open_context(browser, portal) as context:
        client.login(link=str(portal.client.login_link(name)["link"]))
        context.add_cookies([{"name": "corral_session", "value": client.token, "url": portal.url}])
        yield client, Hand(context.new_page(), portal)


def day_of_the_researcher(browser: Browser, portal: Portal, folder: Path) -> list[Done]:
    with signed_in(browser, portal, "hana") as (client, hand):
        day_of_a_researcher.prepare(client)
        return work(hand, day_of_a_researcher.TASKS)


def day_of_the_manager(browser: Browser, portal: Portal, folder: Path) -> list[Done]:
    with signed_in(browser, portal, "milo") as (member, _), signed_in(browser, portal, "lena") as (_, hand):
        day_of_a_manager.prepare(member)
        return work(hand, day_of_a_manager.TASKS)


def day_of_the_administrator(browser: Browser, portal: Portal, folder: Path) -> list[Done]:
    with open_context(browser, portal) as context:
        return work(Hand(context.new_page(), portal), day_of_an_administrator.tasks(folder))


DAYS: dict[str, Callable[[Browser, Portal, Path], list[Done]]] = {
    "researcher": day_of_the_researcher,
    "manager": day_of_the_manager,
    "administrator": day_of_the_administrator,
}


def table(done: list[Done]) -> list[str]:
    """The rows of the page's table."""
    return [f"| {each.wish} | {each.way} | {each.clicks} | {each.fields} |" for each in done]


@pytest.mark.parametrize("role", list(ROLES))
def test_each_task_takes_the_clicks_that_the_page_of_tasks_tells(
    browser: Browser, portal: Portal, tmp_path: Path, role: str
) -> None:
    with institute(portal, tmp_path):
        done = DAYS[role](browser, portal, tmp_path)
    assert len(done) == ROLES[role]
    assert rows(PAGE.read_text(), role) == table(done), f"write {PAGE.name} anew: python -m {__name__}"


def _section(text: str, role: str) -> re.Match[str]:
    found = re.search(rf"(<!-- tasks: {role} -->\n\|.*\n\|.*\n)((?:\|.*\n)*)(<!-- end -->)", text)
    assert found is not None, f"{PAGE} has no table of the {role}"
    return found


def rows(text: str, role: str) -> list[str]:
    """The rows of one table of the page."""
    return _section(text, role)[2].splitlines()


def main() -> None:
    """Do all tasks on a server of their own, and write what they took into the page."""
    expect.set_options(timeout=60_000)
    chromium = shutil.which("chromium-headless-shell") or shutil.which("chromium")
    if chromium is None:
        sys.exit("no Chromium here: apt-get install -y chromium-headless-shell")
    text = PAGE.read_text()
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o711)  # each user's tasks run under a system user of their own
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        with serving(Path(name)) as portal:
            for role, day in DAYS.items():
                folder = Path(name) / role
                folder.mkdir()
                with institute(portal, folder):
                    lines = "".join(f"{row}\n" for row in table(day(browser, portal, folder)))
                found = _section(text, role)
                text = text[: found.start(2)] + lines + text[found.end(2) :]
        browser.close()
    PAGE.write_text(text)


if __name__ == "__main__":
    main()
