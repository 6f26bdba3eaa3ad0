"""`corral doctor` reports a Python and a data folder that the tasks' accounts cannot reach."""

from __future__ import annotations

from pathlib import Path

import pytest

from corral import upkeep
from corral.settings import Settings


def test_a_python_in_a_private_folder_is_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    (home / "bin").mkdir(parents=True)
    python = home / "bin" / "python"
    python.write_text("")
    python.chmod(0o755)
    monkeypatch.setattr(upkeep, "_ways", lambda path: (home, home / "bin", python))
    assert upkeep.hidden_from_others(python) is None
    home.chmod(0o700)
    assert upkeep.hidden_from_others(python) == home
    monkeypatch.setattr("sys.executable", str(python))
    monkeypatch.setattr("os.geteuid", lambda: 0)
    checks = {check.name: check for check in upkeep.doctor(Settings(data_folder=tmp_path / "data"), probe=False)}
    assert checks["python"].state == "note" and f"cannot read {home}" in checks["python"].message


def test_a_data_folder_in_a_closed_home_is_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    folder = home / "data"
    folder.mkdir(parents=True)
    folder.chmod(0o711)
    monkeypatch.setattr(upkeep, "_ways", lambda path: (home, folder))
    monkeypatch.setattr("os.geteuid", lambda: 0)

    def told() -> list[str]:
        checks = upkeep.doctor(Settings(data_folder=folder), probe=False)
        return [check.message for check in checks if check.name == "data folder of tasks"]

    home.chmod(0o755)
    assert told() == []
    home.chmod(0o700)
    assert [f"cannot enter {home}" in message for message in told()] == [True]
    monkeypatch.setattr("os.geteuid", lambda: 1000)  # all tasks then run as this account
    assert told() == []
