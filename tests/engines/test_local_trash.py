"""What attempts leave is removed, whatever it is, and nothing that a link points to."""

from __future__ import annotations

from pathlib import Path

from corral.engines.local import cgroups
from corral.engines.local.attempt_folder import empty


def test_all_that_attempts_leave_is_removed_and_no_link_is_followed(tmp_path: Path) -> None:
    outside, trash = tmp_path / "outside", tmp_path / "trash"
    outside.mkdir()
    (outside / "kept").write_text("kept")
    usual, deep, linked = trash / "usual", trash / "deep", trash / "linked"
    for folder in (usual, deep, linked):
        (folder / "work").mkdir(parents=True)
        (folder / "exit.0").touch()
    (deep / "work" / "a" / "b").mkdir(parents=True)
    (deep / "work" / "a" / "b" / "c").write_text("c")
    (linked / "work" / "to").symlink_to(outside)
    (linked / "beside").symlink_to(outside)
    (trash / "whole").symlink_to(outside)
    empty(str(trash))
    assert [each.name for each in trash.iterdir()] == ["whole"], "a link was never an attempt's folder"
    assert (outside / "kept").read_text() == "kept"


def test_the_processes_of_groups_below_a_group_are_found_and_all_groups_removed(tmp_path: Path) -> None:
    group, below = tmp_path / "group", tmp_path / "group" / "own" / "deeper"
    group.mkdir()
    (group / "cgroup.procs").write_text("7\n")
    assert cgroups.members([str(group), str(tmp_path / "gone")]) == {7}
    below.mkdir(parents=True)
    (below / "cgroup.procs").write_text("0\n9\n")
    assert cgroups.members([str(group)]) == {7, 9}
    for file in (group / "cgroup.procs", below / "cgroup.procs"):  # a folder of the kernel's is removed with its files
        assert not cgroups.remove([str(group)])
        file.unlink()
    assert cgroups.remove([str(group)]) and not group.exists()
    group.mkdir()
    assert cgroups.remove([str(group), str(group)]) and not group.exists()
