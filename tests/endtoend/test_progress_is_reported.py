"""Real programs report their work: by `corral.report`, by a file, and by lines of their log."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.endtoend.platform import Job, Platform, one
from tests.waiting import pause

pytestmark = pytest.mark.timeout(300)

CALLS = (
    'python3 -I -c "import sys" && python3 -S -c "'
    "import corral; [corral.report(step, steps=40, loss=2 - step / 40, throughput=5, gradient_noise=900, batch_size=8)"
    ' for step in range(1, 41)]"'
)
WRITES = 'echo \'{"progress": 0.5, "throughput": 7}\' > now.json; sleep 1000'
PRINTS = "for step in 1 2 3; do echo step $step of 12, loss 0.$step; done; sleep 1000"
PATTERN = r"step (?P<step>\d+).* loss (?P<loss>[\d.]+)"


def reports(platform: Platform, job: Job) -> list[Job]:
    return [
        dict(event) for event in platform.client.job_events(job["id"])["items"] if event["kind"] == "job.work-reported"
    ]


def said(platform: Platform, job: Job) -> dict[str, Any]:
    """Return the job's report without its time."""
    found = platform.client.job(job["id"])["work"]
    assert found is not None
    return {name: value for name, value in found.items() if value is not None and name != "at"}


def test_reports_of_every_kind_reach_the_job(platform: Platform) -> None:
    calls = platform.submit(one("calls", CALLS, report=True))
    writes = platform.submit(one("writes", WRITES, report={"file": "now.json"}))
    prints = platform.submit(one("prints", PRINTS, report={"pattern": PATTERN, "steps": 12}))
    platform.ended(calls)
    platform.until(writes, lambda _: bool(reports(platform, writes)))
    platform.until(prints, lambda _: bool(reports(platform, prints)))
    platform.ran(one("after", "true"))  # control handles events in order
    begun = time.monotonic()
    while said(platform, prints).get("step") != 3:  # the first report may be of an earlier line
        assert time.monotonic() < begun + 150, said(platform, prints)
        time.sleep(pause(begun))
    assert said(platform, writes) == {"progress": 0.5, "throughput": 7}
    assert said(platform, prints) == {"progress": 0.25, "step": 3, "steps": 12, "loss": 0.3}
    assert said(platform, calls) == {
        "progress": 1, "step": 40, "steps": 40, "throughput": 5, "loss": 1, "gradientNoise": 900, "batchSize": 8,
    }  # fmt: skip
    assert "100 % (step 40 of 40), loss 1, 5/s, gradient noise 900" in platform.corral("get", "calls")
    platform.corral("down", "--data", str(platform.data))
    platform.up_again()
    assert said(platform, writes) == {"progress": 0.5, "throughput": 7}
