"""Squares numbers: the task with the queue hands them out and adds up the answers, the workers square them."""

from __future__ import annotations

import os
import queue
import time
from contextlib import suppress
from multiprocessing.managers import BaseManager
from typing import Any

NUMBERS = range(30)


class Work(BaseManager):
    """Two queues, one of tasks and one of results, here or over the network."""

    todo: Any
    done: Any


def hand_out(address: tuple[str, int], key: bytes, workers: int) -> None:
    waiting: queue.Queue[int | None] = queue.Queue()
    finished: queue.Queue[tuple[str, int | None]] = queue.Queue()
    for number in (*NUMBERS, *[None] * workers):
        waiting.put(number)
    Work.register("todo", callable=lambda: waiting)
    Work.register("done", callable=lambda: finished)
    with Work(address=address, authkey=key) as shared:
        done = shared.done()
        answers = [done.get() for _ in range(len(NUMBERS) + workers)]
    squares = [(name, square) for name, square in answers if square is not None]
    total = sum(square for _, square in squares)
    print(f"sum of squares {total}, by {len({name for name, _ in squares})} workers", flush=True)
    raise SystemExit(0 if total == sum(number**2 for number in NUMBERS) else 1)


def work(address: tuple[str, int], key: bytes, name: str) -> None:
    Work.register("todo")
    Work.register("done")
    shared = Work(address=address, authkey=key)
    while True:
        with suppress(ConnectionRefusedError):  # the queue is not open yet
            shared.connect()
            break
        time.sleep(0.05)
    todo, done = shared.todo(), shared.done()
    while (number := todo.get()) is not None:
        done.put((name, number**2))
    with suppress(EOFError, ConnectionError):  # the queue may close before it has answered the last goodbye
        done.put((name, None))


if __name__ == "__main__":
    where = os.environ["QUEUE_HOST"], int(os.environ["QUEUE_PORT"])
    secret = os.environ["QUEUE_KEY"].encode()
    if os.environ["QUEUE_ROLE"] == "queue":
        hand_out(where, secret, int(os.environ["CORRAL_WORLD_SIZE"]) - 1)
    else:
        work(where, secret, os.environ["CORRAL_TASK_INDEX"])
