"""What a job reports is read over time by its owner, through REST and the command line, and by nobody else."""

from __future__ import annotations

import csv
import io
import json
import time
from collections.abc import Iterator

import httpx2
import pytest

from corral.client import Client
from corral.kernel.errors import Forbidden, InvalidInput, NotFound
from tests.endtoend.platform import Job, Platform, one

pytestmark = pytest.mark.timeout(300)

TRAINS = 'python3 -S -c "import corral; corral.report(5, steps=10, loss=0.25, throughput=8)"; sleep 1000'


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    """A server that measures no tasks, so that jobs have the series of their own reports alone."""
    made = Platform(tmp_path_factory.mktemp("server"), env={"CORRAL_METRICS_SECONDS": "0"})
    made.up()
    yield made
    made.down()


def await_figures(platform: Platform, job: Job) -> None:
    """Wait until the job has series; they may come a moment after the last event of the job."""
    end = time.monotonic() + 120
    while not platform.client.series(job=job["id"])["items"]:
        assert time.monotonic() < end, "the job has no series"
        time.sleep(0.2)


def test_a_job_that_reports_its_loss_has_its_series(platform: Platform) -> None:
    job = platform.submit(one("trains", TRAINS, report=True))
    await_figures(platform, job)
    answer = platform.client.series(job="trains")
    found = {each["family"]: each for each in answer["items"]}
    assert set(found) == {f"corral_job_{name}" for name in ("loss", "progress", "step", "throughput")}
    loss = found["corral_job_loss"]
    assert {each for each in loss["mean"] if each is not None} == {0.25} and loss["labels"] == {"job": job["id"]}
    assert len(loss["mean"]) == len(loss["low"]) == len(loss["high"]) == 3600 // answer["step"] + 1
    shown = platform.corral("metrics", "trains")
    assert [line.split()[:2] for line in shown.splitlines()[1:3]] == [["loss", "0.25"], ["progress", "0.5"]]
    rows = list(csv.DictReader(io.StringIO(platform.corral("metrics", "trains", "--since", "10m", "-o", "csv"))))
    assert {each["mean"] for each in rows if each["family"] == "corral_job_throughput"} == {"8.0"}
    told = json.loads(platform.corral("metrics", "trains", "--family", "corral_job_step", "-o", "json"))
    assert [each["family"] for each in told["items"]] == ["corral_job_step"]

    other = platform.submit(one("trains-too", TRAINS, report=True))
    await_figures(platform, other)
    both = platform.corral("metrics", "trains", "trains-too", "--family", "corral_job_loss", "--aligned")
    assert [line.split()[:3] for line in both.splitlines()[1:3]] == [
        ["loss", "trains", "0.25"],
        ["trains-too", "0.25", "0.25"],
    ]
    rows = list(csv.DictReader(io.StringIO(platform.corral("metrics", "trains", "trains-too", "-o", "csv"))))
    assert {each["job"] for each in rows} == {"trains", "trains-too"}
    assert "At most 8 jobs" in platform.refused("metrics", *(f"job-{number}" for number in range(9)), code=2)


def test_another_user_does_not_see_them_and_administrators_alone_see_what_names_machines(platform: Platform) -> None:
    job = platform.submit(one("secret", TRAINS, report=True))
    await_figures(platform, job)
    platform.client.create_user("mallory", password="correct horse battery")
    with Client(platform.url, "") as mallory:
        mallory.login(user="mallory", password="correct horse battery")
        with pytest.raises(Forbidden, match="read the metrics of"):
            mallory.series(job=job["id"])
        with pytest.raises(InvalidInput, match="is a figure of jobs: name the job"):
            mallory.series(["corral_job_loss"])
        with pytest.raises(Forbidden):
            mallory.series(["corral_process_cpu_seconds_total"])
        assert mallory.series(["corral_jobs"], labels=["queue=default"])["step"] == 15
    assert httpx2.get(f"{platform.url}/api/v3/series?job={job['id']}").status_code == 401


def test_a_question_without_meaning_is_refused_in_a_sentence(platform: Platform) -> None:
    client = platform.client
    with pytest.raises(InvalidInput, match="Name a job or a family"):
        client.series()
    with pytest.raises(InvalidInput, match="There is no metric"):
        client.series(["loss"])
    with pytest.raises(InvalidInput, match="multiple of 15 s"):
        client.series(["corral_jobs"], step="10s")
    with pytest.raises(InvalidInput, match="at most 1500 steps"):
        client.series(["corral_jobs"], step="15s", begin="2026-01-01", end="2026-02-01")
    with pytest.raises(InvalidInput, match="has no length"):
        client.series(["corral_jobs"], begin="2026-02-01", end="2026-01-01")
    with pytest.raises(InvalidInput, match="NAME=VALUE"):
        client.series(["corral_jobs"], labels=["queue"])
    with pytest.raises(NotFound):
        client.series(job="nobody-has-this")
    assert "is not a duration" in platform.refused("metrics", "--family", "corral_jobs", "--since", "soon", code=2)
