"""Fixtures of a real control plane; it takes seconds to start, so tests share one, each in its own namespace.

Nothing is mocked: without Go, root or the Debian packages these tests skip and name the missing part (under CI they
fail).
"""

from __future__ import annotations

import contextlib
import itertools
import sys
from collections.abc import Iterator

import pytest

from tests.testbeds.kubernetes import binaries, kubelet
from tests.testbeds.kubernetes.controlplane import ControlPlane
from tests.testbeds.kubernetes.kubelet import KubeletNode
from tests.testbeds.kubernetes.kwok import Kwok

_COUNT = itertools.count(1)
_REAL: list[KubeletNode] = []
"""The node with a kubelet, once a test has asked for it."""


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build missing binaries before the first test, whose time limit is too short for a compiler."""
    chosen = any(item.get_closest_marker("kubernetes") for item in session.items)
    if not chosen or session.config.option.collectonly:
        return
    capture = session.config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled() if capture else contextlib.nullcontext():
        try:
            binaries.main([])
        except RuntimeError as error:
            print(f"the tests on a real Kubernetes will fail: {error}", file=sys.stderr)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Close the real node to tests without a kubelet: in one lane their pods would run on it.

    A hook and not a fixture, so that it comes before the servers that are a module's fixtures.
    """
    for node in _REAL:
        node.close_to_tasks(not item.get_closest_marker("kubelet"))


@pytest.fixture(scope="package")
def control_plane() -> Iterator[ControlPlane]:
    """The tests' control plane, with all controllers and the audit log; a test that kills its apiserver restarts it."""
    if reason := binaries.missing():
        pytest.skip(reason)
    with ControlPlane(audit=True) as plane:
        yield plane


@pytest.fixture
def namespace(control_plane: ControlPlane) -> Iterator[str]:
    """A new namespace with its default account; deleted with its contents after the test."""
    name = f"test-{next(_COUNT)}"
    control_plane.add_namespace(name)
    yield name
    control_plane.request("DELETE", f"/api/v1/namespaces/{name}")


@pytest.fixture(scope="package")
def kwok(control_plane: ControlPlane) -> Iterator[Kwok]:
    """kwok on that control plane, still without nodes."""
    with Kwok(control_plane) as played:
        yield played


@pytest.fixture(scope="package")
def kubelet_node(control_plane: ControlPlane) -> Iterator[KubeletNode]:
    """A node of that control plane that really runs containers."""
    if reason := kubelet.missing():
        pytest.skip(reason)
    with KubeletNode(control_plane) as node:
        _REAL.append(node)
        yield node
        _REAL.clear()
