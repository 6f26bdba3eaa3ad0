"""Fill the portal with a busy cluster, for tests and for the pictures of the documentation.

`python -m tests.portal.busy docs/images` takes the pictures. The jobs are real processes on described devices; server,
jobs and browser end with the pictures.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from corral.client import Client
from tests.portal import monitored
from tests.portal.harness import ROOT, Portal, open_context, serving
from tests.portal.measured import take_benchmarks
from tests.portal.profiled import take_profiles

TRAIN = """step=0; while :; do step=$((step + 1));
echo "step $step  loss 0.$((9000 / (step + 9) + 100))  $((180 + step % 9)) samples/s"; sleep 1; done"""
CRASH = """echo 'reading shard 7 of 12'; echo 'Traceback (most recent call last):' >&2
echo '  File "tokenize.py", line 41, in <module>' >&2
echo "UnicodeDecodeError: 'utf-8' codec can't decode byte 0xff in position 0: invalid start byte" >&2; exit 1"""
QUEUES = """
queues:
  default: {}
  research: {weight: 2, cells: [{level: node, count: 2}]}
  production: {weight: 3, deserved: {devices: 6}, limit: {devices: 12}}
  evaluation: {parent: production, deserved: {devices: 2}}
  nightly: {parent: production, guaranteed: {devices: 2}}
