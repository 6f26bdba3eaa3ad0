"""The real libraries understand the rendered jobs: the examples' programs run in two or more processes.

A local harness starts the tasks where a chosen placement or a failure matters; `test_on_the_server.py` runs the
examples through Corral.
"""

from __future__ import annotations

import re
import shutil
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from corral.frameworks import Gang
from corral.kernel.ids import JobId
from corral.runtime import notebook_activity
from corral.runtime.notebook_activity import activity_of
from corral.spec.job import UnifiedJob
from corral.spec.job_reader import load_job
from tests.frameworks.environments import ROOT, WITHOUT_COMPILER, environment
from tests.frameworks.gangs import gang
from tests.frameworks.harness import local_gang
from tests.waiting import pause

pytestmark = [pytest.mark.frameworks, pytest.mark.timeout(600)]


def example(path: str, *tasks: str) -> Gang:
    """An example's job as a gang with `tasks` in topology order."""
    file = ROOT / "examples" / path
    return gang(load_job(file.read_text(), filename=str(file)), *tasks)


def with_code(folder: Path, name: str, *tasks: str) -> None:
    """Unpack an example's files where the tasks will run."""
    for task in tasks:
        shutil.copytree(ROOT / "examples" / name, folder / f"work-{task}")


def test_pytorch_runs_two_processes_a_task_under_torchrun(tmp_path: Path) -> None:
    document = with_spec(example("pytorch/job.yaml", "worker-0").job, processes=2)
    with_code(tmp_path, "pytorch", "worker-0", "worker-1")
    with local_gang(tmp_path, environment("pytorch"), {"PYTHONPATH": str(WITHOUT_COMPILER)}) as local:
        local.start(gang(document, "worker-0", "worker-1"))
        assert local.wait() == {"worker-0": 0, "worker-1": 0}
        assert "epoch 5/5" in local.log("worker-0")
        assert "with 4 processes" in local.log("worker-0")


def with_spec(job: UnifiedJob, *, processes: int) -> UnifiedJob:
    """`job` with `processes` processes in each replica of its first role."""
    document = job.to_document()
    document["spec"]["roles"][0]["processesPerReplica"] = processes
    return UnifiedJob.from_document(document)


def test_jax_spreads_an_array_over_three_processes(tmp_path: Path) -> None:
    tasks = ("worker-0", "worker-1", "worker-2")
    document = resized(example("jax/job.yaml", "worker-0").job, 3)
    with_code(tmp_path, "jax", *tasks)
    with local_gang(tmp_path, environment("jax")) as local:
        local.start(gang(document, *tasks))
        assert local.wait() == {"worker-0": 0, "worker-1": 0, "worker-2": 0}
        assert [f"process {n} of 3: error 0.0" in local.log(f"worker-{n}") for n in range(3)] == [True] * 3


def resized(job: UnifiedJob, replicas: int) -> UnifiedJob:
    """`job` with `replicas` replicas of the counted role."""
    document = job.to_document()
    document["spec"]["replicaSpec"] = {"replicas": replicas}
    return UnifiedJob.from_document(document)


def test_mpi_ranks_are_in_topology_order_in_the_tasks_themselves(tmp_path: Path) -> None:
    _needs_mpirun()
    tasks = ("worker-1", "worker-0", "worker-2")
    with_code(tmp_path, "mpi", *tasks)
    with local_gang(tmp_path, environment("mpi")) as local:
        local.start(example("mpi/job.yaml", *tasks))
        assert local.wait() == {"worker-0": 0, "worker-1": 0, "worker-2": 0}
        assert "pi is 3.1415926536, by 3 ranks: 0=worker-0 1=worker-2 2=worker-1" in local.log("worker-0")


def test_an_mpi_command_that_calls_mpirun_itself_finds_hosts_and_agents(tmp_path: Path) -> None:
    _needs_mpirun()
    document = example("mpi/job.yaml", "worker-0").job.to_document()
    document["spec"]["roles"][0]["command"] = [
        "sh",
        "-c",
        "mpirun --map-by node sh -c 'echo rank of $CORRAL_TASK_INDEX'",
    ]
    members = gang(UnifiedJob.from_document(document), "worker-0", "worker-1", "worker-2")
    with local_gang(tmp_path) as local:
        local.start(members)
        assert set(local.wait().values()) == {0}
        # Open MPI itself may add a warning: its parent and its child both call setpgid, and the parent may be late.
        assert sorted(re.findall(r"rank of (\d)", local.log("worker-0"))) == ["0", "1", "2"]


