"""Golden commands and environments of each framework, and the jobs that each refuses."""

from __future__ import annotations

import json
from typing import Any

import pytest

from corral.frameworks import framework
from corral.frameworks.notebook import PURPOSE
from corral.model.launch import PortRequest
from tests.frameworks.gangs import gang, job, render, without_identity

LEAD = ("$(runtime)", "agent", "lead", "--name=worker-0")
IN_TASK_FOLDER = ("sh", "-c", 'cd "$CORRAL_TASK_DIR" && exec "$@"', "task")


def address(task: str, port: str) -> str:
    return f"$(peer:{task}:host):$(peer:{task}:port:{port})"


def test_tensorflow_is_told_the_cluster_and_its_place_in_topology_order() -> None:
    rendered = render(
        gang(job("tensorflow", [{"name": "trainer", "replicas": 3}]), "trainer-2", "trainer-0", "trainer-1")
    )
    config = json.loads(rendered["trainer-2"].env["TF_CONFIG"])
    assert config == {
        "cluster": {"worker": [address(f"trainer-{n}", "tensorflow") for n in (0, 1, 2)]},
        "task": {"type": "worker", "index": 2},
    }
    assert rendered["trainer-2"].ports == (PortRequest("tensorflow"),)
    assert rendered["trainer-2"].resolve == ("trainer-0", "trainer-1", "trainer-2")


def test_tensorflow_roles_are_task_types_and_only_the_evaluator_sees_itself() -> None:
    roles: list[dict[str, Any]] = [
        {"name": "chief"},
        {"name": "ps", "replicas": 1},
        {"name": "evaluator", "replicas": 1},
    ]
    rendered = render(gang(job("tensorflow", roles), "evaluator-0", "chief-0", "ps-0"))
    seen = {name: json.loads(task.env["TF_CONFIG"]) for name, task in rendered.items()}
    assert sorted(seen["ps-0"]["cluster"]) == ["chief", "ps"]
    assert sorted(seen["evaluator-0"]["cluster"]) == ["chief", "evaluator", "ps"]
    assert seen["evaluator-0"]["task"] == {"type": "evaluator", "index": 0}


def test_jax_processes_meet_at_the_leading_task() -> None:
    rendered = render(gang(job("jax", [{"name": "w", "replicas": 2}]), "w-1", "w-0"))
    assert without_identity(rendered["w-1"]) == {
        "OMP_NUM_THREADS": "1",
        "JAX_COORDINATOR_ADDRESS": address("w-0", "coordinator"),
        "JAX_COORDINATOR_BIND_ADDRESS": address("w-0", "coordinator"),
        "JAX_NUM_PROCESSES": "2",
        "JAX_PROCESS_ID": "1",
    }
    assert [task.ports for task in rendered.values()] == [(PortRequest("coordinator"),), ()]


def test_mpirun_runs_in_the_leading_task_and_agents_in_the_others() -> None:
    roles = [{"name": "worker", "replicas": 2, "processesPerReplica": 2, "command": ["./solve", "-n", "8"]}]
    rendered = render(gang(job("mpi", roles), "worker-1", "worker-0"))
    assert rendered["worker-0"].command == (
        *LEAD,
        "--slots=2",
        "--wait-for=2",
        "--",
        *("mpirun", "-n", "4", "--map-by", "slot"),
        *IN_TASK_FOLDER,
        *("./solve", "-n", "8"),
    )
    assert rendered["worker-1"].command == ("$(runtime)", "agent", "join", "--name=worker-1", "--slots=2")
    assert without_identity(rendered["worker-1"]) == {
        "OMP_NUM_THREADS": "1",
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_plm_rsh_no_tree_spawn": "1",
        "OMPI_MCA_orte_leave_session_attached": "1",
        "OMPI_MCA_hwloc_base_binding_policy": "none",
        "OMPI_MCA_routed": "direct",
        "OMPI_MCA_rtc_hwloc_vmhole": "none",
    }
    assert rendered["worker-1"].env["CORRAL_AGENT_SECRET"] == "$(secret:agent)"
    assert rendered["worker-1"].env["CORRAL_AGENT_PORT"] == "$(peer:worker-0:port:agent)"
    assert rendered["worker-0"].env["CORRAL_AGENT_ORDER"] == "worker-0,worker-1"
    assert "CORRAL_AGENT_ORDER" not in rendered["worker-1"].env
    assert rendered["worker-0"].ports == (PortRequest("agent"),)


