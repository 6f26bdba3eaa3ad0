"""How long a test rests between two looks at the state that it waits for."""

from __future__ import annotations

import time


def pause(begun: float, *, least: float = 0.02, most: float = 0.5) -> float:
    """The seconds until the next look: a tenth of those since `begun` (of `time.monotonic`), within bounds.

    A look costs the test and its server some 10 ms of processor time, which the other lanes lack. What comes soon is
    seen soon, and what takes long is seen a tenth later at most.
    """
    return min(most, max(least, (time.monotonic() - begun) / 10))
