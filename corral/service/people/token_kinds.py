"""The kinds of tokens that every server has; a tenant's token format adds its own (`authentication.TokenFormat`)."""

from __future__ import annotations

from typing import Final

API: Final = "api"
"""Kind of the tokens that people create for programs."""
SESSION: Final = "session"
"""Kind of the tokens that a sign-in returns."""
APPLICATION: Final = "application"
"""Kind of the tokens for programs that may submit and read, but not manage; they outlive a new password."""
