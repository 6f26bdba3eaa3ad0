"""OpenPAI's protocol v2 is accepted and refused exactly as by OpenPAI, with its messages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from corral.compat.openpai.language.command_template import render
from corral.compat.openpai.language.hived import hived_terms
from corral.compat.openpai.language.protocol import ProtocolError, is_protocol, read_protocol
from corral.spec.errors import SpecError
from tests.spec.openpai_files import MINIMAL, job_file, recorded, role_of, samples

RECORDED_LENGTH = 300
"""Characters kept of each recorded message of OpenPAI's."""
CRASHES = ("Cannot convert undefined", "Cannot use 'in' operator")
"""Messages of crashes in OpenPAI's own code, where Corral reports the actual error."""


def test_every_recorded_verdict_agrees_and_is_told_in_the_same_words(data_folder: Path) -> None:
    verdicts = recorded(data_folder, "golden-v2-verdicts.json")
    assert len(verdicts) == 434
    refused = 0
    for verdict in verdicts:
        try:
            read_protocol(verdict["yaml"])
        except ProtocolError as error:
            assert not verdict["ok"], (error, verdict["yaml"])
            refused += 1
            if verdict["message"].startswith(CRASHES):
                assert error.problems[0].path == ("taskRoles",)
            else:
                assert error.wire[:RECORDED_LENGTH] == verdict["message"]
        else:
            assert verdict["ok"], verdict["message"]
    assert refused == 357


def test_every_sample_is_taken(data_folder: Path) -> None:
    files = samples(data_folder, 2)
    assert len(files) == 31
    for file in files:
        assert read_protocol(file.read_bytes(), file.name)["type"] == "job"


def test_the_smallest_job_is_taken_as_it_is() -> None:
    protocol = read_protocol(MINIMAL)
    assert protocol["name"] == "j1"
    assert protocol["taskRoles"]["worker"]["commands"] == ["echo hi"]


def test_a_role_without_instances_has_one() -> None:
    protocol = read_protocol(job_file(taskRoles={"worker": role_of(instances=None)}))
    assert protocol["taskRoles"]["worker"]["instances"] == 1


@pytest.mark.parametrize("version", [2, "2", 2.0])
def test_the_version_may_be_a_number_or_text(version: object) -> None:
    assert read_protocol(job_file(protocolVersion=version))["protocolVersion"] in (2, "2")


@pytest.mark.parametrize(
    "changes",
    [
        {"deployments": [{"name": "d", "taskRoles": "none"}]},
        {"deployments": [{"name": "d", "taskRoles": ["a"]}], "defaults": {"deployment": "d"}},
        {"taskRoles": {"worker": role_of(extraContainerOptions={"infiniband": "yes"})}},
    ],
)
def test_what_openpais_schema_has_no_word_for_is_taken(changes: dict[str, Any]) -> None:
    protocol = read_protocol(job_file(**changes))
    assert all(role["entrypoint"] == "echo hi" for role in render(protocol)["taskRoles"].values())


def test_a_chosen_deployment_without_roles_is_refused_in_words() -> None:
    text = job_file(deployments=[{"name": "d", "taskRoles": "none"}], defaults={"deployment": "d"})
    with pytest.raises(ProtocolError, match='expected a mapping of task roles, got "none"'):
        read_protocol(text)


def test_errors_come_in_the_order_in_which_ajv_finds_them() -> None:
    """A missing required field with a rule is reported where its value would be checked, after the unknown fields."""
    broken = errors_of(job_file(taskRoles={"a": role_of(resourcePerInstance={"1st": 1, "cpu": "x", "gpu": 0})}))
    assert [(each["keyword"], each["params"]) for each in broken] == [
        ("additionalProperties", {"additionalProperty": "1st"}),
        ("type", {"type": "integer"}),
        ("required", {"missingProperty": "memoryMB"}),
    ]
    head = errors_of(job_file(type="script", version=[], description=1))
    assert [each["dataPath"] for each in head] == [".type", ".version", ".description"]


def errors_of(text: str) -> list[dict[str, Any]]:
    with pytest.raises(ProtocolError) as caught:
        read_protocol(text)
    found = json.loads(caught.value.wire)
    assert isinstance(found, list)
    return found


