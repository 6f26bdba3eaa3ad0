"""An OpenPAI job becomes a complete UnifiedJob that loses only its secrets, and converts back unchanged."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from corral.compat.openpai.language.command_template import render
from corral.compat.openpai.language.hived import hived_terms
from corral.compat.openpai.language.protocol import ProtocolError, read_protocol
from corral.compat.openpai.language.report import report
from corral.compat.openpai.language.translation import (
    asked_storages,
    docker_config,
    job_label,
    plugins,
    public_keys,
    registry_auth,
    rendered_protocol,
    to_job,
    to_protocol,
)
from corral.spec.errors import SpecError
from corral.spec.job import UnifiedJob
from corral.spec.job_reader import load_job, read_job
from corral.spec.own_file import MASK
from tests.spec.openpai_files import MINIMAL, job_file, role_of, samples

HUSH = "hush-hush-value"


def job_of(**changes: Any) -> UnifiedJob:
    return load_job(job_file(**changes))


def refused(**changes: Any) -> SpecError:
    with pytest.raises(SpecError) as caught:
        load_job(job_file(**changes))
    return caught.value


def test_every_sample_becomes_a_job_and_comes_back_as_it_was(data_folder: Path) -> None:
    for file in samples(data_folder, 2):
        protocol = read_protocol(file.read_bytes(), file.name)
        job = UnifiedJob.from_document(to_job(protocol, user="ann").document)
        stored = UnifiedJob.from_document(json.loads(job.to_json())).to_document()
        assert to_protocol(stored) == protocol
        assert rendered_protocol(stored) == render(protocol)
        again = to_job(read_protocol(yaml.safe_dump(to_protocol(stored), sort_keys=False)), user="ann")
        assert UnifiedJob.from_document(again.document) == job


def test_the_smallest_job_is_what_its_file_says() -> None:
    job = load_job(MINIMAL)
    role = job.spec.roles[0]
    assert (job.name, job.spec.job_type, job.spec.queue, job.priority) == ("j1", "openpai", "default", 10)
    assert role.image == "ubuntu:22.04"
    assert role.command == ["bash", "-c", "echo hi"]
    assert (role.resources.cpu, role.resources.memory, role.resources.devices.count) == ("1", "512Mi", 0)
    assert role.shm == "512Mi"
    assert [(port.name, port.count) for port in role.ports] == [("ssh", 1), ("http", 1)]
    assert job.spec.barrier.enabled


def test_resources_ports_and_container_options_have_their_fields() -> None:
    asked = {"cpu": 4, "memoryMB": 0, "gpu": 2, "ports": {"http": 3, "SynPort": 2, "syn_port": 1, "unused": 0}}
    role = role_of(resourcePerInstance=asked, extraContainerOptions={"shmMB": 1024, "infiniband": True})
    job = job_of(taskRoles={"Worker_A": role, "worker_a": role_of()})
    first = job.spec.roles[0]
    assert [each.name for each in job.spec.roles] == ["worker-a", "worker-a-2"]
    assert json.loads(job.metadata.annotations["openpai.corral.dev/roles"]) == {
        "worker-a": "Worker_A",
        "worker-a-2": "worker_a",
    }
    labels = json.loads(job.metadata.annotations["openpai.corral.dev/ports"])
    assert {labels[port.name]: port.count for port in first.ports} == {"http": 3, "SynPort": 2, "syn_port": 1, "ssh": 1}
    assert len({port.name for port in first.ports}) == 4
    assert (first.resources.memory, first.resources.devices.count, first.shm) == ("0", 2, "1024Mi")
    assert job.spec.network.rdma == "required"


@pytest.mark.parametrize(
    ("completion", "failed", "succeeded"),
    [
        ({}, 1, 3),
        ({"minFailedInstances": None, "minSucceededInstances": None}, 1, 3),
        ({"minFailedInstances": 0, "minSucceededInstances": 0}, 1, 3),
        ({"minFailedInstances": 2, "minSucceededInstances": 1}, 2, 1),
        ({"minFailedInstances": -1, "minSucceededInstances": -1}, -1, -1),
        ({"minFailedInstances": -3, "minSucceededInstances": -3}, -1, -1),
        ({"minFailedInstances": 10**9, "minSucceededInstances": 10**9}, -1, -1),
    ],
)
def test_completion_has_openpais_defaults(completion: dict[str, Any], failed: int, succeeded: int) -> None:
    job = job_of(taskRoles={"worker": role_of(instances=3, completion=completion)})
    policy = job.spec.roles[0].completion
    assert (policy.min_failed, policy.min_succeeded) == (failed, succeeded)


def test_a_task_is_tried_again_by_itself_only_without_gang_allocation() -> None:
    roles = {"worker": role_of(taskRetryCount=4)}
    gang = job_of(jobRetryCount=3, taskRoles=roles)
    assert (gang.spec.retry_policy.fancy, gang.spec.retry_policy.max_retries) == (True, 3)
    assert (gang.spec.roles[0].retry_policy.fancy, gang.spec.roles[0].retry_policy.max_retries) == (False, 0)
    alone = job_of(taskRoles=roles, extras={"gangAllocation": False})
    assert (alone.spec.roles[0].retry_policy.fancy, alone.spec.roles[0].retry_policy.max_retries) == (True, 4)
    without_end = job_of(taskRoles={"worker": role_of(taskRetryCount=-1)}, extras={"gangAllocation": False})
    assert without_end.spec.roles[0].retry_policy.max_retries == -1
    assert gang.spec.gang and gang.spec.barrier.enabled
    assert not alone.spec.gang and not alone.spec.barrier.enabled


def test_roles_that_are_not_counted_say_how_many_they_are() -> None:
    job = job_of(taskRoles={"a": role_of(instances=2), "b": role_of(instances=5)})
    assert (job.replicas_of("a"), job.replicas_of("b"), job.total_tasks) == (2, 5, 7)


def test_what_is_asked_of_hived_is_asked_of_the_scheduler() -> None:
    hived = {
        "jobPriorityClass": "oppo",
        "lazyPreemptionEnable": True,
        "taskRoles": {"worker": {"skuType": "V100", "skuNum": 2, "affinityGroupName": "g"}},
    }
    role = role_of(resourcePerInstance={"cpu": 1, "memoryMB": 1, "gpu": 2})
    job = job_of(defaults={"virtualCluster": "vc1"}, extras={"hivedScheduler": hived}, taskRoles={"worker": role})
    assert (job.spec.queue, job.priority, job.spec.lazy_preemption) == ("vc1", -1, True)
    assert (job.spec.roles[0].resources.devices.model, job.spec.roles[0].resources.devices.count) == ("V100", 2)
    assert job.spec.roles[0].affinity_group == "g"


ONE_GPU = {"cpu": 1, "memoryMB": 1, "gpu": 1}


def cells_of(roles: dict[str, dict[str, Any]], **hived: dict[str, Any]) -> tuple[str, list[str], list[str]]:
    """A job's pinned cell, and by role the pinned cells and affinity groups."""
    said = {"hivedScheduler": {"taskRoles": hived}}
    spec = job_of(extras=said, taskRoles=roles).spec
    return spec.pinned_cell, [each.pinned_cell for each in spec.roles], [each.affinity_group for each in spec.roles]


