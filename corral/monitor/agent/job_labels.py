"""Tell vendors' exporters which jobs use a device, as files that they read, so that their series have labels of jobs.

- DCGM exporter reads a folder (`--hpc-job-mapping-dir`) with one file for each GPU, named by its number, with the id of a
  job on each line, and gives the label `hpc_job` (`internal/pkg/transformation/hpc.go` of NVIDIA/dcgm-exporter).
- AMD's device metrics exporter watches a folder (`/var/run/exporter`) with one JSON object for each GPU, named by its
  number, with the variables of a Slurm job, and gives `job_id`, `job_user`, `job_partition` and `cluster_name`
  (`pkg/exporter/scheduler/slurm.go` of ROCm/device-metrics-exporter). It knows one job for each GPU.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from corral.devices.figures.device_figures import MOST_DEVICES
from corral.monitor.agent.task_names import TaskNames

_CLUSTER: Final = "corral"
_MOST_JOBS: Final = 64
"""Jobs of one device that are told: each makes a copy of all its series."""
Holders = Mapping[tuple[str, int], Sequence[TaskNames]]
"""The tasks that hold a device, by its vendor and its place among the machine's devices."""


class LabelFolders(NamedTuple):
    """The folders of the vendors' exporters; None writes nothing. They are Corral's alone."""

    dcgm: Path | None = None
    amd: Path | None = None


NO_FOLDERS: Final = LabelFolders()


class JobLabels:
    """Keeps the files of the folders as the devices are held; a folder that is missing is made."""

    def __init__(self, folders: LabelFolders) -> None:
        self._folders = [_Folder(path) for path in folders if path is not None]
        self._texts = [text for path, text in zip(folders, (_dcgm, _amd), strict=True) if path is not None]

    def __bool__(self) -> bool:
        return bool(self._folders)

    def write(self, holders: Holders) -> None:
        """Write the files of devices that are held, and remove those of others.

        Raises OSError if a folder cannot be written to.
        """
        for folder, text in zip(self._folders, self._texts, strict=True):
            folder.become(text(holders))

    def close(self) -> None:
        """Remove all files, because nobody keeps them up to date from now on."""
        for folder in self._folders:
            folder.become({})


class _Folder:
    """A folder whose files have numbers as names."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._written: dict[str, str] | None = None
        """What the files hold; None before the first look, when those of a former process may be there."""

    def become(self, wanted: Mapping[str, str]) -> None:
        self._path.mkdir(parents=True, exist_ok=True)
        if self._written is None:
            self._written = dict.fromkeys(_numbers(self._path), "")
        for name in self._written.keys() - wanted.keys():
            (self._path / name).unlink(missing_ok=True)
            del self._written[name]
        for name, text in wanted.items():
            if self._written.get(name) != text:
                fresh = self._path / f".{name}.new"  # an exporter passes over names that are no numbers
                fresh.write_text(text, encoding="utf-8")
                fresh.replace(self._path / name)
                self._written[name] = text


def _numbers(folder: Path) -> list[str]:
    with os.scandir(folder) as entries:
        found = (each.name for each in entries if each.name.isascii() and each.name.isdigit())
        return [name for name, _ in zip(found, range(MOST_DEVICES), strict=False)]


def _dcgm(holders: Holders) -> dict[str, str]:
    return {
        str(index): "".join(f"{job}\n" for job in _jobs(names)) for (vendor, index), names in holders.items()
        if vendor == "nvidia"
    }  # fmt: skip


def _amd(holders: Holders) -> dict[str, str]:
    found = {}
    for (vendor, index), names in holders.items():
        if vendor == "amd" and names:
            first = min(names, key=lambda each: each.instance)
            told = {
                "SLURM_JOB_ID": first.instance,
                "SLURM_JOB_USER": first.user,
                "SLURM_JOB_PARTITION": first.queue,
                "SLURM_CLUSTER_NAME": _CLUSTER,
                "SLURM_JOB_GPUS": str(index),
                "CUDA_VISIBLE_DEVICES": str(index),
            }
            found[str(index)] = json.dumps(told, indent=1) + "\n"
    return found


def _jobs(names: Iterable[TaskNames]) -> list[str]:
    return sorted({each.instance for each in names})[:_MOST_JOBS]
