"""A waiting job gets another priority and duration on its page, and starts before jobs submitted earlier."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.portal.harness import Portal


def test_a_waiting_job_is_edited_from_its_page_and_one_that_runs_is_not(page: Page, portal: Portal) -> None:
    holder = portal.submit("holder", replicas=4, devices=4)
    first, second = (
        portal.submit(name, replicas=4, devices=4, more='"preemptible": false') for name in ("first", "second")
    )
    page.goto(f"/jobs/{second}")
    page.get_by_role("button", name="Edit", exact=True).click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("button", name="Change")).to_be_disabled()
    dialog.get_by_label("Priority").fill("prodd")
    dialog.get_by_role("button", name="Change").click()
    expect(dialog.get_by_role("alert")).to_contain_text('did you mean "prod"?')
    dialog.get_by_label("Priority").fill("50")
    dialog.get_by_label("Maximum duration").fill("2h")
    expect(dialog).to_contain_text("corral edit second --priority 50 --duration 2h")
    dialog.get_by_role("button", name="Change").click()
    expect(dialog).to_have_count(0)
    expect(page.locator("header dl")).to_contain_text("50")
    page.goto(f"/jobs/{second}?tab=document")
    edited = page.get_by_text("The job was edited since")
    expect(edited).to_contain_text("maxDuration from no limit to 2h")
    page.get_by_role("button", name="Canonical").click()
    expect(edited).to_have_count(0)
    portal.client.stop(holder)
    expect(page.locator("header dl [data-state=running]")).to_be_visible()
    expect(page.get_by_role("button", name="Edit", exact=True)).to_have_count(0)
    assert portal.client.job(first)["state"] == "waiting"
    assert portal.client.document(second)["spec"]["maxDurationSeconds"] == 7200
