"""What `corral efficiency` prints."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from corral.cli import efficiency as command
from corral.model.efficiency.figures import Figures, Mean
from corral.model.efficiency.records import EfficiencyReport, EfficiencySum
from corral.model.efficiency.verdict import JobHeld, RoleHeld, judge
from corral.model.usage import GIB, Use


def job(**found: Any) -> Any:
    """The answer about a job of one task with 8 devices for two hours."""
    role = RoleHeld("worker", 1, Use(57_600.0, 0.0, 7200.0), 8000, 16_000, 64 * GIB)
    held = JobHeld("j1", "train", "ann", "lab", "succeeded", 0.0, 7200.0, 7200.0, 0, (role,))
    return msgspec.to_builtins(judge(held, {"worker": Figures(**found)} if found else {}))


MEASURED: dict[str, Any] = {
    "tasks": 1, "devices": Mean(25.0, 99.0), "devices_in_use": 4, "cores": Mean(2.0, 3.0), "memory": Mean(GIB, 2 * GIB)
}  # fmt: skip


def test_a_job_is_a_table_of_its_roles_and_sentences() -> None:
    lines = command.job_text(job(**MEASURED)).splitlines()
    assert [line.split() for line in lines[:5]] == [
        ["ROLE", "DEVICES", "CPUS", "GIB"],
        ["worker", "asked", "8", "16", "64"],
        ["used", "2", "2", "1"],
        ["most", "4", "3", "2"],
        ["would", "do", "4", "4", "3"],
    ]
    assert any("4 devices would have done" in line for line in lines)
    assert command.job_text(job()).startswith("Nothing was measured of this job")


def test_a_report_lists_jobs_and_sums() -> None:
    total = EfficiencySum("", 115_200.0, 0.0, 57_600.0, 14_400.0)
    users = (msgspec.structs.replace(total, key="ann"), EfficiencySum("bob"))
    report = msgspec.to_builtins(EfficiencyReport("a", "b", total, users)) | {"items": [job(**MEASURED), job()]}
    lines = command.report_text(report).splitlines()
    assert lines[1].split()[:6] == ["train", "ann", "lab", "16.00", "25", "0.00"]
    assert lines[1].endswith("4 devices, 4 cpus, 3 GiB")
    assert lines[2].split() == ["train", "ann", "lab", "16.00", "-", "0.00"]
    assert lines[-1].split() == ["all", "32.00", "25", "0.00"]


@pytest.mark.parametrize(
    ("count", "said"),
    [(0, ""), (1, " 1 further job counts in the sums alone."), (2, " 2 further jobs count in the sums alone.")],
)
def test_jobs_without_a_line_are_counted(count: int, said: str) -> None:
    assert command.left_out_words(count) == said


def test_csv_has_a_line_for_each_role(capsys: pytest.CaptureFixture[str]) -> None:
    command._write_csv([job(**MEASURED), job()])
    first, second, third = capsys.readouterr().out.splitlines()
    assert first.startswith("job,name,user,queue,state,role,tasks,measured_tasks,device_seconds")
    assert second.startswith("j1,train,ann,lab,succeeded,worker,1,1,57600.0,0.0,14400.0,")
    assert third.split(",")[10] == "" and len(third.split(",")) == len(first.split(","))


def test_a_job_and_a_choice_of_jobs_are_refused_together() -> None:
    said = CliRunner().invoke(command.efficiency_command, ["train", "--user", "ann"])
    assert said.exit_code == 2 and "a job is judged as a whole" in said.output
