"""Load OpenPAI's recorded jobs and verdicts; tests without them are skipped with a message."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

MINIMAL = """\
protocolVersion: 2
name: j1
type: job
prerequisites: [{type: dockerimage, name: d, uri: "ubuntu:22.04"}]
taskRoles:
  worker: {instances: 1, dockerImage: d, resourcePerInstance: {cpu: 1, memoryMB: 512, gpu: 0}, commands: ["echo hi"]}
"""


def recorded(data_folder: Path, name: str) -> Any:
    """One of the files recorded from OpenPAI's own code."""
    file = data_folder / "openpai" / name
    if not file.is_file():
        pytest.skip(f"OpenPAI's recorded jobs are not here: set CORRAL_DATA to the folder that has openpai/{name}")
    return json.loads(file.read_text())


def samples(data_folder: Path, version: int) -> list[Path]:
    """The sample jobs of a protocol."""
    found = sorted((data_folder / "openpai" / f"jobs-v{version}").glob("*"))
    if not found:
        pytest.skip(
            f"OpenPAI's sample jobs are not here: set CORRAL_DATA to the folder that has openpai/jobs-v{version}"
        )
    return found


def job_file(**changes: Any) -> str:
    """The smallest job of protocol v2, with other top-level fields; those that are None are left out."""
    data: dict[str, Any] = yaml.safe_load(MINIMAL) | changes
    return yaml.safe_dump({key: value for key, value in data.items() if value is not None}, sort_keys=False)


def role_of(**changes: Any) -> dict[str, Any]:
    """The task role of the smallest job with other fields."""
    role: dict[str, Any] = yaml.safe_load(MINIMAL)["taskRoles"]["worker"] | changes
    return {key: value for key, value in role.items() if value is not None}
