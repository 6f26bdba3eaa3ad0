"""HiveD's recorded steps give equal results after its configuration was converted to Corral's documents and back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from corral.scheduler.planners.hived.algorithm import Bind
from corral.spec.cluster import ClusterDocument
from corral.spec.configuration_file import load_document
from corral.spec.hived.configuration import HivedCluster
from corral.spec.hived.exporter import hived_from
from corral.spec.queue import QueueDocument
from tests.scheduler import test_hived_cases
from tests.scheduler.hived_clusters import read_cases


def through_documents(config: dict[str, Any]) -> HivedCluster:
    """The configuration after a round trip through stored documents."""
    stored = [document.model_dump(mode="json", by_alias=True) for document in load_document(config)]
    cluster, *others = [document for each in stored for document in load_document(each)]
    assert isinstance(cluster, ClusterDocument)
    return hived_from(cluster, [each for each in others if isinstance(each, QueueDocument)])


@pytest.mark.parametrize("name", test_hived_cases.SCENARIOS)
def test_every_step_comes_out_as_in_hived(data_folder: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(test_hived_cases, "load_hived", through_documents)
    cases, bound = read_cases(data_folder), dict[str, Bind]()
    if name == "reconfiguration_after":
        test_hived_cases.Replay(cases, "reconfiguration_before", bound).run()
    test_hived_cases.Replay(cases, name, bound).run()
