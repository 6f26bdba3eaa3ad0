"""A clone starts with the original job file, and the form changes only the fields that it knows."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.portal.harness import Portal
from tests.spec.openpai_files import job_file, role_of
from tests.waiting import pause

TEXT = """\
# what I tried last
name: mine      # the old one
parameters: {lr: 0.1}
roles:
  train:   # only one
    resources: {cpu: 1}
    command: echo <% $parameters.lr %>
    env: {COLOUR: teal}
# the end
"""


def lines_of(page: Page) -> str:
    """The text in the editor."""
    lines = page.get_by_label("Job file, YAML").locator(".cm-line").all_inner_texts()
    return "\n".join(line.replace("\n", "") for line in lines)


def expect_lines(page: Page, text: str) -> None:
    """Wait until the editor has this text: its lines are drawn some time after the form is there."""
    begun = time.monotonic()
    while (found := lines_of(page)) != text:
        assert time.monotonic() < begun + 60, found
        page.wait_for_timeout(1000 * pause(begun))


def test_a_clone_has_the_comments_and_the_form_leaves_them_alone(page: Page, portal: Portal) -> None:
    job = str(portal.client.submit(TEXT, parameters={"lr": "0.25"})["id"])
    page.goto(f"/jobs/{job}?tab=document")
    shown = page.get_by_label("The file as submitted")
    assert shown.inner_text() == TEXT
    expect(page.get_by_text("--set lr=0.25")).to_be_visible()
    expect(page.get_by_text(re.compile(r"corral get \S+ --file"))).to_be_visible()
    page.get_by_role("button", name="Canonical").click()
    expect(page.get_by_label("The canonical document")).to_contain_text('"kind": "UnifiedJob"')

    page.get_by_role("link", name="Clone").click()
    expect(page.get_by_label("Name", exact=True)).to_have_value("mine")
    expect_lines(page, TEXT)
    expect(page.get_by_text(f"corral submit -f job.yaml --set lr=0.25 --from {job}")).to_be_visible()
    page.get_by_label("Name", exact=True).fill("other")
    page.get_by_label("Replicas").fill("2")
    changed = TEXT.replace("mine", "other").replace("    resources", "    replicas: 2\n    resources")
    expect_lines(page, changed)
    expect(page.get_by_text("The file is valid.")).to_be_visible()
    page.get_by_role("button", name="Submit", exact=True).click()
    expect(page.get_by_role("heading", name="other")).to_be_visible()
    portal.client.wait("other", timeout=240)
    kept = portal.client.job_file("other")
    assert (kept["text"], kept["parameters"]) == (changed, {"lr": "0.25"})
    role = portal.client.document("other")["spec"]["roles"][0]
    assert role["command"] == ["sh", "-c", "echo 0.25"] and role["env"] == {"COLOUR": "teal"}


def test_a_clone_of_a_file_with_secrets_has_them_without_showing_them(page: Page, portal: Portal) -> None:
    role = role_of(commands=['test "$(printf %s "<% $secrets.token %>" | wc -c)" = 15'])
    text = "# of openpai\n" + job_file(secrets={"token": "hush-hush-value"}, taskRoles={"worker": role})
    job = str(portal.client.submit(text, no_image=True)["id"])
    page.goto(f"/submit?from={job}")
    expect(page.get_by_label("Job file, YAML")).to_contain_text('token: "******"')
    expect(page.get_by_text("The file is valid.")).to_be_visible()
    expect(page.get_by_text("stands for a secret; it is filled in from the job cloned.")).to_be_visible()
    assert "hush-hush-value" not in page.content()
    page.get_by_label("Job file, YAML").fill(portal.client.job_file(job)["text"].replace("name: j1", "name: j2"))
    expect(page.get_by_text("The file is valid.")).to_be_visible()
    page.get_by_role("button", name="Submit", exact=True).click()
    page.get_by_role("button", name="Submit it without the image").click()
    expect(page.get_by_role("heading", name="j2")).to_be_visible()
    assert portal.client.wait("j2", timeout=240)["state"] == "succeeded"


def test_a_clone_of_anothers_job_is_a_short_file_whose_form_waits_for_the_hidden_values(
    page_of: Callable[[str], Page], portal: Portal
) -> None:
    job = portal.submit("theirs", "true", more='"env": {"TOKEN": "x"}, "maxDuration": "1h"')
    page = page_of("reader")
    page.goto(f"/submit?from={job}")
    editor, name = page.get_by_label("Job file, YAML"), page.get_by_label("Name", exact=True)
    expect(editor).to_contain_text("TOKEN: (hidden)")
    expect(page.get_by_text("The form shows the file once its mistakes are corrected.")).to_be_visible()
    expect(name).to_be_disabled()
    text = lines_of(page)
    assert text.startswith("name: theirs\n") and "apiVersion" not in text
    editor.fill(text.replace("(hidden)", "mine"))
    expect(name).to_be_enabled()
    expect(name).to_have_value("theirs")
    editor.fill(json.dumps(portal.client.document(job)))
    expect(page.get_by_text("The file says more than this form can show.")).to_be_visible()
    expect(name).to_be_disabled()