def test_a_pinned_cell_that_all_roles_with_gpus_name_is_the_jobs() -> None:
    gpus = role_of(resourcePerInstance=ONE_GPU)
    one, other = {"pinnedCellId": "cell-1"}, {"pinnedCellId": "cell-2"}
    assert cells_of({"worker": role_of()}, worker=one) == ("cell-1", [""], [""])
    assert cells_of({"a": gpus, "b": gpus, "c": role_of()}, a=one, b=one) == ("cell-1", ["", "", ""], ["", "", ""])
    assert cells_of({"a": gpus, "b": gpus}, a=one)[:2] == ("", ["cell-1", ""])
    assert cells_of({"a": gpus, "b": role_of()}, a=one, b={"skuType": "V100"})[:2] == ("", ["cell-1", ""])
    assert cells_of({"a": gpus, "b": role_of()}, a=one, b={"skuNum": 2})[:2] == ("", ["cell-1", ""])
    assert cells_of({"a": gpus, "b": gpus, "c": gpus}, a=one, b=other)[:2] == ("", ["cell-1", "cell-2", ""])


def test_each_role_has_the_affinity_group_that_it_names() -> None:
    gpus = role_of(resourcePerInstance=ONE_GPU)
    x, y = {"affinityGroupName": "x"}, {"affinityGroupName": "y", "pinnedCellId": "cell-1"}
    told = cells_of({"a": gpus, "b": gpus, "c": gpus, "d": gpus}, a=x, b=y, c=x)
    assert told == ("", ["", "cell-1", "", ""], ["x", "y", "x", ""])


