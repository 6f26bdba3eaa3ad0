"""Jobs of the list are tagged together, gathered by user and sweep, and found again by saved filters."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Callable

from playwright.sync_api import Browser, Page, expect

from corral.client import Client
from tests import warm
from tests.portal.harness import Portal, Watch, job_text, open_context


def test_chosen_jobs_get_and_lose_tags_together_and_the_terminal_does_the_same(page: Page, portal: Portal) -> None:
    first = portal.submit("one", more='"tags": ["draft"]')
    second = portal.submit("two")
    page.goto("/")
    for name in ("one", "two"):
        page.get_by_role("checkbox", name=f"Choose {name}").check()
    page.get_by_role("button", name="Tag 2").click()
    dialog = page.get_by_role("dialog", name="Tags of 2 jobs")
    expect(dialog.get_by_role("button", name="Change tags")).to_be_disabled()
    dialog.get_by_label("Tags to add").fill("paper, round 2")
    dialog.get_by_label("draft").check()
    ids = f"{second} {first}"
    line = f"corral tag {ids} --add paper --add 'round 2' --remove draft"
    expect(dialog.get_by_role("button", name=line)).to_be_visible()
    dialog.get_by_role("button", name="Change tags").click()
    expect(dialog).to_have_count(0)
    assert set(portal.client.job(first)["tags"]) == set(portal.client.job(second)["tags"]) == {"paper", "round 2"}
    environment = {**os.environ, "CORRAL_URL": portal.url, "CORRAL_TOKEN": portal.client.token}
    done = warm.corral(["tag", second, "--remove", "paper", "-a", "by hand"], env=environment, seconds=240)
    assert done.returncode == 0, done.stderr
    assert f"two ({second}) has the tags " in done.stderr
    assert set(portal.client.job(second)["tags"]) == {"round 2", "by hand"}
    page.goto("/?tag=paper")
    expect(page.locator("tr[data-job]")).to_have_count(1)
    expect(page.locator(f"tr[data-job='{first}']")).to_be_visible()


def test_a_tag_that_is_refused_for_one_job_is_told_and_given_to_the_others(
    portal: Portal, page_of: Callable[[str], Page]
) -> None:
    portal.submit("not-yours")
    page = page_of("tagger")
    with Client(portal.url) as tagger:
        tagger.login(link=str(portal.client.login_link("tagger")["link"]))
        mine = str(tagger.submit(job_text("yours"))["id"])
    page.goto("/")
    expect(page.locator("tr[data-job]")).to_have_count(2)
    page.get_by_label("Choose all jobs of the list").check()
    page.get_by_role("button", name="Tag 2").click()
    dialog = page.get_by_role("dialog", name="Tags of 2 jobs")
    dialog.get_by_label("Tags to add").fill("mine")
    dialog.get_by_role("button", name="Change tags").click()
    expect(dialog.get_by_role("alert")).to_contain_text("not-yours: tagger may not change the tags")
    expect(dialog.get_by_role("alert").get_by_role("listitem")).to_have_count(1)
    assert portal.client.job(mine)["tags"] == ["mine"]


def test_a_filter_is_kept_by_the_server_under_its_name_for_its_owner_alone(
    page: Page, portal: Portal, browser: Browser, watch: Watch, page_of: Callable[[str], Page]
) -> None:
    portal.submit("seen")
    portal.client.wait(portal.submit("over", "true"), timeout=240)
    page.goto("/?state=succeeded,failed&order=ended")
    expect(page.locator("tr[data-job]")).to_have_count(1)
    page.get_by_role("button", name="Saved").press("Enter")
    panel = page.get_by_role("group", name="Saved filters")
    expect(panel).to_contain_text("No filter is saved yet.")
    panel.get_by_label("Name of the filter").fill("ended last")
    page.keyboard.press("Enter")
    expect(panel.get_by_role("button", name="ended last", exact=True)).to_be_visible()
    with open_context(browser, portal) as context:  # another browser of the same account
        context.on("page", watch.attach)
        other = context.new_page()
        other.goto("/")
        expect(other.locator("tr[data-job]")).to_have_count(2)
        other.get_by_role("button", name="Saved").press("Enter")
        other.get_by_role("button", name="ended last", exact=True).press("Enter")
        expect(other).to_have_url(re.compile(r"\?(?=.*state=succeeded,failed)(?=.*order=ended)"))
        expect(other.locator("tr[data-job]")).to_have_count(1)
    theirs = page_of("reader")
    theirs.goto("/")
    theirs.get_by_role("button", name="Saved").click()
    expect(theirs.get_by_role("group", name="Saved filters")).to_contain_text("No filter is saved yet.")
    panel.get_by_role("button", name="Delete the filter ended last").click()
    expect(panel).to_contain_text("No filter is saved yet.")
    assert portal.client.filters()["items"] == []


def test_jobs_are_gathered_by_user_and_by_sweep_and_a_group_is_chosen_at_once(
    portal: Portal, page_of: Callable[[str], Page]
) -> None:
    page = page_of("sweeper")
    with Client(portal.url) as sweeper:
        sweeper.login(link=str(portal.client.login_link("sweeper")["link"]))
        for name in ("lr-1", "lr-2", "other"):
            sweeper.submit(job_text(name))
    portal.submit("alone")
    page.goto("/?group=sweep")
    groups = page.locator("tr[data-group]")
    expect(groups).to_have_count(2)
    expect(groups.nth(0)).to_contain_text("lr of sweeper")
    expect(groups.nth(1)).to_contain_text("Single jobs")
    page.get_by_label("Choose all of lr of sweeper").check()
    expect(page.get_by_role("group", name="Chosen jobs")).to_contain_text("2 chosen")
    groups.nth(0).get_by_role("button").press("Enter")
    expect(page.locator("tr[data-job]")).to_have_count(2)
    page.get_by_label("Group", exact=True).select_option("by user")
    expect(page.locator("tr[data-group='sweeper']")).to_be_visible()
    expect(groups).to_have_count(2)
    expect(page.locator("tr[data-job]")).to_have_count(4)


def test_jobs_are_ticked_and_stopped_on_a_phone(browser: Browser, portal: Portal, watch: Watch) -> None:
    job = portal.submit("a-job-with-a-rather-long-name-that-goes-on")
    with open_context(browser, portal, width=390) as context:
        context.on("page", watch.attach)
        page = context.new_page()
        page.goto("/")
        page.get_by_role("checkbox", name="Choose a-job-with").check()
        page.get_by_role("button", name="Saved").click()
        expect(page.get_by_role("group", name="Saved filters")).to_be_in_viewport(ratio=1)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        page.keyboard.press("Escape")
        page.get_by_role("button", name="Stop 1").click()
        page.get_by_role("dialog").get_by_role("button", name="Stop 1 job").click()
        expect(page.get_by_role("dialog")).to_have_count(0)
    assert portal.client.wait(job, timeout=240)["state"] == "stopped"


def test_tags_of_a_job_are_changed_from_its_own_page_and_by_the_palette(page: Page, portal: Portal) -> None:
    job = portal.submit("labelled")
    page.goto(f"/jobs/{job}")
    page.get_by_role("button", name="Add tags").click()
    dialog = page.get_by_role("dialog", name="Tags of labelled")
    dialog.get_by_label("Tags to add").fill("paper")
    expect(dialog.get_by_role("button", name=f"corral tag {job} --add paper")).to_be_visible()
    dialog.get_by_role("button", name="Change tags").click()
    expect(dialog).to_have_count(0)
    expect(page.get_by_role("link", name="paper", exact=True)).to_be_visible()
    expect(page.get_by_role("button", name="Change tags")).to_be_visible()
    page.keyboard.press("Control+k")
    expect(page.get_by_role("combobox")).to_be_focused()
    page.keyboard.type("tag labelled")
    expect(page.get_by_role("dialog").get_by_role("option", selected=True)).to_have_text(re.compile("^tag labelled"))
    page.keyboard.press("Enter")
    dialog.get_by_label("paper").check()
    dialog.get_by_role("button", name="Change tags").click()
    expect(dialog).to_have_count(0)
    expect(page.get_by_role("button", name="Add tags")).to_be_visible()
    assert portal.client.job(job)["tags"] == []


def test_another_users_job_offers_no_change_of_its_tags(portal: Portal, page_of: Callable[[str], Page]) -> None:
    job = portal.submit("not-theirs")
    page = page_of("looker")
    page.goto(f"/jobs/{job}")
    expect(page.get_by_role("heading", name="Tasks")).to_be_visible()
    expect(page.get_by_role("button", name="Add tags")).to_have_count(0)


def test_the_tasks_of_a_job_are_a_file_with_those_that_are_not_drawn_yet(page: Page, portal: Portal) -> None:
    job = portal.submit("spread", 'exit "$CORRAL_TASK_INDEX"', replicas=14, more='"retry": {"maxRetries": 0}')
    portal.client.wait(job, timeout=240)
    page.goto(f"/jobs/{job}")
    with page.expect_download() as all_tasks:
        page.get_by_role("button", name="Tasks as CSV").click()
    assert all_tasks.value.suggested_filename == "spread-tasks.csv"
    head, *rows = csv.reader(all_tasks.value.path().read_text().splitlines())
    assert head[:3] == ["role", "index", "state"]
    assert [row[1] for row in rows] == [str(index) for index in range(14)]
    stored = {str(task["index"]): task for task in portal.client.tasks(job)["items"]}
    for row in rows:
        told = dict(zip(head, row, strict=True))
        assert (told["started"], told["node"]) == (
            stored[told["index"]]["startedAt"] or "",
            stored[told["index"]]["node"],
        )
    page.get_by_label("Exit code").fill("!0")
    expect(page.locator("tr[data-task]")).to_have_count(
        sum(row[head.index("exit_code")] not in ("", "0") for row in rows)
    )
    page.get_by_label("Exit code").fill("0")
    expect(page.locator("tr[data-task]")).to_have_count(sum(row[head.index("exit_code")] == "0" for row in rows))
    page.get_by_label("Exit code").fill("")
    node = rows[0][head.index("node")]
    page.get_by_label("Node", exact=True).fill(node.upper())
    expect(page.locator("tr[data-task]")).to_have_count(sum(node in row[head.index("node")] for row in rows))
    page.reload()
    expect(page.get_by_label("Node", exact=True)).to_have_value(node.upper())
    page.get_by_label("Node", exact=True).fill("no such node")
    expect(page.get_by_text("No task is like this.")).to_be_visible()
    page.get_by_label("Node", exact=True).fill("")
    chosen = page.get_by_role("group", name="State of the tasks").get_by_role("button", name="succeeded")
    chosen.click()
    expect(chosen).to_have_attribute("aria-pressed", "true")
    expect(page.get_by_label("Node", exact=True)).to_have_value("")
    with page.expect_download() as some:
        page.get_by_role("button", name="Tasks as CSV").click()
    _, *succeeded = csv.reader(some.value.path().read_text().splitlines())
    assert all(row[2] == "succeeded" for row in succeeded)
    assert len(succeeded) == sum(row[2] == "succeeded" for row in rows)
