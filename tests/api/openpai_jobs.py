"""Jobs in OpenPAI's language for tests, and a stand-in for control that stores their states."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import httpx2
import msgspec

from corral.kernel.ids import JobId, TaskKey, attempt_id
from corral.model.facts import Fact
from corral.model.outcome import Completion
from corral.model.phases import phase
from corral.model.placement import TaskPlacement
from corral.model.runs import RoleCount, TaskRun
from corral.model.states import JobState, TaskState
from corral.model.store_writes import AttemptWrite, ControlBatch, FactWrite, Holder, JobRecord, JobWrite, TaskWrite
from corral.model.summary import summarize
from tests.api.harness import Server

ME = Holder("here", "boot", 1, "1")


def protocol(name: str, *, instances: int = 1, gpu: int = 0, more: str = "", extras: str = "") -> str:
    """A small job file of protocol v2."""
    return (
        f"protocolVersion: 2\nname: {name}\ntype: job\n"
        "prerequisites: [{type: dockerimage, name: image, uri: 'ubuntu:22.04'}]\n"
        "taskRoles:\n"
        f"  Task_Role: {{instances: {instances}, dockerImage: image, commands: ['echo hello'],\n"
        f"    resourcePerInstance: {{cpu: 1, memoryMB: 512, gpu: {gpu}}}}}\n"
        f"{more}" + (f"extras: {extras}\n" if extras else "")
    )


class Caller:
    """A caller of OpenPAI's API by plain HTTP."""

    def __init__(self, http: httpx2.Client) -> None:
        self.http = http

    def get(self, path: str, **query: str) -> Any:
        """The JSON of a GET, which must succeed."""
        answer = self.http.get(path, params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def submit(self, text: str) -> httpx2.Response:
        """Submit a job file; returns the answer."""
        return self.http.post("/api/v2/jobs", content=text, headers={"Content-Type": "text/yaml"})

    def put(self, path: str, value: Any) -> httpx2.Response:
        """PUT `{"value": …}`; returns the answer."""
        return self.http.put(path, json={"value": value})


@contextmanager
def calling(server: Server, user: str, *, role: str = "user") -> Iterator[Caller]:
    """A caller with a token of the account."""
    headers = {"Authorization": f"Bearer {server.token(user, role=role)}"}
    with httpx2.Client(base_url=server.url, headers=headers, trust_env=False, timeout=60) as http:
        yield Caller(http)


def refused(answer: httpx2.Response, status: int, code: str, message: str = "") -> None:
    """Check a refusal: its status, its code and, when given, its exact message."""
    assert answer.status_code == status, answer.text
    said = answer.json()
    assert set(said) == {"code", "message"} and said["code"] == code, said
    if message:
        assert said["message"] == message


class Launcher:
    """Stores job states as control would."""

    def __init__(self, server: Server) -> None:
        self.server = server
        lease = server.call(server.store.lead(ME))
        assert lease is not None
        self.epoch = lease.epoch

    def record(self, user: str, name: str) -> JobRecord:
        """The stored job."""
        return self.server.call(self.server.openpai.jobs.find(user, name))

    def write(
        self,
        user: str,
        name: str,
        tasks: Mapping[tuple[str, int], TaskRun],
        *,
        attempts: tuple[AttemptWrite, ...] = (),
        facts: tuple[Fact, ...] = (),
        **run: Any,
    ) -> JobRecord:
        """Store a new state of a job and of its tasks, and the attempts."""
        record = self.record(user, name)
        counts: dict[str, int] = {}
        for role, _ in tasks:
            counts[role] = counts.get(role, 0) + 1
        roles = {role: RoleCount(count, total=count) for role, count in counts.items()}
        after = msgspec.structs.replace(record.run, roles=roles, **run)
        now, word = self.server.clock.now(), phase(after)
        job = JobId(record.id)
        batch = ControlBatch(
            self.epoch,
            jobs=(
                JobWrite(
                    job, after, word, summarize(record.summary, after, word), live=after.state is not JobState.COMPLETED
                ),
            ),
            tasks=tuple(TaskWrite(job, TaskKey(*key), task) for key, task in tasks.items()),
            attempts=attempts,
            facts=tuple(FactWrite(job, now, fact) for fact in facts),
        )
        self.server.call(self.server.store.commit(batch))
        return self.record(user, name)


def running(role: str, index: int, at: float, *, attempt: int = 0) -> TaskRun:
    """A task that runs on node n1 with device 0."""
    return TaskRun(
        role,
        index,
        TaskState.RUNNING,
        attempt=attempt,
        placement=TaskPlacement(role, index, "local/n1", (index,)),
        host="10.0.0.1",
        ports={"ssh": (15001,), "http": (15002, 15003)},
        created_at=at,
        started_at=at + 1,
    )


def over(task: TaskRun, completion: Completion, at: float) -> TaskRun:
    """The task after its end."""
    return msgspec.structs.replace(task, state=TaskState.COMPLETED, completion=completion, ended_at=at)


def history(job: str, task: TaskRun, *, job_attempt: int = 0) -> AttemptWrite:
    """The attempt record of a task's run."""
    ended = task.completion
    return AttemptWrite(
        attempt_id(JobId(job), job_attempt, task.role, task.index, task.attempt),
        node=task.placement.node if task.placement else "",
        devices=task.placement.devices if task.placement else (),
        started_at=task.started_at,
        ended_at=task.ended_at,
        code=None if ended is None else ended.code,
        phrase="" if ended is None else ended.phrase,
        exit_class="" if ended is None else str(ended.exit_class),
        diagnostics="" if ended is None else ended.diagnostics,
        host=task.host,
        ports=task.ports,
    )