@pytest.mark.parametrize(
    ("hived", "path", "words"),
    [
        (
            {"jobPriorityClass": "oppo", "taskRoles": {"worker": {"pinnedCellId": "cell-1"}}},
            ("worker", "pinnedCellId"),
            "below 0",
        ),
        ({"taskRoles": {"worker": {"affinityGroupName": "g" * 254}}}, ("worker", "affinityGroupName"), "253"),
    ],
)
def test_cells_that_a_role_cannot_have_are_refused_where_they_are_said(
    hived: dict[str, Any], path: tuple[str, ...], words: str
) -> None:
    gpus = role_of(resourcePerInstance=ONE_GPU)
    problem = refused(extras={"hivedScheduler": hived}, taskRoles={"worker": gpus, "other": gpus}).problems[0]
    assert problem.path == ("extras", "hivedScheduler", "taskRoles", *path) and problem.line
    assert words in problem.message


def test_a_check_tells_which_roles_are_in_which_cell_and_group() -> None:
    gpus = role_of(resourcePerInstance=ONE_GPU)
    roles = {"a": {"pinnedCellId": "cell-1", "affinityGroupName": "x"}, "b": {"affinityGroupName": "y"}}

    def told(**said: Any) -> dict[str, tuple[str, str]]:
        job = job_of(extras={"hivedScheduler": {"taskRoles": said}}, taskRoles={"a": gpus, "b": gpus})
        home = "extras.hivedScheduler.taskRoles."
        return {use.field.removeprefix(home): (use.state, use.here) for use in report(job).uses}

    apart = told(**roles)
    assert {field: state for field, (state, _) in apart.items()} == {
        "a.pinnedCellId": "same",
        "a.affinityGroupName": "same",
        "b.affinityGroupName": "same",
    }
    assert apart["a.pinnedCellId"][1].startswith("its tasks are in the pinned cell cell-1")
    one = {"pinnedCellId": "cell-1"}
    assert told(a=one, b=one)["b.pinnedCellId"][1] == "all of the job is in the pinned cell cell-1"


@pytest.mark.parametrize(
    ("hived", "at"),
    [
        ({"jobPriorityClass": "crit"}, ("jobPriorityClass",)),
        ({"jobPriorityClass": 100}, ("jobPriorityClass",)),
        ({"taskRoles": {"worker": {"skuType": "A", "pinnedCellId": "b"}}}, ("taskRoles", "worker", "pinnedCellId")),
        ({"taskRoles": {"worker": {"skuNum": 0}}}, ("taskRoles", "worker", "skuNum")),
        ({"taskRoles": {"nobody": {"skuNum": 1}}}, ("taskRoles", "nobody")),
        ({"taskRoles": 3}, ("taskRoles",)),
        ({"lazyPreemptionEnable": "yes"}, ("lazyPreemptionEnable",)),
        (
            {
                "taskRoles": {
                    "worker": {"skuType": "A", "affinityGroupName": "g"},
                    "other": {"skuType": "B", "affinityGroupName": "g"},
                }
            },
            ("taskRoles", "other"),
        ),
    ],
)
def test_what_hived_would_not_be_asked_is_refused(hived: Any, at: tuple[str, ...]) -> None:
    error = refused(extras={"hivedScheduler": hived}, taskRoles={"worker": role_of(), "other": role_of()})
    assert isinstance(error, ProtocolError)
    assert error.problems[0].path == ("extras", "hivedScheduler", *at)


