"""A file from a storage is sent as a download, so that no browser renders it as a page of the portal."""

from __future__ import annotations

from pathlib import Path

import httpx2
import pytest

from corral.client.sync import Client
from corral.kernel.errors import CorralError
from corral.service.list_cursor import name_cursor
from tests.api.harness import Server


def test_a_file_is_a_download_for_who_may_read_it(server: Server, alice: Client, root: Client, tmp_path: Path) -> None:
    (tmp_path / "page é.html").write_text("<script>alert(1)</script>")
    for folder in (tmp_path, *list(tmp_path.parents)[:-2]):
        folder.chmod(folder.stat().st_mode | 0o555)
    root.apply(f"kind: Storage\nname: shelf\ntype: folder\npath: {tmp_path}\n")
    with pytest.raises(CorralError) as refused:
        alice.storage_files("shelf")
    assert refused.value.code == "not-allowed"
    root.create_group("readers", grant={"storages": ["shelf"]})
    root.change_group("readers", add=[alice.me()["user"]])
    assert [each["name"] for each in alice.storages()["items"]] == ["shelf"]
    assert [each["name"] for each in alice.storage_files("shelf")["items"]] == ["page é.html"]
    answer = httpx2.get(
        f"{alice.url}/api/v3/storages/shelf/file",
        params={"path": "page é.html"},
        headers={"authorization": f"Bearer {alice.token}"},
    )
    assert answer.text == "<script>alert(1)</script>"
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-disposition"] == "attachment; filename*=UTF-8''page%20%C3%A9.html"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "sandbox" in answer.headers["content-security-policy"]
    with pytest.raises(CorralError, match="none of them"):
        alice.storage_files("shelf", "../..")


def test_a_folder_is_paged_by_names_as_long_as_those_of_object_stores(
    server: Server, root: Client, tmp_path: Path
) -> None:
    tmp_path.chmod(0o755)
    for name in ("b", "z" * 255):
        (tmp_path / name).touch()
    root.apply(f"kind: Storage\nname: long\ntype: folder\npath: {tmp_path}\n")
    first = root.storage_files("long", limit=1)
    assert [each["name"] for each in first["items"]] == ["b"]
    assert [each["name"] for each in root.storage_files("long", after=first["next"])["items"]] == ["z" * 255]
    assert root.storage_files("long", after=name_cursor("zé" * 341))["items"] == []
