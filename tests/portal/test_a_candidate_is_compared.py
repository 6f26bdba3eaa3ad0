"""The page of policy shadows: choose a candidate, see how far the comparison is, and read its report."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from playwright.sync_api import Browser, Page, Route, expect

from corral.kernel.errors import NotFound
from corral.model.policy_shadow import (
    Counts,
    Difference,
    Figures,
    HourRow,
    Moved,
    QueueRow,
    RunningShadow,
    ShadowReport,
)
from corral.model.what_if_progress import WhatIfRefusal
from corral.scheduler.policy.policy import BUILT_IN
from corral.scheduler.policy.registry import ORDERS, SHARES
from tests.portal.harness import Portal, Theme, open_context
from tests.portal.test_everyone_can_use_it import NAMELESS, PALE

NUMBER = "0" * 32


def figures(started: int, wait: float | None, devices: float, preempted: int = 0, waiting: int = 0) -> Figures:
    return Figures(started, wait, None if wait is None else 3 * wait, preempted, devices, waiting)


QUEUES = (
    QueueRow("production", figures(20, 300.0, 9.5, 1), figures(21, 60.0, 9.2, 0)),
    QueueRow("research-with-a-long-name", figures(23, 0.0, 12.7, 2, 3), figures(21, 2400.0, 12.9, 2)),
    QueueRow("empty", figures(0, None, 0.0), figures(0, None, 0.0)),
)


def an_hour(at: str, seconds: float = 3600.0) -> HourRow:
    both = figures(43, 120.0, 22.2, 3, 3), figures(42, 900.0, 22.1, 2)
    return HourRow(at, seconds, Counts(36, 6, 10, 8), *both, 32, QUEUES)


REPORT = ShadowReport(
    begin="2026-11-28T08:00:00.000Z", end="2026-11-28T12:00:00.000Z", in_force="fair", candidate="srtf", within=60.0,
    decisions={"start": Counts(34, 6, 8, 7)}, undecided=0,
    hours=tuple(an_hour(f"2026-11-28T{hour:02}:00:00.000Z") for hour in range(8, 12)),
    total=an_hour("2026-11-28T08:00:00.000Z", 4 * 3600.0),
    differences=(
        Difference("start", "j1", "train-11", "bob", "production", "2026-11-28T08:20:28.000Z", "2026-11-28T08:29:48.000Z",
                   "Needs 4 devices; 0 of 4 are free."),
        Difference("preempt", "j2", "train-31", "eve", "research-with-a-long-name", "2026-11-28T09:02:19.000Z", None,
                   "Moved to other devices to make room for job train-36 of bob."),
    ),
    differences_left_out=3, earlier=4, later=4, same=32,
    gains=(Moved("j3", "train-13", "eve", "production", 4140.0, complete=True),),
    losses=(Moved("j4", "train-35", "ada", "production", -1501.0, complete=False),),
    assumptions=("Requests come when they came, and machines come and go as they did.",),
    notes=("The journal is kept from 2026-11-28T08:00:00.000Z on; the comparison begins there.",),
)  # fmt: skip


def told(page: Page, state: str, report: ShadowReport | None = None) -> None:
    """Have the page believe that its comparison is in a state, whatever the server says."""
    progress = {"fraction": 0.4, "stage": "comparing", "says": "Compared to 2026-11-28T09:36:00Z."}
    status: dict[str, Any] = {"id": NUMBER, "state": state, "askedAt": "2026-11-28T12:00:00Z", "progress": progress}
    event = json.dumps({**status, "answer": None, "error": None})
    whole = json.dumps({**status, "answer": msgspec.to_builtins(report), "error": None})

    def answer(route: Route) -> None:
        if route.request.method != "GET":
            route.continue_()
        elif route.request.url.endswith("/events"):
            route.fulfill(content_type="text/event-stream", body=f"event: {state}\ndata: {event}\n\n")
        else:
            route.fulfill(content_type="application/json", body=whole)

    page.route(re.compile(r"/api/v3/policy-shadow/"), answer)


@pytest.mark.timeout(600)
def test_the_report_of_the_server_s_own_journal_is_shown_and_stays_at_its_address(page: Page, portal: Portal) -> None:
    job = portal.submit("runs", devices=4, more='"maxDuration": "1h"')
    portal.begun(job)
    page.goto("/what-if")
    page.get_by_role("link", name="Policy shadow").click()
    form = page.get_by_role("form", name="Candidate")
    form.get_by_label("Policy").select_option("srtf")
    form.get_by_label("Hours to compare").select_option("4 hours")
    line = page.get_by_role("button", name=re.compile(r"corral policy shadow srtf --server --from 20\S+Z copy"))
    expect(line).to_be_visible()
    form.get_by_label("Hours to compare").focus()
    form.get_by_role("button", name="Compare").press("Enter")
    report = page.get_by_role("region", name="Report")
    # The journal has all that the tests before did on this server.
    expect(report).to_contain_text("srtf decided beside", timeout=400_000)
    expect(report.get_by_role("table", name="Queues").get_by_role("row", name="default")).to_be_visible()
    expect(report.get_by_role("img", name="default, Devices in use")).to_be_visible()
    expect(page).to_have_url(re.compile(r"/policy-shadow\?policy=srtf&hours=4&comparison=[0-9a-f]{32}$"))
    page.reload()
    expect(report).to_contain_text("srtf decided beside")
    expect(form.get_by_label("Policy")).to_have_value("srtf")
    page.goto("/policy-shadow")
    page.get_by_role("link", name="asked at").first.click()
    expect(report).to_contain_text("srtf decided beside")


def test_a_comparison_that_takes_long_outlives_its_page_and_is_cancelled(page: Page, portal: Portal) -> None:
    told(page, "running")
    page.goto("/policy-shadow?policy=fifo")
    page.get_by_role("button", name="Compare").click()
    progress = page.get_by_role("group", name="Progress")
    expect(progress).to_contain_text("40 % Compared to 2026-11-28T09:36:00Z.")
    expect(page).to_have_url(re.compile("comparison="))
    page.reload()
    expect(progress.get_by_role("progressbar")).to_have_attribute("aria-valuenow", "40")
    cancel = progress.get_by_role("button", name="Cancel")
    cancel.focus()
    with page.expect_response(lambda each: each.request.method == "DELETE" and "/policy-shadow/" in each.url) as gone:
        page.keyboard.press("Enter")
    assert gone.value.status == 204
    expect(page.get_by_text("The comparison was cancelled.")).to_be_visible()
    expect(page).to_have_url(re.compile(r"/policy-shadow\?policy=fifo$"))


@pytest.mark.timeout(600)
def test_a_candidate_goes_on_hour_by_hour_until_it_is_stopped(page: Page, portal: Portal) -> None:
    with contextlib.suppress(NotFound):  # that of a test before
        portal.client.stop_running_shadow()
    job = portal.submit("runs", devices=4, more='"maxDuration": "1h"')
    portal.begun(job)
    page.goto("/policy-shadow?policy=las&hours=4")
    page.get_by_role("button", name="Go on hour by hour").press("Enter")
    shadow = page.get_by_role("region", name="Goes on hour by hour")
    expect(shadow).to_contain_text("las decides beside the policy in force, from")
    expect(shadow).to_contain_text("The next report comes at", timeout=400_000)
    report = shadow.get_by_role("region", name="Report")
    expect(report).to_contain_text("las decided beside")
    expect(report.get_by_role("table", name="Queues").get_by_role("row", name="default")).to_be_visible()
    page.get_by_role("button", name="Go on hour by hour").click()
    expect(page.get_by_role("alert")).to_contain_text("The shadow of las, which root began, goes on; stop it first.")
    page.goto("/policy-shadow")
    expect(report).to_contain_text("las decided beside")
    shadow.get_by_role("button", name="Stop").press("Enter")
    ended = page.get_by_role("region", name="Went on hour by hour")
    expect(ended).to_contain_text("It was stopped.")
    expect(ended.get_by_role("region", name="Report")).to_be_visible()
    expect(ended.get_by_role("button", name="Stop")).to_have_count(0)
    assert portal.client.running_shadow()["state"] == "stopped"


RUNNING = RunningShadow(
    "running", "srtf with other documents", "ann", "2026-11-28T08:00:00.000Z", "2026-11-28T08:00:00.000Z",
    "2026-12-05T08:00:00.000Z", anew=False, reported_at="2026-11-28T12:01:30.000Z", next_at="2026-11-28T13:01:30.000Z",
)  # fmt: skip
FAILED = msgspec.structs.replace(
    RUNNING, state="failed", next_at=None,
    error=WhatIfRefusal(503, "question-too-long", "The question was not answered in 600 seconds; compare fewer hours."),
)  # fmt: skip


@pytest.mark.parametrize(
    ("width", "theme", "shadow", "says"),
    [
        (390, "dark", RUNNING, "The next report comes at 11-28 13:01 UTC."),
        (1440, "light", RUNNING, "The report goes up to 11-28 12:01 UTC."),
        (390, "light", FAILED, "It ended: The question was not answered in 600 seconds; compare fewer hours."),
    ],
)
def test_a_running_shadow_can_be_read_on_any_screen(
    browser: Browser, portal: Portal, theme: Theme, width: int, shadow: RunningShadow, says: str, tmp_path: Path
) -> None:
    context = open_context(browser, portal, width=width, theme=theme)
    page = context.new_page()
    for path, answer in (("", shadow), ("/report", REPORT)):
        body = msgspec.json.encode(answer)
        page.route(re.compile(f"/api/v3/running-shadow{path}$"), answering(body))
    page.goto("/policy-shadow")
    region = page.get_by_role("region", name=re.compile("hour by hour"))
    expect(region).to_contain_text(says)
    expect(region.get_by_role("region", name="Report")).to_contain_text("36 decisions are alike within 1m")
    expect(region.get_by_role("button", name="Stop")).to_have_count(1 if shadow.state == "running" else 0)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(NAMELESS) == []
    assert page.evaluate(PALE) == []
    page.screenshot(path=tmp_path / f"{theme}.png", full_page=True)
    context.close()


def answering(body: bytes) -> Callable[[Route], None]:
    """What answers each call with this JSON."""
    return lambda route: route.fulfill(content_type="application/json", body=body)


def test_refusals_say_what_is_wrong(page: Page, portal: Portal) -> None:
    page.goto("/policy-shadow?policy=nope")
    compare = page.get_by_role("button", name="Compare")
    compare.click()
    expect(page.get_by_role("alert")).to_contain_text("There is no policy 'nope'")
    page.get_by_label("Policy").select_option("")
    compare.click()
    expect(page.get_by_label("Policy")).to_be_focused()  # the browser says that it is missing
    page.get_by_label("Documents").fill("kind: Queue\nname: research\nlimit: {devices: none}\n")
    compare.click()
    expect(page.get_by_role("list", name="Problems").or_(page.get_by_role("status", name="Problems"))).to_contain_text(
        "devices"
    )
    expect(page).to_have_url(re.compile(r"documents=kind"))
    page.goto(f"/policy-shadow?comparison={NUMBER}")
    expect(page.get_by_role("alert")).to_contain_text("There is no question 000")


def test_who_is_no_administrator_is_told_so(page_of: Callable[[str], Page], portal: Portal) -> None:
    page = page_of("mira")
    page.goto("/policy-shadow")
    expect(page.get_by_text("Only administrators compare policies")).to_be_visible()
    expect(page.get_by_role("navigation", name="Queues").get_by_role("link", name="What if")).to_be_visible()
    expect(page.get_by_role("link", name="Policy shadow")).to_have_count(0)
    expect(page.get_by_role("button", name="Compare")).to_have_count(0)


def test_every_built_in_policy_can_be_chosen(page: Page, portal: Portal) -> None:
    page.goto("/policy-shadow")
    expect(page.get_by_label("Policy")).to_be_visible()
    offered = page.get_by_label("Policy").locator("option").evaluate_all("all => all.map(each => each.value)")
    assert set(offered) == {"", *BUILT_IN, *ORDERS, *SHARES}


@pytest.mark.parametrize(("width", "theme"), [(390, "light"), (390, "dark"), (1440, "light"), (1440, "dark")])
def test_the_report_can_be_read_on_any_screen(
    browser: Browser, portal: Portal, theme: Theme, width: int, tmp_path: Path
) -> None:
    context = open_context(browser, portal, width=width, theme=theme)
    page = context.new_page()
    told(page, "done", REPORT)
    page.goto(f"/policy-shadow?policy=srtf&comparison={NUMBER}")
    report = page.get_by_role("region", name="Report")
    expect(report).to_contain_text("36 decisions are alike within 1m; 10 were made only in force and 8 only by the")
    expect(report).to_contain_text("Of 40 jobs that started, it starts 4 earlier, 4 later, and 32 at the same time.")
    expect(report).to_contain_text("Lose most: train-35 (at least 25m 1s later).")
    words = "production, Wait, p95: 15m in force, 3m candidate"
    expect(report.get_by_role("img", name=words)).to_be_visible()
    row = report.get_by_role("table", name="Queues").get_by_role("row", name="production")
    expect(row).to_contain_text("15m→, then 3m")
    expect(report.get_by_role("table", name="Hours").get_by_role("row", name="11-28 09:00")).to_be_visible()
    differs = report.get_by_role("table", name="Decisions that differ").get_by_role("row", name="train-31")
    expect(differs).to_contain_text("preemption11-28 09:02:19–")
    expect(report).to_contain_text("3 more decisions; corral policy shadow --differences lists them.")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(NAMELESS) == []
    assert page.evaluate(PALE) == []
    page.screenshot(path=tmp_path / f"{theme}.png", full_page=True)
    context.close()
