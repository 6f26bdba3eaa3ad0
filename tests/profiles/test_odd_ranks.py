"""Who is odd in a gang that makes no progress, from two looks at each rank."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.kernel.errors import InvalidInput
from corral.profiles.hang import Look, Rank, Standing, Verdict, judge
from corral.profiles.recorder import Recorded, last_pickled, last_recorded
from corral.profiles.stacks import Stack

WAITS = ("all_reduce (torch/distributed/distributed_c10d.py:2945)", "train (train.py:8)", "<module> (train.py:20)")
ELSEWHERE = ("Event.wait (threading.py:629)", "load (data.py:4)", "<module> (train.py:19)")
BACKWARD = ("backward (torch/autograd/graph.py:8)", "train (train.py:9)")


def watcher(at: float) -> Stack:
    """A thread beside that never stands still."""
    return Stack("watcher", True, (f"poll (x.py:{at})",))


def recorded(number: int) -> Recorded | None:
    return Recorded("all_reduce", number, "0", False) if number else None


def rank(
    number: int, *frames: tuple[str, ...], state: str = "S", cpu: float = 0.0, io: int = 0, **more: object
) -> Rank:
    """A rank that stood in the first frames at the first look, and in the last ones at the second, three seconds later."""
    looks = tuple(
        Look(at, state, cpu * at, io * int(at), (watcher(at), Stack("MainThread", True, each)))
        for at, each in ((0.0, frames[0]), (3.0, frames[-1]))
    )  # fmt: skip
    return Rank(f"worker-{number}", number, looks)._replace(**more)  # type: ignore[arg-type]


def odd(verdict: Verdict) -> list[str]:
    assert verdict.hangs, verdict
    return [each.task for each in verdict.odd]


def test_a_stopped_rank_is_odd_although_all_stand_in_the_same_collective() -> None:
    verdict = judge([rank(0, WAITS), rank(1, WAITS, state="T"), rank(2, WAITS)])
    assert odd(verdict) == ["worker-1"]
    assert verdict.why == "worker-1 is stopped in all_reduce at train (train.py:8); 2 others wait in all_reduce."


def test_a_rank_outside_of_the_collective_is_odd_also_of_two() -> None:
    verdict = judge([rank(0, WAITS), rank(1, ELSEWHERE)])
    assert odd(verdict) == ["worker-1"]
    assert verdict.why == "worker-1 stands elsewhere at load (data.py:4); another waits in all_reduce."


def test_the_rank_that_is_behind_by_its_recorder_is_odd() -> None:
    ranks = [rank(at, WAITS, recorded=Recorded("all_reduce", 7 - (at == 2), "0", False)) for at in range(4)]
    verdict = judge(ranks)
    assert odd(verdict) == ["worker-2"]
    assert "is behind in all_reduce number 6" in verdict.why


def test_of_waits_without_a_named_collective_the_rarest_place_is_odd() -> None:
    assert odd(judge([rank(0, BACKWARD), rank(1, BACKWARD), rank(2, WAITS)])) == ["worker-2"]
    assert odd(
        judge([rank(0, WAITS), rank(1, WAITS), rank(2, ("all_reduce (torch/x.py:1)", "evaluate (t.py:3)"))])
    ) == ["worker-2"]


def test_nobody_is_odd_when_all_are_alike() -> None:
    verdict = judge([rank(0, WAITS), rank(1, WAITS)])
    assert (odd(verdict), verdict.why) == ([], "All 2 ranks wait in all_reduce.")


@pytest.mark.parametrize(
    "works",
    [
        rank(0, ("compile (inductor.py:1)",), ("compile (inductor.py:2)",)),
        rank(0, ("save (torch/serialization.py:9)",), io=10**6),
        rank(0, ("lower (compiler.py:3)",), cpu=1.0),
    ],
    ids=["it moves", "it writes a file", "it computes"],
)
def test_a_gang_waits_for_a_rank_that_works(works: Rank) -> None:
    verdict = judge([works, rank(1, WAITS), rank(2, WAITS)])
    assert not verdict.hangs
    assert verdict.why == "worker-0 works."


def test_a_rank_that_spins_within_a_collective_does_not_work() -> None:
    assert judge([rank(0, WAITS, cpu=1.0), rank(1, WAITS, cpu=1.0)]).hangs


def test_a_rank_that_spins_until_its_collective_is_over_waits_in_it() -> None:
    spins = {"cpu": 1.0, "state": "R"}  # as cudaStreamSynchronize does
    verdict = judge(
        [
            rank(0, BACKWARD, **spins, recorded=Recorded("all_reduce", 7, "0", False)),
            rank(1, ELSEWHERE, recorded=Recorded("all_reduce", 6, "0", True)),
        ]
    )
    assert odd(verdict) == ["worker-1"]
    assert verdict.why == "worker-1 is behind in all_reduce number 6 at load (data.py:4); another waits in all_reduce."


@pytest.mark.parametrize("works", [{"frames": (BACKWARD, ELSEWHERE)}, {"frames": (BACKWARD,), "io": 10**6}])
def test_a_rank_with_an_open_collective_that_moves_works(works: dict[str, Any]) -> None:
    begun = Recorded("all_reduce", 7, "0", False)
    frames = works.pop("frames")
    assert not judge([rank(0, *frames, recorded=begun, **works), rank(1, WAITS, recorded=begun)]).hangs


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (rank(0, ELSEWHERE), "worker-0 stands still at load (data.py:4)."),
        (
            rank(0, ELSEWHERE, recorded=Recorded("all_reduce", 7, "0", True)),
            "worker-0 stands still at load (data.py:4).",
        ),
        (
            rank(0, BACKWARD, recorded=Recorded("all_reduce", 7, "0", False)),
            "worker-0 waits in all_reduce number 7 at train (train.py:9).",
        ),
    ],
)
def test_a_job_of_one_process_is_told_where_it_stands(found: Rank, why: str) -> None:
    verdict = judge([found])
    assert (verdict.hangs, verdict.odd, verdict.why) == (True, (), why)


def test_a_rank_that_could_not_be_looked_at_is_odd_and_its_problem_is_kept() -> None:
    verdict = judge([rank(0, WAITS), Rank("worker-1", 0, problem="The task did not answer within 75 s.")])
    assert odd(verdict) == ["worker-1"]
    assert verdict.odd[0].problem.startswith("The task did not answer")


@pytest.mark.parametrize(
    ("tasks", "why"),
    [
        (1, "worker-0 could not be looked at: The task did not answer within 75 s."),
        (3, "None of the 3 ranks could be looked at: The task did not answer within 75 s."),
    ],
)
def test_a_gang_of_which_no_rank_could_be_looked_at_is_not_called_hung(tasks: int, why: str) -> None:
    unseen = [Rank(f"worker-{at}", 0, problem="The task did not answer within 75 s.") for at in range(tasks)]
    verdict = judge(unseen)
    assert (verdict.hangs, verdict.certain, verdict.odd, verdict.why) == (False, False, (), why)
    assert judge([*unseen, rank(7, WAITS)]).hangs and not judge([*unseen, rank(7, WAITS)]).certain
    assert judge([rank(0, WAITS), rank(1, WAITS)]).certain


FRAMES = st.sampled_from([WAITS, ELSEWHERE, BACKWARD, ()])
RANKS = st.lists(
    st.builds(
        lambda first, last, state, cpu, io, number: rank(
            0, first, last, state=state, cpu=cpu, io=io, recorded=recorded(number)
        ),
        FRAMES, FRAMES, st.sampled_from("SRDT"), st.floats(0, 1), st.integers(0, 10**6), st.integers(0, 3),
    ),
    max_size=8,
).map(lambda ranks: [each._replace(task=f"worker-{at}", process=at) for at, each in enumerate(ranks)])  # fmt: skip


@given(RANKS)
def test_the_odd_are_some_of_the_ranks_and_never_all_of_several_that_hang(ranks: list[Rank]) -> None:
    verdict = judge(ranks)
    assert [each.task for each in verdict.ranks] == [each.task for each in ranks]
    assert set(verdict.odd) <= set(verdict.ranks)
    assert verdict.hangs == all(each.standing is not Standing.WORKS for each in verdict.ranks)
    if verdict.hangs and len(ranks) > 1:
        assert len(verdict.odd) < len(ranks)
    assert verdict.why.endswith(".") and "\n" not in verdict.why


@given(RANKS, st.randoms(use_true_random=False))
def test_the_order_of_the_ranks_decides_nothing(ranks: list[Rank], draw: object) -> None:
    mixed = list(ranks)
    draw.shuffle(mixed)  # type: ignore[attr-defined]
    assert {each.task for each in judge(mixed).odd} == {each.task for each in judge(ranks).odd}


def test_the_last_collective_is_read_from_a_recorder() -> None:
    entry = {
        "record_id": 4,
        "profiling_name": "gloo:all_reduce",
        "collective_seq_id": 5,
        "process_group": ["0", "default_pg"],
        "state": "scheduled",
        "retired": False,
        "is_p2p": False,
        "p2p_seq_id": 0,
    }
    text = json.dumps({"entries": [entry, {**entry, "record_id": 3, "collective_seq_id": 4}]})
    assert last_recorded(text) == Recorded("all_reduce", 5, "0", False)
    assert last_recorded('{"entries": []}') is None


@pytest.mark.parametrize("protocol", [2, 3])
def test_the_last_collective_is_read_from_the_pickle_of_nccl_s_recorder(protocol: int) -> None:
    entry = {
        "frames": [{"name": "all_reduce", "filename": "distributed_c10d.py", "line": 3068}],
        "record_id": 4,
        "profiling_name": "nccl:all_reduce",
        "collective_seq_id": 5,
        "process_group": ("0", "default_pg"),
        "state": "scheduled",
        "time_discovered_started_ns": None,
        "time_created_ns": 1795992075606263963,
        "retired": False,
        "is_p2p": False,
        "p2p_seq_id": 0,
    }
    dump = {"version": "2.10", "pg_config": {}, "entries": [entry, {**entry, "record_id": 3, "collective_seq_id": 4}]}
    assert last_pickled(pickle.dumps(dump, protocol)) == Recorded("all_reduce", 5, "0", False)
    assert last_pickled(pickle.dumps({"entries": []}, protocol)) is None


class _Harmful:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return exec, ("raise SystemExit('it was called')",)


def _nested(depth: int) -> list[object]:
    """Lists within lists, each twice: little to write, and endless as text."""
    found: list[object] = []
    for _ in range(depth):
        found = [found, found]
    return found


HARMFUL = {
    "a call": pickle.dumps(_Harmful(), 2),
    "a name of a class": pickle.dumps(Rank, 2),
    "an endless group": pickle.dumps(
        {"entries": [{"record_id": 1, "process_group": _nested(60), "collective_seq_id": 1, "profiling_name": "x"}]}, 2
    ),
    "a far place in the memo": b"\x80\x02}r\xff\xff\xff\x7f.",
    "a length beyond the end": b"\x80\x02X\xff\xff\xff\x7fa.",
    "a mark that was never set": b"\x80\x02}u.",
    "no end": b"\x80\x02}",
    "nothing": b"",
    "too many operations": b"\x80\x02" + b"N" * 600_000 + b".",
    "too long": b"\x80\x02X" + (3 * 2**20).to_bytes(4, "little") + b"a" * (3 * 2**20) + b".",
    "a list as a key": b"\x80\x02}]Ns.",
    "a deep tuple as a key": b"\x80\x02}N" + b"\x85" * 400_000 + b"Ns.",
    "a doubled tuple as a key": b"\x80\x02}Nq\x00" + b"h\x00\x86q\x00" * 60 + b"Ns.",
    "two values": b"\x80\x02NN.",
}


@pytest.mark.parametrize("what", HARMFUL)
def test_a_pickle_that_is_no_plain_dump_is_refused_and_never_called(what: str) -> None:
    with pytest.raises(InvalidInput, match="not a list of collectives"):
        last_pickled(HARMFUL[what])


@given(st.binary(max_size=200))
def test_any_bytes_are_refused_or_read_as_a_pickle(data: bytes) -> None:
    try:
        assert last_pickled(b"\x80\x02" + data) is None
    except InvalidInput as error:
        assert error.message.endswith(".")


@given(
    st.text()
    | st.recursive(
        st.none() | st.integers() | st.text(), lambda part: st.lists(part) | st.dictionaries(st.text(), part)
    ).map(json.dumps)
)
def test_any_other_text_is_refused_in_one_sentence(text: str) -> None:
    try:
        assert last_recorded(text) is None
    except InvalidInput as error:
        assert error.message.endswith(".")
