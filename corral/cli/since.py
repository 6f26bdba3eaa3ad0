"""The options `--since` and `--until`: how far a list looks back."""

from __future__ import annotations

import time

import click

from corral.kernel.units import parse_duration


def time_before(duration: str, option: str = "--since") -> str:
    """Return the time so long ago, such as 12h or 90d, in RFC 3339; "" for "". Raises UsageError naming the option."""
    from corral.model.records import rfc3339

    if not duration:
        return ""
    try:
        return rfc3339(max(0.0, time.time() - parse_duration(duration)))
    except ValueError as error:
        raise click.UsageError(f"{option}: {error}") from None
