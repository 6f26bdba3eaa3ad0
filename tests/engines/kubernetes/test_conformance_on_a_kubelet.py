"""The Kubernetes engine does what every engine must, on a real kubelet."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from corral.model.launch import TaskLaunch
from tests.engines.conformance.suite import EngineConformance, Opened
from tests.engines.kubernetes.engine_harness import Harness, launch
from tests.testbeds.kubernetes.controlplane import ControlPlane
from tests.testbeds.kubernetes.kubelet import KubeletNode

pytestmark = [pytest.mark.kubernetes, pytest.mark.kubelet]


class KubeletPlace:
    """A namespace, whose pods run on one node."""

    def __init__(self, plane: ControlPlane, node: str, namespace: str, folder: Path) -> None:
        self._plane, self._node, self._namespace, self._folder = plane, node, namespace, folder

    def open(self) -> AbstractAsyncContextManager[Opened]:
        """Open an engine over the namespace; leaving it ends no task."""
        return Harness(self._plane, self._namespace, self._folder)

    def launch(self, *command: str, **fields: Any) -> TaskLaunch:
        """The launch of a new attempt."""
        return launch(self._node, *command, **fields)


class TestTheKubernetesEngine(EngineConformance):
    """Pods of a kubelet."""

    @pytest.fixture
    def place(
        self, control_plane: ControlPlane, kubelet_node: KubeletNode, namespace: str, tmp_path: Path
    ) -> KubeletPlace:
        return KubeletPlace(control_plane, kubelet_node.name, namespace, tmp_path)
