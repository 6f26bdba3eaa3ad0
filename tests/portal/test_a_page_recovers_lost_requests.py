"""A page comes back by itself after requests of it were lost, as when the network of its reader changes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.portal.harness import Portal, Watch, open_context


@pytest.fixture(autouse=True)
def _console(watch: Watch) -> Iterator[None]:
    """A page may log that its files did not come, and nothing else."""
    yield
    watch.complaints[:] = [said for said in watch.complaints if "A file of this page did not come." not in said]


def lose(page: Page, addresses: str, name: Callable[[str], bool], times: int) -> Counter[str]:
    """End the first `times` requests for each file whose name fits without an answer; returns how often each was ended."""
    lost: Counter[str] = Counter()

    def end(route: Route) -> None:
        file = route.request.url.partition("?")[0].rpartition("/")[2]
        if not name(file) or lost[file] >= times:
            return route.fallback()
        lost[file] += 1
        return route.abort("failed")

    page.route(addresses, end)
    return lost


@pytest.mark.parametrize(
    ("what", "name", "times"),
    [
        ("the first script", lambda file: file.startswith("index-") and file.endswith(".js"), 2),
        ("what the first script needs", lambda file: file.startswith("Dialog-"), 3),
        ("the styles", lambda file: file.startswith("index-") and file.endswith(".css"), 2),
        ("all files but the first script", lambda file: not file.startswith("index-"), 2),
    ],
)
def test_a_page_whose_files_do_not_come_is_loaded_anew(
    page: Page, what: str, name: Callable[[str], bool], times: int
) -> None:
    lost = lose(page, "**/assets/*", name, times)
    page.goto("/usage")
    link = page.get_by_role("navigation", name="Usage").get_by_role("link", name="Fairness")
    expect(link).to_be_visible()
    expect(page.locator("body")).to_have_css("margin", "0px")
    assert lost, f"{what} did not get lost"  # how often depends on when the service worker has the files


def test_a_link_signs_in_though_the_styles_of_its_page_were_lost(stranger: Page, portal: Portal) -> None:
    """The page begins no sign-in before it is loaded anew, which would cut it off."""
    opened: list[str] = []
    stranger.on("request", lambda request: opened.append(request.url) if request.is_navigation_request() else None)
    stranger.route("**/api/v3/login", lambda route: route.fallback() if len(opened) > 1 else None)
    lost = lose(stranger, "**/assets/*", lambda file: file.endswith(".css"), 1)
    stranger.goto(f"/sign-in#link={portal.client.login_link(str(portal.client.me()['user']))['link']}")
    expect(stranger.get_by_role("link", name="Submit").first).to_be_visible()
    assert lost.total() == 1


def test_a_part_that_does_not_come_is_fetched_again_when_its_page_is_opened(
    browser: Browser, portal: Portal, watch: Watch
) -> None:
    """Without the service worker: it fetches all parts soon after the page was opened."""
    with open_context(browser, portal, service_workers="block") as context:
        context.on("page", watch.attach)
        page = context.new_page()
        page.goto("/usage")
        link = page.get_by_role("navigation", name="Usage").get_by_role("link", name="Fairness")
        expect(link).to_be_visible()
        lost = lose(page, "**/assets/*", lambda file: file.startswith("Fairness-"), 2)
        link.click()
        expect(page.get_by_role("heading", name="Fairness", level=1)).to_be_visible()
        assert lost.total() >= 1, "the part was fetched before"


def test_a_page_says_so_when_its_files_never_come(page: Page) -> None:
    lose(page, "**/assets/*", lambda file: file.startswith("Dialog-"), 1_000)
    page.goto("/usage")
    expect(page.get_by_role("status")).to_contain_text("This page did not come whole; trying again")
    expect(page.get_by_role("status")).to_contain_text("Load the page again.")


def test_answers_that_were_lost_are_asked_for_again(page: Page) -> None:
    lost = lose(page, "**/api/v3/usage?*", lambda file: file == "usage", 4)
    page.goto("/usage")
    expect(page.get_by_role("alert").filter(has_text="The server does not answer.")).to_be_visible()
    expect(page.locator("[role=alert], [role=status][aria-label=Loading]")).to_have_count(0)
    expect(page.get_by_role("main")).to_contain_text(re.compile("Device-hours|Nothing was used in this time"))
    assert lost["usage"] >= 2
