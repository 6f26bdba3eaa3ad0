"""The HTTP API of the server: routes, streams and sign-in over `corral.service`, without decisions of its own."""

from corral.api import late_models  # noqa: F401  # it must load FastAPI first
from corral.api.application import create_app

__all__ = ["create_app"]
