"""A folder of code is packed in the browser as the command line packs it, sent, and goes on after a broken connection."""

from __future__ import annotations

import gzip
import random
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Request, Route, expect

from corral.cli.code_archive import pack
from tests.cutting_relay import cutting
from tests.portal.axe import findings
from tests.portal.harness import Portal

COMMAND = "./run.sh && test -s sub/data.bin && test ! -e sub/left.log"


@pytest.fixture
def folder(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """Code with an ignore file, a script, long and foreign names, and 300 kB of the test's own that stay as long."""
    root = tmp_path / "my code"
    for path, content in {
        ".gitignore": b"*.log\nnode_modules/\n",
        "run.sh": b"#!/bin/sh\necho runs\n",
        "sub/data.bin": random.Random(request.node.name).randbytes(300_000),
        "sub/left.log": b"x",
        "node_modules/deep/x.js": b"x",
        f"{'long' * 30}.txt": b"long",
        "größe/übung.txt": "ü".encode(),
        "empty": b"",
    }.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content)
    (root / "run.sh").chmod(0o755)
    return root


def tar_of(portal: Portal, job: str) -> bytes:
    """The unpacked archive of a job's code, as the server keeps it."""
    digest = portal.client.job_file(job)["code"]
    return gzip.decompress((portal.database.parent / "blobs" / "code" / f"{digest}.tar.gz").read_bytes())


def as_the_command_line_packs(folder: Path) -> bytes:
    packed = pack(folder)
    with packed.file:
        return gzip.decompress(b"".join(packed.pieces()))


def test_a_folder_that_is_chosen_runs_as_the_code_of_the_job(page: Page, portal: Portal, folder: Path) -> None:
    page.goto("/submit")
    page.get_by_label("Name", exact=True).fill("coded")
    page.get_by_label("Command").fill(COMMAND)
    code = page.get_by_role("group", name="Code")
    with page.expect_file_chooser() as chooser:
        code.get_by_role("button", name="Choose a folder").click()
    chooser.value.set_files(folder)
    expect(code.get_by_role("status")).to_contain_text("The job has the 8 files and folders of my code")
    expect(page.get_by_text("corral submit -f job.yaml --code 'my code'")).to_be_visible()
    assert findings(page) == []
    page.get_by_role("button", name="Submit", exact=True).click()
    expect(page.get_by_role("heading", name="coded")).to_be_visible()
    assert portal.client.wait("coded", timeout=240)["state"] == "succeeded"
    assert tar_of(portal, "coded") == as_the_command_line_packs(folder)


def test_a_folder_that_is_dropped_is_sent_on_after_the_connection_broke(
    browser: Browser, portal: Portal, folder: Path
) -> None:
    with cutting(portal.url) as relay, browser.new_context(base_url=relay.url) as opened:
        opened.set_default_timeout(60_000)
        opened.add_cookies([{"name": "corral_session", "value": portal.client.token, "url": relay.url}])
        page = opened.new_page()
        offsets: list[int] = []

        def note(request: Request) -> None:
            if request.method == "PATCH":
                offsets.append(int(request.headers["upload-offset"]))

        page.on("request", note)
        page.goto("/submit")
        page.get_by_label("Name", exact=True).fill("dropped")
        page.get_by_label("Command").fill(COMMAND)
        relay.cuts[:] = [200_000, 50_000]
        parts = portal.database.parent / "blobs" / "code" / "partial"
        relay.arrived = lambda: any(path.stat().st_size > 100_000 for path in parts.glob("*/*"))
        drop(page, folder)
        code = page.get_by_role("group", name="Code")
        expect(code.get_by_role("status")).to_contain_text("The job has the 8 files and folders of my code")
        assert relay.cuts == [] and offsets[0] == 0 and offsets == sorted(offsets) and offsets[-1] > 0
        page.get_by_role("button", name="Submit", exact=True).click()
        expect(page.get_by_role("heading", name="dropped")).to_be_visible()
    assert portal.client.wait("dropped", timeout=240)["state"] == "succeeded"
    assert tar_of(portal, "dropped") == as_the_command_line_packs(folder)


def drop(page: Page, folder: Path) -> None:
    """Drop a folder as a hand does: no script can make such an event."""
    page.get_by_role("group", name="Code").scroll_into_view_if_needed()
    box = page.get_by_role("group", name="Code").bounding_box()
    assert box is not None
    data = {"items": [], "files": [str(folder)], "dragOperationsMask": 1}
    devtools = page.context.new_cdp_session(page)
    for kind in ("dragEnter", "dragOver", "drop"):
        devtools.send("Input.dispatchDragEvent", {"type": kind, "x": box["x"] + 5, "y": box["y"] + 5, "data": data})


def test_an_upload_is_cancelled_and_a_job_waits_for_one_that_is_not(page: Page, folder: Path) -> None:
    page.route("**/blobs/uploads/*", _hold_parts)
    page.goto("/submit")
    code = page.get_by_role("group", name="Code")
    submit = page.get_by_role("button", name="Submit", exact=True)
    page.locator("input[type=file]").set_input_files(folder)
    expect(code.get_by_role("status")).to_contain_text("Sending 8 files and folders of my code")
    expect(code.get_by_role("progressbar", name="Code sent")).to_be_visible()
    expect(submit).to_be_disabled()
    code.get_by_role("button", name="Cancel").click()
    expect(code.get_by_role("button", name="Choose a folder")).to_be_focused()
    expect(submit).to_be_enabled()


def _hold_parts(route: Route) -> None:
    if route.request.method != "PATCH":
        route.continue_()


def test_what_cannot_be_packed_is_told_in_a_sentence(page: Page, tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / ".corralignore").write_text("a\\\n")
    page.goto("/submit")
    code = page.get_by_role("group", name="Code")
    page.locator("input[type=file]").set_input_files(tmp_path / "one")
    expect(code.get_by_role("status")).to_contain_text('The line "a\\\\" of the ignore file ends with a backslash.')
    code.get_by_role("button", name="Submit without it").click()
    expect(code.get_by_role("button", name="Choose a folder")).to_be_visible()
