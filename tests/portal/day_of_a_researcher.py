"""Twenty tasks of a researcher, each from the first page on."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from corral.client import Client
from tests.portal.hand import Hand, Task
from tests.portal.harness import job_text

SERVES = "echo serving; exec python3 -m http.server $CORRAL_PORT_WEB --bind $CORRAL_HOST"


def prepare(client: Client) -> None:
    """Submit the researcher's jobs; returns when they stand as the tasks need them."""
    client.submit(job_text("served", SERVES).replace('"command"', '"ports": ["web"], "command"'))
    pair = client.submit(job_text("pair", "while :; do echo tick; sleep 1; done", replicas=2, devices=1))
    for name in ("train-1", "train-2"):
        client.wait(client.submit(job_text(name, f"echo {name}"))["id"], timeout=240)
    client.wait(client.submit(job_text("broken", "echo 'no such file: data.csv'; exit 3"))["id"], timeout=240)
    client.submit(job_text("sleeper", "sleep 3600", devices=1))
    for name in ("wrong", "many-1", "many-2"):
        client.submit(job_text(name, "sleep 3600"))
    next(iter(client.log(pair["id"], "worker", 0, follow=True)))
    client.submit(job_text("large", "sleep 3600", replicas=4, devices=4))


def submit(hand: Hand) -> None:
    hand.click("link", "Submit")
    hand.fill("Name", "first")
    hand.fill("Command", "echo begun; sleep 3600")
    hand.fill("Replicas", "2")
    hand.fill("Devices each", "1")
    hand.click("button", "Submit", hand.main)
    expect(hand.page.get_by_role("heading", name="first")).to_be_visible()


def why_it_waits(hand: Hand) -> None:
    hand.job("large")
    hand.sees("device", hand.page.get_by_role("region", name="Why it waits"))


def why_it_failed(hand: Hand) -> None:
    hand.job("broken")
    hand.sees("no such file: data.csv", hand.page.get_by_role("region", name="How it ended"))


def what_needs_me(hand: Hand) -> None:
    hand.click("link", "Corral: home")
    hand.sees("broken", hand.page.get_by_role("region", name="Needs you"))


def log_of_one_task(hand: Hand) -> None:
    hand.job("pair")
    hand.choose("Task", "worker-1")
    hand.sees("tick", hand.page.get_by_test_id("log"))


def find_in_a_log(hand: Hand) -> None:
    hand.job("broken")
    hand.click("button", "log")
    hand.fill("Find in the log", "data.csv")
    expect(hand.page.get_by_role("status").filter(has_text="1 found")).to_be_visible()


def take_a_log(hand: Hand) -> None:
    hand.job("train-1")
    hand.click("button", "log")
    assert hand.fetch("link", "Download").read_text() == "train-1\n"


def enter_a_task(hand: Hand) -> None:
    hand.job("sleeper")
    hand.click("button", "terminal")
    screen = hand.page.get_by_test_id("terminal").locator(".xterm-rows")
    expect(screen).to_contain_text(re.compile(r"[#$]"))
    hand.page.keyboard.type("echo inside-$((6*7))\n")
    hand.fields += 1
    expect(screen).to_contain_text("inside-42")


def open_a_service(hand: Hand) -> None:
    hand.job("served")
    with hand.page.context.expect_page() as tab:
        hand.press(hand.page.get_by_role("link", name="Open web"), "Open web")
    expect(tab.value.locator("body")).to_contain_text("Directory listing")
    tab.value.close()


def stop(hand: Hand) -> None:
    hand.job("wrong")
    hand.click("button", "Stop")
    hand.click("button", "Stop", hand.window)
    expect(hand.page.locator("header dl [data-state=stopped]")).to_be_visible()


def stop_several(hand: Hand) -> None:
    for name in ("many-1", "many-2"):
        hand.tick(f"Choose {name}")
    hand.click("button", "Stop 2")
    hand.click("button", "Stop 2 jobs", hand.window)
    expect(hand.window).to_have_count(0)


