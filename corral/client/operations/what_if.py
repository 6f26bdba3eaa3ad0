"""The calls of what-if questions, answered at once or later, and of the report on estimates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from corral.client.calls import Call, call
from corral.client.operations.later import LaterCalls

if TYPE_CHECKING:
    from corral.client.schema import EstimateReport, WhatIfAnswer, WhatIfQuestions, WhatIfStatus

LATER: Final[LaterCalls[WhatIfAnswer]] = LaterCalls("/what-if")


def what_if(
    *,
    add_nodes: Sequence[tuple[int, str]] = (),
    remove_nodes: Sequence[str] = (),
    drain: Sequence[str] = (),
    queues: Mapping[str, Mapping[str, Any]] = {},
    documents: str = "",
    submit: Sequence[tuple[str, int]] = (),
    stop: Sequence[str] = (),
    priorities: Mapping[str, str | int] = {},
    policy: str = "",
    horizon_seconds: float = 86400.0,
    seeds: int = 1,
    seed: int = 0,
    timeline: bool = False,
    arrivals: str = "",
    goal: str = "",
    vary: str = "",
) -> Call[WhatIfAnswer]:
    """Return what is to be expected as things are, and with these changes; nothing is changed.

    `add_nodes` are pairs of a count and the node that they are like, `submit` pairs of a job file's text and how often
    it is submitted; `queues` has the changed fields of queues' documents, `documents` the text of whole ones.
    With `arrivals` (`last-week`) other jobs arrive, drawn from the server's journal.
    With `timeline` the answer also tells what runs where.
    With a `goal` (`wait.p95(queue=research) <= 1h`) the least of `vary` is searched that reaches it: `nodes-like=NODE` or
    `queue=NAME:deserved.devices`. That takes up to two and a half minutes, so give the client a longer timeout, or call
    `follow_what_if`.
    """
    data = {
        "addNodes": [{"count": count, "like": like} for count, like in add_nodes],
        "removeNodes": list(remove_nodes),
        "drain": list(drain),
        "queues": {name: dict(fields) for name, fields in queues.items()},
        "documents": documents,
        "submit": [{"job": text, "times": times} for text, times in submit],
        "stop": list(stop),
        "priorities": dict(priorities),
        "policy": policy,
        "horizonSeconds": horizon_seconds,
        "seeds": seeds,
        "seed": seed,
        "timeline": timeline,
        "arrivals": arrivals,
        "goal": goal,
        "vary": vary,
    }
    return call("POST", "/what-if", data=data)


def start_what_if(**question: Any) -> Call[WhatIfStatus]:
    """Have a question answered later: the parameters are those of `what_if`. Returns its state, with its `id`."""
    asked: Call[Any] = what_if(**question)
    return asked._replace(headers={**asked.headers, "prefer": "respond-async"})


def what_if_state(question: str) -> Call[WhatIfStatus]:
    """Return the state of a question that is answered later, by its id: its progress, then its answer or its error."""
    return LATER.state(question)


def what_if_questions() -> Call[WhatIfQuestions]:
    """Return the caller's own questions that are answered later: those that run, and the last ones with an answer."""
    return call("GET", "/what-if")


def cancel_what_if(question: str) -> Call[None]:
    """Cancel a question that is answered later, and have its answer forgotten."""
    return LATER.cancel(question)


def estimates(*, queue: str = "", days: int = 7) -> Call[EstimateReport]:
    """Return how good the estimates of starts of the last 7 or 30 days were, by queue: coverage, width, bias and error."""
    return call("GET", "/estimates", {"queue": queue, "days": days})
