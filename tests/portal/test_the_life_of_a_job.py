"""The main path of a user in the portal: submit, watch, read the log, stop."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.portal.harness import TICKING, Portal


def test_submit_by_form_watch_it_run_read_the_log_and_stop_it(page: Page, portal: Portal) -> None:
    page.goto("/")
    expect(page.get_by_text("No job has been submitted yet")).to_be_visible()
    page.get_by_role("link", name="Submit", exact=True).click()
    page.get_by_label("Name", exact=True).fill("from-the-form")
    page.get_by_label("Command").fill(TICKING)
    page.get_by_label("Replicas").fill("2")
    page.get_by_label("Devices each").fill("1")
    page.get_by_label("Must be within one").select_option("pcie-switch")
    expect(page.get_by_label("Job file, YAML")).to_contain_text("required: pcie-switch")
    expect(page.get_by_text("The file is valid.")).to_be_visible()
    page.get_by_role("button", name="Submit", exact=True).click()

    expect(page.get_by_role("heading", name="from-the-form")).to_be_visible()
    expect(page.locator("header dl [data-state=running]")).to_be_visible()
    log = page.get_by_test_id("log")
    expect(log).to_contain_text("worker-0 | tick 3")
    expect(page.locator("tr[data-task] [data-state=running]")).to_have_count(2)
    expect(page.get_by_role("columnheader", name="Rank")).to_be_visible()
    expect(page.locator("tr[data-task] td:nth-child(3)")).to_have_text(["0", "1"])
    expect(page.get_by_role("region", name="Placement").locator("a[data-job]")).to_have_count(1)
    page.get_by_label("Task", exact=True).select_option("worker-1")
    expect(log).to_contain_text(re.compile(r"^tick 1\n?tick 2|tick 1tick 2"))
    assert "task=worker-1" in page.url

    page.get_by_role("button", name="Stop", exact=True).click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("corral stop from-the-form")
    dialog.get_by_role("button", name="Stop", exact=True).click()
    expect(page.locator("header dl [data-state=stopped]")).to_be_visible()
    assert portal.client.job("from-the-form")["state"] == "stopped"
    expect(page.get_by_role("button", name="Delete")).to_be_visible()


def test_a_file_with_a_mistake_says_where_and_what_was_meant(page: Page, portal: Portal) -> None:
    page.goto("/submit")
    editor = page.get_by_label("Job file, YAML")
    # Before this the form puts its own text into the file.
    expect(page.get_by_text("The file is valid.")).to_be_visible()
    editor.fill("name: by-hand\nroles:\n  worker:\n    replica: 2\n    command: echo one\n")
    problems = page.get_by_role("status").filter(has_text="replica")
    expect(problems).to_contain_text('4:5 roles.worker.replica: unknown field; did you mean "replicas"?')
    expect(page.locator(".cm-lint-marker-error")).to_have_count(1)
    editor.fill("name: by-hand\nroles:\n  worker:\n    replicas: 3\n    command: echo one\n")
    expect(page.get_by_text("The file is valid.")).to_be_visible()
    expect(page.get_by_label("Replicas")).to_have_value("3")
    expect(page.get_by_label("Command")).to_have_value("echo one")
    editor.fill("name: by-hand\nroles:\n  ps: {command: [echo, one]}\n  worker: {command: echo two}\n")
    expect(page.get_by_text("The file says more than this form can show.")).to_be_visible()
    expect(page.get_by_label("Replicas")).to_be_disabled()
    page.get_by_role("button", name="Submit", exact=True).click()
    expect(page.get_by_role("heading", name="by-hand")).to_be_visible()
    portal.client.wait("by-hand", timeout=240)
    expect(page.locator("header dl [data-state=succeeded]")).to_be_visible()


def test_what_a_file_holds_beside_its_job_is_named_before_it_is_submitted(page: Page, portal: Portal) -> None:
    page.goto("/submit")
    editor = page.get_by_label("Job file, YAML")
    expect(page.get_by_text("The file is valid.")).to_be_visible()  # the page begins no other file any more
    job = "name: by-hand\nroles:\n  worker: {command: echo one}\n"
    editor.fill(f"{job}---\napiVersion: v1\nkind: Service\nmetadata: {{name: front}}\n")
    said = "is no document of Corral's and left out; kubectl apply takes it."
    left_out = page.get_by_role("list", name="Left out of the file")
    expect(left_out).to_contain_text("Service/front (line 5)")
    expect(left_out).to_contain_text(said)
    expect(page.get_by_text("The file says more than this form can show.")).to_be_visible()
    page.get_by_role("button", name="Would it start now?").click()
    expect(page.get_by_role("status").filter(has_text="It would")).to_contain_text(said)
    editor.fill(job)
    expect(page.get_by_text("The file is valid.")).to_be_visible()
    expect(left_out).to_have_count(0)


def test_a_dry_run_stores_nothing(page: Page, portal: Portal) -> None:
    page.goto("/submit")
    expect(page.get_by_text("The file is valid.")).to_be_visible()
    page.get_by_role("button", name="Would it start now?").click()
    expect(page.get_by_role("status").filter(has_text="would")).to_be_visible()
    assert portal.client.jobs()["items"] == []


def test_a_dry_run_refuses_what_a_submit_refuses(page: Page, portal: Portal) -> None:
    page.goto("/submit")
    page.get_by_label("Replicas").fill("5")
    page.get_by_label("Devices each").fill("4")
    page.get_by_role("button", name="Would it start now?").click()
    expect(page.get_by_role("alert")).to_contain_text("submit it to wait until it can run.")
    assert portal.client.jobs()["items"] == []


def test_a_job_too_large_for_the_cluster_can_be_left_to_wait(page: Page, portal: Portal) -> None:
    page.goto("/submit")
    page.get_by_label("Name", exact=True).fill("too-large")
    page.get_by_label("Replicas").fill("5")
    page.get_by_label("Devices each").fill("4")
    page.get_by_role("button", name="Submit", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("devices")
    page.get_by_role("button", name="Submit it all the same; it waits until it can run").click()
    expect(page.get_by_role("region", name="Why it waits")).to_be_visible()


def test_a_waiting_job_says_why_and_starts_before_the_reader(page: Page, portal: Portal) -> None:
    portal.submit("holder", replicas=4, devices=4)
    waiting = portal.submit("next-one", devices=2)
    page.goto(f"/jobs/{waiting}")
    expect(page.get_by_role("region", name="Why it waits")).to_contain_text("device")
    picture = page.get_by_role("region", name="The cluster now").or_(page.get_by_role("region", name="Placement"))
    expect(picture).to_be_visible()
    portal.client.stop("holder")
    expect(page.locator("header dl [data-state=running]")).to_be_visible()
    expect(page.get_by_role("region", name="Why it waits")).to_have_count(0)


def test_a_failed_job_shows_how_it_ended_and_its_last_words(page: Page, portal: Portal) -> None:
    job = portal.submit("broken", "echo ModuleNotFoundError: torch >&2; exit 3")
    portal.client.wait(job, timeout=240)
    page.goto(f"/jobs/{job}")
    note = page.get_by_role("region", name="How it ended")
    expect(note).to_contain_text("worker-0 ended with code 3")
    expect(note).to_contain_text("ModuleNotFoundError: torch")
    page.get_by_role("button", name="events").click()
    expect(page.get_by_role("cell", name=re.compile("worker-0 exited with code 3"))).to_be_visible()


def test_the_failed_task_of_many_is_found_and_a_job_is_opened_by_its_name(page: Page, portal: Portal) -> None:
    command = "[ $CORRAL_TASK_INDEX = 13 ] && exit 3; sleep 600"
    job = portal.submit("many", command, replicas=14)
    page.goto("/jobs/many")
    expect(page).to_have_url(re.compile(f"/jobs/{job}$"))
    expect(page.get_by_role("region", name="How it ended")).to_contain_text("worker-13 ended with code 3")
    page.get_by_role("group", name="State of the tasks").get_by_role("button", name="failed").click()
    expect(page).to_have_url(re.compile("state=failed"))
    page.reload()
    expect(page.locator("tr[data-task]")).to_have_count(1)
    expect(page.locator("tr[data-task]")).to_have_attribute("data-task", "worker-13")


def test_a_shell_opens_inside_a_running_task(page: Page, portal: Portal) -> None:
    job = portal.submit("enter-me")
    page.goto(f"/jobs/{job}?tab=terminal")
    screen = page.get_by_test_id("terminal")
    expect(screen.locator(".xterm-rows")).to_contain_text(re.compile(r"[#$]"))
    page.keyboard.type("echo inside-$((6*7))\n")
    expect(screen.locator(".xterm-rows")).to_contain_text("inside-42")
    expect(page.get_by_role("region", name="Terminal")).to_contain_text("corral ssh enter-me worker-0")


def test_a_deleted_job_is_gone(page: Page, portal: Portal) -> None:
    job = portal.submit("short", "true")
    portal.client.wait(job, timeout=240)
    page.goto(f"/jobs/{job}")
    page.get_by_role("button", name="Delete", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Delete", exact=True).click()
    expect(page.get_by_text("No job has been submitted yet")).to_be_visible()
