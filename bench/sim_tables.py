"""Measure the printed cells of the published tables in mode compat: how many bounds hold, and processor time by table.

The traces come from CORRAL_DATA, else from `shared/data` beside the checkout.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from corral.sim.tables import COMPAT, chosen, measured, parse_tables, traces_folder

_ROOT = Path(__file__).resolve().parents[1]


def measure() -> dict[str, float]:
    """Return the figures of the benchmark `sim-tables`."""
    data = traces_folder(_ROOT)
    seconds: dict[str, float] = defaultdict(float)
    holding = bounded = 0
    cells = chosen(parse_tables((_ROOT / "bench" / "tables.toml").read_text()), None, None, COMPAT)
    printed = [cell for cell in cells if cell.anchor is not None]
    for outcomes in measured(printed, data):
        seconds[f"table {outcomes[0].cell.table}"] += outcomes[0].seconds
        holding += sum(outcome.holds is True for outcome in outcomes)
        bounded += sum(outcome.holds is not None for outcome in outcomes)
    return {"holding": holding, "bounded": bounded, "total": sum(seconds.values()), **seconds}
