"""Findings: what a check found on a host, how grave it is, and what to do about it."""

from __future__ import annotations

from typing import Any, Final, Literal, NamedTuple

Level = Literal["ok", "warning", "failure"]
OK: Final = "ok"
WARNING: Final = "warning"
FAILURE: Final = "failure"


class Finding(NamedTuple):
    """The result of one check on one host; failures and warnings have a remedy."""

    host: str
    check: str
    level: Level
    message: str
    remedy: str = ""

    def to_document(self) -> dict[str, Any]:
        """The finding for programs."""
        return {"check": self.check, "level": self.level, "message": self.message, "remedy": self.remedy}


class Reporter:
    """Makes the findings of one host."""

    def __init__(self, host: str) -> None:
        self._host = host

    def ok(self, check: str, message: str) -> Finding:
        """Nothing is wrong."""
        return Finding(self._host, check, "ok", message)

    def warn(self, check: str, message: str, remedy: str) -> Finding:
        """Something may become a problem."""
        return Finding(self._host, check, "warning", message, remedy)

    def fail(self, check: str, message: str, remedy: str) -> Finding:
        """A cluster cannot be installed so."""
        return Finding(self._host, check, "failure", message, remedy)
