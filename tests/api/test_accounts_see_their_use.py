"""An account sees what it has of what one account may have; others do not, but for administrators."""

from __future__ import annotations

from pathlib import Path

from corral.api.limits import Calls, Counting
from corral.service.allowance import Allowance
from tests.api.harness import Server, serving
from tests.api.openpai_caller import signed_in
from tests.api.test_jobs_are_submitted_and_read import job


def test_tasks_submissions_and_code_are_shown_with_their_limits_and_refused_above_them(tmp_path: Path) -> None:
    def bounded(server: Server) -> None:
        server.app.state.calls = Counting(Calls(0, 0, 3))
        server.service.allowance = Allowance(tasks=2, log_bytes=5, folder_bytes=6)

    with serving(tmp_path, bounded) as server:
        ann, bob = signed_in(server, "ann"), signed_in(server, "bob")
        root = signed_in(server, "boss", role="admin")
        text = {"Content-Type": "application/json"}
        answers = [
            ann.call("POST", "/api/v3/jobs?waitForCapacity=true", content=job(f"j{number}"), headers=text)
            for number in range(4)
        ]
        assert [answer.status_code for answer in answers] == [201, 201, 429, 429]
        assert [answer.json()["code"] for answer in answers[2:]] == ["too-many-tasks", "too-many-calls"]
        assert all(int(answer.headers["retry-after"]) > 0 for answer in answers[2:])
        for caller in (ann, root):
            assert caller.call("GET", "/api/v3/users/ann/use").json() == {
                "tasks": {"used": 2, "limit": 2},
                "codeBytes": {"used": 0, "limit": 0},
                "submissions": {"used": 3, "limit": 3},
                "logBytesOfStream": 5,
                "folderBytesOfTask": 6,
            }
        assert bob.call("GET", "/api/v3/users/ann/use").status_code == 403
        assert root.call("GET", "/api/v3/users/nobody/use").status_code == 404
