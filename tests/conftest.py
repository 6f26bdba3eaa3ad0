"""Why: rules that hold for every test of the house: nothing is skipped in CI, nobody talks to another machine."""

from __future__ import annotations

import ipaddress
import os
import signal
import socket
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

ROOT = Path(__file__).resolve().parent.parent
IN_CI = os.environ.get("CI", "").lower() in {"1", "true", "yes"}

hypothesis.settings.register_profile("quick", deadline=None)
hypothesis.settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True, database=None)
hypothesis.settings.load_profile("ci" if IN_CI else "quick")


if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A script ignores SIGINT in what it starts with &, and what a test starts and interrupts would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def cache_folder() -> Path:
    """The folder outside the tree where slow builds are kept between runs: $CORRAL_CACHE, else ~/.cache/corral."""
    folder = Path(os.environ.get("CORRAL_CACHE") or Path.home() / ".cache" / "corral")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The published traces and figures: $CORRAL_DATA, else `shared/data` beside this checkout; skips where absent."""
    folder = Path(os.environ.get("CORRAL_DATA") or ROOT.parent / "shared" / "data")
    if not folder.is_dir():
        pytest.skip("the published traces are not here: set CORRAL_DATA to their folder")
    return folder


@pytest.fixture(autouse=True)
def _own_settings(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """No test sees, or changes, the settings and the sign-in of the person who runs it."""
    for name in [name for name in os.environ if name.startswith("CORRAL_") and name not in KEPT_VARIABLES]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.getbasetemp() / "config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path_factory.getbasetemp() / "data"))


KEPT_VARIABLES = {"CORRAL_CACHE", "CORRAL_DATA"}


@pytest.fixture(scope="session", autouse=True)
def _loopback_only() -> Iterator[None]:
    """A connection from the tests' own process to anywhere but this machine is an error."""
    connect, connect_ex = socket.socket.connect, socket.socket.connect_ex

    def guarded_connect(self: socket.socket, address: Any) -> None:
        _refuse_elsewhere(self, address)
        connect(self, address)

    def guarded_connect_ex(self: socket.socket, address: Any) -> int:
        _refuse_elsewhere(self, address)
        return connect_ex(self, address)

    patch = pytest.MonkeyPatch()
    patch.setattr(socket.socket, "connect", guarded_connect)
    patch.setattr(socket.socket, "connect_ex", guarded_connect_ex)
    yield
    patch.undo()


def _refuse_elsewhere(sock: socket.socket, address: Any) -> None:
    if sock.family not in {socket.AF_INET, socket.AF_INET6}:
        return
    host = address[0]
    if host == "localhost" or ipaddress.ip_address(host).is_loopback:
        return
    raise AssertionError(f"a test reached for {host}: tests talk to this machine only")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Under CI=true a skipped test is a failed one: what a test needs, the project's own files install."""
    report = yield
    if IN_CI and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped, and CI=true forbids that: {report.longrepr}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """The same for a whole module that is skipped while it is imported."""
    report = yield
    if IN_CI and report.outcome == "skipped":
        report.outcome = "failed"
        report.longrepr = f"{collector.nodeid} was skipped, and CI=true forbids that: {report.longrepr}"
    return report
