"""The calls of comparisons of a candidate policy with the one in force."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from corral.client.calls import Call, call
from corral.client.operations.later import LaterCalls

if TYPE_CHECKING:
    from corral.client.schema import RunningShadow, ShadowComparisons, ShadowReport, ShadowStatus

LATER: Final[LaterCalls[ShadowReport]] = LaterCalls("/policy-shadow")


def start_policy_shadow(
    *,
    policy: str = "",
    documents: str = "",
    since: str = "",
    until: str = "",
    anew: bool = False,
    within: float = 60.0,
    differences: int = 20,
) -> Call[ShadowStatus]:
    """Have a candidate decide beside the policy in force, on the server's journal; for administrators.

    The candidate is a policy (`NAME` or `NAME+PART`), the text of documents instead of those in force, or both. It begins
    at `since` (a day ago) and ends at `until` (now); with `anew` it begins each hour with what is in force then. Equal
    decisions within `within` seconds are alike; the first `differences` others are listed. Returns its state, with its
    `id`; `follow_policy_shadow` waits for the report.
    """
    data = {
        "policy": policy,
        "documents": documents,
        "since": since,
        "until": until,
        "anew": anew,
        "within": within,
        "differences": differences,
    }
    return call("POST", "/policy-shadow", data=data)


def policy_shadow_state(question: str) -> Call[ShadowStatus]:
    """Return the state of a comparison by its id: its progress, then its report or its error."""
    return LATER.state(question)


def policy_shadows() -> Call[ShadowComparisons]:
    """Return the caller's own comparisons: those that run, and the last ones with a report."""
    return call("GET", "/policy-shadow")


def cancel_policy_shadow(question: str) -> Call[None]:
    """Cancel a comparison, and have its report forgotten."""
    return LATER.cancel(question)


def begin_running_shadow(
    *,
    policy: str = "",
    documents: str = "",
    since: str = "",
    hours: float = 168.0,
    anew: bool = False,
    within: float = 60.0,
    differences: int = 20,
) -> Call[RunningShadow]:
    """Let a candidate go on beside the policy in force on the server, with a report each hour; for administrators.

    It begins at `since` (now) and ends by itself after `hours`. One goes on at a time. The other parameters are those of
    `start_policy_shadow`. Returns its state; `running_shadow_report` has its last report.
    """
    data = {
        "policy": policy,
        "documents": documents,
        "since": since,
        "hours": hours,
        "anew": anew,
        "within": within,
        "differences": differences,
    }
    return call("POST", "/running-shadow", data=data)


def running_shadow() -> Call[RunningShadow]:
    """Return the state of the running shadow, or of the last one that ended."""
    return call("GET", "/running-shadow")


def running_shadow_report() -> Call[ShadowReport]:
    """Return the last report of the running shadow."""
    return call("GET", "/running-shadow/report")


def stop_running_shadow() -> Call[RunningShadow]:
    """Stop the running shadow; its last report stays until the next one begins."""
    return call("POST", "/running-shadow/stop")