@pytest.mark.parametrize(
    "command",
    [["mpirun", "-n", "2", "./solve"], ["/usr/bin/mpiexec", "./solve"], ["sh", "-c", "set -e; mpirun -n 2 ./solve"]],
)
def test_a_command_that_calls_mpirun_is_not_wrapped_in_another(command: list[str]) -> None:
    rendered = render(gang(job("mpi", [{"name": "worker", "replicas": 2, "command": command}]), "worker-0", "worker-1"))
    assert rendered["worker-0"].command[-len(command) - 1 :] == ("--", *command)


def test_a_program_that_only_sounds_like_mpirun_is_wrapped() -> None:
    roles = [{"name": "worker", "command": ["./mpirunner"]}]
    assert "mpirun" in render(gang(job("mpi", roles), "worker-0"))["worker-0"].command


def test_the_one_command_of_an_mpi_job_may_stand_in_any_role() -> None:
    roles: list[dict[str, Any]] = [
        {"name": "worker", "command": []},
        {"name": "big", "replicas": 1, "command": ["./solve"]},
    ]
    document = job("mpi", roles)
    assert framework("mpi").check(document) == ()
    assert render(gang(document, "worker-0", "big-0"))["worker-0"].command[-1] == "./solve"


def test_cntk_is_an_mpi_program_that_is_told_to_train_in_parallel() -> None:
    roles = [{"name": "worker", "replicas": 2, "command": ["/opt/cntk/bin/cntk", "configFile=lenet.cntk"]}]
    command = render(gang(job("cntk", roles), "worker-0", "worker-1"))["worker-0"].command
    assert command == (
        *LEAD,
        "--slots=1",
        "--wait-for=2",
        "--",
        *("mpirun", "-n", "2", "--map-by", "slot"),
        *IN_TASK_FOLDER,
        *("/opt/cntk/bin/cntk", "configFile=lenet.cntk", "parallelTrain=true"),
    )


@pytest.mark.parametrize("command", [["cntk", "parallelTrain=true"], ["python", "train.py"]])
def test_other_cntk_programs_are_started_as_they_are_written(command: list[str]) -> None:
    roles = [{"name": "worker", "command": command}]
    rendered = render(gang(job("cntk", roles), "worker-0"))["worker-0"].command
    assert rendered[-len(command) :] == tuple(command)


def test_a_fixed_horovod_ring_is_in_rank_order() -> None:
    rendered = render(gang(job("horovod", [{"name": "worker", "replicas": 2}]), "worker-1", "worker-0"))
    assert rendered["worker-0"].command == (
        *LEAD,
        "--slots=1",
        "--wait-for=2",
        "--bare",
        "--",
        *("sh", "-c", 'exec "$0" --network-interface "$CORRAL_AGENT_INTERFACE" "$@"'),
        *("horovodrun", "--gloo", "-np", "2", "-H", "worker-0:1,worker-1:1"),
        *IN_TASK_FOLDER,
        *("python", "train.py"),
    )


def test_an_elastic_horovod_ring_asks_the_agents_who_is_there() -> None:
    document = job("horovod", [{"name": "worker"}], replicaSpec={"replicas": 4, "minReplicas": 2, "maxReplicas": 4})
    command = render(gang(document, "worker-0", "worker-1", "worker-2"))["worker-0"].command
    assert "--wait-for=2" in command
    assert command[command.index("horovodrun") :] == (
        *(
            "horovodrun",
            "--gloo",
            "-np",
            "2",
            "--min-np",
            "2",
            "--max-np",
            "4",
            "--blacklist-cooldown-range",
            "5",
            "10",
        ),
        *IN_TASK_FOLDER,
        *("python", "train.py"),
    )
    assert '--host-discovery-script "$CORRAL_AGENT_DIR/hosts"' in " ".join(command)


