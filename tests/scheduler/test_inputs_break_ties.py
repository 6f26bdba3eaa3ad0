"""Among equally good places a gang takes the one that holds most of its inputs, and nothing else depends on them."""

from __future__ import annotations

from collections import Counter

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from corral.model.input_bytes import MOST_NODES, MOST_SETS, InputBytes, input_bytes, note_in_words
from corral.model.placement import Placement
from corral.model.requests import GangRequest, NodeSharing, TopologyRequest
from corral.scheduler import Cluster, Policy
from corral.scheduler.placement.input_locality import placement_note
from corral.scheduler.planners.builtin.planning import plan
from tests.examples import examples
from tests.scheduler.machines import busy_clusters, check, cluster, gang, node, occupy, place, queue, role

LEVELS = ["", "block", "rack", "node", "numa", "pcie-switch"]


def located(**by_nodes: int) -> InputBytes:
    """Bytes by nodes, whose names are joined by `_`."""
    held = {frozenset(f"local/{name}" for name in names.split("_")): size for names, size in by_nodes.items()}
    return input_bytes(sum(by_nodes.values()), held)


def nodes_of(placement: Placement | None) -> list[str]:
    assert placement is not None
    return sorted({task.node.removeprefix("local/") for task in placement.tasks})


def racks() -> Cluster:
    """Three racks of two nodes of 4 devices."""
    return cluster(*(node(f"n{at}", rack=f"r{(at + 1) // 2}") for at in range(1, 7)))


def test_of_equal_nodes_the_one_with_most_bytes_is_taken() -> None:
    assert nodes_of(place(racks(), gang("job", role(2)))) == ["n1"]
    assert nodes_of(place(racks(), gang("job", role(2), inputs=located(n3=10, n6=30, n2=20)))) == ["n6"]


def test_where_no_node_with_bytes_is_free_a_node_of_the_same_rack_is_taken() -> None:
    target = racks()
    occupy(target, "n6", 0, 1, 2, 3)
    assert nodes_of(place(target, gang("job", role(2), inputs=located(n6=30)))) == ["n5"]


def test_a_gang_of_two_nodes_takes_the_rack_with_most_bytes() -> None:
    assert nodes_of(place(racks(), gang("job", role(8), inputs=located(n1=20, n3=12, n4=12)))) == ["n3", "n4"]
    copies = located(n1=20, n3_n4=12)
    assert nodes_of(place(racks(), gang("job", role(8), inputs=copies))) == ["n1", "n2"], "copies count once"


def test_a_tighter_node_wins_over_one_with_all_bytes() -> None:
    target = racks()
    occupy(target, "n2", 0)
    assert nodes_of(place(target, gang("job", role(3), inputs=located(n5=100)))) == ["n2"]


def test_a_node_whose_free_devices_are_farther_apart_is_not_taken_for_its_bytes() -> None:
    target = cluster(node("n1"), node("n2"), node("n3"))
    occupy(target, "n1", 0, 1)
    occupy(target, "n2", 0, 2)
    occupy(target, "n3", 2, 3)
    request = gang("job", role(1, 2), inputs=located(n2=100, n3=1))
    assert nodes_of(place(target, request)) == ["n3"]


def test_a_cycle_places_equal_gangs_each_by_its_own_inputs() -> None:
    made = [gang(f"job{at}", role(4), at=at) for at in (0.0, 1.0, 4.0, 5.0)]
    made += [gang(f"job{at}", role(4), at=at, inputs=located(**{name: 5})) for at, name in ((2.0, "n6"), (3.0, "n4"))]
    found = plan(racks(), queue(*made), Policy(), 0.0).placements
    assert {each.job: nodes_of(each.placement)[0] for each in found} == {
        "job0.0": "n1", "job1.0": "n2", "job2.0": "n6", "job3.0": "n4", "job4.0": "n3", "job5.0": "n5",
    }  # fmt: skip


def test_the_note_counts_copies_once_and_names_what_is_near() -> None:
    tree = racks().engines["local"].tree
    inputs = located(n1_n2=3_200_000_000, n3=800_000_000)
    assert placement_note(tree, inputs, ["local/n1", "local/n2"]) == "3.2 of 4.0 GB of its inputs are on its nodes"
    told = "0.8 of 4.0 GB of its inputs are on its nodes"
    assert placement_note(tree, inputs, ["local/n3"]) == told
    assert placement_note(tree, located(n1=700, n2=300), ["local/n1"]) == (
        "0.7 of 1.0 kB of its inputs are on its nodes, 0.3 kB more in the same racks"
    )
    assert placement_note(tree, located(gone=700), ["local/n1"]) == ""
    many = input_bytes(903_000, {frozenset((f"local/n{at}", f"local/m{at}")): 7_000 for at in range(1, MOST_SETS + 2)})
    note = placement_note(tree, many, ["local/n1"])
    assert note == "at most 7.0 of 903.0 kB of its inputs are on its nodes, at most 7.0 kB more in the same racks"
    assert note_in_words(("the job preferred one node; it shares one rack", told)) == f"{told}."
    assert note_in_words((note,)).startswith("At most 7.0 of") and note_in_words(("other",)) == ""


