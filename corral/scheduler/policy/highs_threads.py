"""Let HiGHS solve in the calling thread alone.

By itself HiGHS starts a thread for every two processors, and keeps these threads for the next program. A forked child
does not have them, and would wait for them without end; its memory also has a bound, within which sixty of them cannot
start. The programs of the policies are small, and their answers do not depend on the number of threads.
"""

from __future__ import annotations

from typing import Any


def one_thread() -> None:
    """Give up the threads that HiGHS has for the calling thread, also those that a fork has lost, and start none.

    Nothing is done where scipy has another binding than the known one.
    """
    try:
        from scipy.optimize._highspy import _core

        if _nothing_solved(_core) != _core.HighsStatus.kOk:  # it has begun with more threads
            _core._Highs.resetGlobalScheduler(False)  # True would wait for threads that a fork has lost
            _nothing_solved(_core)
    except (ImportError, AttributeError):
        return


def _nothing_solved(core: Any) -> Any:
    """Solve a program without columns by one thread; HiGHS refuses where it has more, else it keeps to one."""
    solver, options = core._Highs(), core.HighsOptions()
    options.log_to_console, options.threads = False, 1
    solver.passOptions(options)
    return solver.run()
