"""References in a job file stand for parameters, and overrides replace their values."""

from __future__ import annotations

import pytest

from corral.spec.errors import SpecError
from corral.spec.job import UnifiedJob
from corral.spec.job_reader import load_job

TEXT = """\
name: train-<% $parameters.size %>
parameters: {size: 2, rate: 0.10, tag: 1.10, verbose: true}
roles:
  w:
    replicas: <% $parameters.size %>
    image: <%$parameters.tag%>
    command: train --rate <% $parameters.rate %> --verbose=<% $parameters.verbose %>
    env: {SIZE: <% $parameters.size %>, RATE: "<% $parameters.rate %>"}
"""


def test_references_stand_for_what_was_written() -> None:
    job = load_job(TEXT)
    role = job.role("w")
    assert (job.name, job.total_tasks, role.image) == ("train-2", 2, "1.10")
    assert role.command == ["sh", "-c", "train --rate 0.10 --verbose=true"]
    assert role.env == {"SIZE": "2", "RATE": "0.10"}
    assert job.spec.parameters == {"size": "2", "rate": "0.10", "tag": "1.10", "verbose": "true"}


def test_overrides_win_and_are_recorded() -> None:
    job = load_job(TEXT, parameters={"size": "3", "rate": "1e-3"})
    assert (job.name, job.total_tasks, job.role("w").env["RATE"]) == ("train-3", 3, "1e-3")
    assert job.spec.parameters["rate"] == "1e-3"


def test_the_canonical_form_has_parameters_too() -> None:
    document = load_job(TEXT).to_document()
    document["spec"]["roles"][0]["command"] = ["echo", "<% $parameters.tag %>"]
    assert load_job(document).role("w").command == ["echo", "1.10"]
    assert load_job(document, parameters={"tag": "2"}, name="other").name == "other"


def test_a_stored_document_is_read_as_it_is() -> None:
    document = load_job("name: a\nroles: {w: {command: [x]}}").to_document()
    document["spec"]["roles"][0]["command"] = ["echo", "<% $secrets.hub %>"]
    assert UnifiedJob.from_document(document).role("w").command == ["echo", "<% $secrets.hub %>"]


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"sise": "3"}, 'job.yaml: --set sise: no such parameter; did you mean "size"?'),
        ({"size": "many"}, "job.yaml:5:15: roles.w.replicas: expected a whole number"),
        ({"rate": "<% $parameters.size %>"}, 'the parameter "rate" may not itself hold <%'),
    ],
)
def test_overrides_are_checked(parameters: dict[str, str], said: str) -> None:
    with pytest.raises(SpecError) as caught:
        load_job(TEXT, parameters=parameters)
    assert said in str(caught.value)


def test_parameters_cannot_make_a_document_grow_without_bound() -> None:
    references = "<% $parameters.x %>," * 400
    text = f"name: a\nparameters: {{x: {'y' * 60_000}}}\nroles: {{w: {{command: [{references}]}}}}"
    with pytest.raises(SpecError, match="parameters make the document longer than"):
        load_job(text)


def test_only_references_are_filled_in() -> None:
    job = load_job("name: a\nroles: {w: {command: ['<% x %>', '{{ y }}', '$z', '<%= erb %>']}}")
    assert job.role("w").command == ["<% x %>", "{{ y }}", "$z", "<%= erb %>"]
