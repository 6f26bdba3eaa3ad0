"""The portal speaks the language that its reader chose; under a made-up one no English is left."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.portal.axe import findings
from tests.portal.harness import Portal, open_context
from tests.portal.madeup import MADE_UP, cells, english, listen
from tests.portal.test_a_candidate_is_compared import NUMBER, REPORT, told
from tests.portal.test_estimates_are_judged import answered
from tests.portal.test_what_if_is_asked import ANSWERED

CHANNEL = {
    "name": "desk",
    "kind": "mail",
    "address": "ada@example.org",
    "verified": True,
    "events": ["failed", "preempted"],
    "waitingSeconds": 7200,
    "jobs": "*",
    "createdAt": "2026-11-27T10:00:00.000Z",
}
"""A channel as the API tells it: the server of these tests sends no mail."""
READY = {"ready": True, "reasons": [], "degraded": False}
"""What a server says that lacks nothing; on a busy machine its sentences would stand above every page."""


@pytest.fixture
def page(browser: Browser, portal: Portal) -> Iterator[Page]:
    """A signed-in window that keeps the made-up language, until another is chosen in it."""
    context = open_context(browser, portal)
    page = context.new_page()
    page.route("**/readyz", lambda route: route.fulfill(json=READY))
    page.goto("/account")
    page.evaluate(MADE_UP)
    page.reload()
    yield page
    context.close()


def test_the_account_has_no_english_in_another_language(page: Page, portal: Portal) -> None:
    page.route("**/api/v3/account/notifications", lambda route: route.fulfill(json={"items": [CHANNEL], "next": None}))
    user = str(portal.client.me()["user"])
    tokens = [str(each["name"]) for each in portal.client.tokens()["items"]]
    page.reload()
    expect(page.get_by_role("heading", name=user)).to_be_visible()
    expect(page.get_by_role("cell", name=str(CHANNEL["address"]))).to_be_visible()
    expect(page.locator("table")).to_have_count(3)
    page.get_by_role("button", name="Řéṽóķé").first.click()
    expect(page.get_by_role("dialog")).to_be_visible()
    folder = page.locator("code").first.inner_text()
    assert english(page, user, str(CHANNEL["name"]), str(CHANNEL["address"]), folder, *filter(None, tokens)) == []
    assert page.locator("html").get_attribute("lang") == "en-XA"


def test_a_choice_changes_the_open_page_and_is_kept(page: Page, portal: Portal) -> None:
    field = page.get_by_role("combobox", name="Ļáñğúáğé")
    expect(field).to_have_value("en-XA")
    assert findings(page) == []
    field.select_option("English")
    expect(page.get_by_role("heading", name="Access tokens")).to_be_visible()
    expect(page.get_by_role("combobox", name="Language")).to_be_focused()
    expect(page.get_by_role("navigation", name="Main").get_by_role("link", name="Queues")).to_be_visible()
    page.reload()
    language = page.get_by_role("combobox", name="Language")
    expect(language).to_have_value("en")
    expect(language.get_by_role("option")).to_have_text(["English"])


def test_the_frame_and_the_palette_have_no_english_in_another_language(page: Page, portal: Portal) -> None:
    user = str(portal.client.me()["user"])
    portal.submit("find-me")
    page.goto("/")
    expect(page.get_by_role("navigation", name="Ḿáíñ")).to_be_visible()
    page.get_by_label("Áççóúñţ").first.click()
    expect(page.get_by_role("button", name="Šíğñ óúţ")).to_be_visible()
    assert english(page, user, within="header") == []
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Šíğñ óúţ")).to_have_count(0)
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Ķéýš")).to_be_visible()
    assert english(page, within="dialog") == []
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.keyboard.press("Control+k")
    expect(page.get_by_role("dialog").get_by_role("option").first).to_be_visible()
    assert english(page, within="dialog") == []
    page.keyboard.type("šţóþ find")
    expect(page.get_by_role("dialog").get_by_role("option", selected=True)).to_have_text(re.compile("^šţóþ find-me"))
    assert english(page, user, "find-me", "find", within="dialog") == []
    page.get_by_role("dialog").get_by_role("combobox").fill("ñóđ")
    expect(page.get_by_role("dialog").get_by_role("option", selected=True)).to_have_text("Ñóđéš")


def test_signing_in_and_lost_addresses_have_no_english_in_another_language(stranger: Page) -> None:
    stranger.goto("/sign-in")
    stranger.evaluate(MADE_UP)
    stranger.goto("/sign-in?refused=not-in-a-group")
    expect(stranger.get_by_role("alert")).to_be_visible()
    assert english(stranger) == []
    stranger.goto("/nowhere/at/all")
    expect(stranger.get_by_role("heading")).to_be_visible()
    assert english(stranger) == []


def test_the_servers_parts_have_no_english_in_another_language(page: Page, portal: Portal) -> None:
    """The server's sentences are data: on a busy machine a part may be degraded, and says why."""
    told = portal.client.server_parts()
    page.route("**/api/v3/server-parts", lambda route: route.fulfill(json=told))
    page.goto("/server")
    expect(page.locator("tr[data-server-part]")).to_have_count(len(told["items"]))
    user = str(portal.client.me()["user"])
    data = [
        str(word)
        for part in told["items"]
        for word in (part["name"], part["version"], *part["reasons"], *part["runsOn"])
    ]
    assert english(page, user, *filter(None, data)) == []


