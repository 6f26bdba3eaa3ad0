"""Load the recorded HiveD cases, and make clusters for fuzzing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from corral.scheduler.planners.hived.algorithm import Member, PodRequest


def read_cases(data_folder: Path) -> dict[str, Any]:
    """HiveD's own test as recorded: 9 scenarios and their pods."""
    file = data_folder / "hived" / "cases.json"
    if not file.is_file():
        pytest.skip("HiveD's recorded cases are not here: set CORRAL_DATA to the folder that has hived/cases.json")
    cases: dict[str, Any] = json.loads(file.read_text())
    return cases


def request_of(cases: dict[str, Any], name: str) -> PodRequest:
    """The request of a pod of the cases."""
    pod = cases["pods"][name]
    group = pod["affinityGroup"]
    return PodRequest(
        pod=name,
        vc=pod["virtualCluster"],
        priority=pod["priority"],
        leaves=pod["leafCellNumber"],
        group=group["name"],
        members=tuple(Member(member["podNumber"], member["leafCellNumber"]) for member in group["members"]),
        leaf_type=pod["leafCellType"],
        pinned_cell=pod["pinnedCellId"],
        lazy_preemption=pod["lazyPreemptionEnable"],
        ignore_suggested=pod["ignoreK8sSuggestedNodes"],
    )
