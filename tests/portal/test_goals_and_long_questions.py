"""The page of what-if questions: goals and their answers, arrivals, and the progress of a question that takes long."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.portal.harness import Portal, Theme, Watch, open_context
from tests.portal.test_everyone_can_use_it import NAMELESS, PALE
from tests.portal.test_what_if_is_asked import ANSWERED, full
from tests.waiting import pause

SAYS = "Tries 2 nodes like local/node1 added (attempt 3 of at most 16), plays the changes, course 2 of 5."
PROGRESS = {
    "fraction": 0.4, "stage": "after", "course": 2, "courses": 5, "attempt": 3, "mostAttempts": 16,
    "trying": "2 nodes like local/node1 added", "says": SAYS,
}  # fmt: skip


@pytest.fixture(autouse=True)
def _place(portal: Portal) -> Iterator[None]:
    """The one place of the user is free after each test: a page that gave up leaves its question to the server."""
    yield
    begun = time.monotonic()
    while any(each["state"] == "running" for each in portal.client.what_if_questions()["items"]):
        assert time.monotonic() < begun + 200, "a question goes on"
        time.sleep(pause(begun))


def endless(page: Page) -> None:
    """Have the page believe that its question goes on, whatever the server says."""
    state: dict[str, Any] = {"id": "0" * 32, "state": "running", "askedAt": "", "progress": PROGRESS}
    told = json.dumps({**state, "answer": None, "error": None})

    def answer(route: Route) -> None:
        if route.request.method != "GET":
            route.continue_()
        elif route.request.url.endswith("/events"):
            route.fulfill(content_type="text/event-stream", body=f"event: running\ndata: {told}\n\n")
        else:
            route.fulfill(content_type="application/json", body=told)

    page.route(re.compile(r"/api/v3/what-if/"), answer)


def test_the_least_for_a_goal_is_found_with_the_keyboard(page: Page, portal: Portal, watch: Watch) -> None:
    watch.attach(page)
    full(portal)
    page.goto("/what-if")
    form = page.get_by_role("form", name="Question")
    form.get_by_label("Find the least for a goal").select_option("Wait, longest")
    expect(form.get_by_label("Value")).to_have_value("1h")
    form.get_by_label("of queue").select_option("default")
    form.get_by_label("Nodes like").select_option("local/node1")
    form.get_by_label("Value").focus()
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type("30m")
    line = "corral what-if --goal 'wait.max(queue=default) <= 30m' --vary nodes-like=local/node1"
    expect(page.get_by_role("button", name=line)).to_be_visible()
    page.keyboard.press("Enter")
    answer = page.get_by_role("region", name="Answer")
    goal = answer.get_by_role("region", name="Goal")
    expect(goal).to_contain_text(
        re.compile(r"The least that reaches it: \d+ nodes? like local/node1 added \("), timeout=ANSWERED
    )
    expect(goal).to_contain_text("What follows is the answer for this least.")
    steps = goal.get_by_role("table", name="Steps searched").get_by_role("row")
    expect(steps.nth(1)).to_contain_text(re.compile(r"^0.*30m *no$"))
    expect(steps.filter(has_text="yes").first).to_be_visible()
    expect(answer.get_by_role("table", name="Queues").get_by_role("row", name="default")).to_be_visible()
    expect(goal).to_be_in_viewport()  # although the page was scrolled to the button


def test_a_quota_cannot_reach_what_only_machines_can(page: Page, portal: Portal) -> None:
    full(portal)
    page.goto("/what-if")
    form = page.get_by_role("form", name="Question")
    form.get_by_label("Find the least for a goal").select_option("Wait, p95")
    form.get_by_label("by raising").select_option("what a queue may have")
    form.get_by_label("Raised queue").select_option("default")
    form.get_by_label("Value").fill("1m")
    form.get_by_role("button", name="Ask").click()
    goal = page.get_by_role("region", name="Goal")
    expect(goal).to_contain_text(re.compile("It cannot be reached|It was not reached"), timeout=ANSWERED)
    expect(goal).to_contain_text("What follows is the answer for the most that was tried.")


def test_a_goal_needs_something_to_raise(page: Page, portal: Portal) -> None:
    page.goto("/what-if")
    form = page.get_by_role("form", name="Question")
    form.get_by_label("Find the least for a goal").select_option("Utilisation")
    expect(form.get_by_label("Value")).to_have_value("80%")
    form.get_by_label("Nodes like").select_option("–")
    form.get_by_role("button", name="Ask").click()
    expect(form.get_by_label("Nodes like")).to_be_focused()  # the browser says that it is missing
    expect(page.get_by_role("group", name="Progress")).to_have_count(0)


def test_arrivals_and_seeds_are_asked_for(page: Page, portal: Portal) -> None:
    page.goto("/what-if")
    form = page.get_by_role("form", name="Question")
    form.get_by_label("Other jobs arrive as in the last week").check()
    form.get_by_label("Courses").select_option("5")
    form.get_by_label("First seed").fill("3")
    line = page.get_by_role("button", name="corral what-if --seeds 5 --seed 3 --arrivals last-week")
    expect(line).to_be_visible()
    with page.expect_request("**/api/v3/what-if") as asked:
        form.get_by_role("button", name="Ask").click()
    sent: Any = asked.value.post_data_json
    assert (sent["seeds"], sent["seed"], sent["arrivals"]) == (5, 3, "last-week")
    assert asked.value.header_value("prefer") == "respond-async"
    # This server may be too young for arrivals; then it says so.
    said = page.get_by_text(re.compile(r"no whole hour from which arrivals|other jobs arrive, as in"))
    expect(said.first).to_be_visible(timeout=ANSWERED)


def test_a_long_question_shows_its_progress_and_is_cancelled(page: Page, portal: Portal, watch: Watch) -> None:
    watch.attach(page)
    endless(page)
    page.goto("/what-if")
    page.get_by_role("button", name="Ask").click()
    progress = page.get_by_role("group", name="Progress")
    expect(progress.get_by_role("progressbar", name="Played")).to_have_attribute("aria-valuenow", "40")
    expect(progress).to_contain_text(f"40 % {SAYS}")
    expect(page.get_by_role("button", name="Playing it")).to_be_focused()
    cancel = progress.get_by_role("button", name="Cancel")
    cancel.focus()
    with page.expect_response(lambda each: each.request.method == "DELETE" and "/what-if/" in each.url) as gone:
        page.keyboard.press("Enter")
    assert gone.value.status == 204
    expect(page.get_by_text("The question was cancelled.")).to_be_visible()
    expect(page.get_by_role("button", name="Ask")).to_be_enabled()
    page.unroute_all()
    page.get_by_role("button", name="Ask").click()  # the place of its user is free
    expect(page.get_by_role("region", name="Answer")).to_contain_text("As things are.", timeout=ANSWERED)


def test_leaving_the_page_cancels_its_question(page: Page, portal: Portal) -> None:
    endless(page)
    page.goto("/what-if")
    page.get_by_role("button", name="Ask").click()
    expect(page.get_by_role("group", name="Progress")).to_contain_text("40 %")
    with page.expect_response(lambda each: each.request.method == "DELETE" and "/what-if/" in each.url) as gone:
        page.get_by_role("link", name="Shares").click()
    assert gone.value.status == 204


def test_a_question_that_the_server_lost_is_told(page: Page, portal: Portal) -> None:
    lost = {"code": "question-not-found", "message": "There is no question x of yours. Ask it again."}
    page.route(
        re.compile(r"/api/v3/what-if/"),
        lambda route: route.fulfill(status=404, content_type="application/json", body=json.dumps(lost)),
    )
    page.goto("/what-if")
    page.get_by_role("button", name="Ask").click()
    expect(page.get_by_role("alert")).to_contain_text("There is no question x of yours. Ask it again.")


@pytest.mark.parametrize(("width", "theme"), [(390, "dark"), (1440, "light")])
def test_it_can_be_read_on_any_screen(
    browser: Browser, portal: Portal, theme: Theme, width: int, tmp_path: Path
) -> None:
    full(portal)
    context = open_context(browser, portal, width=width, theme=theme)
    page = context.new_page()
    page.goto("/what-if")
    form = page.get_by_role("form", name="Question")
    form.get_by_label("Find the least for a goal").select_option("Wait, p95")
    form.get_by_label("of queue").select_option("default")
    form.get_by_label("Nodes like").select_option("local/node1")
    form.get_by_label("Value").fill("30m")
    endless(page)
    form.get_by_role("button", name="Ask").click()
    expect(page.get_by_role("group", name="Progress")).to_contain_text("40 %")
    look(page, width, tmp_path / f"progress-{width}-{theme}.png")
    page.get_by_role("button", name="Cancel").click()
    page.unroute_all()
    form.get_by_role("button", name="Ask").click()
    expect(page.get_by_role("region", name="Goal")).to_contain_text("The least that reaches it", timeout=ANSWERED)
    look(page, width, tmp_path / f"goal-{width}-{theme}.png")
    context.close()


def look(page: Page, width: int, picture: Path) -> None:
    """Nothing is wider than the screen, nameless or pale; the picture is for people."""
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(NAMELESS) == []
    assert page.evaluate(PALE) == []
    page.evaluate("scrollTo(0, 0)")
    page.screenshot(path=picture, full_page=True)
