"""PyTorch: plain variables for one process a task, torchrun for more, the c10d rendezvous for elastic roles."""

from __future__ import annotations

import pytest

from corral.model.launch import PortRequest
from tests.frameworks.gangs import gang, job, render, without_identity


def test_one_process_a_task_gets_the_plain_variables() -> None:
    rendered = render(gang(job("pytorch", [{"name": "worker", "replicas": 2}]), "worker-0", "worker-1"))
    task = rendered["worker-1"]
    assert task.command == ("python", "train.py")
    assert without_identity(task) == {
        "OMP_NUM_THREADS": "1",
        "RANK": "1",
        "WORLD_SIZE": "2",
        "LOCAL_RANK": "0",
        "LOCAL_WORLD_SIZE": "1",
        "GROUP_RANK": "1",
        "MASTER_ADDR": "$(peer:worker-0:host)",
        "MASTER_PORT": "$(peer:worker-0:port:rendezvous)",
    }
    assert task.resolve == ("worker-0",)
    assert task.runtime
    assert task.ports == ()
    assert rendered["worker-0"].ports == (PortRequest("rendezvous"),)


def test_several_roles_are_one_process_group() -> None:
    roles = [{"name": "master"}, {"name": "worker", "replicas": 2}]
    rendered = render(gang(job("pytorch", roles), "worker-1", "master-0", "worker-0"))
    assert {name: task.env["RANK"] for name, task in rendered.items()} == {
        "master-0": "0",
        "worker-0": "1",
        "worker-1": "2",
    }
    assert {task.env["MASTER_ADDR"] for task in rendered.values()} == {"$(peer:master-0:host)"}


def test_one_process_per_device_runs_under_torchrun() -> None:
    roles = [{"name": "worker", "replicas": 2, "resources": {"cpu": "4", "devices": {"count": 2}}}]
    rendered = render(gang(job("pytorch", roles), "worker-1", "worker-0"))
    assert rendered["worker-1"].command == (
        "torchrun",
        "--nnodes=2",
        "--node-rank=1",
        "--nproc-per-node=2",
        "--master-addr=$(peer:worker-0:host)",
        "--master-port=$(peer:worker-0:port:rendezvous)",
        "--local-addr=$(peer:worker-1:host)",
        "--no-python",
        "python",
        "train.py",
    )
    assert without_identity(rendered["worker-1"]) == {"OMP_NUM_THREADS": "2"}
    assert rendered["worker-1"].resolve == ("worker-0", "worker-1")


def test_an_elastic_role_meets_at_the_store_of_task_0() -> None:
    document = job("pytorch", [{"name": "worker"}], replicaSpec={"replicas": 4, "minReplicas": 1, "maxReplicas": 4})
    rendered = render(gang(document, "worker-3", "worker-0"))
    assert rendered["worker-3"].command == (
        "torchrun",
        "--nnodes=1:4",
        "--nproc-per-node=1",
        "--rdzv-backend=c10d",
        "--rdzv-endpoint=$(peer:worker-0:host):$(peer:worker-0:port:rendezvous)",
        "--rdzv-id=0123456789abc.0",
        "--rdzv-conf=last_call_timeout=2,keep_alive_interval=1,keep_alive_max_attempt=3,is_host=0",
        "--local-addr=$(peer:worker-3:host)",
        "--monitor-interval=0.5",
        "--no-python",
        "python",
        "train.py",
    )
    assert "is_host=1" in rendered["worker-0"].command[6]
    assert without_identity(rendered["worker-0"]) == {
        "OMP_NUM_THREADS": "1",
        "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",
        "PET_MAX_RESTARTS": "100",
    }


@pytest.mark.parametrize("replicas", [{"replicas": 2, "minReplicas": 1, "maxReplicas": 2}, {"replicas": 1}])
def test_torchrun_passes_the_checkpoint_signal_on_and_waits_as_long_as_the_job_says(replicas: dict[str, int]) -> None:
    checkpoint = {"signal": "SIGUSR1", "graceSeconds": 90}
    document = job(
        "pytorch", [{"name": "worker", "processesPerReplica": 2}], replicaSpec=replicas, checkpoint=checkpoint
    )
    env = render(gang(document, "worker-0"))["worker-0"].env
    assert env["PET_SHUTDOWN_TIMEOUT"] == "90"
    assert env["PET_SIGNALS_TO_HANDLE"] == "SIGTERM,SIGINT,SIGHUP,SIGQUIT,SIGUSR1"


def test_the_role_decides_how_often_torchrun_restarts_its_processes() -> None:
    document = job(
        "pytorch",
        [{"name": "worker", "env": {"PET_MAX_RESTARTS": "2"}}],
        replicaSpec={"replicas": 2, "minReplicas": 1, "maxReplicas": 2},
    )
    assert render(gang(document, "worker-0"))["worker-0"].env["PET_MAX_RESTARTS"] == "2"


def test_roles_beside_the_elastic_one_are_counted_in_its_bounds() -> None:
    document = job(
        "pytorch",
        [{"name": "worker"}, {"name": "extra", "replicas": 2}],
        replicaSpec={"replicas": 3, "minReplicas": 1, "maxReplicas": 3},
    )
    assert "--nnodes=3:5" in render(gang(document, "worker-0", "extra-0", "extra-1"))["extra-1"].command


def test_a_port_that_the_role_declares_itself_is_asked_for_once() -> None:
    roles = [{"name": "worker", "ports": [{"name": "rendezvous"}]}]
    assert render(gang(job("pytorch", roles), "worker-0"))["worker-0"].ports == ()