def test_a_failed_mpi_rank_gives_the_job_its_exit_code(tmp_path: Path) -> None:
    _needs_mpirun()
    document = example("mpi/job.yaml", "worker-0").job.to_document()
    document["spec"]["roles"][0]["command"] = ["sh", "-c", "exit $((CORRAL_TASK_INDEX == 2 ? 7 : 0))"]
    with local_gang(tmp_path) as local:
        local.start(gang(UnifiedJob.from_document(document), "worker-0", "worker-1", "worker-2"))
        assert local.wait() == {"worker-0": 7, "worker-1": 0, "worker-2": 0}


def test_a_fixed_horovod_ring_is_in_topology_order(tmp_path: Path) -> None:
    adding = "import horovod.torch as h, torch; h.init(); total = h.allreduce(torch.tensor([1.0 + h.rank()]), op=h.Sum)"
    telling = (
        "import os; print('rank', h.rank(), 'on', os.environ['CORRAL_TASK_INDEX'], 'of', total.item(), flush=True)"
    )
    document = resized(example("horovod/job.yaml", "worker-0").job, 3).to_document()
    document["spec"]["roles"][0]["command"] = ["python", "-c", f"{adding}; {telling}"]
    with local_gang(tmp_path, environment("horovod")) as local:
        local.start(gang(UnifiedJob.from_document(document), "worker-1", "worker-0", "worker-2"))
        assert local.wait() == {"worker-0": 0, "worker-1": 0, "worker-2": 0}
        for rank, task in enumerate((0, 2, 1)):
            assert f"rank {rank} on {task} of 6.0" in local.log(f"worker-{task}")


def _needs_mpirun() -> None:
    if shutil.which("mpirun") is None:
        pytest.skip("Open MPI is not here: apt-get install openmpi-bin")


def test_jupyter_answers_on_its_own_path_to_its_token_alone_and_tells_whether_somebody_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import httpx2

    with_code(tmp_path, "notebook", "main-0")
    with local_gang(tmp_path, environment("notebook")) as local:
        local.start(example("notebook/job.yaml", "main-0"))
        local.wait_for("main-0", "is running at")  # said before the port is bound
        local.wait_for_port("main-0", "notebook")
        base = f"http://127.0.0.1:{local.port('main-0', 'notebook')}/proxy/{JobId('0123456789abc')}/main-0/notebook"
        token = {"Authorization": "token test-secret-notebook"}
        assert httpx2.get(f"{base}/api/contents", timeout=60).status_code == 403
        listed = httpx2.get(f"{base}/api/contents", headers=token, timeout=60).json()
        assert "first.ipynb" in [entry["name"] for entry in listed["content"]]
        kernel = httpx2.post(f"{base}/api/kernels", headers=token, json={"name": "python3"}, timeout=60)
        assert kernel.status_code == 201
        assert "test-secret" not in local.log("main-0")
        variables = {"CORRAL_HOST": "127.0.0.1", "CORRAL_PORT_NOTEBOOK": str(local.port("main-0", "notebook"))}
        path = f"{urlsplit(base).path}/"
        (stranger,) = activity_of(path, variables)
        (look,) = activity_of(path, variables | {"JUPYTER_TOKEN": "test-secret-notebook"})
        monkeypatch.setattr(notebook_activity, "LOOK_SECONDS", 0.0)
        assert stranger() == {}
        begun = time.monotonic()
        for active in (1.0, 0.0):  # the kernel rests once it has started
            while look() != {"active": active}:
                time.sleep(pause(begun))
        restart = f"{base}/api/kernels/{kernel.json()['id']}/restart"
        assert httpx2.post(restart, headers=token, timeout=60).status_code == 200
        while look() != {"active": 1.0}:
            time.sleep(pause(begun))
