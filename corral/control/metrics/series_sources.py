"""Where a server's series come from: its own store, and a Prometheus for what is older."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

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


class SeriesSettings(Protocol):
    """The settings of series."""

    @property
    def series(self) -> bool: ...  # noqa: D102
    @property
    def data_folder(self) -> Path: ...  # noqa: D102
    @property
    def prometheus(self) -> str: ...  # noqa: D102
    @property
    def prometheus_token_file(self) -> Path | None: ...  # noqa: D102


def series_sources(settings: SeriesSettings) -> SeriesSources:
    """The sources by the server's settings.

    Raises InvalidInput for an address of Prometheus that is none.
    """
    store = longer = None
    if settings.series:
        from corral.monitor.series.store import SeriesStore

        store = SeriesStore(settings.data_folder / "series.db")
    if settings.prometheus:
        from corral.monitor.series.prometheus import PrometheusSeries

        longer = PrometheusSeries(settings.prometheus, settings.prometheus_token_file)
    return SeriesSources(store, longer)


def is_longer(question: SeriesQuestion, now: float) -> bool:
    """Whether a question begins before what the store keeps."""
    return question.begin < now - KEPT_SECONDS - question.step
