"""Whatever happens beside a command, its container gets the command line to execute."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from corral.runtime.beside import ENTRY, READY, _begin
from corral.runtime.plan import Plan


def begun(tmp_path: Path, directory: Path) -> subprocess.CompletedProcess[str]:
    """Run the command's shell with its entry."""
    plan = Plan(
        attempt="j.0.worker.0.0", command=["pwd"], work=str(tmp_path), directory=str(directory), shared=str(tmp_path)
    )
    before = os.umask(0)
    try:
        _begin(plan, None, str(tmp_path / ENTRY), str(tmp_path / READY))
    finally:
        os.umask(before)
    return subprocess.run(["sh", str(tmp_path / ENTRY)], capture_output=True, text=True, check=False)


def test_a_folder_of_the_shared_one_is_made(tmp_path: Path) -> None:
    assert begun(tmp_path, tmp_path / "new/folder").stdout == f"{tmp_path}/new/folder\n"


def test_a_folder_that_cannot_be_made_here_is_refused_where_the_command_is(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    ended = begun(tmp_path, tmp_path / "file/folder")
    assert (tmp_path / READY).exists()
    assert ended.returncode == 126
    assert f"the working directory {tmp_path}/file/folder cannot be entered" in ended.stderr
