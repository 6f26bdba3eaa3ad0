"""Settings follow the system's conventions for users' files."""

from __future__ import annotations

from pathlib import Path

import pytest

from corral.settings import Settings


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        ("/elsewhere", "/elsewhere/corral"),
        ("", "/home/ada/.local/share/corral"),
        ("not/absolute", "/home/ada/.local/share/corral"),
    ],
)
def test_the_data_folder_is_where_a_users_data_belongs(
    named: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    monkeypatch.setenv("XDG_DATA_HOME", named)
    assert Settings().data_folder == Path(expected)
