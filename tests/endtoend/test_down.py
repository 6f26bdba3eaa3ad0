"""`corral down --stop-jobs` ends within its time limit, whatever the jobs do, and names the jobs that it left."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.endtoend.platform import Platform, one

pytestmark = pytest.mark.timeout(300)


def test_down_waits_for_its_time_says_which_jobs_it_left_and_the_next_up_takes_them_over(tmp_path: Path) -> None:
    platform = Platform(tmp_path)
    platform.up()
    try:
        command = f"trap '' TERM; echo deaf; until [ -e {tmp_path}/end ]; do sleep 0.1; done"
        deaf = platform.submit(one("deaf", command, checkpoint={"grace": "60s"}))
        platform.printed_running(deaf, "main-0", "deaf")
        said = platform.refused("down", "--stop-jobs", "--timeout", "0.5", "--data", str(platform.data), code=1)
        assert f"Not ended within 0.5 s, and taken over by the next corral up: deaf ({deaf['id']})." in said
        platform.up_again()
        assert platform.client.job(deaf["id"])["state"] in ("stopping", "stopped")
    finally:
        (tmp_path / "end").touch()
        platform.down()