def test_home_and_the_list_of_jobs_have_no_english_in_another_language(page: Page, portal: Portal) -> None:
    user = str(portal.client.me()["user"])
    portal.submit("my-run", devices=2)
    page.goto("/home")
    row = page.get_by_role("listitem").filter(has_text="my-run")
    expect(row.locator("[data-state=running]")).to_be_visible()
    expect(page.locator("tr[data-queue]").first).to_be_visible()
    queues = [str(each["name"]) for each in portal.client.queues()["items"]]
    assert english(page, user, "my-run", *queues, within="main") == []
    page.goto("/")
    expect(page.locator("tr[data-job]")).to_be_visible()
    expect(page.get_by_test_id("cluster-map").locator("a[data-job]").first).to_be_visible()
    page.get_by_role("checkbox", name="Çĥóóšé my-run").check()
    page.get_by_role("button", name="Šţóþ 1").click()
    expect(page.get_by_role("dialog")).to_be_visible()
    data = [user, "my-run", "worker", *queues, *cells(portal.client.cluster())]
    assert english(page, *data, within="main") == []


def test_a_job_has_no_english_in_another_language(page: Page, portal: Portal) -> None:
    user = str(portal.client.me()["user"])
    job = portal.submit("my-page", devices=2)
    page.goto(f"/jobs/{job}")
    expect(page.locator("header [data-state=running]")).to_be_visible()
    expect(page.get_by_role("region", name="Ţášķš")).to_contain_text("worker-0")
    shown = portal.client.job(job)
    data = [
        user,
        "my-page",
        job,
        *map(str, (shown["queue"], shown["jobType"])),
        "worker",
        *cells(portal.client.cluster()),
    ]
    assert english(page, *data, within="article > header, article nav") == []
    page.get_by_role("button", name="Šţóþ").click()
    expect(page.get_by_role("dialog")).to_be_visible()
    assert english(page, *data, within="dialog") == []


def test_queues_and_use_have_no_english_in_another_language(page: Page, portal: Portal) -> None:
    user = str(portal.client.me()["user"])
    queues = [str(each["name"]) for each in portal.client.queues()["items"]]
    page.goto("/queues")
    expect(page.locator("tr[data-queue]").first).to_be_visible()
    # Resources have the names that documents give them.
    assert english(page, user, "devices", *queues, within="main") == []
    page.goto("/usage")
    expect(page.get_by_role("search")).to_be_visible()
    assert english(page, user, *queues, within="[role=search]") == []


@pytest.fixture
def reader(browser: Browser, portal: Portal) -> Iterator[Page]:
    """A signed-in window in the made-up language that keeps what the server says."""
    context = open_context(browser, portal)
    listen(context)
    yield context.new_page()
    context.close()