def test_a_schema_error_is_told_as_ajv_tells_it() -> None:
    assert errors_of(job_file(taskRoles={"worker": role_of(instances="two")})) == [
        {
            "keyword": "type",
            "dataPath": ".taskRoles['worker'].instances",
            "schemaPath": "#/properties/taskRoles/patternProperties/%5E%5Ba-zA-Z_%5D%5Ba-zA-Z0-9_%5D*%24"
            "/properties/instances/type",
            "params": {"type": "integer"},
            "message": "should be integer",
        }
    ]


@pytest.mark.parametrize(
    ("changes", "data_path", "keyword"),
    [
        ({"name": "x" * 256}, ".name", "maxLength"),
        ({"name": ""}, ".name", "pattern"),
        (
            {"taskRoles": {"a": role_of(extraContainerOptions={"additionalProperties": 1})}},
            ".taskRoles['a'].extraContainerOptions.additionalProperties",
            "false schema",
        ),
        ({"name": "with\nnewline"}, ".name", "pattern"),
        ({"name": "trailing\n"}, ".name", "pattern"),
        ({"unknown": 1}, "", "additionalProperties"),
        ({"jobRetryCount": -1}, ".jobRetryCount", "minimum"),
        ({"jobRetryCount": 1.5}, ".jobRetryCount", "type"),
        ({"type": "script"}, ".type", "enum"),
        ({"secrets": ["a"]}, ".secrets", "type"),
        ({"taskRoles": {}}, ".taskRoles", "minProperties"),
        ({"taskRoles": {"1st": role_of()}}, ".taskRoles", "additionalProperties"),
        ({"taskRoles": {"a": role_of(commands=[])}}, ".taskRoles['a'].commands", "minItems"),
        ({"taskRoles": {"a": role_of(taskRetryCount=1.5)}}, ".taskRoles['a'].taskRetryCount", "type"),
        (
            {"taskRoles": {"a": role_of(resourcePerInstance={"cpu": 1, "memoryMB": 1, "gpu": 0, "ports": {}})}},
            ".taskRoles['a'].resourcePerInstance.ports",
            "minProperties",
        ),
        ({"deployments": []}, ".deployments", "minItems"),
        ({"deployments": [{"name": "d", "taskRoles": {}}]}, ".deployments[0].taskRoles", "minProperties"),
        (
            {"taskRoles": {"a": role_of(extraContainerOptions={"shmMB": "64"})}},
            ".taskRoles['a'].extraContainerOptions.shmMB",
            "type",
        ),
        ({"deployments": [{"taskRoles": {}}]}, ".deployments[0]", "required"),
        (
            {"deployments": [{"name": "d", "taskRoles": {"worker": {"preCommands": []}}}]},
            ".deployments[0].taskRoles['worker'].preCommands",
            "minItems",
        ),
    ],
)
def test_what_is_not_as_described_is_refused_at_its_field(
    changes: dict[str, Any], data_path: str, keyword: str
) -> None:
    first = errors_of(job_file(**changes))[0]
    assert (first["dataPath"], first["keyword"]) == (data_path, keyword)


@pytest.mark.parametrize(
    ("changes", "message", "path"),
    [
        (
            {"prerequisites": [{"type": "dockerimage", "name": "d", "uri": "a"}] * 2},
            "Duplicate dockerimage prerequisites d.",
            ("prerequisites", 1, "name"),
        ),
        (
            {"taskRoles": {"worker": role_of(data="nowhere")}},
            "Prerequisite nowhere does not exist.",
            ("taskRoles", "worker", "data"),
        ),
        (
            {"taskRoles": {"worker": role_of(prerequisites=["d", "nowhere"])}},
            "Prerequisite nowhere does not exist.",
            ("taskRoles", "worker", "prerequisites", 1),
        ),
        (
            {"deployments": [{"name": "a", "taskRoles": {"worker": {}}}] * 2},
            "Duplicate deployments a.",
            ("deployments", 1, "name"),
        ),
        (
            {"defaults": {"deployment": "prod"}},
            "Default deployment prod does not exist.",
            ("defaults", "deployment"),
        ),
    ],
)
def test_what_fits_the_description_and_makes_no_job_is_refused_in_openpais_words(
    changes: dict[str, Any], message: str, path: tuple[str | int, ...]
) -> None:
    with pytest.raises(ProtocolError) as caught:
        read_protocol(job_file(**changes))
    assert caught.value.wire == message
    assert caught.value.problems[0].path == path


