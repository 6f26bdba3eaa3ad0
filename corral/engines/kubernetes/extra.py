"""Why: the engine's libraries are an extra; who lacks them is told so in a sentence, before anything here is imported."""

from __future__ import annotations

from importlib.util import find_spec

from corral.kernel.errors import InvalidInput

_LIBRARIES = ("aiohttp", "kubernetes_asyncio")


def require_extra() -> None:
    """Raise InvalidInput where the extra `kubernetes` is not installed; this module needs nothing of it itself."""
    if missing := [name for name in _LIBRARIES if find_spec(name) is None]:
        raise InvalidInput(
            "kubernetes-not-installed",
            f"The Kubernetes engine needs {' and '.join(missing)}: pip install 'corral[kubernetes]'.",
        )
