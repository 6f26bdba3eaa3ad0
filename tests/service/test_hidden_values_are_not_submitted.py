"""A copied job with hidden values is refused with their names, instead of running with `(hidden)`."""

from __future__ import annotations

import json

import pytest

from corral.service.service import Service
from corral.spec.errors import SpecError
from tests.service.conftest import ANN, BOB, job_text


async def test_a_copy_of_anothers_job_names_the_values_that_were_hidden(service: Service) -> None:
    made = await service.submission.submit(ANN, job_text(more="env: {TOKEN: x}\n"))
    assert made.detail is not None
    seen = await service.jobs.document(BOB, made.detail.id)
    with pytest.raises(SpecError, match=r"TOKEN.*stands for a value of another's job"):
        await service.submission.submit(BOB, json.dumps(seen))
    short = await service.jobs.document(BOB, made.detail.id, short=True)
    assert short["roles"]["worker"]["env"] == {"TOKEN": "(hidden)"} and "apiVersion" not in short
    with pytest.raises(SpecError, match=r"TOKEN.*stands for a value of another's job"):
        await service.submission.submit(BOB, json.dumps(short))
    own = await service.jobs.document(ANN, made.detail.id)
    own["metadata"]["name"] = "again"
    assert (await service.submission.submit(ANN, json.dumps(own))).created


async def test_the_short_form_of_a_long_document_is_written_too(service: Service) -> None:
    made = await service.submission.submit(ANN, job_text().replace("echo hello", "echo " + "x" * 20_000))
    assert made.detail is not None
    short = await service.jobs.document(BOB, made.detail.id, short=True)
    assert short["roles"]["worker"]["command"] == "echo " + "x" * 20_000
