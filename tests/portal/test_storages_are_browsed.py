"""Storages in the portal: administrators make, grant and change them; only members browse and download."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from corral.kernel.errors import NotFound
from tests.portal.harness import Portal


@pytest.fixture
def shelf(tmp_path: Path) -> Path:
    """A folder that every account of the machine may read."""
    folder = tmp_path / "shelf"
    (folder / "runs" / "first run").mkdir(parents=True)
    (folder / "runs" / "first run" / "result é.txt").write_text("loss 0.1\n")
    (folder / "big.bin").write_bytes(bytes(3 << 20))
    (folder / "elsewhere").symlink_to("/etc")
    for number in range(205):
        (folder / "runs" / f"step-{number:03}.log").write_text("x")
    for each in (folder, *list(folder.parents)[:-2]):
        each.chmod(each.stat().st_mode | 0o555)
    return folder


@pytest.fixture
def readers(portal: Portal) -> Iterator[Portal]:
    """A group with read access; it and the storage are removed afterwards."""
    portal.client.create_group("readers")
    yield portal
    portal.client.delete_group("readers")
    with contextlib.suppress(NotFound):
        portal.client.delete_configuration("storage", "shelf")


def make(readers: Portal, shelf: Path, **more: str) -> None:
    """Create the storage over the folder, granted to the group."""
    said = "".join(f"{name}: {value}\n" for name, value in more.items())
    readers.client.apply(f"kind: Storage\nname: shelf\ntype: folder\npath: {shelf}\n{said}")
    readers.client.change_group("readers", grant={"storages": ["shelf"]})


def test_an_administrator_makes_changes_grants_and_deletes_a_storage(page: Page, readers: Portal, shelf: Path) -> None:
    page.goto("/")
    page.get_by_role("link", name="Storages").first.click()
    page.get_by_role("button", name="New storage").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("shelf")
    dialog.get_by_label("Folder", exact=True).fill("not/absolute")
    dialog.get_by_role("button", name="Make it").click()
    expect(dialog.get_by_role("alert")).to_be_visible()
    expect(dialog).to_contain_text("is not an absolute path")
    dialog.get_by_label("Folder", exact=True).fill(str(shelf))
    dialog.get_by_role("button", name="Make it").click()
    expect(page.get_by_role("heading", name="shelf")).to_be_visible()
    expect(page.locator("[data-file='big.bin']")).to_contain_text("3 MiB")
    page.get_by_label("A group").fill("readers")
    page.get_by_role("button", name="Grant").click()
    expect(page.get_by_role("group", name="Granted to")).to_contain_text("readers")
    assert readers.client.group("readers")["storages"] == ["shelf"]
    page.get_by_role("button", name="Edit").click()
    dialog.get_by_label("Description").fill("what the runs leave")
    dialog.get_by_label("Jobs may only read it").check()
    dialog.get_by_role("button", name="Save").click()
    expect(page.get_by_text("what the runs leave")).to_be_visible()
    assert readers.client.configuration("storage", "shelf")["document"]["readOnly"] is True
    page.get_by_role("button", name="Take back from readers").click()
    expect(page.get_by_text("No group: only administrators may use it.")).to_be_visible()
    page.get_by_role("button", name="Delete").click()
    dialog.get_by_role("button", name="Delete", exact=True).click()
    expect(page.get_by_role("heading", name="Storages")).to_be_visible()
    expect(page.locator("[data-storage=shelf]")).to_have_count(0)


def test_a_member_browses_and_fetches_a_file(page_of: Callable[[str], Page], readers: Portal, shelf: Path) -> None:
    make(readers, shelf)
    page = page_of("mem")
    readers.client.change_group("readers", add=["mem"])
    page.goto("/storages")
    expect(page.get_by_role("button", name="New storage")).to_have_count(0)
    page.get_by_role("link", name="shelf").click()
    expect(page.locator("[data-file=elsewhere]")).to_contain_text("not followed")
    expect(page.get_by_role("button", name="Edit")).to_have_count(0)
    page.get_by_role("link", name="runs/").click()
    expect(page.locator("[data-file]")).to_have_count(200)
    page.get_by_role("button", name="Show more").click()
    expect(page.locator("[data-file]")).to_have_count(206)
    page.get_by_role("link", name="first run/").click()
    expect(page.get_by_role("navigation", name="Folder")).to_contain_text("first run")
    with page.expect_download() as download:
        page.get_by_role("link", name="result é.txt", exact=True).click()
    assert download.value.path().read_text() == "loss 0.1\n"
    assert download.value.suggested_filename == "result é.txt"
    page.reload()
    page.get_by_role("navigation", name="Folder").get_by_role("link", name="shelf").click()
    expect(page.locator("[data-file='big.bin']")).to_be_visible()


def test_a_stranger_is_refused_in_a_sentence(page_of: Callable[[str], Page], readers: Portal, shelf: Path) -> None:
    make(readers, shelf)
    page = page_of("stray")
    page.goto("/storages")
    expect(page.get_by_text("There is no storage for you yet")).to_be_visible()
    page.goto("/storages/shelf")
    expect(page.get_by_role("alert")).to_contain_text("no group of the user grants the storage")


def test_a_file_that_went_is_refused_in_a_sentence(page: Page, readers: Portal, shelf: Path) -> None:
    make(readers, shelf)
    page.goto("/storages/shelf?path=runs/first+run")
    expect(page.get_by_role("link", name="result é.txt", exact=True)).to_be_visible()
    (shelf / "runs" / "first run" / "result é.txt").unlink()
    page.get_by_role("link", name="result é.txt", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("result é.txt")
