"""Commands are rendered as OpenPAI's server does; values that only the task may see stay templates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from corral.compat.openpai.language.command_template import as_text, fill, names_used, render
from corral.compat.openpai.language.protocol import read_protocol
from tests.spec.openpai_files import job_file, recorded, role_of, samples


def test_every_sample_renders_as_recorded(data_folder: Path) -> None:
    golden = recorded(data_folder, "golden-v2-rendered.json")
    files = samples(data_folder, 2)
    assert {file.name for file in files} == golden.keys()
    assert len(files) == 31
    for file in files:
        assert render(read_protocol(file.read_bytes(), file.name)) == golden[file.name], file.name


def entrypoint(**changes: Any) -> str:
    rendered = render(read_protocol(job_file(**changes)))
    command: str = rendered["taskRoles"]["worker"]["entrypoint"]
    return command


def test_the_chosen_deployment_goes_round_the_commands_each_trimmed() -> None:
    deployments = [
        {"name": "other", "taskRoles": {"worker": {"preCommands": ["not this"]}}},
        {"name": "prod", "taskRoles": {"worker": {"preCommands": [" a ", "b\n"], "postCommands": ["\tz"]}}},
    ]
    assert entrypoint(deployments=deployments, defaults={"deployment": "prod"}) == "a\nb\necho hi\nz"
    assert entrypoint(deployments=deployments) == "echo hi"


def test_references_are_filled_in_from_the_roles_own_prerequisites() -> None:
    prerequisites = [
        {"type": "dockerimage", "name": "d", "uri": "ubuntu"},
        {"type": "data", "name": "one", "uri": ["http://a", "http://b"]},
        {"type": "data", "name": "two", "uri": ["http://c"]},
        {"type": "script", "name": "s", "uri": "github.com/x", "version": "v1"},
        {"type": "output", "name": "o", "uri": "hdfs://o"},
    ]
    commands = [
        "<% $data.name %> <% $data.uri[1] %><%$script.uri%>@<% $script.version %>",
        "<% $output.uri %> <% $parameters.a.b[0] %> <% $data.uri %>",
    ]
    role = role_of(data="one", script="s", output="o", commands=commands)
    found = entrypoint(prerequisites=prerequisites, parameters={"a": {"b": [3]}}, taskRoles={"worker": role})
    assert found == "one http://bgithub.com/x@v1\nhdfs://o 3 http://a,http://b"


def test_what_names_nothing_stays_and_secrets_are_left_to_the_task() -> None:
    commands = ["<% $parameters.nothing %> <% $secrets.token %> <% $data.name %> <%= erb %> {{ x }} <% $nothing.x %>"]
    role = role_of(commands=commands)
    found = entrypoint(secrets={"token": "hush"}, parameters={"a": 1}, taskRoles={"worker": role})
    assert found == commands[0]


def test_what_names_nothing_is_spelled_as_openpai_spells_it() -> None:
    role = role_of(commands=["<%$parameters.a%> <%  $data.uri[0]  %> <% $secrets.list[1].x %>"])
    found = entrypoint(parameters={}, taskRoles={"worker": role})
    assert found == "<% $parameters.a %> <% $data.uri.0 %> <% $secrets.list.1.x %>"


def test_a_value_that_is_a_template_is_not_filled_in_again() -> None:
    role = role_of(commands=["<% $parameters.a %>"])
    parameters = {"a": "<% $parameters.b %>", "b": "twice"}
    assert entrypoint(parameters=parameters, taskRoles={"worker": role}) == "<% $parameters.b %>"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.01, "0.01"),
        (1e-5, "0.00001"),
        (0.000001, "0.000001"),
        (1e-7, "1e-7"),
        (1.5e-9, "1.5e-9"),
        (1.5e300, "1.5e+300"),
        (1e21, "1e+21"),
        (123456.789, "123456.789"),
        (-0.25, "-0.25"),
        (7, "7"),
        (True, "true"),
        (["a", None, 1], "a,,1"),
    ],
)
def test_values_are_written_as_javascript_writes_them(value: Any, text: str) -> None:
    assert as_text(value) == text


def test_a_number_without_a_fraction_is_whole_however_it_was_written() -> None:
    role = role_of(commands=["<% $parameters.a %> <% $parameters.b %>"])
    assert entrypoint(parameters={"a": 1.0, "b": "1.0"}, taskRoles={"worker": role}) == "1 1.0"


def test_the_secrets_that_a_text_names_are_found() -> None:
    text = "<% $secrets.a %> <%$secrets.b.c%> <% $parameters.d %> $secrets.e <% $secrets.f[0] %>"
    assert names_used(text, "$secrets") == {"a", "b.c", "f.0"}
    assert fill(text, {"$secrets": {"a": "1", "b": {"c": "2"}, "f": ["3"]}}) == "1 2 <% $parameters.d %> $secrets.e 3"


def test_a_template_without_an_end_is_looked_through_once() -> None:
    text = "<% $a" + " " * 500_000 + "x"
    assert fill(text, {"$a": "b"}) == text
    assert fill("<% $a  \t%>", {"$a": "b"}) == "b"
