"""Documents edited in the portal: effects are shown before the save, and others' changes are never overwritten."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from corral.client import Client
from corral.kernel.errors import NotFound
from tests.portal.harness import Portal, Theme, Watch, open_context
from tests.portal.test_everyone_can_use_it import NAMELESS, PALE

EDIT = "/configuration?document=Queue/vision&edit=yes"


def queue(devices: int, name: str = "vision") -> str:
    return f"kind: Queue\nname: {name}\nlimit: {{devices: {devices}}}\n"


@pytest.fixture
def vision(portal: Portal) -> Iterator[Portal]:
    """A queue with a limit of 8 devices; all queues of the test are removed afterwards."""
    portal.client.apply(queue(8), note="the first share")
    yield portal
    portal.clear()
    for name in ("vision", "speech"):
        try:
            portal.client.delete_configuration("queue", name)
        except NotFound:
            continue


def editor(page: Page) -> Locator:
    """The document's editor, once it is loaded."""
    found = page.get_by_role("textbox", name="Document, YAML")
    expect(found).to_contain_text("kind:")
    return found


def write(page: Page, text: str) -> None:
    """Replace the editor's text, as pasting does."""
    editor(page).click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(text)


def verdict(page: Page) -> Locator:
    return page.get_by_role("region", name="What applying it would do")


def test_a_change_is_written_seen_and_applied_by_keyboard_alone(page: Page, vision: Portal) -> None:
    revision = vision.client.configuration("queue", "vision")["revision"]
    page.goto("/configuration?document=Queue/vision")
    expect(page.locator("pre")).to_contain_text("devices: 8")
    expect(page.get_by_role("button", name="Edit")).to_be_enabled()
    page.keyboard.press("e")
    expect(page).to_have_url(f"{vision.url}/configuration?document=Queue%2Fvision&edit=yes")
    expect(verdict(page)).to_contain_text("This revision is in force.")
    expect(page.get_by_role("button", name="Apply…")).to_be_disabled()
    editor(page).focus()
    page.keyboard.press("Tab")
    assert not editor(page).evaluate("element => element.contains(document.activeElement)"), "Tab leaves the editor"
    editor(page).focus()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(queue(6))
    expect(verdict(page)).to_contain_text("no guarantee is broken")
    expect(verdict(page)).to_contain_text(f"Queue/vision changes, from revision {revision}")
    expect(verdict(page).locator("[data-diff=gone]")).to_contain_text("devices: 8")
    expect(verdict(page).locator("[data-diff=came]")).to_contain_text("devices: 6")
    page.keyboard.press("Control+Enter")
    dialog = page.get_by_role("dialog", name="Apply Queue/vision?")
    expect(dialog.get_by_label("Why, for the history")).to_be_focused()
    page.keyboard.type("two less")
    expect(dialog).to_contain_text("corral apply FILE -m 'two less'")
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{vision.url}/configuration?document=Queue%2Fvision")
    expect(page.get_by_role("cell", name="two less", exact=True)).to_be_visible()
    now = vision.client.configuration("queue", "vision")
    assert (now["revision"], now["document"]["limit"], now["note"]) == (revision + 1, {"devices": "6"}, "two less")


def test_problems_stand_at_their_line_and_column_and_nothing_can_be_applied(page: Page, vision: Portal) -> None:
    page.goto(EDIT)
    write(page, "kind: Queue\nname: vision\nwieght: 2\nlimit: {devices: -1}\n")
    problems = page.get_by_label("Problems")
    expect(problems).to_contain_text('3:1 wieght: unknown field; did you mean "weight"?')
    expect(page.locator(".cm-lintRange-error").first).to_have_text("wieght: 2")
    expect(verdict(page)).to_contain_text("cannot be read yet")
    expect(page.get_by_role("button", name="Apply…")).to_be_disabled()
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.get_by_role("button", name="Go to line 3, column 1").click()
    page.keyboard.press("Shift+End")
    page.keyboard.insert_text("weight: 2")
    expect(problems).not_to_contain_text("wieght")
    expect(problems).to_contain_text("4:")


