"""The suite's assignment of test files to lanes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.suite import lanes
from tests.suite.lanes import Plan, pool_of

POOLED = [f"tests/pooled/test_{name}.py" for name in "abc"]
FILES = [f"tests/api/test_{name}.py" for name in "de"]


def pools(file: str) -> str:
    return "pooled" if file in POOLED else ""


def test_the_pool_with_the_most_work_left_comes_first_and_stays_in_one_lane() -> None:
    plan = Plan({POOLED[0]: 10.0, POOLED[1]: 20.0, POOLED[2]: 1.0, FILES[0]: 25.0, FILES[1]: 3.0}, pools)
    waiting = [*FILES, *POOLED]
    given_out = []
    for lane in ("one", "two", "one", "two", "one", "two"):
        chosen = plan.choose(lane, waiting)
        if chosen is not None:
            waiting.remove(chosen)
        given_out.append((lane, chosen))
    assert given_out == [
        ("one", POOLED[0]),  # 31 s in all, in the order of the names
        ("two", FILES[0]),
        ("one", POOLED[1]),
        ("two", FILES[1]),
        ("one", POOLED[2]),
        ("two", None),
    ]


def test_a_lane_goes_through_a_pool_in_a_row_so_that_its_set_up_ends_with_the_last_file() -> None:
    plan = Plan({POOLED[0]: 30.0, POOLED[1]: 1.0, FILES[0]: 20.0, FILES[1]: 3.0}, pools)
    waiting, given_out = [*FILES, *POOLED], []
    while waiting:
        chosen = plan.choose("one", waiting)
        assert chosen is not None
        waiting.remove(chosen)
        given_out.append(chosen)
    assert given_out == [*POOLED, *FILES], "though one file has more work left than the pool after its first"


def test_a_lane_gets_nothing_when_all_that_waits_is_in_the_pool_of_another() -> None:
    plan = Plan({}, pools)
    assert plan.choose("one", POOLED) == POOLED[0]
    assert plan.choose("two", POOLED[1:]) is None


def test_the_pools_of_a_lane_that_crashed_go_to_another() -> None:
    plan = Plan({}, pools)
    plan.choose("one", POOLED)
    plan.forget("one")
    assert plan.choose("two", POOLED) == POOLED[0]


def test_a_file_that_was_never_measured_is_run_too() -> None:
    assert Plan({FILES[0]: 100.0}, pools).choose("one", ["tests/new/test_new.py"]) == "tests/new/test_new.py"


@given(st.dictionaries(st.sampled_from(FILES + POOLED + ["tests/store/test_f.py"]), st.floats(0, 100)), st.data())
def test_every_file_is_given_out_once_and_a_pool_to_one_lane(seconds: dict[str, float], data: st.DataObject) -> None:
    plan, waiting = Plan(seconds, pools), [*FILES, *POOLED, "tests/store/test_f.py", "tests/store/test_g.py"]
    lanes_of: dict[str, set[str]] = {}
    asking = {"one", "two", "three"}
    while waiting:
        lane = data.draw(st.sampled_from(sorted(asking)))
        chosen = plan.choose(lane, waiting)
        if chosen is None:
            asking.remove(lane)  # as a lane that is told to end
            continue
        waiting.remove(chosen)
        lanes_of.setdefault(pools(chosen) or chosen, set()).add(lane)
    assert all(len(having) == 1 for having in lanes_of.values())


def test_the_measured_files_are_there() -> None:
    """Timings of removed files are useless; `python -m tests.suite.publish` writes them anew."""
    missing = [file for file in lanes.known_seconds() if not (lanes.SECONDS.parents[2] / file).is_file()]
    assert len(missing) <= 10, missing


def test_files_that_need_a_kubelet_and_those_that_need_a_control_plane_alone_are_two_pools() -> None:
    folder = "tests/engines/kubernetes"
    assert pool_of(f"{folder}/test_exits_on_a_kubelet.py") == "kubelet"
    assert pool_of(f"{folder}/test_engine_on_a_cluster.py") == "kubernetes"
    assert pool_of(f"{folder}/test_ledger.py") == ""
    assert pool_of("tests/portal/test_signing_in.py") == "portal"
