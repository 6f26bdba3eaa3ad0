"""Where a server's series come from: its own store, and a Prometheus for what is older."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from corral.model.series import SeriesQuestion
    from corral.monitor.series.prometheus import PrometheusSeries
    from corral.monitor.series.store import SeriesStore

KEPT_SECONDS: Final = 90 * 86_400.0
"""Seconds for which the store keeps series."""


class SeriesSources(NamedTuple):
    """The sources; None is one that there is not."""

    store: SeriesStore | None
    longer: PrometheusSeries | None


def series_sources(*, kept: bool, folder: Path, prometheus: str, token_file: Path | None) -> SeriesSources:
    """The sources by the settings `series`, `data_folder`, `prometheus` and `prometheus_token_file`.

    Raises InvalidInput for an address of Prometheus that is none.
    """
    store = longer = None
    if kept:
        from corral.monitor.series.store import SeriesStore

        store = SeriesStore(folder / "series.db")
    if prometheus:
        from corral.monitor.series.prometheus import PrometheusSeries

        longer = PrometheusSeries(prometheus, token_file)
    return SeriesSources(store, longer)


def is_longer(question: SeriesQuestion, now: float) -> bool:
    """Whether a question begins before what the store keeps."""
    return question.begin < now - KEPT_SECONDS - question.step
