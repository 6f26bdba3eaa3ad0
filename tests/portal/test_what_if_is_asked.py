"""The page of what-if questions: choose changes, see waits and starts before and after, and the equivalent command."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.portal.harness import Portal, Theme, Watch, job_text, open_context
from tests.portal.test_everyone_can_use_it import NAMELESS, PALE

HOUR = ', "maxDuration": "1h"'
ANSWERED = 240_000
"""Milliseconds for an answer, which processes of their own play."""


def full(portal: Portal) -> None:
    """Four jobs on all sixteen devices for an hour, and two that wait for eight of them each."""
    for number in range(4):
        job = portal.submit(f"runs-{number}", devices=4, more=HOUR[2:])
        portal.begun(job)
    for number in range(2):
        portal.submit(f"waits-{number}", replicas=2, devices=4, more=HOUR[2:])


def test_nodes_are_added_and_jobs_start_earlier(page: Page, portal: Portal, watch: Watch) -> None:
    watch.attach(page)
    full(portal)
    page.goto("/what-if")
    form = page.get_by_role("form", name="Question")
    form.get_by_label("Add nodes").fill("2")
    form.get_by_label("like").select_option("local/node1")
    expect(page.get_by_role("button", name="corral what-if --add-nodes 2 --like local/node1")).to_be_visible()
    form.get_by_role("button", name="Ask").click()
    answer = page.get_by_role("region", name="Answer")
    expect(answer).to_contain_text("With 2 nodes like local/node1 added.", timeout=ANSWERED)
    row = answer.get_by_role("table", name="Jobs").get_by_role("row", name="waits-0")
    expect(row).to_contain_text("earlier")
    expect(answer.get_by_role("img", name="Devices in use")).to_be_visible()
    expect(answer.get_by_role("table", name="Queues").get_by_role("row", name="default")).to_be_visible()
    expect(answer).to_contain_text("6 jobs run for as long as their maxDuration.")
    timeline = answer.get_by_role("figure", name="Timeline")
    expect(timeline.get_by_role("img", name="local/node1-added-1: waits-")).to_be_visible()
    timeline.get_by_role("button", name="As things are").click()
    expect(timeline.get_by_role("img", name="local/node1-added-1: nothing")).to_be_visible()
    expect(timeline.get_by_role("img", name="local/node1: runs-")).to_be_visible()


def test_a_job_is_submitted_and_another_is_stopped(page: Page, portal: Portal) -> None:
    full(portal)
    page.goto("/what-if")
    form = page.get_by_role("form", name="Question")
    form.get_by_label("Submit a job file").fill(job_text("more", devices=4, more=HOUR[2:]))
    form.get_by_label("Times").fill("2")
    form.get_by_label("Stop a job").fill("runs-0")
    line = "corral what-if --submit job.yaml --times 2 --stop runs-0"
    expect(page.get_by_role("button", name=line)).to_be_visible()
    form.get_by_role("button", name="Ask").click()
    answer = page.get_by_role("region", name="Answer")
    expect(answer).to_contain_text("With runs-0 stopped; more submitted 2 times.", timeout=ANSWERED)
    expect(answer.get_by_role("table", name="Jobs").get_by_role("row", name="more")).to_have_count(2)


def test_documents_are_tried_before_they_are_applied(page: Page, portal: Portal) -> None:
    full(portal)
    page.goto("/configuration?new=Queue")
    editor = page.get_by_role("textbox", name="Document, YAML")
    editor.press("ControlOrMeta+a")
    editor.press_sequentially("{kind: Queue, name: tried, limit: {devices: 4}}")
    page.get_by_role("button", name="Try it").click()
    answer = page.get_by_role("region", name="Answer")
    expect(answer).to_contain_text("With Queue/tried applied.", timeout=ANSWERED)
    expect(answer.get_by_role("figure", name="Timeline")).to_be_visible()
    editor.press_sequentially(" ")
    expect(page.get_by_text("This is the answer for an earlier text; try it again.")).to_be_visible()


def test_a_refusal_is_told_and_the_next_answer_replaces_it(page: Page, portal: Portal) -> None:
    page.goto("/what-if")
    form = page.get_by_role("form", name="Question")
    form.get_by_label("Policy").fill("nope")
    form.get_by_role("button", name="Ask").click()
    expect(page.get_by_role("alert")).to_contain_text("There is no policy 'nope'")
    form.get_by_label("Policy").fill("fifo")
    form.get_by_role("button", name="Ask").click()
    expect(page.get_by_role("region", name="Answer")).to_contain_text("With policy fifo.", timeout=ANSWERED)
    expect(page.get_by_role("alert")).to_have_count(0)


@pytest.mark.parametrize(("width", "theme"), [(390, "light"), (1440, "dark")])
def test_it_can_be_read_on_any_screen(
    browser: Browser, portal: Portal, theme: Theme, width: int, tmp_path: Path
) -> None:
    full(portal)
    context = open_context(browser, portal, width=width, theme=theme)
    page = context.new_page()
    page.goto("/what-if")
    page.get_by_label("Drain").select_option("local/node2")
    page.get_by_role("combobox", name="Queue").select_option("default")
    page.get_by_label("Limit of devices").fill("8")
    page.get_by_role("button", name="Ask").click()
    expect(page.get_by_role("region", name="Answer")).to_contain_text("local/node2 drained", timeout=ANSWERED)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(NAMELESS) == []
    assert page.evaluate(PALE) == []
    page.screenshot(path=tmp_path / f"{theme}.png", full_page=True)
    context.close()
