"""Do equal pieces of work in processes beside each other."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import active_children, get_context
from typing import TypeVar

Asked = TypeVar("Asked")
Answer = TypeVar("Answer")


def answered(
    answer: Callable[[Asked], Answer], questions: Sequence[Asked], processes: int
) -> Iterator[tuple[Asked, Answer]]:
    """Yield each answer as soon as it is there; the processes end with the iteration.

    `answer`, the questions and the answers must be picklable. Raises what `answer` raises.
    """
    # A terminal's Ctrl-C reaches the workers too: they end by it at once and in silence.
    pool = ProcessPoolExecutor(
        processes, mp_context=get_context("spawn"), initializer=signal.signal, initargs=(signal.SIGINT, signal.SIG_DFL)
    )
    try:
        asked = {pool.submit(answer, question): question for question in questions}
        for done in as_completed(asked):
            yield asked.pop(done), done.result()
    except BaseException:
        for process in active_children():
            process.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)
