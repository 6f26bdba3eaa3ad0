"""A job file may say how fast the job works at several sizes."""

from __future__ import annotations

import pytest

from corral.model.request_builder import gang_terms
from corral.spec.errors import SpecError
from corral.spec.job_reader import load_job
from corral.spec.scaling import MeasuredSize

FILE = "name: a\nframework: shell\nscaling: {}\nroles:\n  worker: {{replicas: {{min: 1, max: 8}}, command: ['true']}}\n"


def test_it_reaches_the_scheduler() -> None:
    job = load_job(FILE.format("[{devices: 1, throughput: 100}, {devices: 8, nodes: 2, throughput: 610.5}]"))
    assert job.spec.scaling[0] == MeasuredSize(devices=1, throughput=100.0)
    assert gang_terms(job).whole.scaling == ((1, 1, 100.0), (8, 2, 610.5))
    assert load_job(job.to_json()) == job


@pytest.mark.parametrize(
    ("scaling", "said"),
    [
        ("[{devices: 0, throughput: 1}]", "devices"),
        ("[{devices: 1, throughput: 0}]", "throughput"),
        ("[{devices: 1, throughput: 1e-300}]", "throughput"),
        ("[{devices: 1, throughput: .inf}]", "throughput"),
        ("[{devices: 1}]", "throughput"),
        ("[{devices: 1, nodes: 2, throughput: 1}]", "1 device cannot be on 2 nodes"),
        (
            "[{devices: 2, throughput: 1}, {devices: 2, throughput: 3}]",
            "the size of 2 devices on 1 node is there twice",
        ),
        (str([{"devices": at, "throughput": 1} for at in range(1, 66)]), "64"),
    ],
)
def test_what_is_no_profile_is_refused(scaling: str, said: str) -> None:
    with pytest.raises(SpecError, match=said):
        load_job(FILE.format(scaling))
