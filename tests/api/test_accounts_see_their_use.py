"""An account sees its usage and its limits; only administrators see those of others."""

from __future__ import annotations

from pathlib import Path

from corral.api.rate_limits import ApiCallLimits, Calls
from corral.service.jobs.account_limits import Allowance
from tests.api.harness import Server, serving
from tests.api.openpai_caller import signed_in
from tests.api.test_jobs_are_submitted_and_read import job


def test_tasks_submissions_and_code_are_shown_with_their_limits_and_refused_above_them(tmp_path: Path) -> None:
    def bounded(server: Server) -> None:
        server.app.state.calls = ApiCallLimits(Calls(0, 0, 2))
        server.service.context.allowance = Allowance(tasks=4, log_bytes=5, folder_bytes=6)

    with serving(tmp_path, bounded) as server:
        ann, bob = signed_in(server, "ann"), signed_in(server, "bob")
        root = signed_in(server, "boss", role="admin")
        text = {"Content-Type": "application/json"}
        answers = [
            ann.call("POST", "/api/v3/jobs?waitForCapacity=true", content=_job(f"j{number}", tasks), headers=text)
            for number, tasks in enumerate((1, 4, 1, 1))
        ]
        assert [answer.status_code for answer in answers] == [201, 429, 201, 429]
        answers = [answer for answer in answers if answer.status_code == 429]
        assert [answer.json()["code"] for answer in answers] == ["too-many-tasks", "too-many-calls"]
        assert all(int(answer.headers["retry-after"]) > 0 for answer in answers)
        for caller in (ann, root):
            assert caller.call("GET", "/api/v3/users/ann/use").json() == {
                "tasks": {"used": 2, "limit": 4},
                "codeBytes": {"used": 0, "limit": 0},
                "submissions": {"used": 2, "limit": 2},
                "logBytesOfStream": 5,
                "folderBytesOfTask": 6,
                "folder": "ann",
            }
        assert bob.call("GET", "/api/v3/users/ann/use").status_code == 403
        assert root.call("GET", "/api/v3/users/nobody/use").status_code == 404


def _job(name: str, tasks: int) -> str:
    return job(name, roles={"worker": {"command": "true", "replicas": tasks}})
