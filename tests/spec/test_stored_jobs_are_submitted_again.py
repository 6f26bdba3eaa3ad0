"""A stored job as the server shows it can be submitted again, and `--set` without effect is refused."""

from __future__ import annotations

import json

import pytest
import yaml

from corral.spec.errors import SpecError
from corral.spec.job_reader import load_job
from tests.spec.openpai_files import job_file

FILE = "name: sweep\nparameters: {lr: 0.1}\nroles: {worker: {command: 'train <% $parameters.lr %>', env: {A: '1e5'}}}\n"


def test_set_is_refused_on_a_stored_document_whose_parameters_are_filled_in() -> None:
    stored = load_job(FILE).to_json()
    with pytest.raises(SpecError, match="--set lr: nothing in this document refers to that parameter"):
        load_job(stored, parameters={"lr": "0.3"})
    assert load_job(FILE, parameters={"lr": "0.3"}).spec.roles[0].command[-1] == "train 0.3"


@pytest.mark.parametrize("written", [yaml.safe_dump, json.dumps])
def test_what_get_prints_of_a_job_is_the_job_again(written: object) -> None:
    job = load_job(FILE)
    shown = {"id": "1m8300000000a", "name": "sweep", "state": "succeeded", "document": job.to_document()}
    assert callable(written)
    assert load_job(written(shown)) == job
    assert load_job(shown) == job


def test_a_fault_in_what_get_printed_is_told_at_its_line() -> None:
    document = load_job(FILE).to_document()
    document["spec"]["roles"][0]["replicas"] = -1
    text = yaml.safe_dump({"id": "x", "state": "failed", "document": document}, sort_keys=False)
    with pytest.raises(SpecError) as caught:
        load_job(text)
    assert caught.value.problems[0].line > 1


def test_set_of_a_parameter_that_a_file_of_openpai_does_not_have_is_refused() -> None:
    with pytest.raises(SpecError, match="--set typo: no such parameter"):
        load_job(job_file(parameters={"lr": 1}), parameters={"typo": "2"})