@pytest.fixture
def vision(portal: Portal) -> Iterator[Portal]:
    """A queue with two revisions of its document."""
    for devices in (4, 6):
        portal.client.apply(f"kind: Queue\nname: vision\nlimit: {{devices: {devices}}}\n")
    yield portal
    portal.client.delete_configuration("queue", "vision")


def test_documents_are_written_and_asked_about_without_english_in_another_language(
    reader: Page, vision: Portal
) -> None:
    reader.goto("/configuration?new=Queue")
    lines = reader.get_by_role("textbox", name="Đóçúḿéñţ")
    expect(lines).to_contain_text("íţš þářţ, ƀéšíđé íţš šíƀļíñğš', óƒ ţĥé úñáššíğñéđ řéšţ")
    expect(reader.get_by_role("status").filter(has_text="✓")).to_be_visible()
    kinds = ("Queue", "VirtualCluster", "Policy", "Storage", "Prices", "Cluster")
    assert english(reader, *kinds, within="main") == []
    reader.get_by_role("button", name="Áþþļý…").click()
    expect(reader.get_by_role("dialog")).to_be_visible()
    assert english(reader, within="dialog") == []
    reader.goto("/configuration?document=Queue/vision&edit=yes")
    lines = reader.get_by_role("textbox", name="Đóçúḿéñţ")
    expect(lines).to_contain_text("vision")
    lines.press("Control+End")
    lines.press_sequentially("weight: 3\n")
    expect(reader.get_by_role("button", name="Áþþļý…")).to_be_enabled()
    reader.get_by_role("button", name="Ţřý íţ").click()
    expect(reader.get_by_role("region", name="Áñšŵéř")).to_be_visible(timeout=ANSWERED)
    assert english(reader, "vision", "devices", "cpu", within="main") == []
    reader.get_by_role("link", name="Đíšçářđ").click()
    expect(reader.get_by_role("dialog")).to_be_visible()
    assert english(reader, within="dialog") == []
    reader.get_by_role("dialog").get_by_role("button", name="Đíšçářđ").click()
    for question in ("Đéļéţé", "Řóļļ ƀáçķ"):
        reader.get_by_role("main").get_by_role("button", name=question).last.click()
        expect(reader.get_by_role("dialog").locator("[data-diff]").first).to_be_visible()
        assert english(reader, "vision", within="dialog") == []
        reader.keyboard.press("Escape")
        expect(reader.get_by_role("dialog")).to_have_count(0)


def test_a_what_if_answer_with_a_goal_has_no_english_in_another_language(reader: Page, portal: Portal) -> None:
    for number in range(2):
        portal.submit(f"waits-{number}", replicas=4, devices=4, more='"maxDuration": "1h"')
    reader.goto("/what-if")
    form = reader.get_by_role("form")
    expect(form.get_by_label("ļíķé").get_by_role("option").nth(1)).to_be_attached()
    form.get_by_label("Ƒíñđ ţĥé ļéášţ ƒóř á ğóáļ").select_option("wait.p95")
    expect(form.get_by_label("Ñóđéš ļíķé")).not_to_have_value("")
    assert english(reader, "fair, fifo, srtf …", "1h, 80%, 0.9 * base", within="form") == []
    form.get_by_role("button", name="Ášķ", exact=True).click()
    answer = reader.get_by_role("region", name="Áñšŵéř")
    expect(answer.get_by_role("figure").first).to_be_visible(timeout=ANSWERED)
    expect(answer.get_by_role("table", name="Šţéþš šéářçĥéđ")).to_be_visible()
    assert english(reader, "worker", within="[role=region]") == []


def test_reports_have_no_english_in_another_language(reader: Page, portal: Portal) -> None:
    answered(reader)
    reader.goto("/estimates")
    expect(reader.get_by_role("table")).to_be_visible()
    assert english(reader, within="main") == []
    told(reader, "done", REPORT)
    reader.goto(f"/policy-shadow?comparison={NUMBER}")
    expect(reader.get_by_role("region", name="Řéþóřţ")).to_be_visible()
    assert english(reader, "srtf", "fair", within="[role=region]") == []
