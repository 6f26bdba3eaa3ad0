"""A bundle as one file: it lists what is in it, and is used only as it was made."""

from __future__ import annotations

import io
import json
import os
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from corral.deploy.remote.bundle import bundle_of
from corral.deploy.remote.bundle_file import pack, unpacked
from corral.deploy.steps.bundle_manifest import MANIFEST, MOST_MANIFEST, manifest_of
from corral.kernel.errors import Conflict, CorralError, InvalidInput, NotFound
from tests import warm
from tests.deploy.bundles import PROXY, deb, small_bundle, wheel

PACKAGE = "packages/conntrack_1%3a1.4.7-1+b2_amd64.deb"

DEP5 = """\
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
License: GPL-2+

Files: *
License: GPL-2+
 This is free software.

Files: debian/*
License: Expat
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "bundle/packages").mkdir(parents=True)
    deb(tmp_path / "bundle" / PACKAGE, DEP5)
    (tmp_path / "elsewhere").write_bytes(b"chart")
    (tmp_path / "bundle/charts").mkdir()
    (tmp_path / "bundle/charts/corral.tgz").symlink_to(tmp_path / "elsewhere")
    return small_bundle(tmp_path / "bundle")


@pytest.fixture
def file(folder: Path) -> Path:
    pack(folder, folder.parent / "lab.bundle")
    return folder.parent / "lab.bundle"


def members(file: Path) -> dict[str, bytes]:
    with tarfile.open(file) as archive:
        opened = {member.name: archive.extractfile(member) for member in archive}
        return {name: each.read() for name, each in opened.items() if each is not None}


def written(file: Path, parts: dict[str, bytes]) -> Path:
    """The file with these members instead of its own."""
    with tarfile.open(file, "w") as archive:
        for name, content in parts.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return file


def refused(file: Path) -> str:
    with pytest.raises(InvalidInput) as caught, unpacked(file):
        pass
    assert not [path for path in file.parent.iterdir() if path.name.startswith(".corral")]
    return caught.value.message


def test_a_file_is_unpacked_to_the_folder_that_it_was_made_of(folder: Path, file: Path) -> None:
    with unpacked(file) as found:
        there, made = bundle_of(found), bundle_of(folder)
        assert there.images == made.images
        assert [each.digest for each in there.programs] == [each.digest for each in made.programs]
        assert (found / PACKAGE).read_bytes() == (folder / PACKAGE).read_bytes()
        assert (found / "charts/corral.tgz").read_bytes() == b"chart"
    assert not found.exists()


def test_each_file_is_listed_with_its_version_and_licence(file: Path) -> None:
    listed = manifest_of(members(file)[MANIFEST])
    assert listed.architecture == "x86_64" and listed.files.keys() == members(file).keys() - {MANIFEST}
    document = json.loads(members(file)[MANIFEST])["files"]
    assert document["images/proxy.tar"]["version"] == "v1.34.4"
    assert document["images/proxy.tar"]["licence"] == "Apache-2.0"
    assert document["images/proxy.tar"]["images"] == [PROXY]
    assert (document[PACKAGE]["version"], document[PACKAGE]["licence"]) == ("1:1.4.7-1+b2", "GPL-2+, Expat")


def test_wheels_of_another_folder_are_packed_with_their_versions_and_licences(folder: Path) -> None:
    wheels = folder.parent / "wheels"
    wheels.mkdir()
    wheel(wheels / "click-8.3.1-py3-none-any.whl", "License-Expression: BSD-3-Clause", "Classifier: Private")
    with pytest.raises(InvalidInput, match="no wheel of Corral"):
        pack(folder, folder.parent / "lab.bundle", wheels)
    wheel(wheels / "corral-0.1.0-py3-none-any.whl", "License: MIT")
    manifest = pack(folder, folder.parent / "lab.bundle", wheels)
    listed = {path: (each.version, each.licence) for path, each in manifest.files.items() if path.startswith("wheels/")}
    assert listed == {
        "wheels/click-8.3.1-py3-none-any.whl": ("8.3.1", "BSD-3-Clause"),
        "wheels/corral-0.1.0-py3-none-any.whl": ("0.1.0", "MIT"),
    }
    assert members(folder.parent / "lab.bundle").keys() >= listed.keys()
    (wheels / "odd-1-py3-none-any.whl").write_bytes(b"PK odd")
    with pytest.raises(InvalidInput, match=r"odd-1-py3-none-any\.whl is not a wheel"):
        pack(folder, folder.parent / "other.bundle", wheels)
    with pytest.raises(NotFound):
        pack(folder, folder.parent / "other.bundle", folder / "nowhere")


def test_a_file_that_was_altered_is_refused_by_the_name_of_what_was(file: Path) -> None:
    whole = members(file)
    changed = whole | {"bin/kubelet": whole["bin/kubelet"][:-1] + b"x"}
    assert "bin/kubelet is not as its manifest says" in refused(written(file, changed))
    without = {name: content for name, content in whole.items() if name != PACKAGE}
    assert f"{PACKAGE} is not as" in refused(written(file, without))
    assert "bin/other is not as" in refused(written(file, whole | {"bin/other": b"x"}))


@pytest.mark.parametrize("part", [0.1, 0.5, 0.9])
def test_a_file_that_was_cut_off_is_refused(file: Path, part: float) -> None:
    file.write_bytes(file.read_bytes()[: int(file.stat().st_size * part)])
    assert refused(file)


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "ClusterBackup"},
        {"version": 2},
        {"architecture": "z80"},
        {"made": "today"},
        {"files": {}},
        {"files": {"bin/../../etc/passwd": {"size": 1, "sha256": "a" * 64}}},
        {"files": {"bin/kubelet": {"size": -1, "sha256": "a" * 64}}},
        {"files": {"bin/kubelet": {"size": 2**40, "sha256": "a" * 64}}},
        {"files": {"bin/kubelet": {"size": 1, "sha256": "odd"}}},
    ],
)  # fmt: skip
def test_an_odd_manifest_is_refused(file: Path, change: dict[str, Any]) -> None:
    whole = members(file)
    document = json.loads(whole[MANIFEST]) | change
    assert refused(written(file, whole | {MANIFEST: json.dumps(document).encode()})).startswith("The bundle has no")


def test_what_is_no_bundle_is_refused(tmp_path: Path, file: Path) -> None:
    assert "is not a bundle" in refused(written(file, {MANIFEST: b" " * (MOST_MANIFEST + 1)}))
    assert "is not a bundle" in refused(written(file, {"other": b"{}"}))
    file.write_bytes(b"")
    assert "is not a bundle" in refused(file)


def test_a_file_that_is_there_is_never_replaced(folder: Path, file: Path) -> None:
    before = file.read_bytes()
    with pytest.raises(Conflict, match="is there already"):
        pack(folder, file)
    assert file.read_bytes() == before
    with pytest.raises(CorralError, match="cannot be written"):
        pack(folder, folder / "none/file")
    (folder / "bin/runc").unlink()
    with pytest.raises(NotFound, match="runc"):
        pack(folder, folder.parent / "other")
    assert not (folder.parent / "other").exists()


def corral(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return warm.corral(words, env=dict(os.environ), cwd=cwd, seconds=300)


@pytest.fixture
def listed(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "hosts.yaml").write_text("hosts: {a: {address: 127.0.0.1, ssh: {port: 1}, roles: [control-plane]}}\n")
    yield tmp_path / "hosts.yaml"


def test_commands_take_the_file_and_leave_nothing_of_it_behind(folder: Path, listed: Path) -> None:
    file = folder.parent / "lab.bundle"
    made = corral("deploy", "bundle", str(folder), str(file), cwd=folder.parent)
    assert made.returncode == 0 and "16 files for x86_64" in made.stderr, made.stderr
    assert "images/proxy.tar" in made.stdout and "v1.34.4" in made.stdout
    done = corral("deploy", "plan", str(listed), "--bundle", str(file), cwd=folder.parent)
    assert done.returncode == 4 and "127.0.0.1 port 1" in done.stdout, done.stderr
    file.write_bytes(file.read_bytes()[:-20_000])
    done = corral("deploy", "plan", str(listed), "--bundle", str(file), cwd=folder.parent)
    assert done.returncode == 2 and "cut off" in done.stderr, done.stderr
    assert not [path for path in folder.parent.iterdir() if path.name.startswith(".corral")]
