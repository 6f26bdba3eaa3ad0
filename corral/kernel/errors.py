"""Corral's errors: each is one sentence for people with a stable code for programs.

```
CorralError
├── InvalidInput        the input cannot be accepted (HTTP 400, exit code 2)
├── Unauthenticated     no valid token or password came with the call (401, exit code 4)
├── Forbidden           the actor lacks the permission; the message names the rule (403, exit code 4)
├── NotFound            the object does not exist for this actor (404, exit code 3)
├── Conflict            the present state does not allow it (409, exit code 4)
├── TooLarge            the input exceeds a limit (413, exit code 2)
├── TooManyRequests     a rate limit was exceeded (429, exit code 4)
└── Unavailable         a component does not answer; try again later (503, exit code 5)
```
"""

from __future__ import annotations


class CorralError(Exception):
    """An error for the caller: `code` is a stable kebab-case word, `message` one sentence that says what to do."""

    status = 500

    def __init__(self, code: str, message: str, **details: object) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.details = details

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple[object, ...]:
        return (_made_again, (type(self), self.args, self.__dict__))


def _made_again(kind: type[CorralError], args: tuple[object, ...], state: dict[str, object]) -> CorralError:
    """Rebuild an error that was pickled in another process, without calling its constructor."""
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(state)
    return error


class InvalidInput(CorralError):
    """The caller's input cannot be accepted."""

    status = 400


class Unauthenticated(CorralError):
    """No valid token or password came with the call."""

    status = 401


class Forbidden(CorralError):
    """The actor lacks the permission; the message names the rule that decided."""

    status = 403


class NotFound(CorralError):
    """The object does not exist for this actor."""

    status = 404


class Conflict(CorralError):
    """The present state does not allow the call."""

    status = 409


class TooLarge(CorralError):
    """The input exceeds a limit."""

    status = 413


class TooManyRequests(CorralError):
    """A rate limit was exceeded."""

    status = 429


class Unavailable(CorralError):
    """A component does not answer; `retry_after` is a suggested wait in seconds."""

    status = 503

    def __init__(self, code: str, message: str, *, retry_after: float = 1.0, **details: object) -> None:
        super().__init__(code, message, **details)
        self.retry_after = retry_after


def port_closed(port: int, why: str) -> Unavailable:
    """The refusal of a port of a task at which no program listens; `why` is the operating system's reason."""
    return Unavailable("port-closed", f"Nothing answers at port {port} of the task ({why}); is its program up?")
