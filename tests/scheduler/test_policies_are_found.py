"""A policy is one small class, found by its entry point."""

from __future__ import annotations

from pathlib import Path

import pytest

from corral.kernel.errors import InvalidInput
from corral.scheduler import Policy, PriorityOrder, find_policy
from corral.scheduler.planners.builtin.planning import plan
from tests.scheduler.machines import cluster, gang, node, queue, role

MODULE = """
from dataclasses import dataclass
from corral.scheduler import Policy

@dataclass(frozen=True)
class SmallestFirst:
    def key(self, request):
        return (len(request.tasks), request.submitted_at)

def smallest():
    return Policy("smallest", SmallestFirst())

wrong = dict
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package with two entry points, as an installer leaves it."""
    (tmp_path / "tiny_policy.py").write_text(MODULE)
    info = tmp_path / "tiny_policy-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tiny-policy\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[corral.policies]\nsmallest = tiny_policy:smallest\nwrong = tiny_policy:wrong\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))


def test_the_default_shares_fairly_and_goes_by_priority_within_a_queue() -> None:
    found = find_policy()
    assert (found.name, found.fair, found.preemption, found.order) == ("fair", True, True, PriorityOrder())


@pytest.mark.usefixtures("installed")
def test_an_installed_policy_orders_the_queue() -> None:
    waiting = queue(gang("big", role(3), at=0.0), gang("small", role(2), at=1.0))
    target = cluster(node("n1"))
    assert [placed.job for placed in plan(target, waiting, Policy(), 0.0).placements] == ["big"]
    assert [placed.job for placed in plan(target, waiting, find_policy("smallest"), 0.0).placements] == ["small"]
    assert [placed.job for placed in plan(target, waiting, Policy(), 0.0).placements] == ["big"]


@pytest.mark.usefixtures("installed")
def test_what_is_no_policy_is_refused() -> None:
    with pytest.raises(InvalidInput, match="does not give a Policy"):
        find_policy("wrong")


@pytest.mark.usefixtures("installed")
def test_an_unknown_name_is_answered_with_those_there_are() -> None:
    with pytest.raises(InvalidInput, match="priority, smallest"):
        find_policy("fairest")
