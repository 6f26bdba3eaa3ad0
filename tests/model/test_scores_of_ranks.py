"""How fast each rank makes steps, beside its peers in the same gang."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.model.hangs.scores import Progress, ranked

PACES = st.dictionaries(st.sampled_from("abcdefgh"), st.floats(0.01, 100), min_size=1)


def gang(paces: dict[str, float]) -> dict[str, tuple[str, list[Progress]]]:
    """Tasks that reported a step every ten seconds for a minute."""
    return {
        task: (f"node-{task}", [Progress(at, at * each) for at in map(float, range(0, 70, 10))])
        for task, each in paces.items()
    }


def test_half_as_fast_is_half_the_score_and_comes_first() -> None:
    first, *others = ranked(gang({"a": 2.0, "b": 1.0, "c": 2.0})).items
    assert (first.task, first.node, first.step) == ("b", "node-b", 60.0)
    assert first.score == pytest.approx(0.5)
    assert [each.task for each in others] == ["a", "c"]


@given(PACES)
def test_scores_do_not_depend_on_the_unit_of_a_step(paces: dict[str, float]) -> None:
    once, thrice = (ranked(gang({task: each * by for task, each in paces.items()})).items for by in (1.0, 3.0))
    assert sorted(each.score or 0.0 for each in once) == pytest.approx(sorted(each.score or 0.0 for each in thrice))


@given(PACES)
def test_the_slowest_is_never_above_its_peers_and_a_task_alone_has_no_score(paces: dict[str, float]) -> None:
    items = ranked(gang(paces)).items
    if len(paces) == 1:
        assert items[0].score is None
        return
    slowest = next(each for each in items if each.task == min(paces, key=lambda task: paces[task]))
    assert slowest.score is not None and slowest.score <= 1.0 + 1e-9


def test_a_task_that_reported_once_has_no_pace_and_is_behind() -> None:
    found = ranked({"a": ("n", [Progress(0.0, 1.0), Progress(20.0, 3.0)]), "b": ("n", [Progress(5.0, 1.0)])}).items
    assert {each.task: (each.steps_per_second, each.behind_seconds) for each in found} == {
        "a": (pytest.approx(0.1), 0.0),
        "b": (None, 15.0),
    }