@given(st.dictionaries(st.frozensets(st.integers(0, 400), max_size=4), st.integers(-5, 10**18), max_size=300))
def test_what_is_kept_of_locations_is_bounded(held: dict[frozenset[int], int]) -> None:
    named = {frozenset(f"local/n{each}" for each in nodes): size for nodes, size in held.items()}
    kept = input_bytes(10**18, named)
    assert len(kept.held) <= max(MOST_SETS, MOST_NODES)
    assert kept.overlapping == (sum(1 for nodes, size in held.items() if nodes and size > 0) > MOST_SETS)
    assert all(size > 0 for _, size in kept.held)
    assert kept.on([node for nodes in named for node in nodes]) <= kept.total


@st.composite
def requests(draw: st.DrawFn) -> GangRequest:
    """Gangs of one or two roles, with required and preferred levels, blocks, spreading and rules about neighbours."""
    roles = []
    for name in draw(st.sampled_from(["a", "ab"])):
        level, grouped = draw(st.sampled_from(LEVELS)), draw(st.booleans())
        topology = TopologyRequest(
            level if not grouped else "",
            draw(st.sampled_from(LEVELS)),
            draw(st.integers(1, 3)) if grouped else 0,
            draw(st.sampled_from(["rack", "node", "pcie-switch"])) if grouped else "",
            "" if grouped else draw(st.sampled_from(["", "", "rack", "node"])),
        )
        count, devices = draw(st.integers(1, 4)), draw(st.integers(0, 3))
        cpu = draw(st.sampled_from([0, 500, 1000]))
        minimum = draw(st.integers(0, count))
        roles.append(role(count, devices, name=name, topology=topology, cpu_millis=cpu, minimum=minimum))
    company = draw(st.sampled_from([None, NodeSharing(one_per_node=True), NodeSharing(exclusive=True)]))
    return gang("job", *roles, required=draw(st.sampled_from(LEVELS[:4])), company=company)


def _worth(target: Cluster, placement: Placement) -> tuple[object, ...]:
    """How many cells of each level a placement touches, and what it leaves free of each node it is on."""
    index = target.engines["local"]
    tree = index.tree
    places = {tree.position[task.node] for task in placement.tasks}
    cells = tuple(len({tree.cells[depth].of[at] for at in places}) for depth in range(tree.node_depth + 1))
    taken = Counter(tree.position[task.node] for task in placement.tasks for _ in task.devices)
    left = sorted(index.free[at].bit_count() - taken[at] for at in places)
    return cells, left


def _depth(target: Cluster, placement: Placement) -> int:
    """The summed depth of the cells inside nodes that hold each task's devices."""
    tree = target.engines["local"].tree
    return sum(
        tree.layouts[tree.position[task.node]].narrowest(sum(1 << device for device in task.devices))
        for task in placement.tasks
    )


@settings(max_examples=examples(200), deadline=None)
@given(busy_clusters(), requests(), st.data())
def test_inputs_never_decide_what_fits_and_never_make_a_place_worse(
    target: Cluster, request: GangRequest, data: st.DataObject
) -> None:
    names = [each.name for each in target.engines["local"].tree.nodes] + ["local/gone"]
    sets = st.frozensets(st.sampled_from(names), min_size=1, max_size=3)
    inputs = input_bytes(10**6, data.draw(st.dictionaries(sets, st.integers(1, 10**6), max_size=6)))
    before = target.digest()
    plain, nearer = place(target, request), place(target, msgspec.structs.replace(request, inputs=inputs))
    assert target.digest() == before and target.consistent()
    assert (plain is None) == (nearer is None)
    if plain is None or nearer is None:
        return
    check(target, request, nearer)
    assert Counter(task.role for task in nearer.tasks) == Counter(task.role for task in plain.tasks)
    assert _worth(target, nearer) == _worth(target, plain)
    assert _depth(target, nearer) >= _depth(target, plain)
    on = [inputs.on({task.node for task in each.tasks}) for each in (plain, nearer)]
    assert on[1] >= on[0]