def test_a_name_of_one_type_may_be_another_types_too() -> None:
    both = [{"type": "dockerimage", "name": "d", "uri": "a"}, {"type": "data", "name": "d", "uri": ["b"]}]
    protocol = read_protocol(job_file(prerequisites=both, taskRoles={"worker": role_of(data="d")}))
    assert protocol["taskRoles"]["worker"]["data"] == "d"


def test_a_problem_is_told_with_its_line() -> None:
    text = MINIMAL.replace("cpu: 1", "cpu: one")
    with pytest.raises(ProtocolError) as caught:
        read_protocol(text, "job.yaml")
    assert str(caught.value).startswith("job.yaml:6:69: taskRoles.worker.resourcePerInstance.cpu: should be integer")


@pytest.mark.parametrize(
    "text",
    [
        "a: &a [x, x]\nb: &b [*a, *a]\n" + "".join(f"c{i}: &c{i} [*b, *b]\n" for i in range(60_000)),
        "{" * 100,
        "protocolVersion: 2\nname: !!python/object:os.system x\n",
        "x" * (1024 * 1024 + 1),
        "name: a\nname: b\n",
    ],
    ids=["aliases", "depth", "tag", "length", "repeated"],
)
def test_hostile_text_is_refused_before_it_costs_anything(text: str) -> None:
    with pytest.raises(SpecError):
        read_protocol(text)


def test_an_alias_bomb_is_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 10)]
    with pytest.raises(SpecError, match="aliases"):
        read_protocol("\n".join(lines))


@pytest.mark.parametrize("items", ["{}", "{name: a, type: data, uri: [" + ",".join("0" * 20_000) + "]}"])
def test_what_is_told_of_a_file_that_is_wrong_everywhere_is_bounded(items: str) -> None:
    text = f"protocolVersion: 2\nname: a\ntype: job\ntaskRoles: {{}}\nprerequisites: [{','.join([items] * 3)}"
    with pytest.raises(ProtocolError) as refused:
        read_protocol(text + ", {}" * 5_000 + "]")
    assert len(json.loads(refused.value.wire)) == 1000


def test_a_document_is_told_apart_by_its_version() -> None:
    assert is_protocol({"protocolVersion": "nonsense"})
    assert not is_protocol({"apiVersion": "corral.dev/v1alpha1", "kind": "UnifiedJob", "protocolVersion": 2})
    assert not is_protocol({"name": "a", "roles": {}})
    assert not is_protocol(["protocolVersion"])


def test_what_openpais_validator_does_not_look_at_is_taken() -> None:
    image = {"type": "dockerimage", "name": "d", "uri": "a", "auth": {"username": "me", "email": "me@example.org"}}
    role = role_of(taskRetryCount=-1, extraContainerOptions={"shmMB": 64, "unknown": True})
    extras = {
        "gangAllocation": "false",
        "hivedScheduler": {"lazyPreemptionEnable": "true", "gangReleaseEnable": "false"},
    }
    protocol = read_protocol(job_file(prerequisites=[image], taskRoles={"worker": role}, extras=extras))
    assert protocol["taskRoles"]["worker"]["taskRetryCount"] == -1
    terms = hived_terms(protocol)
    assert (terms.lazy_preemption, terms.gang_release) == (True, False)


def test_the_uri_of_data_is_a_list_and_hived_is_told_something() -> None:
    data = {"type": "data", "name": "x", "uri": "http://a"}
    found = errors_of(job_file(prerequisites=[data, {"type": "dockerimage", "name": "d", "uri": "a"}]))
    assert (".prerequisites[0].uri", "should be array") in [(each["dataPath"], each["message"]) for each in found]
    with pytest.raises(ProtocolError, match="hivedScheduler should be object"):
        hived_terms(read_protocol(job_file() + "extras: {hivedScheduler: null}\n"))


@pytest.mark.parametrize(
    ("written", "read"), [("1_000", 1000), ("+1_0", 10), ("'1_000'", None), ("1_000_MB", None), ("_1", None)]
)
def test_digits_may_be_grouped_where_they_are_not_quoted(written: str, read: int | None) -> None:
    text = MINIMAL.replace("memoryMB: 512", f"memoryMB: {written}")
    if read is None:
        with pytest.raises(ProtocolError):
            read_protocol(text)
    else:
        assert read_protocol(text)["taskRoles"]["worker"]["resourcePerInstance"]["memoryMB"] == read
