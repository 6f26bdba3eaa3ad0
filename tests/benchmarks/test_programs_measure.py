"""The measurements themselves, small, as real processes: each gives its figures, and a fault is told."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from corral.benchmarks.programs.run import variables
from corral.benchmarks.results.lines import Told, told_in
from corral.benchmarks.suite.catalogue import KINDS
from tests.reserved import free_port

ROOT = Path(__file__).resolve().parents[2]
SMALL: dict[str, dict[str, int]] = {
    "process-launch": {"repeat": 1},
    "cpu-stream": {"size_mib": 1, "repeat": 1},
    "matmul": {"size": 32, "repeat": 1},
    "disk-benchmark": {"size_mib": 1, "seconds": 1},
    "data-loading": {"size_mib": 4, "repeat": 1},
}


def begin(
    folder: Path, name: str, *more: str, index: int = 0, parameters: dict[str, int] | None = None, **env: str
) -> subprocess.Popen[bytes]:
    words = [name, "--program", KINDS[name].program, f"--parameters={json.dumps(parameters or SMALL[name])}", *more]
    known = {"PATH": os.environ["PATH"], "CORRAL_TASK_INDEX": str(index)} | env
    known["PYTHONPATH"] = f"{env.get('PYTHONPATH', '')}{os.pathsep}{ROOT}".lstrip(os.pathsep)
    argv = [sys.executable, "-m", "corral.benchmarks.programs.run", *words]
    return subprocess.Popen(argv, cwd=folder, env=known, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def told(process: subprocess.Popen[bytes], name: str) -> tuple[int, Told]:
    log, _ = process.communicate(timeout=240)
    found = told_in(log, name)
    assert len(found) == 1, log
    return process.returncode, found[0]


def named(found: Told, ending: str) -> set[str]:
    return {metric.rpartition("/")[2] for metric in found.metrics if metric.endswith(ending)}


@pytest.mark.parametrize("name", SMALL)
def test_each_process_of_a_benchmark_gives_the_figures_of_the_catalogue(tmp_path: Path, name: str) -> None:
    code, found = told(begin(tmp_path, name, "--processes=2"), name)
    assert (code, found.problems) == (0, ())
    assert found.metrics[f"{name}/return_code"] == 0
    for rank in (0, 1):
        figures = named(found, f":{rank}")
        known = [each for each in KINDS[name].metrics if any(figure.startswith(each) for figure in figures)]
        assert known and all(any(figure.startswith(each) for each in KINDS[name].metrics) for figure in figures)
    assert all(value > 0 for metric, value in found.metrics.items() if not metric.endswith("return_code"))
    assert list(tmp_path.iterdir()) == []


def test_without_fio_a_disk_is_written_and_read_plainly(tmp_path: Path) -> None:
    empty = tmp_path / "bin"
    empty.mkdir()
    code, found = told(begin(tmp_path, "disk-benchmark", PATH=str(empty)), "disk-benchmark")
    assert code == 0 and named(found, ":0") == {"seq_write_bw:0", "seq_read_bw:0"}


def test_fio_measures_random_accesses_too(tmp_path: Path) -> None:
    if shutil.which("fio") is None:
        pytest.skip("fio is not here: apt-get install fio")
    code, found = told(begin(tmp_path, "disk-benchmark"), "disk-benchmark")
    assert code == 0 and {"rand_read_lat:0", "rand_write_bw:0", "seq_read_bw:0"} <= named(found, ":0")


def test_every_pair_of_tasks_is_measured(tmp_path: Path) -> None:
    gang = ",".join(f"127.0.0.1:{free_port()}" for _ in range(3))
    tasks = [
        begin(tmp_path, "tcp-bw", f"--gang={gang}", index=index, parameters={"size_mib": 1}) for index in (2, 1, 0)
    ]
    ended = [told(task, "tcp-bw") for task in tasks]
    assert [code for code, _ in ended] == [0, 0, 0]
    pairs = {f"pair_{one}_{two}_{what}:0" for one, two in ((0, 1), (0, 2), (1, 2)) for what in ("lat", "bw")}
    assert named(ended[-1][1], ":0") == pairs | {"max_pair_lat:0", "min_pair_bw:0"}


def test_a_process_of_mpi_is_counted_by_its_task_whatever_its_place_in_the_topology(tmp_path: Path) -> None:
    name = "process-launch"
    mpi = {f"OMPI_COMM_WORLD_{key}": value for key, value in (("RANK", "4"), ("SIZE", "6"), ("LOCAL_RANK", "0"))}
    process = begin(tmp_path, name, "--mpi", "--gang=a:1,b:2,c:3", index=1, **mpi)
    code, found = told(process, name)
    assert code == 0 and named(found, ":2") == {"spawn_time:2", "python_time:2"}


@pytest.mark.parametrize("name", ["CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ASCEND_RT_VISIBLE_DEVICES"])
def test_each_process_of_several_has_a_device_of_its_own(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "2,5")
    two = argparse.Namespace(processes=2, gang="")
    assert [variables(two, local)[name] for local in (0, 1)] == ["2", "5"]
    assert name not in variables(argparse.Namespace(processes=3, gang=""), 0), "they share those that there are"


def test_a_program_that_fails_is_told_with_its_reason(tmp_path: Path) -> None:
    name = "all-reduce"
    process = begin(tmp_path, name, parameters={"most_mib": 1, "repeat": 1}, PYTHONPATH=_without_torch(tmp_path))
    code, found = told(process, name)
    assert code == 1 and found.metrics == {f"{name}/return_code": 1.0}
    assert found.problems == ("rank 0: ImportError: no torch here",)


def _without_torch(folder: Path) -> str:
    (folder / "torch.py").write_text('raise ImportError("no torch here")\n')
    return str(folder)


def test_a_process_that_is_killed_is_told_and_the_others_go_on(tmp_path: Path) -> None:
    deadly = tmp_path / "numpy.py"
    deadly.write_text('import os\nif os.environ["RANK"] == "0":\n    os.kill(os.getpid(), 9)\nraise ImportError\n')
    process = begin(tmp_path, "cpu-stream", "--processes=2", PYTHONPATH=str(tmp_path))
    code, found = told(process, "cpu-stream")
    assert code == 1 and found.problems == ("rank 0: the process ended with signal 9 and told nothing",)
    assert found.metrics["cpu-stream/copy_bw:1"] > 0


def test_a_task_that_is_told_to_end_takes_its_processes_with_it(tmp_path: Path) -> None:
    slow = tmp_path / "numpy.py"
    slow.write_text('import signal\nprint("waiting", flush=True)\nsignal.pause()\n')
    process = begin(tmp_path, "cpu-stream", PYTHONPATH=str(tmp_path))
    assert process.stdout is not None and process.stdout.readline() == b"waiting\n"
    process.send_signal(signal.SIGTERM)
    rest, _ = process.communicate(timeout=240)  # ends only when every process has closed the pipe
    assert process.returncode == 143 and told_in(rest, "cpu-stream") == []