@pytest.mark.parametrize(
    ("roles", "words"),
    [
        ({"nobody": {"skuNum": 1}}, "Taskrole nobody does not exist."),
        (
            {"worker": {"skuType": "A", "pinnedCellId": "b"}},
            "Taskrole worker has both skuType and pinnedCellId, only one is allowed.",
        ),
        (
            {"worker": {"skuType": "A", "affinityGroupName": "g"}, "other": {"affinityGroupName": "g"}},
            "AffinityGroup g has inconsistent skuType or pinnedCellId.",
        ),
    ],
)
def test_what_hived_would_not_be_asked_is_refused_in_openpais_words(roles: Any, words: str) -> None:
    error = refused(
        extras={"hivedScheduler": {"taskRoles": roles}}, taskRoles={"worker": role_of(), "other": role_of()}
    )
    assert isinstance(error, ProtocolError) and error.wire == words


def test_a_role_of_hived_may_say_nothing() -> None:
    hived = {"hivedScheduler": {"taskRoles": {"worker": None, "other": {"skuNum": 4, "skuType": None}}}}
    terms = hived_terms({"taskRoles": {"worker": {}, "other": {}}, "extras": hived})
    assert (terms.priority, terms.roles["worker"].sku_count, terms.roles["other"].sku_count) == ("test", 0, 4)


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"taskRoles": 1.5}, ("taskRoles",)),
        ({"taskRoles": []}, ("taskRoles",)),
        (
            {"taskRoles": {"a": role_of(resourcePerInstance={"cpu": 1, "memoryMB": 1, "gpu": -3})}},
            ("taskRoles", "a", "resourcePerInstance", "gpu"),
        ),
        (
            {"taskRoles": {"a": role_of(resourcePerInstance={"cpu": 1, "memoryMB": 1, "gpu": 0, "ports": [1]})}},
            ("taskRoles", "a", "resourcePerInstance", "ports"),
        ),
        ({"taskRoles": {"a": role_of(instances=10_001)}}, ("taskRoles",)),
        ({"defaults": {"virtualCluster": "no such name!"}}, ("defaults", "virtualCluster")),
    ],
)
def test_what_openpai_takes_and_no_job_can_be_is_refused_at_its_field(changes: Any, path: tuple[str, ...]) -> None:
    assert refused(**changes).problems[0].path == path


def test_a_refusal_stands_at_the_line_that_is_to_blame() -> None:
    problem = refused(extras={"hivedScheduler": {"jobPriorityClass": "crit"}}).problems[0]
    lines = job_file(extras={"hivedScheduler": {"jobPriorityClass": "crit"}}).splitlines()
    assert "jobPriorityClass" in lines[problem.line - 1]


def test_secrets_go_beside_the_job_and_never_into_it() -> None:
    image = {
        "type": "dockerimage",
        "name": "d",
        "uri": "private/image",
        "auth": {"username": "me", "password": "<% $secrets.docker %>", "registryuri": "registry.example"},
    }
    role = role_of(commands=["login <% $secrets.docker %> <% $secrets.deep.token %>"])
    text = job_file(
        secrets={"docker": HUSH, "deep": {"token": HUSH, "list": [1.0, "b"]}, "../../etc": "x"},
        prerequisites=[image],
        taskRoles={"worker": role},
    )
    read = read_job(text)
    config = json.loads(read.secrets["$registries"])
    login = base64.b64encode(f"me:{HUSH}".encode()).decode()
    assert config == {"auths": {"registry.example": {"username": "me", "password": HUSH, "auth": login}}}
    assert {name: value for name, value in read.secrets.items() if name != "$registries"} == {
        "docker": HUSH,
        "deep.token": HUSH,
        "deep.list.0": "1",
        "deep.list.1": "b",
        "../../etc": "x",
    }
    assert HUSH not in read.job.to_json()
    assert HUSH not in repr(read)
    delivered = {secret.name: secret.file for secret in read.job.spec.roles[0].secrets}
    assert delivered["openpai.$registries"] == ".openpai/registries"
    assert delivered["openpai.docker"] == ".openpai/secrets/docker"
    assert delivered["openpai.../../etc"] == ".openpai/secrets/..%2F..%2Fetc"
    assert to_protocol(read.job.to_document())["secrets"] == MASK
    assert read.job.spec.roles[0].command[-1] == role["commands"][0]
    protocol = read_protocol(text)
    assert registry_auth(protocol, "d") == {"username": "me", "password": HUSH, "registryuri": "registry.example"}
    assert HUSH not in json.dumps(to_job(protocol).protocol)


