"""Send what a task reports to the server, again and again until it is taken or refused for good."""

from __future__ import annotations

import sys
from typing import Any

from corral.runtime.peers import Api, NotTaken, Refused

_MOST_TRIES = 5
"""Failures in a row after which one line in the log says so; the reports go on."""


class ServerReport:
    """The reports of one kind; `what` names it in the log, as in "a checkpoint"."""

    def __init__(self, api: Api, path: str, what: str) -> None:
        self._api, self._path, self._what = api, path, what
        self._tries = 0
        self._said_not_taken = False
        self.over = False
        """Whether further reports are useless, because the server refused one."""
        self.not_taken = False
        """Whether the last report is useless to send again, because of what is in it."""

    def send(self, body: dict[str, Any], age: float) -> bool:
        """Send a report of something `age` seconds old; return whether the server took it."""
        self.not_taken = False
        try:
            self._api.call("POST", self._path, body | {"ageSeconds": min(86_400.0, age)})
        except Refused as error:
            self.over = True
            self._complain(error)
            return False
        except NotTaken as error:
            self.not_taken = True
            if not self._said_not_taken:
                self._said_not_taken = True
                self._complain(error)
            return False
        except OSError as error:
            self._tries += 1
            if self._tries == _MOST_TRIES:
                self._complain(error)
            return False
        self._tries = 0
        return True

    def _complain(self, error: Exception) -> None:
        print(f"corral: {self._what} could not be reported: {error}", file=sys.stderr, flush=True)
