"""What py-spy tells is read, added up and drawn; anything else is refused in one sentence."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.kernel.errors import InvalidInput
from corral.profiles.flame_graph import flame_graph
from corral.profiles.folded import Sampled, frames, functions, read_folded, tree
from corral.profiles.stacks import places, read_stacks

_DEEP = "[" * 100_000


def dump(function: str, *, thread: str = "MainThread") -> str:
    """py-spy's JSON for a thread that stands in `function`."""
    frames = [
        {"name": function, "filename": "/x/train.py", "short_filename": "train.py", "line": 3},
        {"name": "<module>", "filename": "/x/train.py", "short_filename": None, "line": 9},
    ]
    return json.dumps([{"thread_name": thread, "active": False, "frames": frames}])


def test_ranks_at_the_same_place_are_put_together_and_the_odd_one_comes_first() -> None:
    found = [(f"worker-{rank}", read_stacks(dump("save" if rank == 2 else "all_reduce"))) for rank in range(4)]
    odd, others = places(found)
    assert (odd.ranks, odd.stack.frames[0]) == (("worker-2",), "save (train.py:3)")
    assert (others.ranks, others.stack.frames[1]) == (("worker-0", "worker-1", "worker-3"), "<module> (/x/train.py:9)")


def test_a_main_thread_comes_before_the_other_threads() -> None:
    stacks = (*read_stacks(dump("wait", thread="pin-memory")), *read_stacks(dump("step")))
    assert [place.stack.thread for place in places([("worker-0", stacks)])] == ["MainThread", "pin-memory"]


@pytest.mark.parametrize(
    "text", ["", "nonsense", "{}", "[1]", '[{"frames": [1]}]', _DEEP, '[{"active": true, "frames": {}}]']
)
def test_an_answer_that_is_no_list_of_threads_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="not a list of threads"):
        read_stacks(text)


def test_characters_that_a_terminal_obeys_are_left_out() -> None:
    (stack,) = read_stacks(dump("evil\x1b[2J"))
    assert stack.frames[0] == "evil?[2J (train.py:3)"


def test_functions_are_ranked_by_their_own_samples() -> None:
    stacks = read_folded(["main;load;read 60\nmain;load 20\nmain;step 20", "main;load;read 0"][0])
    first, second, third = functions(stacks)
    assert (first.name, first.own, first.total) == ("read", 0.6, 0.6)
    assert {second.name: (second.own, second.total), third.name: (third.own, third.total)} == {
        "load": (0.2, 0.8),
        "step": (0.2, 0.2),
    }


def test_a_function_that_calls_itself_counts_once() -> None:
    (only,) = functions(read_folded("main;f;f;f 5"))
    assert (only.own, only.total) == (1.0, 1.0)


@pytest.mark.parametrize("line", ["main", "main;f -3", "main;f 0", "main;f 1e9", f"main;f {10**12}", " 4", "main;f ٣"])
def test_a_line_that_is_no_stack_is_refused_with_its_number(line: str) -> None:
    with pytest.raises(InvalidInput, match="Line 2 of the profile"):
        read_folded(f"main;ok 1\n{line}")


STACKS = st.lists(
    st.builds(Sampled, st.lists(st.sampled_from("abcd"), min_size=1, max_size=6).map(tuple), st.integers(1, 1000)),
    min_size=1,
    max_size=30,
)


@given(STACKS)
def test_no_sample_is_lost_between_the_stacks_and_the_tree(stacks: list[Sampled]) -> None:
    text = "\n".join(f"{';'.join(each.frames)} {each.samples}" for each in stacks)
    root = tree(read_folded(text))
    assert root.samples == sum(each.samples for each in stacks)
    todo = [root]
    while todo:
        node = todo.pop()
        assert sum(each.samples for each in node.below) <= node.samples
        todo += node.below


def test_a_flame_graph_is_an_svg_whose_titles_tell_the_shares() -> None:
    svg = flame_graph(tree(read_folded("main;<load>&co 75\nmain;step 25"), "job"), "job: 1 rank")
    root = ElementTree.fromstring(svg)
    titles = [each.text for each in root.iter("{http://www.w3.org/2000/svg}title")]
    assert titles == ["job: 1 rank", "job: 100.0%, 100 samples", "main: 100.0%, 100 samples",
                      "<load>&co: 75.0%, 75 samples", "step: 25.0%, 25 samples"]  # fmt: skip


def test_a_flame_graph_of_very_many_stacks_stays_small() -> None:
    stacks = [Sampled(("main", f"f{number}"), 1) for number in range(50_000)]
    assert len(flame_graph(tree(stacks), "many")) < 10_000


def test_frames_lie_within_the_frame_that_called_them() -> None:
    root = tree(read_folded("main;train;mm 6\nmain;train;load 2\nmain;save 2\n"), "job")
    found = {each.name: each for each in frames(root, most=100)}
    assert [(each.name, each.depth) for each in frames(root, most=100)][:2] == [("job", 0), ("main", 1)]
    assert (found["job"].begin, found["job"].samples) == (0, 10)
    for name, outer in (("mm", "train"), ("load", "train"), ("train", "main"), ("save", "main")):
        inner, around = found[name], found[outer]
        assert inner.depth == around.depth + 1
        assert around.begin <= inner.begin <= inner.begin + inner.samples <= around.begin + around.samples
    assert {found["mm"].begin, found["load"].begin} != {found["mm"].begin}


def test_of_too_many_frames_the_deepest_and_the_narrowest_are_left_out() -> None:
    wide = tree(read_folded("".join(f"main;f{number};deep 1\n" for number in range(50))), "job")
    assert max(each.depth for each in frames(wide, most=60)) == 2
    assert [each.name for each in frames(wide, most=60, least=0.03)] == ["job", "main"]