def test_a_registrys_password_in_clear_is_masked_too() -> None:
    image = {"type": "dockerimage", "name": "d", "uri": "a", "auth": {"username": "me", "password": HUSH}}
    job = job_of(prerequisites=[image])
    assert HUSH not in job.to_json()
    assert to_protocol(job.to_document())["prerequisites"][0]["auth"] == {"username": "me", "password": MASK}


@pytest.mark.parametrize(
    ("auth", "host"),
    [
        ({"registryuri": "https://me.azurecr.io/"}, "me.azurecr.io"),
        ({"registryuri": "docker.io"}, "https://index.docker.io/v1/"),
        ({}, "https://index.docker.io/v1/"),
        ({"registryuri": "127.0.0.1:5000"}, "127.0.0.1:5000"),
    ],
)
def test_a_registry_is_named_as_dockers_client_knows_it(auth: dict[str, str], host: str) -> None:
    image = {"type": "dockerimage", "name": "d", "uri": "a", "auth": {"username": "me", "password": HUSH, **auth}}
    protocol = read_protocol(job_file(prerequisites=[image]))
    assert list(json.loads(docker_config(protocol))["auths"]) == [host]


@pytest.mark.parametrize("password", ["", MASK, "<% $secrets.missing %>"])
def test_a_login_without_its_password_is_none(password: str) -> None:
    image = {"type": "dockerimage", "name": "d", "uri": "a", "auth": {"username": "me", "password": password}}
    assert docker_config(read_protocol(job_file(prerequisites=[image]))) == ""


def test_more_secrets_than_a_task_can_have_are_refused() -> None:
    assert refused(secrets={f"s{number}": "x" for number in range(101)}).problems[0].path == ("secrets",)


@pytest.mark.parametrize(
    ("extras", "storages"),
    [
        ({}, None),
        ({"storages": []}, []),
        (
            {"storages": [{"name": "data"}, {"name": "home", "mountPath": "/home/me"}]},
            [{"name": "data", "mountPath": "/mnt/data"}, {"name": "home", "mountPath": "/home/me"}],
        ),
        (
            {
                "com.microsoft.pai.runtimeplugin": [
                    {"plugin": "teamwise_storage", "parameters": {"storageConfigNames": ["old"]}}
                ]
            },
            [{"name": "old", "mountPath": "/mnt/old"}],
        ),
        ({"com.microsoft.pai.runtimeplugin": [{"plugin": "teamwise_storage"}]}, []),
    ],
)
def test_storages_are_asked_for_in_the_new_way_or_the_old(extras: Any, storages: Any) -> None:
    assert asked_storages({"extras": extras}) == storages
    uses = job_of(extras=extras).spec.storages
    named = [{"name": use.name, "mountPath": use.mount_path} for use in uses]
    assert named == ([{"name": "", "mountPath": ""}] if storages == [] else storages or [])


def test_plugins_are_carried_and_what_can_be_none_is_passed_over() -> None:
    given = [{"plugin": "ssh", "parameters": {"jobssh": True}}, "abc", 3]
    job = job_of(extras={"com.microsoft.pai.runtimeplugin": given})
    assert plugins(to_protocol(job.to_document())) == given[:1]
    assert plugins({"extras": {"com.microsoft.pai.runtimeplugin": "abc"}}) == []


def test_parameters_and_the_name_can_be_given_with_the_file() -> None:
    role = role_of(commands=["train --lr <% $parameters.lr %> --model <% $parameters.model %>"])
    text = job_file(parameters={"lr": 0.1, "model": "a"}, taskRoles={"worker": role})
    job = load_job(text, parameters={"lr": "0.010"}, name="renamed")
    assert job.spec.roles[0].command[-1] == "train --lr 0.010 --model a"
    assert job.metadata.annotations["openpai.corral.dev/name"] == "renamed"


