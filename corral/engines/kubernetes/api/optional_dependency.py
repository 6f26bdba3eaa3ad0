"""Check for the libraries of the extra `kubernetes` before anything that needs them is imported."""

from __future__ import annotations

from importlib.util import find_spec

from corral.kernel.errors import InvalidInput

_LIBRARIES = ("aiohttp", "kubernetes_asyncio")


def require_extra() -> None:
    """Raise InvalidInput if the extra `kubernetes` is not installed. This module itself needs none of its libraries."""
    if missing := [name for name in _LIBRARIES if find_spec(name) is None]:
        raise InvalidInput(
            "kubernetes-not-installed",
            f"The Kubernetes engine needs {' and '.join(missing)}: pip install 'corral[kubernetes]'.",
        )
