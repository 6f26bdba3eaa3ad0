"""Profiles on the page of their job: taken by a button, walked by keyboard, read as text, and compared."""

from __future__ import annotations

import gzip
import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.portal.harness import Portal, Theme, Watch, open_context
from tests.portal.profiled import plant_memory, plant_system, plant_trace
from tests.portal.test_everyone_can_use_it import NAMELESS, PALE

SPINS = """\
def decode_image():
    while True: pass
print("ready", flush=True)
decode_image()
"""


def spinning(portal: Portal) -> str:
    """A running job whose one task is busy in one function."""
    job = portal.submit("spins", f"exec {shlex.quote(sys.executable)} -c {shlex.quote(SPINS)}")
    portal.begun(job, words=b"ready")
    return job


def test_a_profile_is_taken_and_its_flame_graph_is_walked_by_keyboard(page: Page, portal: Portal) -> None:
    job = spinning(portal)
    page.goto(f"/jobs/{job}")
    page.get_by_role("button", name="profiles", exact=True).click()
    expect(page.get_by_text("There is no profile of this job")).to_be_visible()
    page.get_by_label("Seconds").fill("1")
    page.get_by_role("button", name="Take a profile").click()
    expect(page.get_by_role("figure", name="Flame graph")).to_be_visible()
    expect(page.get_by_role("table", name="Functions").get_by_role("row").nth(1)).to_contain_text("decode_image (")
    tree = page.get_by_role("tree", name="Frames")
    root = tree.get_by_role("treeitem", name="spins: 100.0 %")
    root.focus()
    page.keyboard.press("ArrowDown")
    rank = tree.get_by_role("treeitem", name="worker-0 process")
    expect(rank).to_be_focused()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(tree.locator("[aria-selected=true]")).to_be_focused()
    expect(page.get_by_role("button", name="Show all")).to_be_enabled()
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Show all")).to_be_disabled()
    expect(root).to_have_attribute("aria-selected", "true")


def test_a_second_profile_is_compared_with_the_first_and_removed(page: Page, portal: Portal) -> None:
    job = spinning(portal)
    first = portal.client.take_profile(job, seconds=1)["id"]
    page.goto(f"/jobs/{job}?tab=profiles")
    expect(page.get_by_role("figure", name="Flame graph")).to_be_visible()
    page.get_by_label("Seconds").fill("1")
    page.get_by_label("Task", exact=True).fill("worker-7")
    page.get_by_role("button", name="Take a profile").click()
    expect(page.get_by_role("alert")).to_contain_text("Job spins has no task worker-7.")
    page.get_by_label("Task", exact=True).fill("worker-0")
    page.get_by_role("button", name="Take a profile").click()
    rows = page.get_by_role("table", name="Profiles").get_by_role("row")
    expect(rows).to_have_count(3)
    page.get_by_label("Compare with").select_option(first)
    expect(page.get_by_role("table", name="Differences")).to_contain_text("decode_image (")
    rows.nth(1).get_by_role("button", name="Remove the profile").click()
    expect(rows).to_have_count(2)
    assert [each["id"] for each in portal.client.profiles(job)["items"]] == [first]


def test_a_trace_shows_ranked_advice_a_timeline_and_the_file_for_perfetto(
    page: Page, portal: Portal, tmp_path: Path
) -> None:
    job = portal.submit("trainer", replicas=2)
    slow = plant_trace(portal, job, ranks=2, loading=40)
    page.goto(f"/jobs/{job}?tab=profiles")
    advice = page.get_by_role("list", name="Advice").get_by_role("listitem")
    expect(advice.first).to_contain_text("waits 40% of its time for data")
    expect(advice.first).to_contain_text("Gain: up to 40 % of the time.")
    timeline = page.get_by_role("figure", name="Timeline")
    said = "worker-0 process 7: 22 % computing, 30 % communication, 3 % copies, 40 % waits for data, 5 % idle"
    expect(timeline.get_by_role("img", name=said)).to_be_visible()
    row = page.get_by_role("table", name="Time of each rank").get_by_role("row", name="worker-1 process 7")
    expect(row).to_contain_text("47 %")
    path = page.get_by_role("table", name="Critical path over the ranks").get_by_role("row")
    expect(path.nth(1)).to_contain_text("sm80_gemm_f16")
    expect(page.get_by_role("table", name="Kernels")).to_contain_text("sm80_gemm_f16")
    page.get_by_text("Files to download").click()
    with page.expect_download() as started:
        page.get_by_role("link", name="worker-0-7.trace.json.gz").click()
    started.value.save_as(tmp_path / "trace")
    assert json.loads(gzip.decompress((tmp_path / "trace").read_bytes()))["traceEvents"]
    plant_trace(portal, job, ranks=2, loading=5, ago=60)
    page.goto(f"/jobs/{job}?tab=profiles&profile={slow}")
    page.get_by_label("Compare with").select_option(index=1)
    expect(page.get_by_role("table", name="Differences").get_by_role("row").nth(1)).to_contain_text("waits for data")


