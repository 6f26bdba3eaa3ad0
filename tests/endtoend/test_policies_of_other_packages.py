"""A policy's part from another package, found by its entry point, orders real jobs on a real server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from corral.scheduler.policy.registry import GROUP
from tests.endtoend.platform import ROOT, Platform, on_devices
from tests.entry_points import corrals_own, distribution

pytestmark = pytest.mark.timeout(300)

CLUSTER = "kind: Cluster\nnode: {cpu: 4, memory: 1Gi, devices: 1}\nnodes: [node1]\n"
SHORTEST = """
from math import inf

class Shortest:
    changes_with_time = False

    def key(self, gang, history, now):
        return (gang.max_duration_seconds or inf, gang.submitted_at)

class Failing:
    changes_with_time = False

    def key(self, gang, history, now):
        raise ValueError("it has no estimate")
"""


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    folder = tmp_path_factory.mktemp("server")
    (folder / "cluster.yaml").write_text(CLUSTER)
    site = corrals_own(folder / "site")
    (site / "shortest_policy.py").write_text(SHORTEST)
    points = {"shortest": "shortest_policy:Shortest", "failing": "shortest_policy:Failing"}
    distribution(site, "shortest-policy", {GROUP: points})
    made = Platform(folder, cluster=folder / "cluster.yaml", env={"PYTHONPATH": f"{site}:{ROOT}"})
    made.up()
    yield made
    made.down()


def _apply(platform: Platform, text: str, code: int = 0) -> str:
    path = platform.folder / "policy.yaml"
    path.write_text(text)
    return platform.refused("apply", str(path), code=code) if code else platform.corral("apply", str(path))


def _order(platform: Platform, **durations: str) -> list[str]:
    """The names of jobs of these durations in the order in which they run, one after the other, after one that runs."""
    holds = platform.submit(on_devices("holds", 1))
    platform.until(holds, lambda job: job["state"] == "running")
    bounds = {name: {"maxDuration": duration} if duration else {} for name, duration in durations.items()}
    jobs = [platform.submit(on_devices(name, 1, command="true", **bound)) for name, bound in bounds.items()]
    platform.client.stop(holds["id"])
    ended = [platform.ended(job) for job in jobs]
    return [job["name"] for job in sorted(ended, key=lambda job: str(job["startedAt"]))]


def test_a_policy_document_names_the_order_of_another_package(platform: Platform) -> None:
    _apply(platform, "{kind: Policy, order: shortest}")
    assert _order(platform, hours="3h", unknown="", minutes="5m", hour="1h") == ["minutes", "hour", "hours", "unknown"]
    _apply(platform, "{kind: Policy, order: fifo}")
    assert _order(platform, late="3h", early="5m") == ["late", "early"]


def test_an_unknown_part_is_refused_with_the_names_that_can_stand_there(platform: Platform) -> None:
    said = _apply(platform, "{kind: Policy, order: shortst}", code=1)
    assert "There is no policy 'shortst'; choose one of:" in said and "shortest" in said
    said = _apply(platform, "{kind: Policy, preempt: shortest}", code=1)
    assert "shortest is installed, but is no preempt part; choose one of: order, rules." in said


def test_jobs_run_by_the_default_order_and_an_event_says_why_when_a_part_fails(platform: Platform) -> None:
    _apply(platform, "{kind: Policy, order: failing}")
    assert _order(platform, first="3h", second="5m") == ["first", "second"]
    told = platform.client.server_events(limit=10)["items"]
    failed = [each for each in told if each["kind"] == "server.policy-part-failed"]
    assert 1 <= len(failed) <= 3 and "order failing raised ValueError: it has no estimate." in failed[-1]["message"]
    _apply(platform, "{kind: Policy, order: fair}")
