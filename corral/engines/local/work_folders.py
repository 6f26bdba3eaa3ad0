"""The working folders that the engine made for its attempts, for those who look into them."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence

from corral.engines.local.live_attempt import LiveAttempt
from corral.kernel.ids import AttemptId


class LocalWorkFolders:
    """Tells where the working folders of attempts are, and has somebody look into them before they are removed."""

    def __init__(self, live: Mapping[AttemptId, LiveAttempt]) -> None:
        """`live` are the engine's attempts as they are at any time."""
        self._live = live
        self.last_look: Callable[[Mapping[AttemptId, str]], Awaitable[None]] | None = None

    def all(self) -> Mapping[AttemptId, str]:
        """Return the folder of each attempt; there is none at that path where the job names a folder of its own."""
        return {attempt: _work(live) for attempt, live in self._live.items()}

    async def look_before(self, attempts: Sequence[AttemptId]) -> None:
        """Have the folders of these attempts looked into, because they are about to be removed."""
        if self.last_look is None:
            return
        found = {each: _work(live) for each in attempts if (live := self._live.get(each)) is not None}
        found = {each: path for each, path in found.items() if _has_content(path)}
        if found:
            await self.last_look(found)


def _work(live: LiveAttempt) -> str:
    return f"{live.folder.path}/work"


def _has_content(path: str) -> bool:
    try:
        with os.scandir(path) as entries:
            return next(entries, None) is not None
    except OSError:
        return False
