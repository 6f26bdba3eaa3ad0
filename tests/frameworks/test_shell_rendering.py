"""A shell job's command is started unchanged; it gets its peers' names on request."""

from __future__ import annotations

from corral.frameworks import framework
from tests.frameworks.gangs import gang, job, render, without_identity


def test_a_plain_command_needs_nothing_of_the_runtime() -> None:
    (task,) = render(gang(job("shell", [{"name": "main", "command": ["true"]}]), "main-0")).values()
    assert task.command == ("true",)
    assert without_identity(task) == {"OMP_NUM_THREADS": "1"}
    assert (task.ports, task.resolve, task.runtime, task.barrier) == ((), (), False, False)


def test_every_task_is_told_who_it_is() -> None:
    rendered = render(gang(job("shell", [{"name": "worker", "replicas": 2}]), "worker-1", "worker-0"))
    assert {name: v for name, v in rendered["worker-1"].env.items() if name.startswith("CORRAL_")} == {
        "CORRAL_JOB_ID": "0123456789abc",
        "CORRAL_JOB_NAME": "digits",
        "CORRAL_JOB_ATTEMPT": "0",
        "CORRAL_ROLE": "worker",
        "CORRAL_TASK_INDEX": "1",
        "CORRAL_NODE": "local/node0",
        "CORRAL_RANK": "1",
        "CORRAL_WORLD_SIZE": "2",
    }


def test_shell_is_never_wrapped_whatever_the_processes_or_the_elasticity() -> None:
    document = job(
        "shell",
        [{"name": "w", "processesPerReplica": 4, "command": ["./serve"]}],
        replicaSpec={"replicas": 2, "minReplicas": 1, "maxReplicas": 2},
    )
    assert {task.command for task in render(gang(document, "w-0", "w-1")).values()} == {("./serve",)}


def test_threads_share_the_processors_unless_the_role_says_otherwise() -> None:
    roles = [
        {"name": "a", "resources": {"cpu": "8"}, "processesPerReplica": 2},
        {"name": "b", "replicas": 1, "resources": {"cpu": "8"}, "env": {"OMP_NUM_THREADS": "3"}},
        {"name": "c", "replicas": 1, "resources": {"cpu": "0"}},
    ]
    rendered = render(gang(job("shell", roles), "a-0", "b-0", "c-0"))
    assert [task.env["OMP_NUM_THREADS"] for task in rendered.values()] == ["4", "3", "1"]


def test_a_role_cannot_forge_who_it_is() -> None:
    roles = [{"name": "a", "env": {"CORRAL_RANK": "7", "COLOUR": "red"}}]
    (task,) = render(gang(job("shell", roles), "a-0")).values()
    assert (task.env["CORRAL_RANK"], task.env["COLOUR"]) == ("0", "red")


def test_peers_named_in_command_and_environment_are_left_to_the_runtime() -> None:
    roles = [
        {"name": "ps", "ports": [{"name": "http", "count": 2}]},
        {
            "name": "worker",
            "replicas": 1,
            "command": ["sh", "-c", "curl http://$(peer:ps-0:host):$(peer:ps-0:port:http)"],
            "env": {"ALL": "$(peers:worker:host)", "HTTP": "$(peers:ps:host:port:http)"},
        },
    ]
    rendered = render(gang(job("shell", roles), "ps-0", "worker-0"))
    assert rendered["ps-0"].ports == ()
    assert not rendered["ps-0"].runtime
    worker = rendered["worker-0"]
    assert worker.resolve == ("ps-0", "worker-0")
    assert worker.runtime
    assert worker.command[-1] == "curl http://$(peer:ps-0:host):$(peer:ps-0:port:http)"
    assert worker.env["ALL"] == "$(peer:worker-0:host)"
    assert worker.env["HTTP"] == "$(peer:ps-0:host):$(peer:ps-0:port:http)"


def test_lists_of_peers_are_in_rank_order() -> None:
    roles = [{"name": "w", "replicas": 3, "env": {"ALL": "$(peers:w:host)"}}]
    rendered = render(gang(job("shell", roles), "w-2", "w-0", "w-1"))
    assert rendered["w-1"].env["ALL"] == "$(peer:w-0:host),$(peer:w-1:host),$(peer:w-2:host)"


def test_references_to_tasks_that_will_never_be_are_refused_with_their_path() -> None:
    roles = [
        {
            "name": "worker",
            "replicas": 2,
            "command": ["echo", "$(peer:worker-2:host)"],
            "env": {"A": "$(peer:wroker-0:host)"},
        }
    ]
    document = job("shell", roles)
    assert framework("shell").check(document) == (
        (
            ("spec", "roles", 0, "command", 1),
            'it names the peer "worker-2"; that role has 2 replicas, from 0',
        ),
        (
            ("spec", "roles", 0, "env", "A"),
            'it names a peer of the role "wroker", which is not there; did you mean "worker"?',
        ),
    )


def test_external_tasks_hold_their_place_and_run_nothing_of_their_own() -> None:
    (task,) = render(gang(job("external", [{"name": "a", "command": ["./train"]}]), "a-0")).values()
    assert task.command == ("tail", "-f", "/dev/null")
    assert not task.runtime
