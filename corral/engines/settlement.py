"""Settle which server may run the tasks of a database: no engine of another place may start them a second time."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from corral.engines.kind import EngineKind
from corral.kernel.errors import Conflict
from corral.model.store_writes import EngineHome, Holder


class HomeRecord(Protocol):
    """The store's record of where tasks run."""

    async def settle_engines(
        self, homes: Mapping[str, EngineHome], holder: Holder, *, is_same: Any, take_over: bool
    ) -> tuple[str, EngineHome] | None:
        """Record the homes; return an engine of another place whose tasks may still run."""
        ...


class Settlement:
    """The engines of one server, with the places where their tasks run."""

    def __init__(
        self, record: HomeRecord, kinds: Mapping[str, EngineKind[Any]], folder: Path, *, take_over: bool
    ) -> None:
        """`folder` is the server's data folder; `take_over` declares tasks of other places lost."""
        self._record, self._kinds, self._take_over = record, kinds, take_over
        self._homes = {name: kind.home(folder) for name, kind in kinds.items()}

    async def settle(self, holder: Holder) -> None:
        """Record this server's engines.

        Raises Conflict while tasks may run on another engine, or in another place of one of these.
        """
        other = await self._record.settle_engines(self._homes, holder, is_same=self._is_same, take_over=self._take_over)
        if other is not None:
            raise Conflict("engine-elsewhere", elsewhere(*other, here=tuple(self._kinds)))

    def _is_same(self, name: str, before: EngineHome, now: EngineHome) -> bool:
        return self._kinds[name].is_same_home(before, now)


def elsewhere(name: str, home: EngineHome, here: tuple[str, ...]) -> str:
    """Describe why a server with the engines `here` is refused while tasks may run elsewhere, and what to do."""
    all_engines = f"CORRAL_ENGINE={','.join(dict.fromkeys([*here, name]))}"
    if not home.folder:
        where, back = f"on the engine {name}", f"Start it with {all_engines}"
    else:
        where = f"on {home.host}, data folder {Path(home.folder).parent}"
        back = "Start it there" if name in here else f"Start it there, with {all_engines}"
    return (
        f"The tasks of this database run {where}: a second server would start them twice. {back}, or give this "
        "one a database of its own; if that place is gone for good, start with CORRAL_ENGINE_TAKE_OVER=true."
    )
