"""Only one control decides: a second one on the same store waits until the first is gone."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

from tests.faults.house import House, until

Build = Callable[..., House]


def test_a_second_control_waits_for_the_lease_and_takes_over(build: Build) -> None:
    house = build()
    house.up()
    log = house.home / "second.log"
    with log.open("wb") as file:
        second = subprocess.Popen(
            [sys.executable, "-m", "corral.cli.main", "serve", "control", "--data", str(house.data)],
            env=house.environment,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            start_new_session=True,
        )
    try:
        until(lambda: "another control leads" in log.read_text(), "the second control to wait")
        assert house.until_ended(house.submit("first", "exit 3"))["exit"]["code"] == 3
        assert "leading" not in log.read_text()
        assert second.poll() is None
        house.down()
        until(lambda: '"leading"' in log.read_text(), "the second control to lead")
    finally:
        second.terminate()
        assert second.wait(60) == 0, log.read_text()
    assert "Traceback" not in log.read_text()
