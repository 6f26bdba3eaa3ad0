"""Kept results of benchmark suites, bounded in age and number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec
from sqlalchemy import ColumnElement, delete, func, select

from corral.benchmarks.results.figures import Figure
from corral.kernel.errors import NotFound
from corral.model.benchmarks import KEPT_SECONDS, MOST_FIGURES, MOST_PROBLEMS, BenchmarkRun
from corral.store import tables
from corral.store.database import Database, rows
from corral.store.rows import clean, encode, put
from corral.store.writer import Transaction

_runs: Final = tables.benchmark_runs
_figures: Final = tables.benchmark_figures
_COLUMNS: Final = tuple(_figures.c[name] for name in Figure._fields)
_PROBLEMS: Final = msgspec.json.Decoder(tuple[str, ...])
MOST_RUNS: Final = 200
"""Runs that are listed."""


class BenchmarkRecords(Database):
    """Results of benchmarks. Times are in seconds since 1970."""

    async def keep_benchmark(self, run: BenchmarkRun, figures: Sequence[Figure]) -> BenchmarkRun:
        """Store figures of a run, which is begun or goes on; returns it as it is now. Old runs are removed.

        Figures of the same node, metric and rank are replaced. Raises NotFound when a run that goes on is not there, or is
        another person's: it goes on when its `at` is 0.
        """
        new = [each._asdict() for each in figures]
        counted = select(func.count(func.distinct(_figures.c.node)), func.count()).where(_figures.c.run == run.id)

        def store(transaction: Transaction) -> BenchmarkRun:
            known = run if run.at else _known(transaction, run)
            if new:
                put(transaction, _figures, [{**each, "at": known.at} for each in new])
            nodes, count = map(int, transaction.read(counted).one())
            problems = tuple(dict.fromkeys((*known.problems, *map(clean, run.problems))))[:MOST_PROBLEMS]
            known = known._replace(nodes=nodes, figures=count, problems=problems)
            put(transaction, _runs, [{**known._asdict(), "problems": encode(known.problems)}])
            _trim(transaction, known)
            return known

        return await self.write(store)

    async def benchmark_runs(self) -> list[BenchmarkRun]:
        """The newest runs, newest first."""
        query = select(_runs).order_by(_runs.c.at.desc(), _runs.c.id.desc()).limit(MOST_RUNS)
        return [_run(each) for each in await self.read(lambda reader: rows(reader, query))]

    async def benchmark_run(self, id: str) -> BenchmarkRun | None:
        """A run by its id."""
        query = select(_runs).where(_runs.c.id == clean(id))
        return next((_run(each) for each in await self.read(lambda reader: rows(reader, query))), None)

    async def remove_benchmark_run(self, id: str) -> None:
        """Remove a run with its figures."""

        def run(transaction: Transaction) -> None:
            _remove(transaction, [id])

        await self.write(run)

    async def latest_figures(self, *, metric: str = "", nodes_of: str = "") -> list[Figure]:
        """The last figures of each node, metric and rank, the newest first; of one metric, or of those that a node has.

        They are as many as are kept at most, in an order in which more would lack whole nodes.
        """
        where = [_figures.c.metric == clean(metric)] if metric else []
        if nodes_of:
            own = select(_figures.c.metric).where(_figures.c.node == clean(nodes_of)).distinct()
            where.append(_figures.c.metric.in_(own))
        newest = func.row_number().over(
            partition_by=(_figures.c.node, _figures.c.metric, _figures.c.rank),
            order_by=(_figures.c.at.desc(), _figures.c.run.desc()),
        )
        found = select(*_COLUMNS, newest.label("newest")).where(*where).subquery()
        columns = (found.c[name] for name in Figure._fields)
        order = (found.c.at.desc(), found.c.node, found.c.metric, found.c.rank)
        query = select(*columns).where(found.c.newest == 1).order_by(*order).limit(MOST_FIGURES)
        return await self.read(lambda reader: [Figure(*row) for row in reader.execute(query)])

    async def past_figures(self, metric: str, node: str, limit: int) -> list[Figure]:
        """The newest figures of a metric, newest first; with `node` of that one alone."""
        where: list[ColumnElement[bool]] = [_figures.c.metric == clean(metric)]
        where += [_figures.c.node == clean(node)] if node else []
        order = (_figures.c.at.desc(), _figures.c.run.desc(), _figures.c.node)
        query = select(*_COLUMNS).where(*where).order_by(*order).limit(limit)
        return await self.read(lambda reader: [Figure(*row) for row in reader.execute(query)])

    async def figures_of_run(self, id: str, offset: int = 0, limit: int | None = None) -> list[Figure]:
        """The figures of a run, by node, without the first `offset`: `limit`, or as many as are kept at most."""
        order = (_figures.c.node, _figures.c.metric, _figures.c.rank)
        query = select(*_COLUMNS).where(_figures.c.run == clean(id)).order_by(*order)
        part = query.offset(offset).limit(MOST_FIGURES if limit is None else limit)
        return await self.read(lambda reader: [Figure(*row) for row in reader.execute(part)])


def _known(transaction: Transaction, asked: BenchmarkRun) -> BenchmarkRun:
    found = transaction.read(select(_runs).where(_runs.c.id == asked.id, _runs.c.user == asked.user)).first()
    if found is None:
        raise NotFound("no-such-run", f"There is no benchmark run {asked.id[:100]} of yours.")
    return _run(found)


def _trim(transaction: Transaction, kept: BenchmarkRun) -> None:
    """Remove runs that are too old, and the oldest beyond the bound, but not the one that was just kept."""
    left, gone = MOST_FIGURES, []
    order = (_runs.c.at.desc(), _runs.c.id.desc())
    for row in transaction.read(select(_runs.c.id, _runs.c.at, _runs.c.figures).order_by(*order)):
        left -= row.figures
        if row.id != kept.id and (left < 0 or row.at < kept.at - KEPT_SECONDS):
            gone.append(row.id)
    if gone:
        _remove(transaction, gone)


def _remove(transaction: Transaction, ids: Sequence[str]) -> None:
    transaction.write(delete(_figures).where(_figures.c.run.in_(ids)))
    transaction.write(delete(_runs).where(_runs.c.id.in_(ids)))


def _run(row: Any) -> BenchmarkRun:
    values = {name: getattr(row, name) for name in BenchmarkRun._fields}
    return BenchmarkRun(**{**values, "problems": _PROBLEMS.decode(row.problems)})
