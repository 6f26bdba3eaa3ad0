"""Solve one small linear program by HiGHS, as scipy brings it.

`scipy.optimize.milp` takes longer to check its input and to list sensitivities than HiGHS to solve a program of a
hundred variables. So scipy's binding is called itself where it is the known one, else `milp`; the answers are equal.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corral.scheduler.policy.highs_threads import one_thread

Floats = NDArray[np.float64]


def solve(costs: Floats, table: Floats, low: Floats, high: Floats, most: Floats) -> Floats:
    """Return the x from 0 to `most` with `low` <= table · x <= `high` at which costs · x is smallest.

    Raises ArithmeticError if there is none.
    """
    binding = _binding()
    found = None if binding is None else _by_binding(binding, costs, table, low, high, most)
    return _by_milp(costs, table, low, high, most) if found is None else found


@lru_cache(1)
def _binding() -> Any:
    """Return scipy's binding of HiGHS with options (one thread, no output); None if this scipy has another one."""
    try:
        from scipy.optimize._highspy import _core

        options = _core.HighsOptions()
        options.log_to_console, options.threads = False, 1
    except (ImportError, AttributeError):
        return None
    return _core, options


def _by_binding(
    binding: tuple[Any, Any], costs: Floats, table: Floats, low: Floats, high: Floats, most: Floats
) -> Floats | None:
    """Return the same; None if it is not solved or the binding is not as expected, so that `milp` says why."""
    core, options = binding
    rows, columns = table.shape
    across = table.T
    of_column, of_row = np.nonzero(across)
    starts = np.append(0, np.cumsum(np.bincount(of_column, minlength=columns)))
    try:
        program, solver = core.HighsLp(), core._Highs()
        program.num_col_, program.num_row_ = columns, rows
        program.col_cost_, program.col_lower_, program.col_upper_ = costs, np.zeros(columns), most
        program.row_lower_, program.row_upper_ = low, high
        matrix = program.a_matrix_
        matrix.num_col_, matrix.num_row_, matrix.format_ = columns, rows, core.MatrixFormat.kColwise
        matrix.start_, matrix.index_ = starts.astype(np.int32), of_row.astype(np.int32)
        matrix.value_ = across[of_column, of_row]
        solver.passOptions(options)
        solver.passModel(program)
        solver.run()
        if solver.getModelStatus() != core.HighsModelStatus.kOptimal:
            return None
        return np.array(solver.getSolution().col_value)
    except (AttributeError, TypeError):
        return None


def _by_milp(costs: Floats, table: Floats, low: Floats, high: Floats, most: Floats) -> Floats:
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csc_array

    one_thread()
    # without whole numbers it is a linear program, and checks less of its input than `linprog`
    found = milp(
        costs, constraints=LinearConstraint(csc_array(table), low, high), bounds=Bounds(np.zeros(len(most)), most)
    )
    if found.x is None:
        raise ArithmeticError(f"the linear program has no solution: {found.message}")
    x: Floats = found.x
    return x
