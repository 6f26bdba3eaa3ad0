"""Why: programs written for OpenPAI act on its names of errors and show its messages, so these are said word for word."""

from __future__ import annotations

from typing import Final

from corral.kernel.errors import CorralError

STATUSES: Final = {
    "BadConfigurationError": 400,
    "ConflictJobError": 409,
    "ConflictUserError": 409,
    "ConflictVcError": 409,
    "ForbiddenKeyError": 403,
    "ForbiddenUserError": 403,
    "IncorrectPasswordError": 400,
    "InvalidParametersError": 400,
    "InvalidProtocolError": 400,
    "NoApiError": 404,
    "NoEnoughQuotaError": 403,
    "NoGroupError": 404,
    "NoJobConfigError": 404,
    "NoJobError": 404,
    "NoJobSshInfoError": 404,
    "NoStorageError": 404,
    "NoSupportedLogServer": 500,
    "NoTagError": 404,
    "NoTaskError": 404,
    "NoTaskLogError": 404,
    "NoUserError": 404,
    "NoVirtualClusterError": 404,
    "NotImplementedError": 501,
    "ReadOnlyJobError": 403,
    "ReadOnlyVcError": 403,
    "RemoveAdminError": 403,
    "RemoveRunningVcError": 403,
    "UnauthorizedUserError": 401,
    "UnknownError": 500,
}
"""Every name of an error that OpenPAI has, with the status that it usually comes with."""


class OpenPaiRefusal(CorralError):
    """A refusal in OpenPAI's own words: `code` is one of its names."""

    def __init__(self, name: str, message: str, *, status: int | None = None, **details: object) -> None:
        super().__init__(name, message, **details)
        self.status = STATUSES[name] if status is None else status


def guest() -> OpenPaiRefusal:
    """No token came with a call that needs one."""
    return OpenPaiRefusal("UnauthorizedUserError", "Guest is not allowed to do this operation.")


def bad_token() -> OpenPaiRefusal:
    """A token came that is broken, expired, revoked or not this server's."""
    return OpenPaiRefusal("UnauthorizedUserError", "Your token is invalid.")


def applications_not_allowed() -> OpenPaiRefusal:
    """A program's token came to where only people's are taken."""
    return OpenPaiRefusal("ForbiddenUserError", "Applications are not allowed to do this operation.")


def administrators_only() -> OpenPaiRefusal:
    """The call is for administrators."""
    return OpenPaiRefusal("ForbiddenUserError", "Non-admin is not allow to do this operation.")


def bad_parameters(reason: str) -> OpenPaiRefusal:
    """The body, the query or the path cannot be read; `reason` is a sentence that says which part, and what would do."""
    return OpenPaiRefusal("InvalidParametersError", f"Invalid request parameters. {reason}")


def no_user(name: str, *, status: int = 404) -> OpenPaiRefusal:
    """There is no such account."""
    return OpenPaiRefusal("NoUserError", f"User {name[:200]} is not found.", status=status)


def no_group(name: str) -> OpenPaiRefusal:
    """There is no such group."""
    return OpenPaiRefusal("NoGroupError", f"Group {name[:200]} is not found.")


def no_virtual_cluster(name: str, *, status: int = 404) -> OpenPaiRefusal:
    """There is no such virtual cluster."""
    return OpenPaiRefusal("NoVirtualClusterError", f"Virtual cluster {name[:200]} is not found.", status=status)


def no_attempt(number: str, job: str) -> OpenPaiRefusal:
    """The job has no such attempt."""
    return OpenPaiRefusal("NoJobError", f"JobAttemptId {number[:50]} is not found in {job[:300]}.")


def no_job(name: str) -> OpenPaiRefusal:
    """There is no such job."""
    return OpenPaiRefusal("NoJobError", f"Job {name[:300]} is not found.")
