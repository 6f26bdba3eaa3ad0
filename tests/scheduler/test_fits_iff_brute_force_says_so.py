"""The scheduler never refuses a gang that some assignment fits, and never breaks a rule when it places one."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from corral.model.requests import TopologyRequest
from corral.scheduler import Cluster
from tests.examples import examples
from tests.scheduler.machines import brute_force, busy_clusters, check, gang, place, role

LEVELS = ["", "engine", "block", "rack", "node", "numa", "pcie-switch", "device"]


@settings(max_examples=examples(300), deadline=None)
@given(busy_clusters(), st.integers(1, 6), st.integers(0, 4), st.sampled_from(LEVELS), st.sampled_from([0, 500, 1000]))
def test_one_role_with_one_required_level(target: Cluster, count: int, devices: int, level: str, cpu: int) -> None:
    request = gang("job", role(count, devices, cpu_millis=cpu), required=level)
    before = target.digest()
    placement = place(target, request)
    assert target.digest() == before
    if devices or level not in ("numa", "pcie-switch", "device"):
        assert (placement is not None) == brute_force(target, request)
    if placement is not None:
        check(target, request, placement)


def _node(level: str) -> str:
    return "node" if level == "numa" else level


@settings(max_examples=examples(150), deadline=None)
@given(
    busy_clusters(most_nodes=4),
    st.tuples(st.integers(1, 3), st.integers(0, 3), st.sampled_from(LEVELS[:6])),
    st.tuples(st.integers(1, 3), st.integers(0, 3), st.sampled_from(LEVELS[:6])),
    st.sampled_from(LEVELS[:6]),
)
def test_two_roles_each_with_its_level(
    target: Cluster, first: tuple[int, int, str], second: tuple[int, int, str], level: str
) -> None:
    if not first[1] or not second[1]:  # a task without devices has no cell inside its node
        level, first, second = _node(level), (*first[:2], _node(first[2])), (*second[:2], _node(second[2]))
    roles = [
        role(count, devices, name=name, topology=TopologyRequest(required))
        for name, (count, devices, required) in (("a", first), ("b", second))
    ]
    request = gang("job", *roles, required=level)
    placement = place(target, request)
    if placement is not None:
        check(target, request, placement)
    else:
        assert not brute_force(target, request)


@settings(max_examples=examples(150), deadline=None)
@given(
    busy_clusters(),
    st.integers(1, 7),
    st.integers(1, 2),
    st.integers(1, 3),
    st.sampled_from(["rack", "node", "numa", "pcie-switch"]),
    st.sampled_from(["", "block", "rack"]),
)
def test_blocks_stay_inside_their_cells(
    target: Cluster, count: int, devices: int, size: int, level: str, required: str
) -> None:
    request = gang(
        "job", role(count, devices, topology=TopologyRequest(group_size=size, group_required=level)), required=required
    )
    placement = place(target, request)
    assert (placement is not None) == brute_force(target, request)
    if placement is not None:
        check(target, request, placement)


@settings(max_examples=examples(150), deadline=None)
@given(busy_clusters(), st.integers(1, 6), st.integers(1, 3), st.integers(0, 6), st.sampled_from(LEVELS[:6]))
def test_elastic_roles_get_as_much_as_there_is(
    target: Cluster, count: int, devices: int, minimum: int, level: str
) -> None:
    minimum = min(minimum, count)
    request = gang("job", role(count, devices, minimum=minimum), required=level)
    placement = place(target, request)
    most = max(
        (
            n
            for n in range(max(1, minimum), count + 1)
            if brute_force(target, gang("job", role(n, devices), required=level))
        ),
        default=0,
    )
    assert (len(placement.tasks) if placement else 0) == most
    if placement is not None:
        check(target, request, placement)
