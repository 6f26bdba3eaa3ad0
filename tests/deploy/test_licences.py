"""What the licence of a package is: by Debian's copyright files, and by the metadata of wheels."""

from __future__ import annotations

import shutil
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.deploy.remote.package_files import licence_of_deb, licence_of_wheel
from corral.deploy.steps.licences import of_copyright, of_metadata
from corral.kernel.errors import InvalidInput
from tests.deploy.bundles import deb, wheel

FORMAT = "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n"


@pytest.mark.parametrize(
    ("text", "licence"),
    [
        (f"{FORMAT}License: GPL-2+\n\nLicense: MIT\nLicense: GPL-2+\n", "GPL-2+, MIT"),
        (f"{FORMAT}License:\n the text\n", ""),
        ("Format-Specification: http://dep.debian.net\nLicense: BSD-3-clause\n", "BSD-3-clause"),
        (
            "On Debian it is in /usr/share/common-licenses/GPL-2.\nand `/usr/share/common-licenses/LGPL-2.1'.",
            "GPL-2, LGPL-2.1",
        ),
        ("License: no such format\n", ""),
        ("", ""),
        (FORMAT + "".join(f"License: L{at}\n" for at in range(30)), ", ".join(f"L{at}" for at in range(12))),
        (f"{FORMAT}License: a\x1b[31mb\n", "a[31mb"),
    ],
)
def test_a_copyright_file_names_licences_by_its_format_or_by_common_files(text: str, licence: str) -> None:
    assert of_copyright(text) == licence


@pytest.mark.parametrize(
    ("lines", "licence"),
    [
        (("License-Expression: MIT OR Apache-2.0", "License: other"), "MIT OR Apache-2.0"),
        (("License: BSD", "Classifier: License :: OSI Approved :: MIT License"), "BSD"),
        (("Classifier: License :: OSI Approved :: MIT License", "Classifier: Framework :: AsyncIO"), "MIT License"),
        (("License: " + "x" * 5000,), ""),
        (("Name: a", "", "License: in the description"), ""),
    ],
)
def test_the_metadata_of_a_wheel_names_its_licence_by_expression_field_or_classifiers(
    lines: tuple[str, ...], licence: str
) -> None:
    assert of_metadata(lines) == licence


@given(st.text(max_size=400))
def test_any_text_has_a_short_list_of_licences_in_one_line(text: str) -> None:
    for licence in (of_copyright(FORMAT + text), of_metadata(text.splitlines())):
        assert len(licence) < 12 * 103 and "\n" not in licence


by_zstd = pytest.mark.skipif(not shutil.which("zstd"), reason="zstd is not installed")


@pytest.mark.parametrize("packed", ["xz", "gz", "bz2", "", pytest.param("zst", marks=by_zstd)])
def test_a_package_is_read_however_it_is_packed(tmp_path: Path, packed: str) -> None:
    path = tmp_path / "tool_1_all.deb"
    deb(path, f"{FORMAT}License: ISC\n", packed)
    assert licence_of_deb(path) == "ISC"
    deb(path, None, packed)
    assert licence_of_deb(path) == "", "its copyright file is a link to that of another package"


@by_zstd
def test_zstd_unpacks_a_package_where_it_is_installed_and_a_damaged_one_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "tool_1_all.deb"
    deb(path, f"{FORMAT}License: ISC\n", "zst")
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b"\x28\xb5\x2f\xfd", b"odd!"))
    with pytest.raises(InvalidInput, match=r"tool_1_all\.deb is not a Debian package"):
        licence_of_deb(path)
    path.write_bytes(whole)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert licence_of_deb(path) == "", "nothing here reads it"


@pytest.mark.parametrize("part", [0.0, 0.02, 0.5, 0.9])
def test_a_package_that_was_cut_off_is_refused_by_its_name(tmp_path: Path, part: float) -> None:
    path = tmp_path / "tool_1_all.deb"
    deb(path, f"{FORMAT}License: ISC\n")
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * part)])
    with pytest.raises(InvalidInput, match=r"tool_1_all\.deb is not a Debian package"):
        licence_of_deb(path)


@given(st.binary(max_size=300))
def test_any_bytes_are_no_package_and_no_wheel(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "odd"
    for content in (data, b"!<arch>\n" + data, b"PK\x03\x04" + data):
        path.write_bytes(content)
        for read in (licence_of_deb, licence_of_wheel):
            with pytest.raises(InvalidInput):
                read(path)


def test_a_wheel_without_metadata_of_its_own_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "tool-1-py3-none-any.whl"
    wheel(path, "License-Expression: MIT")
    assert licence_of_wheel(path) == "MIT"
    other = tmp_path / "two-1-py3-none-any.whl"
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr("a.dist-info/METADATA", "")
        archive.writestr("b.dist-info/METADATA", "")
    with pytest.raises(InvalidInput, match="one METADATA"):
        licence_of_wheel(other)
