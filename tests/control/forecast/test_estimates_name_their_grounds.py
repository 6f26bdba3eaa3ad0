"""A forecast names the jobs, protections and limits that a waiting job waits for, and what it says then happens."""

from __future__ import annotations

import json
from collections.abc import Mapping

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corral.control.core.configuration import Configured
from corral.control.core.driver import Work
from corral.control.core.inputs import ConfigurationRead
from corral.control.forecast.courses import Forecasted, play_courses
from corral.kernel.ids import JobId
from corral.model.configuration import configuration_of
from corral.model.start_estimates import Basis, Estimate
from corral.scheduler import Policy, find_policy
from corral.spec.configuration_file import load_site
from tests.control.core.virtual import BEGIN, Played
from tests.examples import examples

HOUR = 3600.0
SLOW = Work(1e9, stop_seconds=20.0)
"""Runs until it is told to end, and then takes a while."""


def cluster(nodes: int = 1, *queues: Mapping[str, object], policy: Policy | None = None) -> Played:
    """Nodes of four devices, and these queues."""
    policy = policy or find_policy()
    played = Played(nodes=nodes, scheduling=policy)
    text = "\n---\n".join(json.dumps({"kind": "Queue"} | dict(queue)) for queue in queues)
    if text:
        now = configuration_of(load_site(text, filename="site.yaml"), 1)
        played.driver.at(BEGIN, ConfigurationRead(Configured(policy, now)))
    return played


def forecast(played: Played) -> dict[str, Estimate]:
    """What a forecast of the present state says of each waiting job."""
    played.settle()
    found = msgspec.msgpack.decode(play_courses(played.core, (), played.driver.now), type=Forecasted)
    return {job: msgspec.msgpack.decode(each, type=Estimate) for job, each in found.estimates.items()}


def running(played: Played, name: str, **more: object) -> JobId:
    """A job that has started."""
    found = played.submit(name, **more)  # type: ignore[arg-type]
    played.settle()
    assert played.nodes_of(found)
    return found


def test_of_the_jobs_in_the_way_those_without_an_end_are_named() -> None:
    played = cluster()
    endless = running(played, "endless", devices=2)
    running(played, "bounded", devices=1, maxDuration="1m")
    head = played.submit("head", devices=4)
    found = forecast(played)[head]
    assert (found.basis, found.at, found.after) == (Basis.UNKNOWN, None, (endless,))
    assert found.message == f"Unknown: it waits for job {endless}, which has no maxDuration."


def test_one_that_comes_before_and_has_no_known_end_is_named() -> None:
    played = cluster()
    running(played, "long", devices=4, maxDuration="1m")
    head = played.submit("head", devices=4)
    after = played.submit("next", devices=4)
    found = forecast(played)[after]
    assert (found.basis, found.after) == (Basis.UNKNOWN, (head,))
    message = f"Unknown: it waits for job {head} before it in the queue order, which has no maxDuration."
    assert found.message == message


def test_whoever_waits_for_others_that_yield_comes_next_and_they_wait_for_it() -> None:
    played = cluster()
    low = running(played, "low", devices=4, work=SLOW)
    high = played.submit("high", devices=4, priority=100, maxDuration="1h")
    found = forecast(played)
    assert (found[high].basis, found[high].after) == (Basis.EXPECTED, ())
    assert found[high].at == pytest.approx(BEGIN, abs=1.0)
    played.run(60.0)
    assert played.nodes_of(high)
    again = forecast(played)[low]
    assert again.after == (high,), "it waits again in its old place"
    assert again.p50 == pytest.approx(BEGIN + 20.0 + HOUR, abs=1.0)


def test_a_protected_borrower_is_waited_for_and_then_has_to_yield() -> None:
    queues = ({"name": "owner", "deserved": {"devices": 4}}, {"name": "guest", "minRuntimeSeconds": 600})
    played = cluster(1, *queues)
    played.settle()
    running(played, "guest", devices=4, queue="guest")
    own = played.submit("own", devices=4, queue="owner")
    found = forecast(played)[own]
    assert found.p50 == pytest.approx(BEGIN + 600.0, abs=1.0)


def test_a_limit_that_binds_names_the_jobs_of_the_queue() -> None:
    played = cluster(1, {"name": "lab", "limit": {"devices": 1}})
    played.settle()
    mine = running(played, "mine", queue="lab")
    waits = played.submit("waits", queue="lab")
    found = forecast(played)[waits]
    assert (found.basis, found.after) == (Basis.UNKNOWN, (mine,))


def submitted(played: Played, data: st.DataObject, number: int) -> JobId:
    """A gang of bounded duration, elastic or not."""
    tasks, minutes = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 9))
    least = data.draw(st.sampled_from([tasks, tasks, 1]))
    return played.submit(
        f"job-{number}",
        work=Work(60.0 * minutes),
        replicas={"min": least, "max": tasks},
        devices=data.draw(st.integers(1, 4)),
        queue=data.draw(st.sampled_from(["a", "b"])),
        priority=data.draw(st.sampled_from([10, 10, 50])),
        maxDuration=60 * minutes,
    )


@settings(max_examples=examples(30), deadline=None)
@given(st.data(), st.sampled_from(["fair", "priority", "fifo"]), st.sampled_from([0, 90]), st.booleans())
def test_what_is_estimated_is_what_happens(data: st.DataObject, policy: str, protected: int, owned: bool) -> None:
    cells: dict[str, object] = {"cells": [{"level": "node", "count": 1}]} if owned else {}
    queues = ({"name": "a", "deserved": {"devices": 4}}, {"name": "b", "minRuntimeSeconds": protected, **cells})
    played = cluster(2, *queues, policy=find_policy(policy))
    played.settle()
    jobs = []
    for number in range(data.draw(st.integers(2, 8))):
        played.run(float(number))
        jobs.append(submitted(played, data, number))
    found = forecast(played)
    now = played.driver.now - BEGIN
    played.run(24 * HOUR)
    for job in jobs:
        later = [at for at in played.when(job, "job.started") if at > now + 1e-9]
        estimate = found.get(job)
        if estimate is not None and estimate.p50 is not None:
            assert BEGIN + later[0] == pytest.approx(estimate.p50, abs=0.1), estimate
        else:
            assert estimate is None or not later, estimate
