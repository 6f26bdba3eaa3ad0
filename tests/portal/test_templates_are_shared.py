"""Templates are browsed with their pictures and texts, imported from OpenPAI's marketplace, and begin jobs."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.portal.harness import Portal
from tests.portal.shared_templates import remove_templates
from tests.spec.openpai_files import job_file, role_of

PIXELS = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAoAAAAKCAIAAAACUFjqAAAAEklEQVR4nGNYYOSNBzGMSmNBAHqvY92uygZTAAAAAElFTkSuQmCC"
)
TEXT = "# About it\n\nTrains **fast**, see [the paper](https://example.org).\n\n![the curve](https://pai.example/b/curve.png)\n"
ITEM = {
    "id": "b7", "name": "Marketplace/CIFAR", "author": "Dana", "type": "template", "status": "approved", "isPublic": True,
    "categories": ["Images"], "tags": ["resnet"], "summary": "Classifies small pictures.", "description": TEXT,
    "protocol": job_file(name="cifar", taskRoles={"worker": role_of(commands=["echo trained"])}),
}  # fmt: skip
DRAWN = """picture => picture.complete && picture.naturalWidth > 0"""


@pytest.fixture(autouse=True)
def no_templates(portal: Portal) -> Iterator[None]:
    """Each test begins and ends without templates."""
    remove_templates(portal)
    yield
    remove_templates(portal)


def chosen(name: str, content: bytes, kind: str) -> Any:
    """A file as a browser's file field takes it."""
    return {"name": name, "mimeType": kind, "buffer": content}


def test_items_of_openpais_marketplace_keep_their_pictures_and_texts_and_start_jobs(page: Page, portal: Portal) -> None:
    page.goto("/templates")
    expect(page.get_by_text("Nobody shares a template yet")).to_be_visible()
    page.get_by_role("button", name="Import items").click()
    window = page.get_by_role("dialog", name="Import items")
    items = json.dumps({"items": [ITEM, {**ITEM, "name": "vast", "protocol": "x" * 300_000}]}).encode()
    window.get_by_label("Items, JSON").set_input_files(chosen("items.json", items, "application/json"))
    window.get_by_label("Pictures that their texts name").set_input_files(chosen("curve.png", PIXELS, "image/png"))
    window.get_by_role("button", name="Import", exact=True).click()
    expect(window.get_by_text("1 of 2 imported.")).to_be_visible()
    expect(window.get_by_text("vast: A template has at most 256 KiB.")).to_be_visible()
    window.get_by_role("button", name="Done").click()

    page.get_by_label("Search templates by their words").fill("resnet small")
    card = page.locator("[data-template='job/Marketplace-CIFAR']")
    expect(card).to_contain_text("Classifies small pictures.")
    expect(card).to_contain_text("job by Dana")
    expect(page.locator("[data-template]")).to_have_count(1)
    page.wait_for_function(f"({DRAWN})(document.querySelector('[data-template] img'))")
    expect(page).to_have_url(re.compile(r"q=resnet"))

    card.get_by_role("link").click()
    expect(page.get_by_role("heading", name="About it")).to_be_visible()
    expect(page.get_by_role("link", name="the paper")).to_have_attribute("rel", "noopener noreferrer")
    expect(page.get_by_role("img", name="the curve")).to_have_js_property("naturalWidth", 10)  # it has come
    expect(page.get_by_role("region", name="Job file")).to_contain_text("echo trained")
    page.get_by_role("link", name="Start a job from it").click()
    expect(page.get_by_label("Job file, YAML")).to_contain_text("name: cifar")
    expect(page.get_by_text("The file is valid.")).to_be_visible()
    page.get_by_role("button", name="Submit", exact=True).click()
    page.get_by_role("button", name="Submit it without the image").click()
    expect(page.get_by_role("heading", name="cifar")).to_be_visible()
    job = next(each for each in portal.client.jobs(limit=10)["items"] if each["name"].startswith("cifar"))
    assert portal.client.wait(job["id"], timeout=240)["state"] == "succeeded"


def test_a_file_is_saved_as_a_template_for_oneself_and_prefills_the_form(
    page: Page, page_of: Callable[[str], Page]
) -> None:
    page.goto("/submit")
    page.get_by_label("Command").fill("echo from the template")
    page.get_by_role("button", name="Save as a template").click()
    window = page.get_by_role("dialog", name="Save as a template")
    window.get_by_label("Name").fill("mine only")
    window.get_by_label("In one sentence").fill("Prints a line.")
    window.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", name="mine only")).to_be_visible()
    expect(page.get_by_text("for only you and administrators")).to_be_visible()

    other = page_of("newcomer")
    other.goto("/templates")
    expect(other.get_by_text("Nobody shares a template yet")).to_be_visible()
    other.goto("/templates/job/mine%20only")
    expect(other.get_by_role("alert")).to_contain_text("There is no template job/mine only that you may see")

    page.get_by_role("link", name="Start a job from it").click()
    expect(page.get_by_label("Command")).to_have_value("echo from the template")
    page.go_back()
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog", name="Delete mine only?").get_by_role("button", name="Delete").click()
    expect(page.get_by_text("Nobody shares a template yet")).to_be_visible()


def test_a_file_that_is_no_list_of_items_is_refused_in_one_sentence(page: Page) -> None:
    page.goto("/templates")
    page.get_by_role("button", name="Import items").click()
    window = page.get_by_role("dialog", name="Import items")
    for content, refusal in ((b"{", "items.json is no JSON."), (b'{"a": 1}', "The file holds no items")):
        window.get_by_label("Items, JSON").set_input_files(chosen("items.json", content, "application/json"))
        window.get_by_role("button", name="Import", exact=True).click()
        expect(window.get_by_role("alert")).to_contain_text(refusal)
