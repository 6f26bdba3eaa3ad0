"""Table B in mode honest: the jobs' work by batch size, and that `shockwave` holds all four bounds in one run."""

from __future__ import annotations

from pathlib import Path

import pytest

from corral.kernel.errors import InvalidInput, NotFound
from corral.sim.compat.rounds import RoundJob
from corral.sim.compat.shockwave_jobs import Batches
from corral.sim.honest.shockwave_rows import pieces, play, read_jobs, regimes_of
from corral.sim.tables import parse_tables
from tests.sim.compat.published import TABLES

SPEEDS = {("LM", 10, 1): 100.0, ("LM", 20, 1): 60.0, ("LM", 80, 1): 20.0}


def job(mode: str, initial: int, epochs: int) -> RoundJob:
    steps = -(-59_675 // initial)
    return RoundJob(0, 0.0, 1, steps * epochs, [100.0], Batches("LM", initial, initial, mode))


def test_the_work_of_a_job_follows_its_rule_of_adaptation() -> None:
    """An epoch of LM has 59,675 samples: 5,968 steps at 10, 2,984 at 20 and 746 at 80."""
    (static,) = regimes_of(job("static", 10, 4), SPEEDS, {})
    assert (static.batch_size, static.progress) == (10.0, 1.0)
    assert static.seconds == pytest.approx(4 * 59.68)
    planned = regimes_of(job("gns", 10, 4), SPEEDS, {("LM", 10, 1): ((0, 10), (3, 20))})
    assert [(each.batch_size, each.progress) for each in planned] == [(10.0, 0.75), (20.0, 0.25)]
    assert planned[1].seconds == pytest.approx(2984 / 60)
    critical = regimes_of(job("accordion", 10, 20), SPEEDS, {})
    assert [(each.batch_size, each.progress) for each in critical] == [(10.0, 0.5), (80.0, 0.5)]
    assert critical[1].seconds == pytest.approx(10 * 746 / 20)
    (largest,) = regimes_of(job("accordion", 80, 20), SPEEDS, {})
    assert largest.batch_size == 80.0
    unknown = regimes_of(job("gns", 10, 4), SPEEDS, {("LM", 10, 1): ((0, 10), (1, 40))})
    assert [each.batch_size for each in unknown] == [10.0], "a size without a throughput is left out"


def test_a_missing_or_broken_file_is_named(tmp_path: Path) -> None:
    (piece,) = pieces("Shockwave", "shockwave+order --untold", ["JCT"])
    with pytest.raises(NotFound):
        play(piece, tmp_path)
    folder = tmp_path / "shockwave"
    folder.mkdir()
    (folder / "tacc_throughputs.json").write_text('{"v100": {}}')
    (folder / "gns_batch_sizes.csv").write_text("model,initial_batch_size\nLM,ten\n")
    with pytest.raises(InvalidInput, match="Line 2"):
        play(piece, tmp_path)


def test_shockwave_holds_all_four_bounds_in_one_run(data_folder: Path) -> None:
    cells = [cell for cell in parse_tables(TABLES.read_text()) if (cell.mode, cell.row) == ("honest", "Shockwave")]
    jobs, alone = read_jobs(data_folder)
    assert len(jobs) == len(alone) == 120
    (piece,) = pieces("Shockwave", cells[0].policy, [cell.column for cell in cells])
    found = play(piece, data_folder)
    bounded = {cell.column for cell in cells if cell.bound is not None}
    assert bounded == {"makespan", "JCT", "worst ρ", "ρ > 1.05"}
    assert all(cell.bound.holds(found[cell.column], cell.anchor) for cell in cells if cell.bound is not None)
