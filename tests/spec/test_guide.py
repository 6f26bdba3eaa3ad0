"""Every example of the user guide works."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from corral.spec.job_reader import load_job
from corral.spec.short_form import ShortJob

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "job-file.md").read_text()
EXAMPLES = re.findall(r"```yaml\n(.*?)```", GUIDE, re.DOTALL)


JOBS = [path for path in sorted((ROOT / "examples").rglob("*.yaml")) if "\nroles:" in path.read_text()]


@pytest.mark.parametrize("path", JOBS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_job_among_the_examples_is_accepted(path: Path) -> None:
    assert load_job(path.read_bytes(), filename=path.name).total_tasks > 0


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda text: text.split("name: ", 1)[1].split("\n", 1)[0].strip("}"))
def test_every_example_of_the_guide_is_accepted(example: str) -> None:
    assert load_job(example).total_tasks > 0


def test_the_short_and_the_canonical_example_are_the_same_job() -> None:
    assert load_job(EXAMPLES[0]) == load_job(EXAMPLES[-1])


def test_every_field_of_the_job_file_is_in_the_guide() -> None:
    kept_for_the_reference = {"labels", "annotations", "countedRole", "retryPolicy", "dependsOn"}
    fields = {info.alias for info in ShortJob.model_fields.values()} - kept_for_the_reference
    assert {field for field in fields if not re.search(rf"\b{field}\b", GUIDE)} == set()
