"""Accounts and groups in the portal: one by one, and many from a CSV file."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from corral.client import Client
from corral.kernel.errors import NotFound
from tests.portal.harness import Portal, Theme, Watch, open_context
from tests.portal.test_everyone_can_use_it import NAMELESS, PALE


@pytest.fixture
def team(portal: Portal) -> Iterator[Portal]:
    """A group and a queue; they, and the tests' accounts, are removed afterwards."""
    portal.client.apply("kind: Queue\nname: vision\n")
    portal.client.create_group("seers")
    yield portal
    with contextlib.suppress(NotFound):
        portal.client.delete_group("seers")
    for name in ("uma", "vic", "wes"):
        with contextlib.suppress(NotFound):
            portal.client.delete_user(name)
    portal.client.delete_configuration("queue", "vision")


def users(portal: Portal) -> dict[str, dict[str, object]]:
    return {each["name"]: each for each in portal.client.users()["items"]}


def test_an_account_is_made_put_into_a_group_and_signed_in_with(page: Page, team: Portal) -> None:
    page.goto("/")
    page.get_by_role("link", name="Users").first.click()
    page.get_by_role("button", name="New user").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("uma")
    dialog.get_by_label("E-mail").fill("nowhere")
    dialog.get_by_label("seers").check()
    dialog.get_by_label("Highest priority").fill("120")
    dialog.get_by_role("button", name="Make it").click()
    expect(dialog.get_by_role("alert")).to_contain_text("nowhere is not a mail address")
    dialog.get_by_label("E-mail").fill("uma@example.org")
    dialog.get_by_role("button", name="Make it").click()
    dialog.get_by_role("button", name="Make a link").click()
    link = dialog.get_by_role("status").get_by_role("button").inner_text()
    with Client(team.url) as client:
        client.login(link=link.partition("#link=")[2])
        assert client.me()["groups"] == ["seers"]
    made = users(team)["uma"]
    assert (made["email"], made["maxPriority"], made["role"]) == ("uma@example.org", 120, "user")
    dialog.get_by_role("button", name="Done").click()
    page.get_by_role("searchbox").fill("example.org")
    expect(page.locator("[data-user]")).to_have_count(1)


def test_an_account_is_changed_disabled_enabled_and_deleted(page: Page, team: Portal) -> None:
    team.client.create_user("vic", groups=["seers"])
    page.goto("/users?q=vic")
    row = page.locator("[data-user=vic]")
    row.get_by_role("button", name="Edit vic").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("seers").uncheck()
    dialog.get_by_label("Administrator").check()
    dialog.get_by_role("button", name="Save").click()
    expect(row).to_contain_text("administrator")
    assert users(team)["vic"]["groups"] == []
    row.get_by_role("button", name="Disable vic").click()
    dialog.get_by_role("button", name="Disable").click()
    expect(row).to_contain_text("disabled")
    row.get_by_role("button", name="Enable vic").click()
    dialog.get_by_role("button", name="Enable").click()
    expect(row.get_by_role("button", name="Disable vic")).to_be_visible()
    row.get_by_role("button", name="Delete vic").click()
    dialog.get_by_role("button", name="Delete").click()
    expect(page.get_by_text("No user is found")).to_be_visible()
    assert "vic" not in users(team)


def test_the_last_administrator_is_kept_with_a_sentence(page: Page, team: Portal) -> None:
    name = team.client.me()["user"]
    page.goto(f"/users?q={name}")
    page.get_by_role("button", name=f"Disable {name}").click()
    page.get_by_role("dialog").get_by_role("button", name="Disable").click()
    expect(page.get_by_role("dialog").get_by_role("alert")).to_contain_text("administrator")


def test_a_list_says_what_each_line_does_before_any_is_applied(page: Page, team: Portal) -> None:
    team.client.create_user("vic", groups=["seers"])
    page.goto("/users/batch")
    field = page.get_by_label("The list, as CSV")
    field.fill("name,role,groups,email\numa,user,seers,uma@example.org\nvic,,+sears,\nwes,boss,,\n")
    expect(page.locator("[data-line='2']")).to_contain_text("new")
    expect(page.locator("[data-line='3']")).to_contain_text('There is no group sears; did you mean "seers"?')
    expect(page.locator("[data-line='4']")).to_contain_text("A role is admin or user.")
    expect(page.get_by_text("1 new, 2 refused")).to_be_visible()
    expect(page.get_by_role("button", name="Apply the list")).to_be_disabled()
    assert "uma" not in users(team)
    field.fill("name,role,groups,email\numa,user,seers,uma@example.org\nvic,,-seers,\nwes,,,\n")
    expect(page.locator("[data-line='3']")).to_contain_text("groups: seers to default")
    page.get_by_role("button", name="Apply the list").click()
    expect(page.get_by_text("The list is applied: 2 new, 1 changed.")).to_be_visible()
    links = dict(line.split(",") for line in page.get_by_label("Sign-in links").inner_text().splitlines())
    assert sorted(links) == ["uma", "wes"]
    with Client(team.url) as client:
        client.login(link=links["uma"].partition("#link=")[2])
        assert client.me()["user"] == "uma"
    assert users(team)["vic"]["groups"] == []


