"""HiveD's own 174 recorded steps give equal results, node by node and device by device (score rows H1-H2, H4-H11)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from corral.kernel.errors import InvalidInput
from corral.scheduler.planners.hived.algorithm import Bind, HivedAlgorithm, Order, Phase, Preempt, Wait
from corral.spec.errors import SpecError
from corral.spec.hived.configuration import load_hived
from tests.scheduler.hived_clusters import read_cases, request_of

SCENARIOS = [
    pytest.param("normal_operations", id="H1-H4-H5-H6-H7-H8-H9-normal-operations"),
    pytest.param("suggested_nodes", id="H10-suggested-nodes"),
    pytest.param("backtracking_binding_and_lazy_preempt_revert", id="H4-backtracking-binding-and-lazy-preempt-revert"),
    pytest.param("stateful_preemption", id="H7-stateful-preemption"),
    pytest.param("bad_nodes_doomed_bad_cells", id="H10-bad-nodes-doomed-bad-cells"),
    pytest.param("safe_relaxed_buddy_alloc", id="H4-H10-safe-relaxed-buddy-alloc"),
    pytest.param("reconfiguration_before", id="H11-reconfiguration-before"),
    pytest.param("reconfiguration_after", id="H11-reconfiguration-after"),
]


class Replay:
    """One scenario, step by step, on an algorithm that starts as HiveD does: every node bad, then reported healthy."""

    def __init__(self, cases: dict[str, Any], name: str, bound: dict[str, Bind]) -> None:
        self.cases = cases
        self.scenario = next(each for each in cases["scenarios"] if each["name"] == name)
        self.bound = bound
        cluster = load_hived(self.scenario["config"])
        chains = {cell.cell_type for cell in cluster.physical_cluster.physical_cells}
        self.algorithm = HivedAlgorithm(cluster, chain_order=sorted(chains, reverse=True), order=Order.HISTORY)
        for healthy in (False, True):
            for node in self.algorithm.nodes:
                self.algorithm.set_node_health(node, healthy=healthy)
        self.gone: dict[str, list[str]] = {}
        """The groups that disappeared when a pod was scheduled, or was deleted while waiting."""

    def run(self) -> None:
        for step in self.scenario["steps"]:
            before = set(self.algorithm.groups)
            self.step(step)
            if step["op"] in ("schedule", "deleteUnallocated"):
                self.gone[step["pod"]] = sorted(before - set(self.algorithm.groups))
            if step.get("groupStatesAfter") is not None:
                labels = {name: group.label for name, group in self.algorithm.groups.items()}
                assert labels == step["groupStatesAfter"], step

    def step(self, step: dict[str, Any]) -> None:
        match step["op"]:
            case "schedule":
                self.schedule(step)
            case "addAllocated":
                bound = self.bound[step["pod"]]
                assert (bound.node, list(bound.devices)) == (step["node"], step["leafCells"]), step
                self.algorithm.add_allocated(request_of(self.cases, step["pod"]), bound)
            case "deleteAllocated":
                self.algorithm.delete_allocated(request_of(self.cases, step["pod"]))
            case "deleteUnallocated":
                self.algorithm.delete_unallocated(request_of(self.cases, step["pod"]))
            case "setBad" | "setHealthy" as health:
                self.algorithm.set_node_health(step["node"], healthy=health == "setHealthy")
            case unknown:
                raise AssertionError(f"a step that nobody knows: {unknown}")

    def schedule(self, step: dict[str, Any]) -> None:
        request, expect = request_of(self.cases, step["pod"]), step["expect"]
        nodes, phase = frozenset(step["suggestedNodes"]), Phase(step["phase"])
        if expect["result"] == "userError":
            with pytest.raises(InvalidInput) as refused:
                self.algorithm.schedule(request, nodes, phase)
            assert refused.value.status == expect["httpCode"], step
            return
        decision = self.algorithm.schedule(request, nodes, phase)
        match expect["result"]:
            case "bind":
                assert isinstance(decision, Bind), (step, decision)
                got = (decision.node, list(decision.devices), decision.chain)
                assert got == (expect["node"], expect["leafCells"], expect["chain"]), step
                self.bound[step["pod"]] = decision
            case "preempt":
                assert isinstance(decision, Preempt), (step, decision)
                assert set(decision.victims), step
                assert set(decision.victims) <= set(expect["victimsSubsetOf"]), step
                assert {self.bound[victim].node for victim in decision.victims} == {decision.node}, step
            case "wait":
                assert isinstance(decision, Wait), (step, decision)
                assert decision.reason
            case unknown:
                raise AssertionError(f"a result that nobody knows: {unknown}")


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_step_of_a_scenario_comes_out_as_in_hived(data_folder: Path, name: str) -> None:
    cases, bound = read_cases(data_folder), dict[str, Bind]()
    if name == "reconfiguration_after":
        Replay(cases, "reconfiguration_before", bound).run()
    replay = Replay(cases, name, bound)
    assert replay.scenario["steps"]
    replay.run()


def test_h2_virtual_clusters_that_own_more_than_there_is_are_refused_at_start(data_folder: Path) -> None:
    cases = read_cases(data_folder)
    scenario = next(each for each in cases["scenarios"] if not each["steps"])
    with pytest.raises(SpecError, match=r"own 3 cells of type CT1-NODE .* and 2 are there"):
        load_hived(scenario["config"])


def test_h7_a_higher_priority_cancels_the_preemptions_that_hived_cancels(data_folder: Path) -> None:
    cases = read_cases(data_folder)
    replay = Replay(cases, "stateful_preemption", {})
    replay.run()
    cancelled = cases["asserted_in_go"]["deletedPreemptorGroups"]
    assert {pod: groups for pod, groups in replay.gone.items() if groups} == cancelled


def test_h11_the_groups_that_lose_their_guarantee_after_reconfiguration_are_hiveds(data_folder: Path) -> None:
    cases, bound = read_cases(data_folder), dict[str, Bind]()
    Replay(cases, "reconfiguration_before", bound).run()
    replay = Replay(cases, "reconfiguration_after", bound)
    lost: set[str] = set()
    for step in replay.scenario["steps"]:
        replay.step(step)
        lost |= {
            pod.pod
            for group in replay.algorithm.groups.values()
            if group.label.endswith("+LazyPreempted")
            for pod in group.pods
        }
    assert lost == set(cases["asserted_in_go"]["lazyPreemptedAfterReconfig"])
