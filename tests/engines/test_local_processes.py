"""Reading processes from `/proc` is correct even when entries vanish or are empty."""

from __future__ import annotations

import subprocess
from pathlib import Path

from corral.engines.local.processes import environment


def test_a_process_that_becomes_another_program_has_its_environment_all_the_time(tmp_path: Path) -> None:
    script = tmp_path / "again.sh"
    script.write_text(f"exec sh {script}\n")
    process = subprocess.Popen(["sh", str(script)], env={"MINE": "1", "PATH": "/usr/bin:/bin"})
    try:
        found = [environment(process.pid).get("MINE") for _ in range(3000)]
    finally:
        process.kill()
        process.wait()
    assert set(found) == {"1"}


def test_a_process_that_is_gone_has_none() -> None:
    process = subprocess.Popen(["true"])
    process.wait()
    assert environment(process.pid) == {}