def test_a_canonical_document_has_its_parameters_in_it_already() -> None:
    document = to_job(read_protocol(job_file(parameters={"lr": 1}))).document
    with pytest.raises(SpecError, match="--set lr: this kind of document has no parameters"):
        load_job(json.dumps(document), parameters={"lr": "2"})


@given(st.from_regex(r"[a-zA-Z0-9_-]{1,255}", fullmatch=True), st.from_regex(r"[a-zA-Z0-9_-]{1,255}", fullmatch=True))
def test_different_names_of_openpai_are_different_names_here(one: str, other: str) -> None:
    assert (job_label(one) == job_label(other)) == (one == other)
    text = json.dumps(yaml.safe_load(job_file()) | {"name": one})
    assert load_job(text).metadata.annotations["openpai.corral.dev/name"] == one


RICH = {
    "prerequisites": [
        {"type": "dockerimage", "name": "d", "uri": "u", "auth": {"username": "me", "password": "p"}},
        {"type": "data", "name": "x", "uri": ["a"], "plugin": "p", "require": ["d"]},
    ],
    "parameters": {"a": 1, "b": ["c"]},
    "secrets": {"s": "t"},
    "jobRetryCount": 1,
    "deployments": [{"name": "p", "taskRoles": {"worker": {"preCommands": ["a"], "postCommands": ["b"]}}}],
    "defaults": {"virtualCluster": "default", "deployment": "p"},
    "extras": {
        "gangAllocation": False,
        "storages": [{"name": "a", "mountPath": "/b"}],
        "hivedScheduler": {
            "jobPriorityClass": "prod",
            "taskRoles": {"worker": {"skuType": "A", "skuNum": 1, "affinityGroupName": "g"}},
        },
        "com.microsoft.pai.runtimeplugin": [
            {"plugin": "teamwise_storage", "parameters": {"storageConfigNames": ["a"]}}
        ],
    },
    "taskRoles": {
        "worker": role_of(
            data="x",
            prerequisites=["d"],
            taskRetryCount=1,
            completion={"minFailedInstances": 1, "minSucceededInstances": -1},
            extraContainerOptions={"shmMB": 1, "infiniband": True},
            resourcePerInstance={"cpu": 1, "memoryMB": 1, "gpu": 1, "ports": {"a": 1}},
            commands=["<% $data.uri[0] %> <% $parameters.b[0] %> <% $secrets.s %>"],
        )
    },
}
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 10**12) | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, each in inner for place in places(each, (*path, key)))]


@given(st.data())
def test_whatever_stands_anywhere_in_a_file_it_is_taken_or_refused_and_never_breaks_anything(
    data: st.DataObject,
) -> None:
    document = yaml.safe_load(job_file(**RICH))
    *above, last = data.draw(st.sampled_from(places(document)[1:]))
    here = document
    for key in above:
        here = here[key]
    here[last] = data.draw(ANYTHING)
    try:
        read = read_job(document)
    except SpecError as error:
        assert error.problems
    else:
        stored = json.loads(read.job.to_json())
        assert UnifiedJob.from_document(stored) == read.job
        report(read.job)
        assert rendered_protocol(stored)["taskRoles"]


def test_a_job_of_ours_has_no_protocol() -> None:
    with pytest.raises(SpecError, match="not made from a file of OpenPAI"):
        to_protocol({"metadata": {"name": "a"}})


def test_an_accounts_public_keys_are_one_a_line() -> None:
    kept = [{"title": "a", "value": "ssh-rsa AAA me\n"}, {"value": 3}, "x", {"value": " ssh-rsa BBB\nevil"}]
    assert public_keys({"sshKeys": kept}) == "ssh-rsa AAA me\nssh-rsa BBB evil"
    assert public_keys({"sshKeys": None}) == ""


def test_v1_files_are_read_by_the_same_door_comments_and_all(data_folder: Path) -> None:
    files = samples(data_folder, 1)
    assert len(files) == 22
    for file in files:
        job = read_job(file.read_bytes(), filename=file.name, user="ann").job
        assert job.spec.job_type == "openpai"
        assert job.metadata.annotations["openpai.corral.dev/version"] == "1"
        assert to_protocol(job.to_document())["type"] == "job"
