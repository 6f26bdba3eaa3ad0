"""`corral convert` shows a job file in its canonical or its short form."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from corral.cli.main import run


def test_the_short_form_reads_back_as_the_same_job(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "job.yaml"
    file.write_text("name: digits\nframework: shell\nroles: {main: {replicas: 2, command: echo hello}}\n")
    assert run(["convert", str(file)]) == 0
    canonical = capsys.readouterr().out
    assert run(["convert", "--short", str(file)]) == 0
    short = capsys.readouterr().out
    assert yaml.safe_load(short)["roles"]["main"] == {"replicas": 2, "command": "echo hello"}
    file.write_text(short)
    assert run(["convert", str(file)]) == 0
    assert capsys.readouterr().out == canonical
