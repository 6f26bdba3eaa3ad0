"""The active ResourceManager and NameNode of a pair are failed over, by a kill and in order, while jobs run."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from corral.engines.kind import DoctorOptions, Finding
from corral.engines.yarn.kind import YarnKind, YarnOptions
from tests.endtoend.platform import ROOT, Job
from tests.engines.yarn.served import OnYarn, until
from tests.testbeds.hadoop import jars
from tests.testbeds.hadoop.pairs import PairedHdfs, PairedYarn

pytestmark = [pytest.mark.timeout(900)]
LONG = 240.0
"""Seconds that a fail-over may take on a busy machine."""


class OnPairs(OnYarn):
    """A server that knows both daemons of each pair, and the name service by its configuration."""

    def __init__(self, folder: Path, yarn: PairedYarn, hdfs: PairedHdfs) -> None:
        super().__init__(folder, yarn, "--blobs", f"web{hdfs.native}/blobs")
        configured = f"HADOOP_CONF_DIR={hdfs.client_configuration}"
        stage = f"env {configured} PYTHONPATH={ROOT} {sys.executable} -m corral.storage stage"
        self.env |= {"HADOOP_CONF_DIR": str(hdfs.client_configuration), "CORRAL_YARN_STAGE_COMMAND": stage}
        self.pair, self.hdfs = yarn, hdfs

    def copies(self, number: int) -> Job:
        """Submit a job that copies a folder by the name service, by both schemes."""
        role = {"replicas": 1, "resources": {"cpu": "1", "memory": "128Mi"}, "command": "mkdir to && cp from/* to"}
        return self.submit(
            {
                "name": f"copies-{number}",
                "framework": "shell",
                "roles": {"main": role},
                "nodes": ["nm1"],
                "inputs": [{"uri": f"{self.hdfs.native}/given", "path": "from"}],
                "outputs": [{"path": "to", "uri": f"web{self.hdfs.native}/made/{number}"}],
            }
        )

    def copied(self, job: Job, number: int) -> None:
        """Wait until such a job has succeeded in its first attempt."""
        ended = self.client.wait(job["id"], timeout=LONG)
        attempts = self.attempts(job, "main-0")
        told = f"{attempts}\n{self.log(job)}\n{delays(self, job)}"
        assert ended["state"] == "succeeded", told
        assert len(attempts) == 1, told
        assert self.hdfs.read(f"/made/{number}/words") == b"seven\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OnPairs]:
    if reason := jars.missing():
        pytest.skip(reason)
    with PairedHdfs() as hdfs, PairedYarn(hdfs) as yarn:
        for folder, owner in (("/given", yarn.user), (f"/user/{yarn.user}", yarn.user)):
            hdfs.add_folder(folder, owner)
        hdfs.write("/given/words", b"seven\n")
        made = OnPairs(tmp_path_factory.mktemp("server"), yarn, hdfs)
        made.up()
        yield made
        made.down()


def examined(server: OnPairs, holds: Callable[[Mapping[str, Finding]], bool]) -> dict[str, Finding]:
    """What `corral doctor` says of both pairs once `holds` is true.

    A NameNode answers its first call over HTTP late: on a busy machine later than the doctor waits.
    """
    options = YarnOptions(
        yarn_resource_managers=",".join(server.pair.urls), yarn_name_nodes=",".join(server.hdfs.web_urls)
    )

    def look() -> dict[str, Finding] | None:
        found = asyncio.run(YarnKind().doctor(options, DoctorOptions(probe=False)))
        pairs = {each.name: each for each in found if each.name in ("ResourceManagers", "NameNodes")}
        return pairs if len(pairs) == 2 and holds(pairs) else None

    return until(look, LONG)


def test_jobs_go_on_start_and_find_their_data_after_each_fail_over(server: OnPairs, tmp_path: Path) -> None:
    yarn, hdfs = server.pair, server.hdfs
    beats = tmp_path / "beats"
    beats.mkdir()
    script = f"while [ ! -e {tmp_path}/done ]; do printf . >> {beats}/$$; sleep 0.2; done"
    resources = {"cpu": "1", "memory": "128Mi", "devices": 2}
    role: dict[str, Any] = {"replicas": 1, "resources": resources, "command": script}
    long = server.submit({"name": "long", "framework": "shell", "roles": {"main": role}})
    until(lambda: next(beats.iterdir(), None), LONG)
    (process,) = beats.iterdir()
    first = yarn.active()
    found = examined(server, lambda told: {each.state for each in told.values()} == {"good"})
    assert f"{yarn.url} is active" in found["ResourceManagers"].message
    assert f"{hdfs.web_urls[0]} is active" in found["NameNodes"].message

    hdfs.fail_over("nn2")
    yarn.resource_managers[first].kill()
    one = server.copies(1)
    server.copied(one, 1)
    second = yarn.active()
    assert {first, second} == set(yarn.ids)
    found = examined(server, lambda told: told["NameNodes"].state == "good")
    assert "nothing takes over" in found["ResourceManagers"].message
    assert f"{hdfs.web_urls[1]} is active" in found["NameNodes"].message
    goes_on(process)

    yarn.start()
    hdfs.name_nodes["nn2"].kill()
    two = server.copies(2)
    until(lambda: next((True for told in delays(server, two) if "does not answer" in told), None), LONG)
    hdfs.fail_over("nn1")
    yarn.stand_by()
    server.copied(two, 2)
    assert yarn.active() == first
    goes_on(process)

    (tmp_path / "done").touch()
    assert server.client.wait(long["id"], timeout=LONG)["state"] == "succeeded"
    assert len(server.attempts(long, "main-0")) == 1
    assert list(beats.iterdir()) == [process]
    server.gone(long, one, two)


def goes_on(process: Path) -> None:
    """The process writes two more lines."""
    had = len(process.read_text())
    until(lambda: True if len(process.read_text()) > had + 1 else None, LONG)


def delays(server: OnPairs, job: Job) -> list[str]:
    """The messages of a job's events, in which the delay of a start is told."""
    return [each["message"] for each in server.client.job_events(job["id"])["items"]]