def test_memory_shows_who_holds_it_how_it_grew_and_what_is_not_used(page: Page, portal: Portal) -> None:
    job = portal.submit("trainer", replicas=2)
    plant_memory(portal, job, ranks=2)
    page.goto(f"/jobs/{job}?tab=profiles")
    row = page.get_by_role("table", name="Memory of each rank").get_by_role("row", name="worker-1 process 7")
    expect(row).to_contain_text("400 MiB")
    expect(page.get_by_role("list", name="Advice")).to_contain_text("of the memory that it asked for")
    holders = page.get_by_role("table", name="What holds the memory of worker-0 process 7")
    expect(holders.get_by_role("row").nth(1)).to_contain_text("anonymous")
    said = "private: 200 MiB at the beginning, 258 MiB at the end, 258 MiB at most"
    expect(page.get_by_role("img", name=said)).to_have_count(2)
    expect(page.get_by_role("figure", name="Flame graph")).to_be_visible()
    expect(page.get_by_role("table", name="Functions").get_by_role("row").nth(1)).to_contain_text("decode_image (")


def test_the_machine_is_shown_as_small_curves_with_ranked_advice(page: Page, portal: Portal) -> None:
    job = portal.submit("trainer")
    plant_system(portal, job)
    page.goto(f"/jobs/{job}?tab=profiles")
    advice = page.get_by_role("list", name="Advice").get_by_role("listitem")
    expect(advice.nth(1)).to_contain_text("worker-0 waits 48% of its time for the disk: 90% of what it read")
    expect(advice.nth(1)).to_contain_text("Gain: up to 48 % of the time.")
    figures = page.get_by_role("region", name="Figures of worker-0")
    expect(figures.get_by_role("img", name="read from the disk: 90 MiB/s at the beginning")).to_be_visible()
    expect(figures.get_by_role("img", name="device 0 in use")).to_be_visible()
    expect(page.get_by_text("The network figures are the whole node's")).to_be_visible()


@pytest.mark.parametrize(("width", "theme"), [(390, "dark"), (390, "light")])
def test_traces_fit_and_are_legible_and_named(
    browser: Browser, portal: Portal, watch: Watch, width: int, theme: Theme
) -> None:
    job = portal.submit("a-trainer-with-a-rather-long-name-that-goes-on-and-on", replicas=2)
    plant_trace(portal, job, ranks=2, loading=5)
    plant_trace(portal, job, ranks=2, loading=40)
    with open_context(browser, portal, width=width, theme=theme) as context:
        context.on("page", watch.attach)
        page = context.new_page()
        page.goto(f"/jobs/{job}?tab=profiles")
        expect(page.get_by_role("figure", name="Timeline")).to_be_visible()
        page.get_by_label("Compare with").select_option(index=1)
        expect(page.get_by_role("table", name="Differences")).to_be_visible()
        _fits(page, width)
        page.goto(f"/jobs/{job}?tab=profiles&profile={plant_memory(portal, job, ranks=2)}")
        expect(page.get_by_role("figure", name="Flame graph")).to_be_visible()
        _fits(page, width)
        page.goto(f"/jobs/{job}?tab=profiles&profile={plant_system(portal, job)}")
        expect(page.get_by_role("region", name="Figures of worker-0")).to_be_visible()
        _fits(page, width)


def _fits(page: Page, width: int) -> None:
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(PALE) == []
    assert page.evaluate(NAMELESS) == []


def test_who_may_not_enter_the_tasks_sees_no_profiles(page_of: Callable[[str], Page], portal: Portal) -> None:
    job = portal.submit("trainer")
    page = page_of("guest")
    page.goto(f"/jobs/{job}?tab=profiles")
    expect(page.get_by_role("navigation", name="Parts of the job")).to_be_visible()
    expect(page.get_by_role("button", name="profiles", exact=True)).to_have_count(0)
    expect(page.get_by_role("form", name="Take a profile")).to_have_count(0)
