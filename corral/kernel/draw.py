"""Reproducible random numbers: pure functions of a recorded seed and the ids they are drawn for."""

from __future__ import annotations

from hashlib import blake2b


def draw(seed: int | str, *ids: object) -> float:
    """A number in [0, 1) that depends only on `seed` and `ids` (a counter-based hash, BLAKE2b)."""
    return draw_integer(seed, *ids) / 2**64


def draw_integer(seed: int | str, *ids: object) -> int:
    """An integer in [0, 2**64) that depends only on `seed` and `ids`."""
    digest = blake2b(digest_size=8)
    for part in (seed, *ids):
        encoded = str(part).encode()
        digest.update(len(encoded).to_bytes(4, "big"))
        digest.update(encoded)
    return int.from_bytes(digest.digest(), "big")


def draw_between(low: float, high: float, seed: int | str, *ids: object) -> float:
    """A number in [low, high) drawn like `draw`."""
    return low + (high - low) * draw(seed, *ids)
