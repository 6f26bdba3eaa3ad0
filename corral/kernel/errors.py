"""Why: every refusal anywhere in Corral is one sentence with a stable code, so that callers can act and people can read.

```
CorralError
├── InvalidInput        what the caller sent cannot be accepted (HTTP 400, exit code 2)
├── Unauthenticated     no valid token or password came with the call (401, exit code 4)
├── Forbidden           the actor may not do this; the message names the rule (403, exit code 4)
├── NotFound            the thing named does not exist for this actor (404, exit code 3)
├── Conflict            the state of things forbids it now (409, exit code 4)
├── TooLarge            the input passes a bound (413, exit code 2)
├── TooManyRequests     a rate limit was passed (429, exit code 4)
└── Unavailable         something underneath does not answer; try again later (503, exit code 5)
```
"""

from __future__ import annotations


class CorralError(Exception):
    """A refusal: `code` is a stable kebab-case word, `message` one sentence that says what to do."""

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
    """An error that came from another process, whatever its kind is made of."""
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(state)
    return error


class InvalidInput(CorralError):
    """What the caller sent cannot be accepted."""

    status = 400


class Unauthenticated(CorralError):
    """No valid token or password came with the call."""

    status = 401


class Forbidden(CorralError):
    """The actor may not do this; the message names the rule that decided."""

    status = 403


class NotFound(CorralError):
    """The thing named does not exist for this actor."""

    status = 404


class Conflict(CorralError):
    """The state of things forbids it now."""

    status = 409


class TooLarge(CorralError):
    """The input passes a bound."""

    status = 413


class TooManyRequests(CorralError):
    """A rate limit was passed."""

    status = 429


class Unavailable(CorralError):
    """Something underneath does not answer; `retry_after` seconds is a fair wait."""

    status = 503

    def __init__(self, code: str, message: str, *, retry_after: float = 1.0, **details: object) -> None:
        super().__init__(code, message, **details)
        self.retry_after = retry_after
