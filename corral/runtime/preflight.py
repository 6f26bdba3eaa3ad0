"""Checks before a task's command begins: the network between the tasks of its job, and the machine that it runs on.

What is found goes to the server, which judges it. It fails the task only where the job says so, and takes no longer
than the job allows.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

from corral.runtime.network_check import Found, Member, measure
from corral.runtime.peers import Refused, TimedOut, wait_for

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corral.runtime.peers import Address, Api
    from corral.runtime.plan import Plan

_PATH = "/api/v3/runtime/report"
_MOST_MISSED = 50
_LEAST_SECONDS = 0.5


class PreflightFailed(Exception):
    """A check did not pass, and the job asks to fail then."""


def run(plan: Plan, api: Api | None, key: str) -> None:
    """Do the checks of the plan and report what they find. Raises PreflightFailed where the job requires them."""
    given: Mapping[str, Any] = plan.preflight or {}
    if api is None:
        _say("nothing is checked: this task does not know the address of the server")
        return
    problem = ""
    if "platform" in given.get("checks", ()):
        _tell_platform(plan, api)
    if "network" in given.get("checks", ()):
        problem = _check_network(plan, api, key, given)
    if problem and given.get("required"):
        raise PreflightFailed(f"the preflight failed: {problem}")
    if problem:
        _say(f"{problem}; the command starts all the same")


def _tell_platform(plan: Plan, api: Api) -> None:
    from corral.runtime.platform_facts import facts_of

    _, _, role, index, _ = plan.attempt.split(".")
    facts = facts_of(plan.work)
    message = f"{role}-{index} told what its machine is like."
    _report(api, {"attempt": plan.attempt, "kind": "platform", "message": message, "facts": facts})


def _check_network(plan: Plan, api: Api, key: str, given: Mapping[str, Any]) -> str:
    """Measure the network and report it; why it is not whole, "" if it is."""
    seconds = float(given["seconds"])
    _, _, role, index, again = plan.attempt.split(".")
    if again != "0":
        _say("the network is not measured: the other tasks run already")
        return ""
    begun = time.monotonic()
    try:
        peers = wait_for(api, plan.attempt, everyone=True, wanted=(), timeout=seconds)
        members = members_of(peers, str(given["port"]))
        names = [member.name for member in members]
        own = f"{role}-{index}"
        if own not in names:
            return "the network is not measured: this task has no port for it"
        if len(members) == 1:
            _say("the network is not measured: there is no other task")
            return ""
        left = max(_LEAST_SECONDS, seconds - (time.monotonic() - begun))
        found = measure(members, names.index(own), key.encode(), left)
    except (TimedOut, Refused) as error:
        return f"the network is not measured: {error}"
    except OSError as error:
        return f"the network is not measured: {error.strerror or error}"
    _report(api, _body(plan.attempt, own, found, len(members), time.monotonic() - begun))
    if not found.missed:
        return ""
    name, why = next(iter(found.missed.items()))
    others = f" and {len(found.missed) - 1} more" if len(found.missed) > 1 else ""
    return f"the network to {name}{others} could not be measured: {why}"


def members_of(peers: Mapping[str, Address], port: str) -> list[Member]:
    """The tasks that can be measured, in the same order for all of them."""
    found = [Member(name, each.host, each.ports[port][0]) for name, each in peers.items() if each.ports.get(port)]
    return sorted(found, key=lambda member: (member.name.rpartition("-")[0], int(member.name.rpartition("-")[2])))


def _body(attempt: str, own: str, found: Found, tasks: int, seconds: float) -> dict[str, Any]:
    missed = list(found.missed.items())
    body: dict[str, Any] = {
        "attempt": attempt,
        "kind": "network",
        "message": f"{own} measured its network to {len(found.ways)} of {tasks - 1} tasks.",
        "tasks": tasks,
        "seconds": round(seconds, 3),
        "ways": [
            [name, round(way.rate), None if way.latency is None else round(way.latency, 9)]
            for name, way in found.ways.items()
        ],
        "missed": [[name, why[:100]] for name, why in missed[:_MOST_MISSED]],
    }
    if found.ring is not None:
        body |= {"next": found.next, "ring": round(found.ring)}
        if not found.ways:
            body["message"] = f"{own} measured its network in a ring of {tasks} tasks."
    return body


def _report(api: Api, body: dict[str, Any]) -> None:
    try:
        api.call("POST", _PATH, body)
    except (Refused, OSError) as error:
        _say(f"what the preflight found could not be reported: {error}")


def _say(what: str) -> None:
    print(f"corral: {what}.", file=sys.stderr, flush=True)
