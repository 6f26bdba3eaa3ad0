"""What a job keeps is looked at in its page: folders, text, tables and pictures; a hostile file does nothing there."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from playwright.sync_api import Page, expect

from corral.cli.outputs import outputs_command
from tests.portal.harness import Portal

HOSTILE = "<script>document.title = 'taken'</script><img src=x onerror=\"document.title = 'taken'\">"


def picture(width: int, height: int, *, rows: int) -> bytes:
    """A grey PNG that claims a size, with so many rows of it."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    pixels = zlib.compress((b"\0" + b"\x80" * width) * rows)
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


@pytest.fixture
def kept(portal: Portal, tmp_path: Path) -> str:
    """A job that has ended and kept its results in a folder of this machine; its id."""
    made = tmp_path / "made"
    (made / "curves").mkdir(parents=True)
    (made / "loss.csv").write_text("step,loss\n" + "".join(f"{at},{1 / (at + 1)}\n" for at in range(500)))
    (made / "notes.txt").write_text("the second run\n")
    (made / "page.html").write_text(HOSTILE)
    drawing = "<svg xmlns='http://www.w3.org/2000/svg' onload=\"document.title = 'taken'\"/>"
    (made / "drawing.png").write_text(drawing + HOSTILE)
    (made / "curves" / "loss.png").write_bytes(picture(8, 8, rows=8))
    (made / "curves" / "bomb.png").write_bytes(picture(60_000, 60_000, rows=1))
    results = tmp_path / "results"
    results.mkdir()
    results.chmod(0o777)
    for each in (*made.rglob("*"), made, *list(made.parents)[:-2]):
        each.chmod(each.stat().st_mode | (0o555 if each.is_dir() else 0o444))
    outputs = json.dumps([{"path": "out", "uri": f"file://{results}/digits"}])
    job = portal.submit("digits", f"cp -r {made} out", more=f'"outputs": {outputs}')
    assert portal.client.wait(job, timeout=240)["state"] == "succeeded"
    return job


def test_the_files_of_an_output_are_looked_at_and_fetched(page: Page, kept: str) -> None:
    page.goto(f"/jobs/{kept}")
    page.get_by_role("button", name="outputs").click()
    page.get_by_role("link", name="Show loss.csv").click()
    preview = page.get_by_role("region", name="Preview of loss.csv")
    expect(preview.get_by_role("columnheader")).to_have_text(["step", "loss"])
    expect(preview.locator("tr[data-row]")).to_have_count(200)
    expect(preview).to_contain_text("This is a part of the file.")
    with page.expect_download() as download:
        preview.get_by_role("link", name="Fetch").click()
    assert len(download.value.path().read_text().splitlines()) == 501
    page.reload()
    expect(preview).to_be_visible()
    preview.get_by_role("link", name="Close").click()
    page.get_by_role("link", name="Show notes.txt").click()
    expect(page.get_by_label("Text of notes.txt")).to_have_text("the second run")
    page.get_by_role("link", name="curves/").click()
    page.get_by_role("link", name="Show loss.png").click()
    shown = page.get_by_role("img", name="The picture loss.png")
    expect(shown).to_have_js_property("naturalWidth", 8)
    expect(page.get_by_role("navigation", name="Folder")).to_contain_text("curves")


def test_hostile_files_and_paths_do_nothing(page: Page, kept: str) -> None:
    page.goto(f"/jobs/{kept}?tab=outputs&output=0&file=page.html")
    expect(page.get_by_label("Text of page.html")).to_contain_text("<script>")
    page.goto(f"/jobs/{kept}?tab=outputs&output=0&file=drawing.png")
    expect(page.get_by_label("Text of drawing.png")).to_contain_text("<svg")
    page.goto(f"/jobs/{kept}?tab=outputs&output=0&path=curves&file=curves/bomb.png")
    expect(page.get_by_role("alert")).to_contain_text("million pixels")
    for path in ("../..", "/etc", "curves/../../../etc"):
        page.goto(f"/jobs/{kept}?tab=outputs&output=0&path={path}")
        expect(page.get_by_role("alert")).to_be_visible()
        expect(page.locator("[data-file]")).to_have_count(0)
    assert "taken" not in page.title()
    for name in ("drawing.png", "page.html"):
        answer = page.request.get(f"/api/v3/jobs/{kept}/outputs/0/picture", params={"path": name})
        assert answer.status == 400 and "Only PNG, JPEG, GIF and WebP" in answer.text()
    answer = page.request.get(f"/api/v3/jobs/{kept}/outputs/0/picture", params={"path": "curves/loss.png"})
    assert answer.headers["content-type"] == "image/png" and "sandbox" in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_another_users_folder_is_not_shown(page_of: Callable[[str], Page], kept: str) -> None:
    page = page_of("nosy")
    page.goto(f"/jobs/{kept}?tab=outputs")
    expect(
        page.get_by_text("only the job's owner, managers of its queue and administrators look into it")
    ).to_be_visible()
    assert page.request.get(f"/api/v3/jobs/{kept}/outputs/0/files").status == 409


def test_outputs_are_listed_and_fetched_by_command(
    portal: Portal, kept: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CORRAL_URL", portal.url)
    monkeypatch.setenv("CORRAL_TOKEN", portal.client.token)

    def corral(*words: str) -> str:
        done = CliRunner().invoke(outputs_command, [kept, *words], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.stdout

    assert "/results/digits" in corral()
    assert [line.split()[-1] for line in corral("0").splitlines()[1:]][:2] == ["curves", "drawing.png"]
    corral("0", "notes.txt", "--get", "--to", str(tmp_path / "fetched"))
    assert (tmp_path / "fetched").read_text() == "the second run\n"
    assert CliRunner().invoke(outputs_command, [kept, "--get"]).exit_code == 2
