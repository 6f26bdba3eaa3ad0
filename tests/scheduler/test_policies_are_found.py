"""A policy, and each of its parts, is one small class, found by its entry point."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from corral.kernel.errors import InvalidInput
from corral.scheduler import Policy, PriorityOrder, find_allot, find_place, find_policy, find_preempt, with_part
from corral.scheduler.planners.builtin.planning import plan
from corral.scheduler.policy import registry
from tests.entry_points import distribution
from tests.scheduler.machines import cluster, gang, node, queue, role

MODULE = """
from dataclasses import dataclass
from corral.model.plan import Rule
from corral.scheduler import Policy, Target

@dataclass(frozen=True)
class SmallestFirst:
    changes_with_time = False

    def key(self, gang, history, now):
        return (len(gang.tasks), gang.submitted_at)

def smallest():
    return Policy("smallest", SmallestFirst())

class Pairs:
    changes_with_time = False

    def targets(self, cluster, gangs, now):
        return {gang.request.job: Target(min(max(2, gang.least), gang.most)) for gang in gangs}

class Newest:
    changes_with_time = False

    def may_have(self, gang, ask, view):
        return bool(view.cluster.gangs.by_job)

    def candidates(self, gang, ask, view):
        running = sorted(view.cluster.gangs.by_job.values(), key=lambda each: -each.placed_at)
        found = [view.evictable(each, Rule.PRIORITY) for each in running]
        return [victim for victim in found if victim is not None]

class Last:
    changes_with_time = fills = False

    def prepare(self, cluster, waiting, now):
        return max(node.name for node in cluster.nodes())

    def rank(self, shape, node, context):
        return int(node.node != context)

class Hesitant(Last):
    fills = None

class Unprepared:
    changes_with_time = fills = False

    def rank(self, shape, node, context):
        return 0

class OneArgument:
    changes_with_time = False

    def key(self, gang):
        return (gang.submitted_at,)

class Undecided:
    def key(self, gang, history, now):
        return (gang.submitted_at,)

class Half:
    changes_with_time = False

    def candidates(self, gang, ask, view):
        return []

def hasty():
    return Policy("hasty", SmallestFirst(), review_seconds=0.0)

wrong = dict

def broken():
    raise RuntimeError("no licence")
"""
POINTS = {
    "smallest": "tiny_policy:smallest",
    "fewest-tasks": "tiny_policy:SmallestFirst",
    "fifo": "tiny_policy:SmallestFirst",
    "pairs": "tiny_policy:Pairs",
    "newest": "tiny_policy:Newest",
    "last": "tiny_policy:Last",
    "hesitant": "tiny_policy:Hesitant",
    "unprepared": "tiny_policy:Unprepared",
    "one-argument": "tiny_policy:OneArgument",
    "half": "tiny_policy:Half",
    "hasty": "tiny_policy:hasty",
    "undecided": "tiny_policy:Undecided",
    "wrong": "tiny_policy:wrong",
    "broken": "tiny_policy:broken",
}


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A package with entry points on the path of this process, which forgets it afterwards."""
    (tmp_path / "tiny_policy.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(distribution(tmp_path, "tiny-policy", {registry.GROUP: POINTS})))
    registry._installed.cache_clear()
    yield
    registry._installed.cache_clear()
    sys.modules.pop("tiny_policy", None)


def test_the_default_shares_fairly_and_goes_by_priority_within_a_queue() -> None:
    found = find_policy()
    assert (found.name, found.fair, found.preemption, found.order) == ("fair", True, True, PriorityOrder())


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("name", ["smallest", "fewest-tasks"])
def test_an_installed_policy_or_order_orders_the_queue(name: str) -> None:
    waiting = queue(gang("big", role(3), at=0.0), gang("small", role(2), at=1.0))
    target = cluster(node("n1"))
    assert [placed.job for placed in plan(target, waiting, Policy(), 0.0).placements] == ["big"]
    assert [placed.job for placed in plan(target, waiting, find_policy(name), 0.0).placements] == ["small"]
    assert [placed.job for placed in plan(target, waiting, Policy(), 0.0).placements] == ["big"]


@pytest.mark.usefixtures("installed")
def test_the_same_name_gives_an_equal_policy_each_time() -> None:
    assert find_policy("fewest-tasks") == find_policy("fewest-tasks")
    assert find_allot("pairs") == find_allot("pairs") and find_preempt("newest") == find_preempt("newest")


@pytest.mark.usefixtures("installed")
def test_no_package_replaces_a_built_in_policy() -> None:
    assert type(find_policy("fifo").order).__module__ == "corral.scheduler.policy.order"


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("wrong", "gives neither a Policy nor a part of one"),
        ("broken", "cannot be loaded: no licence"),
        ("one-argument", "has no method key that takes three arguments"),
        ("undecided", "must set changes_with_time to True or False"),
        ("hasty", "has review_seconds 0.0; 1 is the least"),
    ],
)
def test_what_is_no_policy_is_refused_with_the_reason(name: str, said: str) -> None:
    with pytest.raises(InvalidInput, match=said) as refused:
        find_policy(name)
    assert refused.value.code == "broken-plug-in"


@pytest.mark.usefixtures("installed")
def test_an_unknown_name_is_answered_with_those_that_can_stand_there() -> None:
    with pytest.raises(
        InvalidInput,
        match=r"one of: allox, deadline, fair, .*, random, shockwave, shockwave-program, smallest, .*srsf, srtf, undecided",
    ) as refused:
        find_policy("fairest")
    assert refused.value.code == "unknown-policy" and "pairs" not in refused.value.message
    with pytest.raises(
        InvalidInput, match=r"no allot part 'pair'; choose one of: allox, as-many-as-fit, gavel, .*, goodput, pairs"
    ):
        find_allot("pair")
    said = "pairs is installed, but is no preempt part; choose one of: half, newest, order, rules"
    with pytest.raises(InvalidInput, match=said):
        find_preempt("pairs")


@pytest.mark.usefixtures("installed")
def test_a_preempt_part_has_both_methods() -> None:
    with pytest.raises(InvalidInput, match="has no method may_have that takes three arguments"):
        find_preempt("half")


@pytest.mark.usefixtures("installed")
def test_an_installed_place_part_chooses_the_node() -> None:
    target, waiting = cluster(node("n1"), node("n2"), node("n3")), queue(gang("job", role(2)))
    (placed,) = plan(target, waiting, with_part(Policy(), "last"), 0.0).placements
    assert {task.node for task in placed.placement.tasks} == {"local/n3"}
    (placed,) = plan(target, waiting, with_part(Policy(), "tightest"), 0.0).placements
    assert {task.node for task in placed.placement.tasks} == {"local/n1"}


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("hesitant", "must set fills to True or False"),
        ("unprepared", "has no method prepare that takes three arguments"),
    ],
)
def test_a_place_part_is_complete(name: str, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        find_place(name)


@pytest.mark.usefixtures("installed")
def test_a_part_beside_the_policy_is_a_place_or_a_preempt_part() -> None:
    assert with_part(Policy(), "last").place == find_place("last") and not with_part(Policy(), "last").preemption
    assert with_part(Policy(), "newest").preempt == find_preempt("newest") and with_part(Policy(), "order").preemption
    with pytest.raises(InvalidInput, match="There is no preempt part 'nothing'"):
        with_part(Policy(), "nothing")
    said = r"no place part 'loosest'; choose one of: best-fit, .*last, .*tightest, unprepared"
    with pytest.raises(InvalidInput, match=said):
        find_place("loosest")
