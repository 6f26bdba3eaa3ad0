"""The HTTP face of the server: routes, streams and sign-in over `service`; it decides nothing."""

from corral.api.application import create_app

__all__ = ["create_app"]
