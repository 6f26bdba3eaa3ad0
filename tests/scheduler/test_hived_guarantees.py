"""HiveD's rules that random events seldom reach, each in the smallest cluster that shows it (score rows H4-H11)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from corral.kernel.errors import Conflict, InvalidInput
from corral.scheduler.planners.hived.algorithm import (
    Bind,
    HivedAlgorithm,
    Member,
    Order,
    Phase,
    PodRequest,
    Preempt,
    Wait,
)
from corral.scheduler.planners.hived.algorithm.buddy import to_physical
from corral.spec.hived.configuration import HivedCluster, load_hived


def config(tops: list[str], owned: dict[str, dict[str, int]], *, depth: int = 2) -> HivedCluster:
    """Racks of two nodes of two devices (deeper: rooms of two racks); `owned` is type and number by virtual cluster."""
    types: dict[str, Any] = {
        "node": {"childCellType": "gpu", "childCellNumber": 2, "isNodeLevel": True},
        "rack": {"childCellType": "node", "childCellNumber": 2},
        "room": {"childCellType": "rack", "childCellNumber": 2},
    }
    path = ["room", "rack", "node", "gpu"][4 - depth - 1 :]

    def cell(level: int, name: str) -> dict[str, Any]:
        if path[level] == "node":
            return {"cellType": "node", "cellAddress": name}
        return {"cellType": path[level], "cellChildren": [cell(level + 1, f"{name}{at}") for at in range(2)]}

    return load_hived(
        {
            "physicalCluster": {"cellTypes": types, "physicalCells": [cell(0, name) for name in tops]},
            "virtualClusters": {
                vc: {
                    "virtualCells": [
                        {"cellType": ".".join(path[: path.index(kind) + 1]), "cellNumber": count}
                        for kind, count in cells.items()
                    ]
                }
                for vc, cells in owned.items()
            },
        }
    )


def pod(name: str, vc: str, leaves: int, *, pods: int = 1, priority: int = 0, lazy: bool = False) -> PodRequest:
    group, _, _ = name.partition(".")
    return PodRequest(name, vc, priority, leaves, group, (Member(pods, leaves),), lazy_preemption=lazy)


def start(algorithm: HivedAlgorithm, request: PodRequest, nodes: set[str] | None = None) -> Bind:
    """Bind a pod, on `nodes` if given, and tell the algorithm."""
    if nodes is not None:
        request = replace(request, ignore_suggested=False)
    decision = algorithm.schedule(request, nodes or set(algorithm.nodes))
    assert isinstance(decision, Bind), decision
    algorithm.add_allocated(request, decision)
    assert algorithm.consistent()
    assert not algorithm.broken_guarantees()
    return decision


def test_h4_relaxed_splitting_never_takes_the_last_cell_of_a_level_between() -> None:
    """A node is wanted, the free ones are bad; splitting a room would take the last rack of another owner."""
    cluster = config(["A", "B"], {"rooms": {"rack": 3}, "nodes": {"node": 2}}, depth=3)
    algorithm = HivedAlgorithm(cluster)
    first = start(algorithm, pod("first", "nodes", 2))
    buddy = next(node for node in algorithm.nodes if node[:2] == first.node[:2] and node != first.node)
    algorithm.set_node_health(buddy, healthy=False)
    decision = algorithm.schedule(pod("second", "nodes", 2), set(algorithm.nodes))
    assert isinstance(decision, Wait), decision
    assert not algorithm.broken_guarantees()
    for at in range(3):
        start(algorithm, pod(f"rack{at}.0", "rooms", 2, pods=2))


def test_h4_relaxed_splitting_takes_what_nobody_needs() -> None:
    algorithm = HivedAlgorithm(config(["A", "B"], {"racks": {"rack": 1}, "nodes": {"node": 2}}))
    first = start(algorithm, pod("first", "nodes", 2))
    buddy = next(node for node in algorithm.nodes if node[0] == first.node[0] and node != first.node)
    algorithm.set_node_health(buddy, healthy=False)
    assert isinstance(algorithm.schedule(pod("second", "nodes", 2), set(algorithm.nodes)), Wait)
    roomy = HivedAlgorithm(config(["A", "B", "C"], {"racks": {"rack": 1}, "nodes": {"node": 2}}))
    first = start(roomy, pod("first", "nodes", 2))
    buddy = next(node for node in roomy.nodes if node[0] == first.node[0] and node != first.node)
    roomy.set_node_health(buddy, healthy=False)
    second = start(roomy, pod("second", "nodes", 2))
    assert second.node[0] != first.node[0]


def test_h4_binding_goes_back_when_an_earlier_choice_leaves_no_room() -> None:
    """The first rack needs one node, the second two, and A10 is unusable: the first must not take the rack with two."""
    algorithm = HivedAlgorithm(config(["A"], {"vc": {"room": 1}}, depth=3))
    first, second = algorithm.state.forest.tenants["vc"].roots["room"][0].children
    leaves = [*first.children[0].leaves(), *second.leaves()]
    nodes, ledger = frozenset({"A00", "A01", "A11"}), algorithm.state.ledgers["room"]
    placement = to_physical(leaves, ledger, nodes)
    assert placement is not None
    assert [placement[leaf].nodes[0] for leaf in leaves] == ["A11", "A11", "A00", "A00", "A01", "A01"]
    assert to_physical([*first.leaves(), *second.leaves()], ledger, nodes) is None


def test_h6_a_gang_of_unequal_pods_is_placed_whole_or_not_at_all() -> None:
    algorithm = HivedAlgorithm(config(["A"], {"vc": {"room": 1}}, depth=3))
    algorithm.set_node_health("A10", healthy=False)
    request = PodRequest("gang.0", "vc", 0, 1, "gang", (Member(1, 1), Member(2, 2)))
    decision = algorithm.schedule(request, set(algorithm.nodes))
    assert isinstance(decision, Bind), decision
    assert {place.node for place in decision.group} == {"A00", "A01", "A11"}
    larger = PodRequest("more.0", "vc", 0, 1, "more", (Member(1, 1), Member(3, 2)))
    assert isinstance(algorithm.schedule(larger, set(algorithm.nodes)), Wait)
    assert not algorithm.groups


def chains(owned: dict[str, dict[str, int]]) -> HivedCluster:
    """Two chains of one device type: nodes of four devices, and nodes of two."""
    types = {
        "big": {"childCellType": "gpu", "childCellNumber": 4, "isNodeLevel": True},
        "small": {"childCellType": "gpu", "childCellNumber": 2, "isNodeLevel": True},
    }
    cells = [{"cellType": kind, "cellAddress": f"{kind}{at}"} for kind in types for at in range(2)]
    tenants = {
        vc: {"virtualCells": [{"cellType": kind, "cellNumber": count} for kind, count in cells.items()]}
        for vc, cells in owned.items()
    }
    physical = {"cellTypes": types, "physicalCells": cells}
    return load_hived({"physicalCluster": physical, "virtualClusters": tenants})


@pytest.mark.parametrize("priority", [0, -1])
def test_a_gang_may_be_parted_between_chains_if_it_says_so(priority: int) -> None:
    """HiveD places a gang inside one chain only."""
    algorithm = HivedAlgorithm(chains({"vc": {"big": 2, "small": 2}}))
    request = PodRequest("gang.0", "vc", priority, 4, "gang", (Member(2, 4), Member(2, 2)))
    assert isinstance(algorithm.schedule(request, set(algorithm.nodes)), Wait)
    request = replace(request, span_chains=True)
    bound = start(algorithm, request)
    assert [(place.node, len(place.devices)) for place in bound.group] == [
        ("small0", 2), ("small1", 2), ("big0", 4), ("big1", 4),
    ]  # fmt: skip
    last = start(algorithm, replace(request, pod="gang.1", leaves=2))
    assert (bound.chain, last.chain) == ("big", "small")
    too_large = replace(request, pod="more", group="more", members=(Member(9, 1),), leaves=1)
    for each in (request, replace(request, pod="gang.1", leaves=2)):
        algorithm.delete_allocated(each)
    assert isinstance(algorithm.schedule(too_large, set(algorithm.nodes)), Bind)
    too_large = replace(too_large, members=(Member(13, 1),))
    assert isinstance(algorithm.schedule(too_large, set(algorithm.nodes)), Wait)


def test_a_parted_gang_that_does_not_fit_leaves_everybody_as_they_were() -> None:
    algorithm = HivedAlgorithm(chains({"vc": {"big": 1, "small": 1}, "other": {"big": 1, "small": 1}}))
    start(algorithm, pod("victim", "vc", 4, lazy=True))
    before = algorithm.digest()
    request = PodRequest("gang.0", "vc", 5, 4, "gang", (Member(1, 4), Member(2, 2)), span_chains=True)
    assert isinstance(algorithm.schedule(request, set(algorithm.nodes)), Wait)
    assert algorithm.digest() == before
    assert algorithm.groups["victim"].label == "Allocated"


def test_h10_a_bad_device_makes_bad_what_it_is_in_and_nothing_else() -> None:
    algorithm = HivedAlgorithm(config(["A"], {"vc": {"node": 1}, "other": {"node": 1}}))
    algorithm.set_device_health("A0", 1, healthy=False)
    assert start(algorithm, pod("one", "vc", 1)).node == "A1"
    assert isinstance(algorithm.schedule(pod("two", "other", 1), set(algorithm.nodes)), Wait)
    algorithm.set_node_health("A0", healthy=False)
    algorithm.set_node_health("A0", healthy=True)
    assert not algorithm.state.forest.devices["A0", 1].healthy
    fresh, _ = algorithm.reconfigured(algorithm.cluster)
    assert not fresh.state.forest.devices["A0", 1].healthy
    algorithm.set_device_health("A0", 1, healthy=True)
    assert start(algorithm, pod("two", "other", 1)).node == "A0"


def test_h5_the_devices_of_the_lowest_common_ancestor_win() -> None:
    types = {
        "switch": {"childCellType": "gpu", "childCellNumber": 2},
        "node": {"childCellType": "switch", "childCellNumber": 2, "isNodeLevel": True},
    }
    physical = {"cellTypes": types, "physicalCells": [{"cellType": "node", "cellAddress": "n"}]}
    owned = {"vc": {"virtualCells": [{"cellType": "node", "cellNumber": 1}]}}
    algorithm = HivedAlgorithm(load_hived({"physicalCluster": physical, "virtualClusters": owned}))
    assert start(algorithm, pod("one", "vc", 1)).devices == (0,)
    assert start(algorithm, pod("two", "vc", 2)).devices == (2, 3)
    assert start(algorithm, pod("three", "vc", 1)).devices == (1,)


@pytest.mark.parametrize("order", list(Order))
def test_h7_a_lazy_preemption_that_leads_nowhere_is_undone(order: Order) -> None:
    algorithm = HivedAlgorithm(config(["A", "B"], {"vc": {"node": 2}}), order=order)
    victim = start(algorithm, pod("victim", "vc", 2, lazy=True))
    before = algorithm.digest()
    request = PodRequest("gang.0", "vc", 5, 2, "gang", (Member(2, 2),), ignore_suggested=False)
    assert isinstance(algorithm.schedule(request, {victim.node}), Wait)
    assert algorithm.groups["victim"].label == "Allocated"
    assert algorithm.consistent()
    assert order is Order.HISTORY or algorithm.digest() == before


def test_h7_a_lazily_preempted_gang_runs_on_and_yields_to_everybody() -> None:
    algorithm = HivedAlgorithm(config(["A"], {"vc": {"node": 1}, "other": {"node": 1}}))
    start(algorithm, pod("victim", "vc", 2, lazy=True))
    start(algorithm, pod("urgent", "vc", 2, priority=5))
    assert algorithm.groups["victim"].label == "Allocated+LazyPreempted"
    assert algorithm.groups["victim"].lazily_preempted_by == "urgent"
    decision = algorithm.schedule(pod("owner", "other", 2), set(algorithm.nodes))
    assert isinstance(decision, Preempt)
    assert decision.victims == ("victim",)


def test_h7_a_preemptor_keeps_its_cells_until_a_higher_priority_or_a_bad_node_takes_them() -> None:
    algorithm = HivedAlgorithm(config(["A"], {"vc": {"rack": 1}}))
    nodes = set(algorithm.nodes)
    start(algorithm, pod("victim.0", "vc", 2, pods=2))
    assert isinstance(algorithm.schedule(pod("filter", "vc", 2, priority=1), nodes, Phase.FILTERING), Preempt)
    assert set(algorithm.groups) == {"victim"}
    assert isinstance(algorithm.schedule(pod("first", "vc", 2, priority=1), nodes), Preempt)
    assert isinstance(algorithm.schedule(pod("late", "vc", 2, pods=2, priority=1), nodes), Wait)
    assert isinstance(algorithm.schedule(pod("higher", "vc", 2, pods=2, priority=2), nodes), Preempt)
    assert {name: group.label for name, group in algorithm.groups.items()} == {
        "victim": "BeingPreempted",
        "higher": "Preempting",
    }
    algorithm.set_node_health("A0", healthy=False)
    assert isinstance(algorithm.schedule(pod("higher", "vc", 2, pods=2, priority=2), nodes), Wait)
    assert set(algorithm.groups) == {"victim"}
    assert algorithm.consistent()


def test_h7_every_pod_of_a_victim_has_to_end() -> None:
    algorithm = HivedAlgorithm(config(["A"], {"vc": {"rack": 1}}))
    gang = [pod("gang.0", "vc", 2, pods=2), pod("gang.1", "vc", 2, pods=2)]
    places = [start(algorithm, each) for each in gang]
    request, victims = pod("urgent", "vc", 1, priority=3), []
    while isinstance(decision := algorithm.schedule(request, set(algorithm.nodes)), Preempt):
        assert [places[gang.index(each)].node for each in gang if each.pod in decision.victims] == [decision.node]
        for each in [each for each in gang if each.pod in decision.victims]:
            algorithm.delete_allocated(each)
            victims.append(each.pod)
    assert isinstance(decision, Bind)
    assert victims == ["gang.0", "gang.1"]
    algorithm.add_allocated(request, decision)
    assert algorithm.groups["urgent"].label == "Allocated"


def test_h8_opportunistic_gangs_use_what_others_own_and_keep_together_away_from_them() -> None:
    algorithm = HivedAlgorithm(config(["A", "B"], {"vc": {"node": 2}, "other": {"node": 2}}))
    owner = start(algorithm, pod("owner", "vc", 1))
    places = [start(algorithm, pod(f"spare{at}", "other", 1, priority=-1)).node for at in range(3)]
    assert owner.node not in places
    assert len(set(places)) == 2


def test_h10_an_owner_is_shown_that_its_cell_will_be_bad_and_no_longer_when_it_is_not() -> None:
    algorithm = HivedAlgorithm(config(["A"], {"vc": {"node": 1}, "other": {"node": 1}}))
    root = algorithm.state.forest.tenants["vc"].roots["rack"][0]
    algorithm.set_node_health("A0", healthy=False)
    assert root.healthy
    algorithm.set_node_health("A1", healthy=False)
    assert not root.healthy
    decision = algorithm.schedule(pod("waits", "vc", 1), set(algorithm.nodes))
    assert isinstance(decision, Wait)
    assert "bad node" in decision.reason
    algorithm.set_node_health("A0", healthy=True)
    assert root.healthy
    assert start(algorithm, pod("runs", "vc", 1)).node == "A0"


def test_h10_a_bad_node_never_ends_what_runs_and_its_pods_keep_their_places() -> None:
    algorithm = HivedAlgorithm(config(["A"], {"vc": {"rack": 1}}))
    start(algorithm, pod("gang.0", "vc", 2, pods=2))
    for node in algorithm.nodes:
        algorithm.set_node_health(node, healthy=False)
    assert start(algorithm, pod("gang.1", "vc", 2, pods=2)).node == "A1"
    with pytest.raises(InvalidInput, match="all of them run"):
        algorithm.schedule(pod("gang.2", "vc", 2, pods=2), set(algorithm.nodes))


def test_h11_after_a_reconfiguration_that_would_break_a_guarantee_the_gang_runs_on_without_its_own() -> None:
    """Two nodes in two racks run; then another virtual cluster owns a whole rack, and only one rack can be split."""
    algorithm = HivedAlgorithm(config(["A", "B"], {"vc": {"node": 2}}))
    start(algorithm, pod("one", "vc", 2), {"A0"})
    start(algorithm, pod("two", "vc", 2), {"B0", "B1"})
    fresh, changes = algorithm.reconfigured(config(["A", "B"], {"vc": {"node": 2}, "new": {"rack": 1}}), now=5.0)
    assert changes.lazily_preempted == ("two",)
    assert {name: group.label for name, group in fresh.groups.items()} == {
        "one": "Allocated",
        "two": "Allocated+LazyPreempted",
    }
    assert fresh.consistent()
    assert not fresh.broken_guarantees()
    assert algorithm.groups["two"].label == "Allocated"


def test_h11_a_node_that_the_configuration_lost_is_ignored_and_accounted_for_when_it_is_back() -> None:
    before = config(["A", "B"], {"vc": {"node": 2}})
    algorithm = HivedAlgorithm(before)
    start(algorithm, pod("one", "vc", 2), {"B0"})
    smaller, changes = algorithm.reconfigured(config(["A"], {"vc": {"node": 2}}))
    assert changes.ignored == (("one", "B0", (0, 1)),)
    assert smaller.consistent()
    for at in range(2):
        start(smaller, pod(f"more{at}", "vc", 2))
    again, changes = smaller.reconfigured(config(["A", "B"], {"vc": {"node": 3}}))
    assert changes.ignored == ()
    assert all(group.label == "Allocated" for group in again.groups.values())
    assert again.state.forest.devices["B0", 0].user is again.groups["one"]


def test_h11_a_higher_priority_takes_the_owned_cells_that_are_left_after_a_reconfiguration() -> None:
    algorithm = HivedAlgorithm(config(["A"], {"vc": {"node": 2}}))
    start(algorithm, pod("low", "vc", 2))
    start(algorithm, pod("high", "vc", 2, priority=3))
    fresh, changes = algorithm.reconfigured(config(["A"], {"vc": {"node": 1}}))
    assert changes.lazily_preempted == ("low",)
    assert fresh.groups["high"].label == "Allocated"


def test_h11_a_preemption_under_way_ends_with_a_reconfiguration() -> None:
    algorithm = HivedAlgorithm(config(["A"], {"vc": {"rack": 1}}))
    start(algorithm, pod("victim", "vc", 2, pods=2))
    algorithm.schedule(pod("urgent", "vc", 2, priority=1), set(algorithm.nodes))
    fresh, changes = algorithm.reconfigured(algorithm.cluster)
    assert changes.cancelled == ("urgent",)
    assert {name: group.label for name, group in fresh.groups.items()} == {"victim": "Allocated"}


def test_h2_an_algorithm_does_not_start_with_quotas_above_the_cluster() -> None:
    """Documents are refused when they are read; this covers a change in memory."""
    small, large = config(["A"], {"vc": {"node": 2}}), config(["A", "B"], {"vc": {"node": 3}})
    with pytest.raises(InvalidInput, match="chain rack level 2: 2 left, 3 owned and unused"):
        HivedAlgorithm(small.model_copy(update={"virtual_clusters": large.virtual_clusters}))


def test_the_order_of_chains_names_each_of_them_once() -> None:
    cluster = chains({"vc": {"big": 2, "small": 2}})
    first = pod("one", "vc", 1)
    assert start(HivedAlgorithm(cluster), first).chain == "big"
    assert start(HivedAlgorithm(cluster, chain_order=["small", "big"]), first).chain == "small"
    with pytest.raises(InvalidInput, match="the order names big"):
        HivedAlgorithm(cluster, chain_order=["big"])


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (pod("thief", "vc", 1), 'group "one" uses'),
        (pod("one.1", "vc", 2), "runs where pod"),
    ],
)
def test_a_device_that_is_used_is_not_given_again_and_nothing_changes(request_: PodRequest, message: str) -> None:
    algorithm = HivedAlgorithm(config(["A"], {"vc": {"rack": 1}}))
    bound = start(algorithm, pod("one.0", "vc", 2))
    before = algorithm.digest()
    place = bound.group[0]
    lied = Bind(bound.node, place.devices[: request_.leaves], bound.chain, (place,))
    if request_.leaves == 1:
        short = type(place)(place.node, place.devices[:1], place.owned_types[:1])
        lied = Bind(bound.node, short.devices, bound.chain, (short,))
    with pytest.raises(Conflict, match=message):
        algorithm.add_allocated(request_, lied)
    assert algorithm.digest() == before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"vc": "nobody"}, 'no virtual cluster "nobody"'),
        ({"vc": ""}, "names no virtual cluster"),
        ({"priority": 1001}, "from -1 to 1000"),
        ({"leaf_type": "npu"}, 'no devices of type "npu"'),
        ({"vc": "none", "leaf_type": "gpu"}, 'owns no devices of type "gpu"'),
        ({"pinned_cell": "pin"}, 'no pinned cell "pin"'),
        ({"leaves": 3}, "no member of 3 devices"),
        ({"members": (Member(0, 1),)}, "without pods or devices"),
    ],
)
def test_a_request_that_nobody_can_meet_is_refused(change: dict[str, Any], message: str) -> None:
    algorithm = HivedAlgorithm(config(["A"], {"vc": {"rack": 1}, "none": {}}))
    request = replace(pod("one", "vc", 1), **change)
    with pytest.raises(InvalidInput, match=message):
        algorithm.schedule(request, set(algorithm.nodes))
    assert not algorithm.groups


def test_a_preemptor_starts_only_where_it_waited_and_when_nobody_is_there_any_more() -> None:
    algorithm = HivedAlgorithm(config(["A"], {"vc": {"rack": 1}}))
    victims = [pod(f"victim.{at}", "vc", 2, pods=2) for at in range(2)]
    places = [start(algorithm, each) for each in victims]
    request, nodes = pod("urgent", "vc", 2, priority=1), set(algorithm.nodes)
    assert isinstance(algorithm.schedule(request, nodes), Preempt)
    before = algorithm.digest()
    for wrong, message in (
        (Bind("A1", (0, 1), "rack", (places[0].group[1],)), "not its group's place"),
        (Bind("A0", (0, 1), "rack", (places[0].group[0],)), 'cannot start: "victim" uses'),
    ):
        with pytest.raises(Conflict, match=message):
            algorithm.add_allocated(request, wrong)
    for binding in (Bind("A0", (), "rack", (places[0].group[0],)), Bind("B9", (0,), "rack", (places[0].group[0],))):
        with pytest.raises(InvalidInput, match="not among the placements"):
            algorithm.add_allocated(request, binding)
    with pytest.raises(InvalidInput, match="no pod of 1 devices"):
        algorithm.schedule(replace(request, pod="other", leaves=1), nodes)
    assert algorithm.digest() == before
    for each in victims:
        algorithm.delete_allocated(each)
    start(algorithm, request)