def run_again(hand: Hand) -> None:
    hand.job("train-1")
    hand.click("link", "Clone")
    expect(hand.page.get_by_label("Name", exact=True)).to_have_value("train-1")
    hand.fill("Name", "train-3")
    hand.click("button", "Submit", hand.main)
    expect(hand.page.get_by_role("heading", name="train-3")).to_be_visible()


def compare(hand: Hand) -> None:
    hand.job("train-1")
    hand.click("link", "Compare")
    hand.click("link", "train-2", hand.page.get_by_role("list", name="Jobs to compare with"))
    hand.sees("echo train-2", hand.page.get_by_role("region", name="Difference"))


def tag(hand: Hand) -> None:
    hand.job("train-2")
    hand.click("button", "Add tags")
    hand.fill("Tags to add", "paper", hand.window)
    hand.click("button", "Change tags", hand.window)
    expect(hand.page.get_by_role("link", name="paper", exact=True)).to_be_visible()


def keep_a_filter(hand: Hand) -> None:
    hand.click("button", "failed", hand.page.get_by_role("group", name="State"))
    hand.click("button", "Saved")
    panel = hand.page.get_by_role("group", name="Saved filters")
    hand.fill("Name of the filter", "my failures", panel)
    hand.click("button", "Save", panel)
    expect(panel.get_by_role("button", name="my failures", exact=True)).to_be_visible()


def take_the_list(hand: Hand) -> None:
    hand.click("button", "Mine")
    assert "broken" in hand.fetch("button", "Export CSV").read_text()


def pause_and_go_on(hand: Hand) -> None:
    hand.job("sleeper")
    hand.click("button", "Suspend")
    hand.click("button", "Suspend", hand.window)
    hand.click("button", "Resume")
    hand.click("button", "Resume", hand.window)
    expect(hand.page.locator("header dl [data-state=running]")).to_be_visible()


def fetch_a_file(hand: Hand) -> None:
    hand.way("Storages")
    hand.click("link", "shelf")
    hand.click("link", "runs/")
    assert hand.fetch("link", "loss.txt").read_text() == "0.1\n"


def make_a_token(hand: Hand) -> None:
    hand.press(hand.page.get_by_label("Account").first, "Account")
    hand.click("link", "Password and tokens")
    hand.fill("What it is for", "my scripts")
    hand.click("button", "Make a token")
    hand.sees("This is the only time it is shown")


def start_a_notebook(hand: Hand) -> None:
    hand.click("link", "Submit")
    hand.click("link", "Start a notebook")
    hand.fill("Name", "lab")
    hand.choose("Jupyter is in", "environment")
    hand.fill("Folder of the environment", "/opt/jupyter")
    hand.click("button", "Start")
    expect(hand.page.get_by_role("heading", name="lab")).to_be_visible()


TASKS = [
    Task("Submit a job of two tasks with a device each", submit),
    Task("Start a notebook from an environment", start_a_notebook),
    Task("See why a job waits, and what would help", why_it_waits),
    Task("See why a job failed", why_it_failed),
    Task("See what needs me", what_needs_me),
    Task("Follow the log of one task of several", log_of_one_task),
    Task("Find a line of a log", find_in_a_log),
    Task("Take a log along", take_a_log),
    Task("Type into a shell in a task", enter_a_task),
    Task("Open the web page that a job serves", open_a_service),
    Task("Stop a job", stop),
    Task("Stop two jobs together", stop_several),
    Task("Run a job again under another name", run_again),
    Task("See what differs between two jobs", compare),
    Task("Give a job a tag", tag),
    Task("Keep a filter of the list under a name", keep_a_filter),
    Task("Take the list of my jobs as CSV", take_the_list),
    Task("Give a job's devices back, and let it go on later", pause_and_go_on),
    Task("Fetch a file from a storage", fetch_a_file),
    Task("Make a token for a program", make_a_token),
]