def test_a_broken_guarantee_shows_its_numbers_and_is_applied_only_when_one_is_sure(page: Page, vision: Portal) -> None:
    job = vision.submit("holder", replicas=3, devices=2, more='"queue": "vision"')
    vision.begun(job, tasks=3)
    page.goto(EDIT)
    write(page, queue(4))
    broken = page.get_by_label("Guarantees that it would break")
    expect(broken).to_contain_text("Jobs of the queue vision hold 6 devices, and its limit would be 4")
    expect(broken).to_contain_text("1 job would yield")
    expect(verdict(page).locator("[data-diff=came]")).to_contain_text("devices: 4")
    page.get_by_role("button", name="Apply, and let jobs yield…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("1 job would yield")
    sure = dialog.get_by_role("button", name="Apply, and let jobs yield")
    expect(sure).to_be_disabled()
    assert vision.client.configuration("queue", "vision")["document"]["limit"] == {"devices": "8"}
    dialog.get_by_label("Tell these jobs to yield").check()
    expect(dialog).to_contain_text("corral apply FILE --preempt")
    sure.click()
    expect(page.locator("pre")).to_contain_text("devices: 4")
    page.goto("/receipts")
    expect(page.locator(f"tr[data-receipt='{job}.1']")).to_contain_text("configuration")


def test_what_no_preemption_lifts_cannot_be_applied(page: Page, vision: Portal) -> None:
    page.goto(EDIT)
    write(page, "kind: Queue\nname: vision\ncells: [{level: node, count: 40}]\n")
    expect(verdict(page)).to_contain_text("would break a guarantee")
    expect(page.get_by_label("Guarantees that it would break")).to_contain_text("40")
    expect(page.get_by_role("button", name="Apply…")).to_be_disabled()


def test_a_new_document_begins_with_its_kind_and_may_not_fall_on_one_that_is_there(page: Page, vision: Portal) -> None:
    page.goto("/configuration")
    page.get_by_role("button", name="New document").click()
    for kind in ("Policy", "Cluster", "VirtualCluster", "Queue"):
        page.get_by_role("link", name=kind, exact=True).click()
        expect(page).to_have_url(f"{vision.url}/configuration?new={kind}")
        expect(editor(page)).to_contain_text(f"kind: {kind}")
        expect(verdict(page).get_by_role("heading")).to_be_visible()
        expect(page.get_by_label("Problems")).to_have_count(0)
    write(page, queue(2, "speech"))
    expect(verdict(page)).to_contain_text("Queue/speech is new")
    page.get_by_role("button", name="Apply…").click()
    vision.client.apply(queue(3, "speech"), note="at a terminal")
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Apply", exact=True).click()
    expect(dialog.get_by_role("alert")).to_have_attribute("title", "revision-changed")
    assert vision.client.configuration("queue", "speech")["document"]["limit"] == {"devices": "3"}
    dialog.get_by_role("button", name="Go on writing").click()
    expect(verdict(page)).to_contain_text("Queue/speech changes, from revision")


def test_a_file_of_several_documents_is_applied_whole(page: Page, vision: Portal) -> None:
    page.goto("/configuration")
    expect(page.get_by_role("button", name="New document")).to_be_enabled()
    page.keyboard.press("n")
    write(page, queue(7) + "---\n" + queue(2, "speech"))
    expect(verdict(page)).to_contain_text("Queue/vision changes, from revision")
    expect(verdict(page)).to_contain_text("Queue/speech is new")
    page.keyboard.press("Control+Enter")
    dialog = page.get_by_role("dialog", name="Apply 2 documents?")
    dialog.get_by_label("Why").fill("a team of its own")
    dialog.get_by_role("button", name="Apply", exact=True).click()
    expect(page.get_by_role("cell", name="a team of its own", exact=True)).to_be_visible()
    found = [vision.client.configuration("queue", name) for name in ("vision", "speech")]
    assert [each["document"]["limit"]["devices"] for each in found] == ["7", "2"]
    assert {each["note"] for each in found} == {"a team of its own"}


def test_who_was_faster_is_told_and_never_undone_unseen(page: Page, vision: Portal) -> None:
    page.goto(EDIT)
    write(page, queue(5))
    expect(verdict(page).locator("[data-diff=came]")).to_contain_text("devices: 5")
    vision.client.apply(queue(7), note="at a terminal")
    overtaken = page.get_by_role("status").filter(has_text="while you were writing")
    expect(overtaken).to_be_visible()
    expect(verdict(page).locator("[data-diff=gone]")).to_contain_text("devices: 7")
    page.get_by_role("button", name="Apply…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Apply", exact=True).click()
    expect(dialog.get_by_role("alert")).to_have_attribute("title", "revision-changed")
    dialog.get_by_role("button", name="Go on writing").click()
    page.get_by_role("button", name="Keep my text").click()
    expect(overtaken).to_have_count(0)
    page.get_by_role("button", name="Apply…").click()
    dialog.get_by_role("button", name="Apply", exact=True).click()
    expect(page.locator("pre")).to_contain_text("devices: 5")


def test_a_draft_is_not_lost_by_a_click_on_something_else(page: Page, vision: Portal) -> None:
    page.goto(EDIT)
    write(page, queue(5))
    page.get_by_role("link", name="Nodes").click()
    page.get_by_role("button", name="Go on writing").click()
    expect(editor(page)).to_contain_text("devices: 5")
    page.get_by_role("link", name="Discard").click()
    page.get_by_role("dialog").get_by_role("button", name="Discard").click()
    expect(page.locator("pre")).to_contain_text("devices: 8")


def test_a_document_is_deleted_after_seeing_what_goes(page: Page, vision: Portal) -> None:
    page.goto("/configuration?document=Queue/vision")
    page.get_by_role("button", name="Delete", exact=True).click()
    dialog = page.get_by_role("dialog", name="Delete Queue/vision?")
    expect(dialog.locator("[data-diff=gone]").filter(has_text="name: vision")).to_have_count(1)
    expect(dialog).to_contain_text("corral delete queue/vision")
    dialog.get_by_role("button", name="Delete", exact=True).click()
    expect(page.locator("main")).to_contain_text("This revision deleted the document.")
    expect(page.get_by_role("button", name="Delete", exact=True)).to_have_count(0)
    with pytest.raises(NotFound):
        vision.client.configuration("queue", "vision")


def test_only_administrators_may(browser: Browser, vision: Portal, watch: Watch) -> None:
    vision.client.create_user("reader", password="reads on corral")
    try:
        with Client(vision.url) as reader, open_context(browser, vision) as context:
            reader.login(user="reader", password="reads on corral")
            context.clear_cookies()
            context.add_cookies([{"name": "corral_session", "value": reader.token, "url": vision.url}])
            context.on("page", watch.attach)
            page = context.new_page()
            page.goto("/configuration?document=Queue/vision")
            expect(page.get_by_role("button", name="Edit")).to_be_disabled()
            expect(page.get_by_role("button", name="Delete", exact=True)).to_be_disabled()
            expect(page.get_by_role("button", name="New document")).to_be_disabled()
            page.keyboard.press("e")
            expect(page).to_have_url(f"{vision.url}/configuration?document=Queue/vision")
            page.goto(EDIT)
            expect(page.locator("main")).to_contain_text("Only administrators change documents")
            page.goto("/nodes?node=local/node1")
            expect(page.get_by_role("button", name="Drain")).to_be_disabled()
            expect(page.get_by_role("button", name="Cordon")).to_be_disabled()
    finally:
        vision.client.delete_user("reader")


@pytest.mark.parametrize(("width", "theme"), [(390, "light"), (390, "dark"), (1440, "dark"), (1440, "light")])
def test_the_editor_fits_and_is_legible(
    browser: Browser, vision: Portal, watch: Watch, width: int, theme: Theme
) -> None:
    job = vision.submit("holder", replicas=3, devices=2, more='"queue": "vision"')
    vision.begun(job, tasks=3)
    with open_context(browser, vision, width=width, theme=theme) as context:
        context.on("page", watch.attach)
        page = context.new_page()

        def fits(what: str) -> None:
            assert page.evaluate("document.documentElement.scrollWidth") <= width, f"{what} is wider than the window"
            assert page.evaluate(PALE) == [], f"{what} has text that is hard to read"
            assert page.evaluate(NAMELESS) == [], f"{what} has controls without a name"
            assert page.locator("h1").count() == 1, what

        page.goto(EDIT)
        write(page, "kind: Queue\nname: vision\nwieght: 2\nnonsense: " + "x" * 300 + "\n")
        expect(page.get_by_label("Problems")).to_contain_text("3:1")
        fits("a draft with problems")
        write(page, queue(4))
        expect(page.get_by_label("Guarantees that it would break")).to_be_visible()
        fits("a draft that breaks a guarantee")
        page.get_by_role("button", name="Apply, and let jobs yield…").click()
        expect(page.get_by_role("dialog")).to_be_visible()
        fits("the last question")
