"""A DRA driver that is killed by SIGKILL just before its n-th disk operation, for each n read from standard input.

Run as a program with a folder. It answers each line with the steps that the driver had acknowledged, and `whole` if it
was not killed.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from corral.devices.dra.driver import Asked
from tests.devices.dra.node import Cluster, Node, given

STORY = (
    ("prepare", "a"),
    ("prepare", "c"),
    ("unprepare", "a"),
    ("prepare", "b"),
    ("unprepare", "c"),
    ("unprepare", "b"),
)


def cluster() -> Cluster:
    found = Cluster()
    found.allocate("a", given("npu-0", "npu-1"))
    found.allocate("b", given("npu-1", "npu-2"))
    found.allocate("c", given("npu-3"))
    return found


async def story(node: Node, said: Callable[[str], object]) -> None:
    """Make all calls in order, and report each one once it is answered."""
    for call, uid in STORY:
        await getattr(node.driver, call)(Asked("x", uid, uid))
        said(f"{call}-{uid}")


def die_before(step: int) -> None:
    """Count every disk operation and die before the given one."""
    left = step

    def counted(function: Callable[..., Any]) -> Callable[..., Any]:
        def count(*words: Any, **options: Any) -> Any:
            nonlocal left
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*words, **options)

        return count

    os.fsync = counted(os.fsync)
    for name in ("rename", "unlink"):
        setattr(Path, name, counted(getattr(Path, name)))


def tell(root: Path, step: int, answers: int) -> NoReturn:
    """Run the story in this process and end the process."""
    node = Node(root, cluster())
    die_before(step)
    asyncio.run(story(node, lambda word: os.write(answers, f"{word} ".encode())))
    os._exit(0)


def main() -> None:
    for line in sys.stdin:
        step = int(line)
        reads, writes = os.pipe()
        child = os.fork()
        if child == 0:
            os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
            tell(Path(sys.argv[1]) / str(step), step, writes)
        os.close(writes)
        _, status = os.waitpid(child, 0)
        with open(reads) as told:
            print(told.read() + ("whole" if status == 0 else ""), flush=True)


if __name__ == "__main__":
    main()
