"""Files for DCGM's and AMD's exporters name the jobs of each device, and go when the jobs end."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from pathlib import Path

import pytest

from corral.devices.figures.device_figures import DeviceFigures
from corral.kernel.errors import InvalidInput
from corral.kernel.ids import AttemptId
from corral.monitor.agent.collector import Collector
from corral.monitor.agent.job_labels import JobLabels, LabelFolders
from corral.monitor.agent.task_names import TaskNames

JOB_A, JOB_B = "1m83aaaaaaaaa", "1m83bbbbbbbbb"


def names(job: str, *devices: str) -> TaskNames:
    return TaskNames("ann", "ann~digits", "worker", "0", job, "research", frozenset(devices))


def found_in(folder: Path) -> dict[str, str]:
    return {each.name: each.read_text() for each in sorted(folder.iterdir())}


def as_dcgm_reads(folder: Path) -> dict[str, list[str]]:
    """GPUs and their jobs as `internal/pkg/transformation/hpc.go` of NVIDIA/dcgm-exporter finds them."""
    return {name: text.splitlines() for name, text in found_in(folder).items() if name.isdigit()}


def as_amd_reads(folder: Path) -> dict[str, tuple[str, str, str, str]]:
    """GPUs and their jobs as `pkg/exporter/scheduler/slurm.go` of ROCm/device-metrics-exporter finds them."""
    found = {}
    for name, text in found_in(folder).items():
        told = json.loads(text) if name.isdigit() else {}
        assert all(isinstance(value, str) for value in told.values())  # map[string]string
        for gpu in told["CUDA_VISIBLE_DEVICES"].split(","):
            keys = ("SLURM_JOB_ID", "SLURM_JOB_USER", "SLURM_JOB_PARTITION", "SLURM_CLUSTER_NAME")
            found[gpu] = tuple(told[key] for key in keys)
    return found


def test_both_exporters_read_who_holds_a_device_and_forget_it(tmp_path: Path) -> None:
    dcgm, amd = tmp_path / "run" / "dcgm", tmp_path / "amd"
    labels = JobLabels(LabelFolders(dcgm, amd))
    shared = [names(JOB_B), names(JOB_A), names(JOB_A)]
    labels.write({("nvidia", 0): shared, ("nvidia", 11): [names(JOB_A)], ("amd", 3): shared, ("ascend", 1): shared})
    assert as_dcgm_reads(dcgm) == {"0": [JOB_A, JOB_B], "11": [JOB_A]}
    assert as_amd_reads(amd) == {"3": (JOB_A, "ann", "research", "corral")}
    labels.write({("nvidia", 0): [names(JOB_B)]})
    assert as_dcgm_reads(dcgm) == {"0": [JOB_B]} and found_in(amd) == {}
    labels.close()
    assert found_in(dcgm) == {}


def test_files_of_a_process_that_was_killed_are_removed_and_others_stay(tmp_path: Path) -> None:
    JobLabels(LabelFolders(dcgm=tmp_path)).write({("nvidia", 0): [names(JOB_A)], ("nvidia", 1): [names(JOB_A)]})
    (tmp_path / "README").write_text("mine")
    JobLabels(LabelFolders(dcgm=tmp_path)).write({("nvidia", 1): [names(JOB_B)]})
    assert found_in(tmp_path) == {"1": f"{JOB_B}\n", "README": "mine"}


def test_a_file_is_written_once_while_nothing_changes(tmp_path: Path) -> None:
    labels = JobLabels(LabelFolders(dcgm=tmp_path))
    labels.write({("nvidia", 0): [names(JOB_A)]})
    (tmp_path / "0").chmod(0o600)
    labels.write({("nvidia", 0): [names(JOB_A)]})
    assert (tmp_path / "0").stat().st_mode & 0o777 == 0o600  # another file would have its own mode


class Devices:
    """A reader of two devices, which can fail."""

    def __init__(self) -> None:
        self.fails = False

    def read(self) -> tuple[DeviceFigures, ...]:
        if self.fails:
            raise OSError("the driver is gone")
        return DeviceFigures("nvidia", 0, id="GPU-1"), DeviceFigures("nvidia", 1, id="GPU-2")

    def close(self) -> None:
        pass


def collector(folder: Path, devices: Devices, proc: Path, parts: Sequence[str]) -> Collector:
    labels = LabelFolders(dcgm=folder)
    return Collector(find=lambda: devices, proc=str(proc), groups=str(proc), parts=parts, labels=labels)


def process(proc: Path, pid: int, attempt: str) -> None:
    (proc / str(pid)).mkdir(parents=True)
    (proc / str(pid) / "environ").write_text(f"CORRAL_ATTEMPT={attempt}\0")
    (proc / str(pid) / "stat").write_text(f"{pid} (x) S 1 {pid} 0 0 0 0 0 0 0 0 9 0 0 0 0 0 1 0 {pid} 0")


@pytest.mark.parametrize("parts", [("devices", "tasks"), ("tasks",)])
def test_a_collector_keeps_the_files_also_where_devices_are_another_exporters(
    tmp_path: Path, parts: Sequence[str], caplog: pytest.LogCaptureFixture
) -> None:
    proc, folder, devices = tmp_path / "proc", tmp_path / "labels", Devices()
    process(proc, 7, f"{JOB_A}.0.worker.0.0")
    made = collector(folder, devices, proc, parts)

    def name(attempt: AttemptId, pid: int) -> TaskNames:
        return names(JOB_A, "GPU-2")

    samples = made.collect(name)
    assert as_dcgm_reads(folder) == {"1": [JOB_A]}
    assert ("gpu" in str({each.family for each in samples.values})) == ("devices" in parts)
    devices.fails = True
    with caplog.at_level(logging.WARNING):
        made.collect(name)
    assert as_dcgm_reads(folder) == {"1": [JOB_A]} and "the driver is gone" in caplog.text
    devices.fails = False
    (proc / "7" / "environ").unlink()
    (proc / "7" / "stat").unlink()
    (proc / "7").rmdir()
    made.collect(name)
    assert found_in(folder) == {}
    made.close()


def test_a_folder_that_cannot_be_written_to_is_told_once_and_costs_nothing_else(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    made = collector(tmp_path / "file", Devices(), tmp_path, ("devices", "tasks"))
    with caplog.at_level(logging.WARNING):
        made.collect(lambda attempt, pid: None)
        samples = made.collect(lambda attempt, pid: None)
        made.close()
    values = {(each.family, each.labels): each.value for each in samples.values}
    assert values["corral_agent_failures_total", ("labels",)] == 2
    assert values["configured_gpu_count", ()] == 2
    assert [record.message.partition(":")[0] for record in caplog.records] == [
        "figures of the labels are missing",
        "files of jobs for a vendor's exporter are left",
    ]


def test_files_of_jobs_need_the_tasks(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="need the part `tasks`"):
        collector(tmp_path, Devices(), tmp_path, ("devices",))
