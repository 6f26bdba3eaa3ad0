"""Shares of queues are moved by dividers, by pointer and by keyboard; the effect is seen first, and it can be undone."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.conftest import IN_CI, ROOT
from tests.portal.axe import findings
from tests.portal.harness import Portal, Theme, Watch, open_context, serving
from tests.portal.test_everyone_can_use_it import NAMELESS, PALE
from tests.portal.test_what_if_is_asked import ANSWERED

SHARES = {"research": 4, "speech": 2, "vision": 6}
"""Devices that the queues with documents of their own deserve; the cluster has 16."""
MOVE = "/queues?move=devices"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Portal]:
    """The described devices of the example, whose cluster document has one queue with two below it."""
    if not (ROOT / "corral" / "portal" / "static" / "index.html").is_file():
        missing = "the portal is not built, so it is not tested: make portal"
        pytest.fail(missing) if IN_CI else pytest.skip(missing)
    folder: Path = tmp_path_factory.mktemp("moved")
    cluster = folder / "cluster.yaml"
    example = (ROOT / "examples" / "cluster.yaml").read_text()
    cluster.write_text(
        example.partition("queues:")[0] + "queues: {club: {}, chess: {parent: club, weight: 3}, go: {parent: club}}\n"
    )
    with serving(folder, cluster) as portal:
        yield portal


@pytest.fixture
def shared(portal: Portal) -> Portal:
    """Three queues with documents of their own, at their first shares."""
    portal.client.apply("---\n".join(document(name, devices) for name, devices in SHARES.items()), note="as agreed")
    return portal


def document(name: str, devices: int) -> str:
    return f"kind: Queue\nname: {name}\ndeserved: {{devices: {devices}}}\n"


def deserved(portal: Portal) -> dict[str, int]:
    """The devices that the three queues deserve, as stored."""
    return {name: int(stored(portal, name)["document"]["deserved"]["devices"]) for name in SHARES}


def stored(portal: Portal, name: str, kind: str = "queue") -> dict[str, Any]:
    return dict(portal.client.configuration(kind, name))


def divider(page: Page, left: str, right: str) -> Locator:
    return page.get_by_role("slider", name=f"Between {left} and {right}", exact=True)


def effect(page: Page) -> Locator:
    return page.get_by_role("region", name="What applying it would do")


def line(page: Page, mark: str, devices: int) -> Locator:
    """The lines of the effect with this amount of devices that come, or that are gone."""
    return effect(page).locator(f"[data-diff={mark}]").filter(has_text=re.compile(rf"devices: '?{devices}\b"))


def made(page: Page) -> Locator:
    """The line that says what was applied."""
    return page.get_by_role("status").filter(has_text=re.compile("^Applied:"))


def apply(page: Page, word: str = "Apply", why: str = "") -> None:
    """Answer the last question with yes."""
    page.get_by_role("button", name=f"{word}…", exact=True).click()
    dialog = page.get_by_role("dialog")
    if why:
        dialog.get_by_label("Why, for the history").fill(why)
    dialog.get_by_role("button", name="Apply", exact=True).click()


def test_a_divider_is_dragged_its_effect_seen_applied_and_undone(page: Page, shared: Portal) -> None:
    before = {name: stored(shared, name)["revision"] for name in SHARES}
    page.goto("/queues")
    page.get_by_role("button", name="Move shares").click()
    expect(page).to_have_url(f"{shared.url}/queues?move=devices")
    expect(page.get_by_role("region", name="Top")).to_contain_text("12 of 16 devices")
    grip = divider(page, "speech", "vision")
    expect(grip).to_have_attribute("aria-valuetext", "speech 2, vision 6")
    box, strip = grip.bounding_box(), page.get_by_role("group", name="Shares, top").bounding_box()
    assert box is not None and strip is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + strip["width"] / 3, y, steps=8)
    expect(grip).to_have_attribute("aria-valuenow", "8")
    page.keyboard.press("Escape")
    expect(grip).to_have_attribute("aria-valuenow", "2")
    page.mouse.up()
    expect(effect(page)).to_have_count(0)

    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + strip["width"] / 7, y, steps=8)
    page.mouse.up()
    page.evaluate("new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))")
    now = int(grip.get_attribute("aria-valuenow") or 0)
    assert 3 <= now <= 6, "a seventh of the strip is two or three of sixteen devices"
    expect(page.get_by_label("vision, deserved devices")).to_have_value(str(8 - now))
    expect(effect(page)).to_contain_text("no guarantee is broken")
    for name, devices in (("speech", now), ("vision", 8 - now)):
        expect(effect(page)).to_contain_text(f"Queue/{name} changes, from revision {before[name]}")
        expect(line(page, "came", devices)).to_have_count(1)
    assert deserved(shared) == SHARES, "nothing is applied by dragging"
    apply(page, why="speech grows")
    expect(made(page)).to_contain_text(
        f"Queue/speech is at revision {before['speech'] + 1}, Queue/vision is at revision {before['vision'] + 1}"
    )
    assert deserved(shared) == {"research": 4, "speech": now, "vision": 8 - now}
    assert {stored(shared, name)["note"] for name in ("speech", "vision")} == {"speech grows"}
    assert stored(shared, "research")["revision"] == before["research"], "others have no new revision"

    page.get_by_role("button", name="Undo…").click()
    expect(line(page, "came", 6)).to_have_count(1)
    apply(page, "Undo")
    expect(
        page.get_by_role("status").filter(has_text=f"Queue/vision is at revision {before['vision'] + 2}")
    ).to_be_visible()
    expect(grip).to_have_attribute("aria-valuetext", "speech 2, vision 6")
    assert deserved(shared) == SHARES


def test_the_keyboard_alone_moves_tries_and_applies(page: Page, shared: Portal) -> None:
    job = shared.submit("seen", devices=2, more='"queue": "vision"')
    shared.begun(job)
    page.goto("/queues")
    expect(page.locator("tr[data-queue=vision]")).to_be_visible()
    expect(page.get_by_role("button", name="Move shares")).to_be_visible()
    page.keyboard.press("e")
    grip = divider(page, "research", "speech")
    grip.focus()
    for key, value in (
        ("ArrowRight", 5),
        ("ArrowUp", 6),
        ("PageUp", 6),
        ("ArrowLeft", 5),
        ("Home", 0),
        ("End", 6),
        ("PageDown", 0),
    ):
        page.keyboard.press(key)
        expect(grip).to_have_attribute("aria-valuenow", str(value))
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Tab")
    expect(divider(page, "speech", "vision")).to_be_focused()
    page.keyboard.press("Tab")
    last = divider(page, "vision", "not assigned")
    expect(last).to_be_focused()
    page.keyboard.press("End")
    expect(last).to_have_attribute("aria-valuetext", "vision 10, not assigned 0")
    expect(page.get_by_role("region", name="Top")).to_contain_text("16 of 16 devices")
    for name, devices in (("research", 1), ("speech", 5), ("vision", 10)):
        expect(line(page, "came", devices)).to_have_count(1)
        expect(effect(page)).to_contain_text(f"Queue/{name} changes")
    page.get_by_role("button", name="Try it").press("Enter")
    expect(page.get_by_role("region", name="Answer")).to_contain_text("Devices in use", timeout=ANSWERED)
    expect(page.get_by_role("region", name="Answer").get_by_role("table", name="Queues")).to_contain_text("vision")
    assert deserved(shared) == SHARES, "trying applies nothing"
    page.get_by_role("button", name="Apply…").press("Enter")
    expect(page.get_by_role("dialog", name="Apply 3 documents?")).to_be_visible()
    page.keyboard.type("by keys")
    page.keyboard.press("Enter")
    expect(made(page)).to_be_visible()
    assert deserved(shared) == {"research": 1, "speech": 5, "vision": 10}


def test_who_was_faster_is_told_and_neither_document_is_overwritten(page: Page, shared: Portal) -> None:
    page.goto(MOVE)
    divider(page, "speech", "vision").press("ArrowLeft")
    expect(line(page, "came", 7)).to_have_count(1)
    page.get_by_role("button", name="Apply…").click()
    dialog = page.get_by_role("dialog", name="Apply 2 documents?")
    shared.client.apply(document("vision", 9), note="at a terminal")
    dialog.get_by_role("button", name="Apply", exact=True).click()
    expect(dialog.get_by_role("alert")).to_have_attribute("title", "revision-changed")
    assert deserved(shared) == {"research": 4, "speech": 2, "vision": 9}, "all or nothing"
    dialog.get_by_role("button", name="Go on moving").click()
    theirs = stored(shared, "vision")["revision"]
    overtaken = page.get_by_role("status").filter(has_text="while you were moving shares")
    expect(overtaken).to_contain_text(f"made revision {theirs} of Queue/vision")
    expect(line(page, "gone", 9)).to_have_count(1)
    page.get_by_role("button", name="Take theirs").click()
    expect(overtaken).to_have_count(0)
    expect(page.get_by_label("vision, deserved devices")).to_have_value("9")
    expect(page.get_by_label("speech, deserved devices")).to_have_value("1")
    divider(page, "speech", "vision").press("ArrowRight")
    shared.client.apply(document("vision", 3))
    expect(overtaken).to_be_visible()
    page.get_by_role("button", name="Keep my shares").click()
    expect(overtaken).to_have_count(0)
    expect(effect(page)).to_contain_text("no guarantee is broken")
    apply(page)
    expect(made(page)).to_be_visible()
    assert deserved(shared) == {"research": 4, "speech": 2, "vision": 8}


def test_more_than_there_are_cannot_be_applied_and_is_put_back(page: Page, shared: Portal) -> None:
    page.goto(MOVE)
    page.get_by_label("vision, deserved devices").fill("11")
    expect(page.get_by_role("region", name="Top")).to_contain_text("17 of 16 devices: more than there are")
    expect(effect(page)).to_contain_text("would break a guarantee")
    expect(page.get_by_label("Guarantees that it would break")).to_contain_text("the cluster has 16")
    expect(page.get_by_role("button", name="Apply…")).to_be_disabled()
    page.get_by_role("link", name="Nodes").click()
    page.get_by_role("dialog", name="Discard the moved shares?").get_by_role("button", name="Go on moving").click()
    expect(page.get_by_label("vision, deserved devices")).to_have_value("11")
    page.get_by_role("button", name="Put all back").click()
    expect(page.get_by_label("vision, deserved devices")).to_have_value("6")
    expect(effect(page)).to_have_count(0)
    page.get_by_role("button", name="Done").click()
    expect(page.locator("tr[data-queue=vision]")).to_be_visible()
    assert deserved(shared) == SHARES


def test_weights_of_a_clusters_own_queues_are_moved_in_its_document(page: Page, shared: Portal) -> None:
    was = stored(shared, "local", "cluster")
    page.goto(MOVE)
    page.get_by_role("combobox", name="Move").select_option("weight")
    expect(page).to_have_url(f"{shared.url}/queues?move=weight")
    below = page.get_by_role("region", name="Below club")
    expect(below).to_contain_text("4 in all")
    divider(page, "chess", "go").press("PageDown")
    expect(divider(page, "chess", "go")).to_have_attribute("aria-valuetext", "chess 2, go 2")
    expect(effect(page)).to_contain_text("Cluster/local changes")
    apply(page)
    expect(made(page)).to_contain_text("Cluster/local is at revision")
    now = stored(shared, "local", "cluster")
    assert (was["document"]["queues"]["chess"]["weight"], was["document"]["queues"]["go"]) == (3, {"parent": "club"})
    assert [now["document"]["queues"][name]["weight"] for name in ("chess", "go")] == [2, 2]
    assert {**now["document"], "queues": None} == {**was["document"], "queues": None}, "the machines stay as they are"
    shared.client.roll_back("cluster", "local", was["revision"])


def test_others_cannot_move_shares(page_of: Any, shared: Portal) -> None:
    page: Page = page_of("reader")
    page.goto("/queues")
    expect(page.locator("tr[data-queue=vision]")).to_be_visible()
    expect(page.get_by_role("button", name="Move shares")).to_have_count(0)
    page.goto(MOVE)
    expect(page.locator("main")).to_contain_text("Only administrators move shares")


@pytest.mark.parametrize(("width", "theme"), [(390, "light"), (390, "dark"), (1440, "dark"), (1440, "light")])
def test_it_fits_and_is_legible_and_named(
    browser: Browser, shared: Portal, watch: Watch, width: int, theme: Theme
) -> None:
    with open_context(browser, shared, width=width, theme=theme) as context:
        context.on("page", watch.attach)
        page = context.new_page()
        page.goto(MOVE)
        grip = divider(page, "speech", "vision")
        grip.press("ArrowRight")
        expect(effect(page)).to_contain_text("no guarantee is broken")
        boxes = [each.bounding_box() for each in page.get_by_role("region", name="Top").get_by_role("slider").all()]
        for left, right in itertools.pairwise(boxes):
            assert left is not None and right is not None
            assert left["width"] >= 24 and left["x"] + left["width"] <= right["x"], "dividers lie on each other"
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate(PALE) == []
        assert page.evaluate(NAMELESS) == []
        assert findings(page) == [], "axe finds something"
        assert page.locator("h1").count() == 1
        page.get_by_role("button", name="Put all back").click()
        for choice, field in (("bounds:devices", "vision, limit, devices"), ("cells", "vision, pinned cells")):
            page.get_by_role("combobox", name="Move").select_option(choice)
            expect(page.get_by_label(field, exact=True)).to_be_visible()
            if choice == "cells":
                page.get_by_role("button", name="Add cells to vision").click()
                expect(effect(page)).to_contain_text("guarantee")
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            assert page.evaluate(PALE) == []
            assert page.evaluate(NAMELESS) == []
            assert findings(page) == [], "axe finds something"


def test_amounts_and_limits_are_typed_their_effect_seen_and_applied(page: Page, shared: Portal) -> None:
    page.goto(MOVE)
    page.get_by_role("combobox", name="Move").select_option("bounds:devices")
    expect(page).to_have_url(re.compile(r"/queues\?move=bounds%3Adevices$"))
    page.get_by_label("vision, guaranteed, devices", exact=True).fill("7")
    expect(page.locator("main")).to_contain_text("more than the 6 it deserves")
    expect(page.get_by_role("button", name="Apply…")).to_be_disabled()
    page.get_by_label("vision, guaranteed, devices", exact=True).fill("3")
    page.get_by_label("vision, limit, devices", exact=True).fill("8")
    page.get_by_label("vision, may borrow, devices", exact=True).fill("2")
    page.get_by_label("vision, may lend, devices", exact=True).fill("0")
    page.get_by_role("combobox", name="Move").select_option("bounds:memory")
    page.get_by_label("speech, limit of one user, memory", exact=True).fill("2Gi")
    expect(effect(page)).to_contain_text("Queue/speech changes")
    expect(effect(page)).to_contain_text("no guarantee is broken")
    assert not stored(shared, "vision")["document"].get("guaranteed"), "nothing is applied by typing"
    apply(page, why="by fields")
    expect(made(page)).to_be_visible()
    vision, speech = (stored(shared, name)["document"] for name in ("vision", "speech"))
    assert (vision["guaranteed"], vision["limit"]) == ({"devices": "3"}, {"devices": "8"})
    assert (vision["borrowingLimit"], vision["lendingLimit"]) == ({"devices": "2"}, {"devices": "0"})
    assert (vision["deserved"], speech["userLimit"]) == ({"devices": "6"}, {"memory": "2Gi"})
    page.get_by_role("combobox", name="Move").select_option("bounds:devices")
    expect(page.get_by_label("vision, guaranteed, devices", exact=True)).to_have_value("3")
    page.get_by_role("button", name="Undo…").click()
    expect(effect(page)).to_contain_text("Queue/vision changes")
    apply(page, "Undo")
    expect(page.get_by_label("vision, limit, devices", exact=True)).to_have_value("")
    after = stored(shared, "vision")["document"]
    assert not any(after.get(bound) for bound in ("limit", "borrowingLimit", "lendingLimit"))


def test_cells_of_a_queue_are_added_and_more_than_there_are_cannot_be_applied(page: Page, shared: Portal) -> None:
    page.goto("/queues?move=cells")
    cells = page.get_by_role("region", name="Cells of speech")
    cells.get_by_role("button", name="Add cells to speech").press("Enter")
    row = cells.get_by_role("group", name="speech, cells 1")
    expect(row.get_by_label("Of which")).to_have_value("node")
    row.get_by_label("Count").fill("99")
    expect(effect(page)).to_contain_text("would break a guarantee")
    expect(page.get_by_role("button", name="Apply…")).to_be_disabled()
    row.get_by_label("Count").fill("1")
    expect(effect(page)).to_contain_text("no guarantee is broken")
    apply(page)
    expect(made(page)).to_be_visible()
    (owned,) = stored(shared, "speech")["document"]["cells"]
    assert owned == {"level": "node"}, "one of them is the default"
    expect(row.get_by_label("Count")).to_have_value("1")
    row.get_by_role("button", name="Remove").click()
    expect(effect(page)).to_contain_text("Queue/speech changes")
    apply(page)
    expect(made(page)).to_be_visible()
    assert not stored(shared, "speech")["document"].get("cells")
