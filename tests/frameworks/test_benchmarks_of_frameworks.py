"""Benchmarks that need PyTorch, JAX or TensorFlow, as real processes on processors with tiny sizes."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from corral.benchmarks.results.lines import Told, told_in
from corral.benchmarks.suite.catalogue import KINDS
from corral.benchmarks.suites.named import copy_programs
from tests.frameworks.environments import WITHOUT_COMPILER, environment
from tests.reserved import free_port

pytestmark = [pytest.mark.frameworks, pytest.mark.timeout(600)]
TINY = {"steps": 3, "warmup": 1, "batch_size": 2}


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the programs, as a task has them."""
    folder = tmp_path_factory.mktemp("programs")
    copy_programs(folder)
    return folder


def measured(programs: Path, library: str, name: str, parameters: dict[str, int], *more: str) -> Told:
    words = [name, f"--program={KINDS[name].program}", f"--parameters={json.dumps(parameters)}", *more]
    known = {"PATH": os.environ["PATH"], "PYTHONPATH": f"{programs}{os.pathsep}{WITHOUT_COMPILER}"}
    known |= {"OMP_NUM_THREADS": "1", "TF_CPP_MIN_LOG_LEVEL": "2", "JAX_PLATFORMS": "cpu"}
    argv = [str(environment(library) / "python"), "-m", "corral.benchmarks.programs.run", *words]
    done = subprocess.run(argv, cwd=programs, env=known, capture_output=True, timeout=500, check=False)
    (found,) = told_in(done.stdout, name)
    assert (done.returncode, found.problems) == (0, ()), done.stderr
    return found


@pytest.mark.parametrize("name", ["all-to-all", "all-reduce"])
def test_the_bandwidth_of_a_collective_over_gloo_is_measured_by_size(programs: Path, name: str) -> None:
    gang = f"--gang=127.0.0.1:{free_port()}"
    found = measured(programs, "pytorch", name, {"most_mib": 1, "repeat": 1}, gang, "--processes=2")
    sizes = {metric for metric in found.metrics if "/size_" in metric}
    assert len(sizes) >= 3 and all(metric.endswith("_bw:0") for metric in sizes)
    assert all(found.metrics[metric] > 0 for metric in (*sizes, f"{name}/largest_bw:0", f"{name}/smallest_lat:0"))
    assert found.metrics[f"{name}/return_code"] == 0


@pytest.mark.parametrize("library", ["jax", "tensorflow"])
def test_training_steps_are_measured_where_the_library_is_and_left_out_where_it_is_not(
    programs: Path, library: str
) -> None:
    name = f"{library}-benchmarks"
    found = measured(programs, library, name, TINY, "--models=mlp,attention")
    assert {metric for metric in found.metrics if not metric.endswith("return_code")} == {
        f"{name}/{model}_{what}:0" for model in ("mlp", "attention") for what in ("step_time", "samples_throughput")
    }
    assert all(value > 0 for metric, value in found.metrics.items() if not metric.endswith("return_code"))
    absent = measured(programs, "mpi", name, TINY, "--models=mlp")
    assert absent.metrics == {f"{name}/return_code": 0}, "the environment of MPI has neither library"