"""
NIGHTLY = """kind: Queue
name: nightly
parent: production
guaranteed: {devices: 2}
"""
QUIET = "echo 'accuracy 0.973'; exit 0"


def job(
    name: str, command: str, *, replicas: int = 1, devices: int = 0, maxDuration: str = "4h", **more: object
) -> str:
    """A job file of one role; jobs have a maximum duration, so that waiting jobs get an estimate."""
    worker = {"replicas": replicas, "command": command, "resources": {"cpu": 1, "memory": "1Gi", "devices": devices}}
    return json.dumps({"name": name, "roles": {"worker": worker}, "maxDuration": maxDuration, **more})


def fill(portal: Portal) -> None:
    """Submit jobs of four users: some ended, one of them failed; most running; some waiting for devices."""
    people: dict[str, Client] = {}
    for name in ("ada", "jun", "mira", "tomas"):
        portal.client.create_user(name, password=f"{name} on corral")
        people[name] = Client(portal.url)
        people[name].login(user=name, password=f"{name} on corral")
    ended = [
        people["jun"].submit(job("evaluate-ranker", QUIET, queue="production")),
        people["mira"].submit(job("tokenize-corpus", CRASH, queue="research", tags=["corpus"])),
        people["ada"].submit(job("export-onnx", QUIET, devices=1)),
    ]
    for each in ended:
        portal.client.wait(each["id"], timeout=240)
    switch = {"required": "pcie-switch"}
    running = [
        people["mira"].submit(
            job("llm-pretrain", TRAIN, replicas=4, devices=1, queue="research", topology={"required": "node"})
        ),
        people["jun"].submit(job("ranker-nightly", TRAIN, replicas=2, devices=2, queue="nightly", priority="prod")),
        people["ada"].submit(job("vit-ablation", TRAIN, replicas=2, devices=1, topology=switch)),
        people["tomas"].submit(job("notebook", TRAIN, devices=1, maxDuration="45m")),
        people["tomas"].submit(
            job("sweep-lr", TRAIN, devices=1, array={"size": 6, "maxParallel": 3}, queue="research")
        ),
    ]
    for each in running:
        next(iter(portal.client.log(each["id"], "worker", 0, follow=True)))
    people["mira"].submit(
        job(
            "llm-finetune",
            TRAIN,
            replicas=8,
            devices=1,
            queue="research",
            priority="prod",
            topology={"required": "rack"},
        )
    )
    people["jun"].submit(job("ranker-large", TRAIN, replicas=2, devices=4, queue="evaluation"))
    people["ada"].submit(job("vit-distill", TRAIN, devices=4))


def main(pictures: Path) -> None:
    """Fill new servers and take the pictures of the documentation."""
    expect.set_options(timeout=60_000)
    chromium = shutil.which("chromium-headless-shell") or shutil.which("chromium")
    if chromium is None:
        sys.exit("no Chromium here: apt-get install -y chromium-headless-shell")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        with filled() as (portal, _):
            take(portal, pictures, browser)
        with filled(monitored.RULES) as (portal, database):
            monitored.take_monitoring(portal, database, pictures, open_context(browser, portal).new_page())
        browser.close()


@contextlib.contextmanager
def filled(rules: str = "") -> Iterator[tuple[Portal, Path]]:
    """A new server with the jobs of `fill` that evaluates rules of alerts, and its database."""
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        folder = Path(name)
        folder.chmod(0o711)  # each user's tasks run under a system user of their own
        example = (ROOT / "examples" / "cluster.yaml").read_text()
        (folder / "cluster.yaml").write_text(example.partition("queues:")[0] + QUEUES)
        if rules:
            (folder / "rules.yml").write_text(rules)
            patch.setenv("CORRAL_ALERT_RULES", str(folder / "rules.yml"))
        with serving(folder, folder / "cluster.yaml") as portal:
            fill(portal)
            yield portal, folder / "data" / "corral.db"


def take(portal: Portal, pictures: Path, browser: Browser) -> None:
    """Take the pictures of jobs, queues and changes from a filled server."""
    page = open_context(browser, portal).new_page()
    page.goto("/")
    cluster = page.get_by_role("region", name="Cluster")
    expect(cluster).to_contain_text("Next to start")
    expect(page.locator("tr[data-job] [data-state=running]:visible")).to_have_count(4)
    page.screenshot(path=pictures / "portal.png", full_page=True)
    page.get_by_role("region", name="Jobs").get_by_role("link", name="vit-distill").click()
    expect(page.get_by_role("region", name="Why it waits")).to_contain_text("Ahead of it: ranker-large")
    expect(page.locator("tr[data-task]")).to_have_count(1)
    page.screenshot(path=pictures / "waiting.png", clip={"x": 0, "y": 0, "width": 1440, "height": 735})
    page.goto("/queues?queue=research")
    expect(page.get_by_role("table", name="Cells that it owns")).to_be_visible()
    page.screenshot(path=pictures / "queues.png", clip={"x": 0, "y": 0, "width": 1440, "height": 640})
    page.goto("/line")
    expect(page.locator("tr[data-waiting]")).to_have_count(3)
    take_question(pictures, page)
    take_changes(portal, pictures, page)
    take_profiles(portal, pictures, page)
    take_benchmarks(portal, pictures, page)


def take_question(pictures: Path, page: Page) -> None:
    """Take the picture of a what-if question and its answer."""
    page.goto("/what-if")
    form = page.get_by_role("form", name="Question")
    form.get_by_label("Add nodes").fill("1")
    form.get_by_label("like").select_option("local/node1")
    form.get_by_role("button", name="Ask").click()
    timeline = page.get_by_role("region", name="Answer").get_by_role("figure", name="Timeline")
    expect(timeline.get_by_role("img", name="local/node1-added-1")).to_be_visible()
    page.screenshot(path=pictures / "what-if.png", full_page=True)


def take_changes(portal: Portal, pictures: Path, page: Page) -> None:
    """Take the pictures of administrators' changes: documents and nodes."""
    portal.client.apply(NIGHTLY, note="as in the cluster document")
    portal.client.apply(NIGHTLY + "limit: {devices: 6}\n", note="no more than six at night")
    page.goto("/configuration?document=Queue/nightly&against=1")
    expect(page.locator("[data-diff=came]")).to_have_count(2)
    page.screenshot(path=pictures / "configuration.png", clip={"x": 0, "y": 0, "width": 1440, "height": 480})
    page.goto("/configuration?document=Queue/nightly&edit=yes")
    page.get_by_role("textbox", name="Document, YAML").click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(NIGHTLY + "limit: {devices: 3}\n")
    expect(page.get_by_label("Guarantees that it would break")).to_be_visible()
    page.screenshot(path=pictures / "editing.png", clip={"x": 0, "y": 0, "width": 1440, "height": 560})
    page.goto("/nodes?node=local/node3")
    page.get_by_role("button", name="Drain", exact=True).click()
    page.get_by_role("dialog").get_by_label("Why").fill("new cables")
    page.screenshot(path=pictures / "draining.png", clip={"x": 0, "y": 0, "width": 1440, "height": 720})


if __name__ == "__main__":
    main(Path(sys.argv[1]))
