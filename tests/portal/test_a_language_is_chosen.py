"""The portal speaks the language that its reader chose; under a made-up one no English is left on pages that are moved."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.portal.axe import findings
from tests.portal.harness import Portal, open_context

MADE_UP = "localStorage.setItem('corral.language', 'en-XA')"

TEXTS = """(within) => {
  const found = within === 'body' ? [document.title] : [];
  for (const each of within.split(', ')) if (!document.querySelector(each)) throw new Error(`nothing is ${each}`);
  for (const root of document.querySelectorAll(within)) {
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT | NodeFilter.SHOW_ELEMENT);
    for (let node = walker.currentNode; node; node = walker.nextNode()) {
      if (node.nodeType === Node.TEXT_NODE) {
        if (!node.parentElement.closest('kbd, code, script, style, [lang]:not(html)')) found.push(node.data);
      } else for (const name of ['aria-label', 'aria-description', 'title', 'placeholder', 'alt', 'label']) {
        if (node.hasAttribute(name)) found.push(node.getAttribute(name));
      }
    }
  }
  return found;
}"""
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
COMMANDS = re.compile(r"\bcorral [^…]*")
SYMBOLS = re.compile(r"\b(Corral|TensorBoard|Ctrl|GiB|MiB|UTC|AM|PM)\b|\d+ms\b|\d[KMGTP]i\b")
ENGLISH = re.compile(r"[A-Za-z]{2,}")


def english(page: Page, *data: str, within: str = "body") -> list[str]:
    """The texts that are in no catalogue; names of jobs and users and what the server says are `data`."""
    texts: list[str] = page.evaluate(TEXTS, within)
    left = []
    for text in texts:
        if text.strip() in data:  # whole, before symbols are taken out of a sentence
            continue
        rest = SYMBOLS.sub("", COMMANDS.sub("", text))
        for name in sorted(data, key=len, reverse=True):
            rest = rest.replace(name, "")
        if ENGLISH.search(rest):
            left.append(text.strip())
    return left


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
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Ķéýš")).to_be_visible()
    assert english(page, within="dialog") == []
    page.keyboard.press("Escape")
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
    data = [str(word) for part in told["items"] for word in (part["name"], *part["reasons"])]
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


def cells(cell: dict[str, Any]) -> Iterator[str]:
    """The names and levels of a tree of cells, and the short names of nodes."""
    yield from (str(cell["name"]), str(cell["level"]), str(cell["name"]).rpartition("/")[2])
    for each in cell["cells"]:
        yield from cells(each)
