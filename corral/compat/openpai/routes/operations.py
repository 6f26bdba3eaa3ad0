"""Find OpenPAI's operations, which the application serves beside its service."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.requests import HTTPConnection

if TYPE_CHECKING:
    from corral.compat.openpai.service.tenant import OpenPai


def openpai_of(connection: HTTPConnection) -> OpenPai:
    """Return OpenPAI's operations over the service that this application serves."""
    openpai: OpenPai = connection.app.state.openpai
    return openpai
