"""`corral doctor` reports a Python that the tasks' accounts cannot read."""

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
