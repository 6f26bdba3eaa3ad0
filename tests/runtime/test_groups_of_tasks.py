"""The control group whose memory a profile of a task's machine tells."""

from __future__ import annotations

from pathlib import Path

import pytest

from corral.runtime import task_system


@pytest.mark.parametrize(("topmost", "told"), [(False, {"group": 4096.0, "cached": 1024.0}), (True, {})])
def test_the_memory_of_the_whole_machine_is_not_told_as_that_of_a_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, topmost: bool, told: dict[str, float]
) -> None:
    """A task without a group of its own is in the topmost one; a container sees its own group at the top."""
    folder = tmp_path / "memory"
    folder.mkdir()
    (folder / "memory.usage_in_bytes").write_text("4096\n")
    (folder / "memory.stat").write_text("cache 1024\nrss 2048\n")
    if topmost:
        (folder / "release_agent").write_text("\n")
    monkeypatch.setattr(task_system, "_GROUPS", str(tmp_path))
    monkeypatch.setattr(task_system, "read", lambda pid, name: b"4:memory:/\n")
    assert task_system._sizes(1) == told