def test_a_list_comes_from_a_file(page: Page, team: Portal) -> None:
    page.goto("/users/batch")
    page.get_by_label("From a file").set_input_files(
        {"name": "team.csv", "mimeType": "text/csv", "buffer": b"name,shoe\numa,40\n"}
    )
    expect(page.get_by_role("alert")).to_contain_text('There is no column "shoe"')
    page.get_by_label("From a file").set_input_files(
        {"name": "team.csv", "mimeType": "text/csv", "buffer": b"name\numa\n"}
    )
    expect(page.get_by_text("1 new", exact=True)).to_be_visible()


def test_a_group_is_made_filled_and_granted_and_deleted(page: Page, team: Portal) -> None:
    team.client.create_user("uma")
    team.client.delete_group("seers")
    page.goto("/users")
    page.get_by_role("link", name="Groups").click()
    page.get_by_role("button", name="New group").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("seers")
    dialog.get_by_label("Description").fill("who look at pictures")
    dialog.get_by_label("Highest priority").fill("120")
    expect(dialog).to_contain_text("corral groups make seers --description 'who look at pictures' --max-priority 120")
    dialog.get_by_role("button", name="Make it").click()
    group = page.get_by_role("region", name="Group seers")
    expect(group).to_contain_text("a priority of 120 at most")
    group.get_by_role("button", name="Edit").click()
    dialog.get_by_label("Highest priority").fill("")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog).to_have_count(0)
    expect(group).not_to_contain_text("at most")
    group.get_by_label("A user").fill("uma")
    group.get_by_role("button", name="Put in").click()
    expect(group.get_by_role("group", name="1 member")).to_contain_text("uma")
    queues = group.get_by_role("group", name="Queues that it grants")
    queues.get_by_label("A queue").fill("visoin")
    queues.get_by_role("button", name="Grant").click()
    expect(group.get_by_role("alert")).to_contain_text('There is no queue "visoin"; did you mean "vision"?')
    queues.get_by_label("A queue").fill("vision")
    queues.get_by_role("button", name="Grant").click()
    expect(queues.get_by_role("listitem")).to_have_text("vision✕")
    managed = group.get_by_role("group", name="Queues that its members manage")
    managed.get_by_label("A queue to manage").fill("vision")
    managed.get_by_role("button", name="Let manage").click()
    expect(managed.get_by_role("listitem")).to_have_count(1)
    stored = team.client.group("seers")
    assert stored["maxPriority"] is None
    assert (stored["members"], stored["queues"], stored["manages"]) == (["uma"], ["vision"], ["vision"])
    group.get_by_role("button", name="Take out uma").click()
    expect(group.get_by_text("It has no members.")).to_be_visible()
    group.get_by_role("button", name="Delete").click()
    expect(dialog).to_contain_text("lose what it grants: 1 queue, 1 queue that they manage, 0 storages")
    dialog.get_by_role("button", name="Delete").click()
    expect(page.locator("[data-group=seers]")).to_have_count(0)


def test_others_see_their_own_groups_and_no_accounts(page_of: Callable[[str], Page], team: Portal) -> None:
    page = page_of("xen")
    team.client.change_group("seers", add=["xen"], grant={"queues": ["vision"]})
    page.goto("/groups?group=seers")
    expect(page.get_by_role("region", name="Group seers")).to_contain_text("vision")
    expect(page.locator("[data-group=admingroup]")).to_have_count(0)
    expect(page.get_by_role("main").get_by_role("button", name="Delete")).to_have_count(0)
    expect(page.get_by_role("link", name="Users", exact=True)).to_have_count(0)
    page.goto("/users")
    expect(page.get_by_role("alert")).to_contain_text("only administrators may do this")


@pytest.mark.parametrize(("width", "theme"), [(390, "dark"), (1440, "light")])
def test_the_windows_fit_and_are_legible_and_named(
    browser: Browser, portal: Portal, watch: Watch, width: int, theme: Theme
) -> None:
    name = portal.client.me()["user"]
    windows = [
        ("/storages", "New storage"),
        ("/users", "New user"),
        ("/users", f"Edit {name}"),
        ("/users", f"Make a sign-in link for {name}"),
        ("/groups", "New group"),
        ("/groups?group=default", "Edit"),
        ("/queues?queue=default", "Set limits"),
    ]
    with open_context(browser, portal, width=width, theme=theme) as context:
        context.on("page", watch.attach)
        page = context.new_page()
        for address, button in windows:
            page.goto(address)
            opener = page.get_by_role("main").get_by_role("button", name=button, exact=True)
            expect(opener).to_be_enabled()
            opener.press("Enter")
            dialog = page.get_by_role("dialog")
            expect(dialog).to_be_visible()
            assert page.evaluate("document.documentElement.scrollWidth") <= width, f"{button} is wider than the window"
            assert page.evaluate(PALE) == [], f"{button} has text that is hard to read"
            assert page.evaluate(NAMELESS) == [], f"{button} has controls without a name"
            page.keyboard.press("Escape")
            expect(dialog).to_be_hidden()