@pytest.mark.parametrize(("grace", "seconds"), [(None, "20"), (60, "54"), (10, "4"), (0, "0")])
def test_a_task_leaves_an_elastic_horovod_ring_within_its_grace_period(grace: int | None, seconds: str) -> None:
    size: dict[str, Any] = {"replicaSpec": {"replicas": 3, "minReplicas": 2, "maxReplicas": 4}}
    checkpoint = {} if grace is None else {"checkpoint": {"graceSeconds": grace}}
    document = job("horovod", [{"name": "worker"}], **size, **checkpoint)
    rendered = render(gang(document, "worker-0", "worker-1", "worker-2"))
    assert rendered["worker-1"].command[-1] == f"--leave-seconds={seconds}"
    assert "--idle-seconds=180" in rendered["worker-0"].command
    fixed = render(gang(job("horovod", [{"name": "worker", "replicas": 2}]), "worker-0", "worker-1"))
    assert not any("-seconds" in word for task in fixed.values() for word in task.command)


def test_an_elastic_horovod_ring_waits_for_a_process_that_starts_slowly() -> None:
    size: dict[str, Any] = {"replicaSpec": {"replicas": 2, "minReplicas": 2, "maxReplicas": 4}}
    elastic = render(gang(job("horovod", [{"name": "worker"}], **size), "worker-0", "worker-1"))
    assert [task.env["HOROVOD_GLOO_TIMEOUT_SECONDS"] for task in elastic.values()] == ["180", "180"]
    chosen = {"name": "worker", "env": {"HOROVOD_GLOO_TIMEOUT_SECONDS": "20"}}
    own = render(gang(job("horovod", [chosen], **size), "worker-0", "worker-1"))
    assert own["worker-1"].env["HOROVOD_GLOO_TIMEOUT_SECONDS"] == "20"
    fixed = render(gang(job("horovod", [{"name": "worker", "replicas": 2}]), "worker-0", "worker-1"))
    assert not any("HOROVOD_GLOO_TIMEOUT_SECONDS" in task.env for task in fixed.values())


def test_a_notebook_has_a_path_of_its_own_and_its_token_in_the_environment_only() -> None:
    (task,) = render(gang(job("notebook", [{"name": "main", "command": []}]), "main-0")).values()
    assert task.command == (
        "jupyter",
        "lab",
        "--no-browser",
        "--allow-root",
        "--ServerApp.ip=127.0.0.1",
        "--ServerApp.port=$(peer:main-0:port:notebook)",
        "--ServerApp.port_retries=0",
        "--ServerApp.base_url=/proxy/0123456789abc/main-0/notebook/",
        "--ServerApp.root_dir=.",
    )
    assert task.env["JUPYTER_TOKEN"] == f"$(secret:{PURPOSE})"
    assert not any("secret" in word for word in task.command)


def test_a_notebook_role_may_bring_its_own_server() -> None:
    (task,) = render(gang(job("notebook", [{"name": "main", "command": ["code-server"]}]), "main-0")).values()
    assert task.command == ("code-server",)


@pytest.mark.parametrize("job_type", ["tensorflow", "jax", "mpi", "cntk"])
def test_sizes_that_cannot_change_are_refused_as_elastic(job_type: str) -> None:
    document = job(job_type, [{"name": "worker"}], replicaSpec={"replicas": 2, "minReplicas": 1, "maxReplicas": 2})
    assert framework(job_type).check(document) == (
        (
            ("spec", "replicaSpec", "maxReplicas"),
            f"a {job_type} job cannot change its size while it runs; give replicas alone",
        ),
    )


@pytest.mark.parametrize("job_type", ["tensorflow", "jax"])
def test_one_process_drives_all_devices_where_the_library_wants_it(job_type: str) -> None:
    devices = {"name": "worker", "resources": {"devices": {"count": 4}}}
    assert framework(job_type).check(job(job_type, [devices])) == ()
    ((path, message),) = framework(job_type).check(job(job_type, [devices | {"processesPerReplica": 4}]))
    assert path == ("spec", "roles", 0, "processesPerReplica")
    assert "one process" in message


def test_tensorflow_refuses_roles_it_has_no_type_for() -> None:
    ((path, message),) = framework("tensorflow").check(
        job("tensorflow", [{"name": "worker"}, {"name": "x", "replicas": 1}])
    )
    assert path == ("spec", "roles", 1, "name")
    assert "chief, master, worker, ps, evaluator" in message


def test_mpi_refuses_two_programs() -> None:
    roles: list[dict[str, Any]] = [{"name": "a", "command": ["./a"]}, {"name": "b", "replicas": 1, "command": ["./b"]}]
    ((path, _),) = framework("mpi").check(job("mpi", roles))
    assert path == ("spec", "roles", 1, "command")
