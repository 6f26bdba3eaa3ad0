"""The measured network of a gang is compared with what the topology lets expect."""

from __future__ import annotations

import pytest

from corral.model.preflight.network import NetworkReport, Place, TaskNetwork, judge, level_of

GB = 1e9
US = 1e-6
PLACES = {
    f"worker-{index}": Place(f"local/n{index}", (("pod", f"p{index // 4}"), ("rack", f"r{index // 2}")))
    for index in range(8)
}
RATES = {"rack": 10 * GB, "pod": 5 * GB, "cluster": 2 * GB}


def measured(rates: dict[tuple[int, int], float] | None = None, **more: object) -> dict[str, TaskNetwork]:
    """What eight tasks in four racks of two pods told; `rates` are those that differ from their level's."""
    odd = rates or {}
    found = {}
    for index in range(8):
        ways = tuple(
            (
                f"worker-{other}",
                odd.get((index, other), RATES[level_of(PLACES, f"worker-{index}", f"worker-{other}")]),
                20 * US if index < other else None,
            )
            for other in range(8)
            if other != index
        )
        found[f"worker-{index}"] = TaskNetwork(8, 1.5, ways, (), f"worker-{(index + 1) % 8}", 4 * GB)
    return found


def report(told: dict[str, TaskNetwork]) -> NetworkReport:
    return judge(told, PLACES, "2026-11-28T12:00:00.000Z")


def test_a_network_that_keeps_what_its_topology_promises_has_no_findings() -> None:
    found = report(measured())
    assert found.findings == () and len(found.ways) == 56 and len(found.ring) == 8
    levels = [(each.level, each.ways, each.bytes_per_second, each.latency_seconds) for each in found.levels]
    assert levels == [("rack", 8, 10 * GB, 20 * US), ("pod", 16, 5 * GB, 20 * US), ("cluster", 32, 2 * GB, 20 * US)]
    assert all(way.latency_seconds == 20 * US for way in found.ways), "one latency holds for both directions"


def test_a_slow_pair_is_named_once_with_what_is_usual() -> None:
    found = report(measured({(0, 1): 3 * GB, (1, 0): 2.5 * GB}))
    assert found.findings == (
        "From worker-1 on local/n1 to worker-0 on local/n0: 2.5 GB/s, and 10 GB/s is usual within a rack.",
    )
    assert [way.source for way in found.ways if way.slow] == ["worker-0", "worker-1"]


def test_a_rack_that_is_slower_than_the_way_between_racks_is_found_though_all_of_it_is() -> None:
    racks = {(index, index ^ 1): 1 * GB for index in range(8)}
    found = report(measured(racks))
    assert len(found.findings) == 4
    assert all("1 GB/s, and 5 GB/s is usual within a pod." in finding for finding in found.findings)


def test_a_task_that_is_slow_to_all_others_is_named_instead_of_its_pairs() -> None:
    odd = {(3, other): 0.1 * GB for other in range(8)} | {(other, 3): 0.1 * GB for other in range(8)}
    (finding,) = report(measured(odd)).findings
    assert finding.startswith("worker-3 on local/n3 is slow to every other task, such as worker-")
    assert "worker-0: 100 MB/s, and 5 GB/s is usual within a pod." in finding


@pytest.mark.parametrize(("latency", "late"), [(45 * US, False), (90 * US, True)])
def test_a_latency_is_late_when_it_is_twice_the_usual_one_and_well_above_it(latency: float, late: bool) -> None:
    told = measured()
    ways = tuple((name, rate, latency if name == "worker-6" else own) for name, rate, own in told["worker-0"].ways)
    told["worker-0"] = TaskNetwork(8, 1.5, ways, (), "worker-1", 4 * GB)
    said = f"a latency of {latency / US:g} us, and 20 us is usual between nodes without a common cell"
    assert [way.slow for way in report(told).ways if way.slow] == ([said, said] if late else [])


def test_a_link_that_is_slow_only_while_all_send_is_named() -> None:
    told = measured()
    told["worker-2"] = TaskNetwork(8, 1.5, told["worker-2"].ways, (), "worker-3", 0.4 * GB)
    (finding,) = report(told).findings
    assert finding.startswith(
        "While all tasks send at once, from worker-2 on local/n2 to worker-3 on local/n3: 400 MB/s"
    )


def test_two_tasks_alone_are_not_compared() -> None:
    told = {"worker-0": TaskNetwork(2, 0.1, (("worker-1", 1.0, 1.0),)), "worker-1": TaskNetwork(2, 0.1)}
    assert report(told).findings == ()


def test_what_is_missing_is_told() -> None:
    told = measured()
    del told["worker-7"]
    told["worker-0"] = TaskNetwork(8, 1.5, told["worker-0"].ways, (("worker-7", "it did not answer in time"),))
    assert report(told).findings == (
        "7 of 8 tasks told what they measured.",
        "worker-0 could not measure its network to worker-7: it did not answer in time.",
    )


def test_many_findings_are_cut_and_the_rest_is_counted() -> None:
    told = {"worker-0": TaskNetwork(30, 1.0, (), tuple((f"worker-{at}", "no answer") for at in range(1, 30)))}
    found = report(told).findings
    assert len(found) == 21 and found[-1] == "There are 10 more findings."


def test_levels_are_the_narrowest_that_two_tasks_share() -> None:
    places = PLACES | {"side-0": Place("local/n0", PLACES["worker-0"].cells), "lost-0": Place("", ())}
    pairs = [("worker-0", "side-0"), ("worker-0", "worker-1"), ("worker-0", "worker-2"), ("worker-0", "worker-4")]
    assert [level_of(places, *pair) for pair in pairs] == ["node", "rack", "pod", "cluster"]
    assert level_of(places, "worker-0", "nobody") == "cluster"
