"""A server process for tests of adoption: it starts the given tasks, then waits to be killed.

`python local_server.py FOLDER TASK-JSON...`; each TASK-JSON is a list [attempt, command...], ["stop", attempt, grace],
["recorded", attempt] or ["wait", path]. An attempt whose shim has not recorded itself is given up by the next server.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from corral.engines.local.attempt_folder import AttemptFolder
from corral.engines.local.engine import LocalEngine
from corral.kernel.ids import AttemptId
from corral.model.inventory import Node
from corral.model.launch import PortRequest, TaskLaunch
from corral.storage.log_files import LogStore


async def main(folder: Path, steps: list[list[str]]) -> None:
    engine = LocalEngine(folder / "engine", [Node("local/node1")], logs=LogStore(folder / "logs"))
    await engine.open()
    for name, *rest in steps:
        if name == "stop":
            await engine.stop(AttemptId(rest[0]), grace_seconds=float(rest[1]))
            continue
        if name == "wait":
            while not Path(rest[0]).exists():
                await asyncio.sleep(0.005)
            continue
        if name == "recorded":
            record = AttemptFolder(str(folder / "engine" / "attempts"), AttemptId(rest[0]))
            while record.process() is None:
                await asyncio.sleep(0.005)
            continue
        ports = (PortRequest("web", 1),)
        await engine.start(TaskLaunch(AttemptId(name), "ada", "local/node1", tuple(rest), {}, ports=ports))
    print("started", flush=True)
    await asyncio.Event().wait()


asyncio.run(main(Path(sys.argv[1]), [json.loads(step) for step in sys.argv[2:]]))
