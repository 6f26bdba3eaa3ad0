"""A task of an OpenPAI job gets OpenPAI's environment variables under the same names."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from corral.compat.openpai.frameworks.environment import pai_job
from corral.compat.openpai.language.names import DEFAULT_FILES, V1, VERSION, dns_labels
from corral.compat.openpai.runtime.variables import MOST_BYTES, Role, address_variables
from corral.frameworks import framework
from corral.runtime.peers import Address
from corral.spec.job import UnifiedJob
from tests.frameworks.gangs import gang
from tests.frameworks.openpai_tasks import gang_of, plugin, protocol, tasks_of, with_plugins

ROLES: dict[str, dict[str, Any]] = {
    "master": {},
    "Work_er": {
        "instances": 2,
        "completion": {"minFailedInstances": 2, "minSucceededInstances": -1},
        "resourcePerInstance": {"cpu": 3, "memoryMB": 2048, "gpu": 0, "ports": {"SynPort": 1, "model_server": 2}},
        "extraContainerOptions": {"shmMB": 64},
    },
}
SERVER_SIDE = {
    "PAI_FRAMEWORK_NAME": hashlib.md5(b"bob~a_job").hexdigest(),
    "PAI_JOB_NAME": "bob~a_job",
    "PAI_USER_NAME": "bob",
    "PAI_USERNAME": "bob",
    "PAI_DEFAULT_FS_URI": "",
    "PAI_VIRTUAL_CLUSTER": "vc1",
    "PAI_TASK_ROLE_COUNT": "2",
    "PAI_TASK_ROLE_LIST": "master,Work_er",
    "PAI_TASK_ROLES_NUM": "2",
    "PAI_TASKS_NUM": "3",
    "PAI_JOB_TASK_COUNT": "3",
    "PAI_JOB_TASK_ROLE_COUNT": "2",
    "PAI_JOB_TASK_ROLE_LIST": "master,Work_er",
    "PAI_TASK_ROLE_TASK_COUNT_master": "1",
    "PAI_TASK_ROLE_TASK_COUNT_Work_er": "2",
    "PAI_RESOURCE_master": "0,1,512,512",
    "PAI_RESOURCE_Work_er": "0,3,2048,64",
    "PAI_MIN_FAILED_TASK_COUNT_master": "1",
    "PAI_MIN_FAILED_TASK_COUNT_Work_er": "2",
    "PAI_MIN_SUCCEEDED_TASK_COUNT_master": "1",
    "PAI_MIN_SUCCEEDED_TASK_COUNT_Work_er": "-1",
    "PAI_CURRENT_TASK_ROLE_NAME": "Work_er",
    "PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX": "1",
    "PAI_TASK_INDEX": "1",
}
YARN_ERA = {
    "PAI_JOB_VC_NAME": "vc1",
    "PAI_DATA_DIR": "",
    "PAI_OUTPUT_DIR": "",
    "PAI_CODE_DIR": "",
    "PAI_CURRENT_TASK_ROLE_TASK_COUNT": "2",
    "PAI_CURRENT_TASK_ROLE_CPU_COUNT": "3",
    "PAI_CURRENT_TASK_ROLE_MEM_MB": "2048",
    "PAI_CURRENT_TASK_ROLE_SHM_MB": "64",
    "PAI_CURRENT_TASK_ROLE_GPU_COUNT": "0",
    "PAI_CURRENT_TASK_ROLE_MIN_FAILED_TASK_COUNT": "2",
    "PAI_CURRENT_TASK_ROLE_MIN_SUCCEEDED_TASK_COUNT": "-1",
}
FRAMEWORK_CONTROLLER = {
    "FC_FRAMEWORK_NAME": SERVER_SIDE["PAI_FRAMEWORK_NAME"],
    "FC_TASKROLE_NAME": "Work_er",
    "FC_TASK_INDEX": "1",
    "FC_POD_UID": "0123456789abc.0.work-er.1.4",
}


def two_roles(**more: Any) -> dict[str, Any]:
    return protocol(["true"], roles=ROLES, defaults={"virtualCluster": "vc1"}, **more)


def test_the_servers_variables_are_told_in_both_eras() -> None:
    members, _ = gang_of(two_roles())
    task = next(task for task in members.tasks if str(task.key) == "work-er-1")
    env = framework("openpai").render(members, task, 4).env
    wanted = SERVER_SIDE | YARN_ERA | FRAMEWORK_CONTROLLER
    assert {name: env.get(name) for name in wanted} == wanted
    assert {name for name in env if name.startswith("PAI_")} == set(SERVER_SIDE | YARN_ERA)


def test_folders_of_the_yarn_era_are_the_prerequisites_that_the_role_names() -> None:
    given = [
        {"type": "data", "name": "d", "uri": ["hdfs://a/data", "hdfs://a/more"]},
        {"type": "output", "name": "o", "uri": "hdfs://a/out"},
        {"type": "script", "name": "s", "uri": "hdfs://a/code"},
    ]
    said = protocol(["true"], roles={"worker": {"data": "d", "output": "o", "script": "s"}}, prerequisites=given)
    members, _ = gang_of(said)
    env = framework("openpai").render(members, members.tasks[0]).env
    folders = [env[f"PAI_{name}_DIR"] for name in ("DATA", "OUTPUT", "CODE")]
    assert folders == ["hdfs://a/data", "hdfs://a/out", "hdfs://a/code"]


def test_a_job_of_protocol_1_has_its_own_folders_and_a_default_for_what_it_leaves() -> None:
    members, _ = gang_of(protocol(["true"]))
    notes = {VERSION: "1", DEFAULT_FILES: "hdfs://nn:9000", V1: json.dumps({"dataDir": "hdfs://nn:9000/d"})}
    document = members.job.to_document()
    document["metadata"]["annotations"] |= notes
    again = gang(UnifiedJob.from_document(document), "worker-0")
    env = framework("openpai").render(again, again.tasks[0]).env
    assert env["PAI_DATA_DIR"] == "hdfs://nn:9000/d"
    assert env["PAI_OUTPUT_DIR"] == "hdfs://nn:9000/Output/bob/a_job"
    assert env["PAI_DEFAULT_FS_URI"] == "hdfs://nn:9000"


def test_addresses_and_ports_are_told_by_role_index_and_label(tmp_path: Path) -> None:
    said = two_roles(name="x")
    for role in said["taskRoles"].values():
        role["commands"] = ["env -0 >environment"]
    with tasks_of(tmp_path, said) as tasks:
        assert set(tasks.run().values()) == {0}, tasks.told("master-0")
        env = tasks.environment("work-er-1")
        ports, web = tasks.ports["work-er-1"], [tasks.ports[f"work-er-{at}"]["http"][0] for at in range(2)]
        work = str(tasks.work("work-er-1"))
        master = tasks.ports["master-0"]
    syn, model = ports["synport"][0], ",".join(map(str, ports["model-server"]))
    ssh, http = ports["ssh"][0], ports["http"][0]
    wanted = {
        "PAI_HOST_IP_master_0": "127.0.0.1",
        "PAI_HOST_IP_Work_er_0": "127.0.0.1",
        "PAI_HOST_IP_Work_er_1": "127.0.0.1",
        "PAI_PORT_LIST_master_0_http": str(master["http"][0]),
        "PAI_master_0_ssh_PORT": str(master["ssh"][0]),
        "PAI_PORT_LIST_Work_er_1_model_server": model,
        "PAI_Work_er_1_model_server_PORT": model.partition(",")[0],
        "PAI_Work_er_1_SynPort_PORT": str(syn),
        "PAI_CURRENT_CONTAINER_IP": "127.0.0.1",
        "PAI_CURRENT_CONTAINER_PORT": str(http),
        "PAI_CONTAINER_HOST_IP": "127.0.0.1",
        "PAI_CONTAINER_HOST_PORT": str(http),
        "PAI_CONTAINER_SSH_PORT": str(ssh),
        "PAI_CONTAINER_HOST_SynPort_PORT_LIST": str(syn),
        "PAI_CONTAINER_HOST_model_server_PORT_LIST": model,
        "PAI_CONTAINER_HOST_http_PORT_LIST": str(http),
        "PAI_CONTAINER_HOST_ssh_PORT_LIST": str(ssh),
        "PAI_TASK_ROLE_master_HOST_LIST": f"127.0.0.1:{master['http'][0]}",
        "PAI_TASK_ROLE_Work_er_HOST_LIST": ",".join(f"127.0.0.1:{port}" for port in web),
        "PAI_TASK_ROLE_INSTANCES": "master:0,Work_er:0,Work_er:1",
        "PAI_WORK_DIR": work,
    }
    assert {name: env.get(name) for name in wanted} == wanted
    listed = env["PAI_CONTAINER_HOST_PORT_LIST"]
    assert sorted(listed.split(";")) == sorted(
        ["", f"SynPort:{syn}", f"model_server:{model}", f"ssh:{ssh}", f"http:{http}"]
    )
    assert listed.endswith(";")


def test_with_gang_allocation_tasks_wait_for_each_other_and_without_only_for_themselves() -> None:
    together, _ = gang_of(two_roles())
    alone, _ = gang_of(two_roles(extras={"gangAllocation": False}))
    kind = framework("openpai")
    assert kind.render(together, together.tasks[0]).barrier
    rendered = kind.render(alone, alone.tasks[0])
    assert not rendered.barrier and rendered.resolve == (str(alone.tasks[0].key),)


def test_a_task_alone_starts_though_the_others_have_not(tmp_path: Path) -> None:
    said = protocol(["env -0 >environment"], roles={"w": {"instances": 2}}, extras={"gangAllocation": False})
    with tasks_of(tmp_path, said) as tasks:
        tasks.start("w-0")
        assert tasks.wait() == {"w-0": 0}
        assert "PAI_HOST_IP_w_1" not in tasks.environment("w-0")


def test_both_streams_have_a_log_of_their_own() -> None:
    members, _ = gang_of(protocol(["true"]))
    assert framework("openpai").render(members, members.tasks[0]).env["CORRAL_LOGS"] == "split"


def test_every_task_has_ports_for_ssh_and_http_and_one_has_that_of_tensorboard() -> None:
    members, _ = gang_of(two_roles(extras=with_plugins(plugin("tensorboard", logdir={"a": "/a"}))))
    kind = framework("openpai")
    names = {
        str(task.key): {port.name for port in members.role(task).ports}
        | {port.name for port in kind.render(members, task).ports}
        for task in members.tasks
    }
    assert names["master-0"] == {"ssh", "http", "tensorboard"}
    assert names["work-er-0"] == {"ssh", "http", "synport", "model-server"}
    assert kind.port_counts(members.job)["master"] == 1


def test_a_plain_command_runs_too_and_a_role_without_one_is_refused() -> None:
    roles = [{"name": "main", "command": ["echo", "it's me"]}]
    document = {"apiVersion": "corral.dev/v1alpha1", "kind": "UnifiedJob", "metadata": {"name": "own"}}
    own = UnifiedJob.from_document(document | {"spec": {"jobType": "openpai", "roles": roles}})
    members = gang(own, "main-0")
    rendered = framework("openpai").render(members, members.tasks[0])
    assert rendered.plug_in_steps["files"]["user.sh"] == "echo 'it'\"'\"'s me'\n"
    assert rendered.env["PAI_TASK_ROLE_LIST"] == "main"
    without = UnifiedJob.from_document(
        document | {"spec": {"jobType": "openpai", "roles": [{"name": "main", "image": "ubuntu"}]}}
    )
    ((path, why),) = framework("openpai").check(without)
    assert path == ("spec", "roles", 0, "command") and "say what the role runs" in why


def test_names_that_no_shell_can_say_are_left_out() -> None:
    roles = [Role("a.b", "a-b", 1, {"http": "http", "web~1": "web-1"})]
    peers = {"a-b-0": Address("10.0.0.1", {"http": [80], "web-1": [81]})}
    told = address_variables(roles, "a.b", 0, peers, "/w").variables
    assert told["PAI_CONTAINER_HOST_PORT_LIST"] == "http:80;web~1:81;"
    assert not [name for name in told if "." in name or "~" in name]


def test_too_many_tasks_for_a_variable_each_are_in_the_lists() -> None:
    roles = [Role("w", "w", 9000, {"http": "http", "ssh": "ssh"})]
    peers = {f"w-{at}": Address("10.0.0.1", {"http": [80], "ssh": [22]}) for at in range(9000)}
    told = address_variables(roles, "w", 8999, peers, "/w")
    assert told.shortened
    assert sum(len(name) + len(value) for name, value in told.variables.items()) < MOST_BYTES
    assert told.variables["PAI_TASK_ROLE_w_HOST_LIST"].count(",") == 8999
    assert told.variables["PAI_HOST_IP_w_8999"] == "10.0.0.1" and "PAI_HOST_IP_w_1" not in told.variables


@pytest.mark.parametrize(
    ("names", "labels"),
    [
        (["worker", "ps_server"], ["worker", "ps-server"]),
        (["A_b", "a-b", "a.b"], ["a-b-2", "a-b", "a-b-3"]),
        (["_", "__"], ["x", "x-2"]),
        (["a" * 70, "a" * 71], ["a" * 63, f"{'a' * 57}-2"]),
    ],
)
def test_names_become_labels_that_differ(names: list[str], labels: list[str]) -> None:
    assert list(dns_labels(names).values()) == labels


def test_a_job_that_says_nothing_of_openpai_is_read_by_its_own_names() -> None:
    document = {
        "apiVersion": "corral.dev/v1alpha1",
        "kind": "UnifiedJob",
        "metadata": {"name": "own"},
        "spec": {"jobType": "openpai", "roles": [{"name": "main", "command": ["true"]}]},
    }
    job = pai_job(gang(UnifiedJob.from_document(document), "main-0"))
    assert (job.full_name, job.roles[0].name, job.gang) == ("~own", "main", True)


@pytest.mark.parametrize(
    ("annotation", "text"),
    [
        ("protocol", "{"),
        ("protocol", '{"taskRoles": {"worker": 5}}'),
        ("protocol", '{"taskRoles": {"worker": {"resourcePerInstance": []}}}'),
        ("protocol", '{"extras": 7}'),
        ("roles", '["worker"'),
        ("roles", '{"worker": {"a": 1}}'),
        ("ports", "[" * 100_000),
        ("v1", "not json"),
    ],
)
def test_annotations_that_no_file_leaves_are_refused_or_harmless(annotation: str, text: str) -> None:
    document = gang_of(protocol(["true"]))[0].job.to_document()
    document["metadata"]["annotations"][f"openpai.corral.dev/{annotation}"] = text
    job = UnifiedJob.from_document(document)
    openpai = framework("openpai")
    findings = openpai.check(job)
    if not findings:
        made = gang(job, "worker-0")
        assert openpai.render(made, made.tasks[0]).runtime
    else:
        assert findings[0][0] == ("metadata", "annotations")
