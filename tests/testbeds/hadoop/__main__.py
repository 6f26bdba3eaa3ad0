"""Fetch the jars and archive their classes before the tests, whose time limit is too short for that."""

import sys
import time

from tests.testbeds.hadoop import classes, jars
from tests.testbeds.hadoop.hdfs import Hdfs
from tests.testbeds.hadoop.yarn import Yarn

SERVICE = {
    "name": "archived",
    "version": "1",
    "components": [
        {
            "name": "one",
            "number_of_containers": 1,
            "launch_command": "sleep 600",
            "resource": {"cpus": 1, "memory": "64"},
        }
    ],
}
"""A service whose master loads the classes that every service master needs."""


def main() -> None:
    """Make what the cache lacks."""
    if reason := jars.missing():
        print(f"{reason}: the tests on a real Hadoop will skip", file=sys.stderr)
    elif not classes.exists(jars.folder()):
        print("archiving Hadoop's classes (about two minutes)", file=sys.stderr, flush=True)
        with classes.made_from_what_starts(jars.folder()), Hdfs() as hdfs, Yarn(hdfs) as yarn:
            _run_service(yarn)


def _run_service(yarn: Yarn) -> None:
    yarn.ask("/app/v1/services", method="POST", body=SERVICE)
    deadline = time.monotonic() + 240
    while yarn.service("archived")["state"] != "STABLE":
        if time.monotonic() > deadline:
            raise RuntimeError("YARN did not start a service in 240 s")
        time.sleep(0.5)


main()
