"""OpenPAI's errors with their exact names and messages, because programs written for OpenPAI depend on both."""

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
"""Every error name of OpenPAI, with its usual HTTP status."""


class OpenPaiRefusal(CorralError):
    """A refusal in OpenPAI's own words; `code` is one of `STATUSES`."""

    def __init__(self, name: str, message: str, *, status: int | None = None, **details: object) -> None:
        super().__init__(name, message, **details)
        self.status = STATUSES[name] if status is None else status


def guest() -> OpenPaiRefusal:
    """The refusal of a call without the token that it needs."""
    return OpenPaiRefusal("UnauthorizedUserError", "Guest is not allowed to do this operation.")


def bad_token() -> OpenPaiRefusal:
    """The refusal of a token that is malformed, expired, revoked or another server's."""
    return OpenPaiRefusal("UnauthorizedUserError", "Your token is invalid.")


def applications_not_allowed() -> OpenPaiRefusal:
    """The refusal of an application's token where only people's are accepted."""
    return OpenPaiRefusal("ForbiddenUserError", "Applications are not allowed to do this operation.")


def administrators_only() -> OpenPaiRefusal:
    """The refusal of a call that is for administrators."""
    return OpenPaiRefusal("ForbiddenUserError", "Non-admin is not allow to do this operation.")


def bad_parameters(reason: str) -> OpenPaiRefusal:
    """The refusal of an unreadable body, query or path; `reason` is a sentence with the faulty part and the remedy."""
    return OpenPaiRefusal("InvalidParametersError", f"Invalid request parameters. {reason}")


def no_user(name: str, *, status: int = 404) -> OpenPaiRefusal:
    """The refusal for an unknown account."""
    return OpenPaiRefusal("NoUserError", f"User {name[:200]} is not found.", status=status)


def no_group(name: str) -> OpenPaiRefusal:
    """The refusal for an unknown group."""
    return OpenPaiRefusal("NoGroupError", f"Group {name[:200]} is not found.")


def no_virtual_cluster(name: str, *, status: int = 404) -> OpenPaiRefusal:
    """The refusal for an unknown virtual cluster."""
    return OpenPaiRefusal("NoVirtualClusterError", f"Virtual cluster {name[:200]} is not found.", status=status)


def no_attempt(number: str, job: str) -> OpenPaiRefusal:
    """The refusal for an attempt that the job does not have."""
    return OpenPaiRefusal("NoJobError", f"JobAttemptId {number[:50]} is not found in {job[:300]}.")


def no_job(name: str) -> OpenPaiRefusal:
    """The refusal for an unknown job."""
    return OpenPaiRefusal("NoJobError", f"Job {name[:300]} is not found.")
