"""A process for the crash test that submits jobs, prints acknowledged ids, and can be killed at any moment.

Usage: writer_process.py URL ROUND; every acknowledged id is a line on standard output.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time

from corral.kernel.ids import job_id
from corral.model.records import JobSummary, rfc3339
from corral.model.store_writes import NewJob
from corral.store import open_store


class WallClock:
    """The time of day."""

    def now(self) -> float:
        """Seconds since 1970."""
        return time.time()


async def main(url: str, number: int) -> None:
    """Submit from eight callers for ever."""
    store = await open_store(url, clock=WallClock())
    os.write(1, b"ready\n")

    async def caller(which: int) -> None:
        for count in range(10**6):
            at = time.time()
            own = job_id(int(at * 1000), (number * 8 + which) * 4096 + count % 4096)
            name = f"r{number}-{which}-{count}"
            summary = JobSummary(own, name, "ann", "default", 10, "shell", "waiting", rfc3339(at))
            answer = await store.submit(NewJob(own, "ann", name, "default", 10, "{}", summary, at, tags=("crash",)))
            os.write(1, f"{answer.id}\n".encode())

    await asyncio.gather(*(caller(which) for which in range(8)))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
