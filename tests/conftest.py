"""Rules and fixtures for all tests: CI allows no skips, and tests connect only to this machine."""

from __future__ import annotations

import functools
import gc
import inspect
import ipaddress
import os
import signal
import socket
import ssl
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpcore2
import httpx2
import hypothesis
import pytest
import structlog

if TYPE_CHECKING:
    from tests.testbeds.postgresql import PostgresServer

ROOT = Path(__file__).resolve().parent.parent
HOW_TO_HAVE_DATA = "set CORRAL_DATA"
"""The text that marks every skip for missing test data."""
WITHOUT_DATA = "skipped for want of CORRAL_DATA"
IN_CI = os.environ.get("CI", "").lower() in {"1", "true", "yes"}

hypothesis.settings.register_profile("quick", deadline=None)
hypothesis.settings.register_profile("small", deadline=None, max_examples=10)
hypothesis.settings.register_profile(
    "ci",
    deadline=None,
    derandomize=True,
    print_blob=True,
    database=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],  # a machine that stands still is no fault of the test
)
hypothesis.settings.load_profile("ci" if IN_CI else "quick")


if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell script's background jobs ignore SIGINT, and processes that a test starts and interrupts would inherit
    # that.
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Rich, which a tool of the tests brings, would colour each logged traceback and every variable in it: 0.3 s for each.
structlog.configure(
    processors=[
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback),
    ]
)

gc.set_threshold(20_000, 20, 20)  # a lane holds all modules and tests: each collection looks through many objects


def pytest_collection_finish() -> None:
    """Let garbage collections leave alone what was loaded and collected."""
    gc.freeze()


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
        pytest.skip(f"the published traces are not here: {HOW_TO_HAVE_DATA} to their folder")
    return folder


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """The lane's PostgreSQL, with a new database for each test; a test that stops a server starts one of its own."""
    from tests.testbeds import postgresql

    if postgresql.binaries() is None:
        pytest.skip("PostgreSQL is not installed: tests/testbeds/apt.sh postgresql")
    server = postgresql.PostgresServer()
    yield server
    server.close()


@pytest.fixture(autouse=True)
def _own_settings(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Hide the developer's own settings and sign-in from the test."""
    for name in [name for name in os.environ if name.startswith("CORRAL_") and name not in KEPT_VARIABLES]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.getbasetemp() / "config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path_factory.getbasetemp() / "data"))


KEPT_VARIABLES = {"CORRAL_CACHE", "CORRAL_DATA"}


@pytest.fixture(scope="session", autouse=True)
def _patient_clients() -> None:
    """Give every HTTP call of a test two minutes, and every WebSocket the same to open.

    The defaults of five and ten seconds are too short on a busy machine.
    """
    from websockets.sync.client import connect

    assert connect.__kwdefaults__["open_timeout"] == 10
    connect.__kwdefaults__["open_timeout"] = 120
    calls = (httpx2.request, httpx2.stream, httpx2.get, httpx2.head, httpx2.options, httpx2.post, httpx2.put)
    for call in (httpx2.Client.__init__, httpx2.AsyncClient.__init__, *calls, httpx2.patch, httpx2.delete):
        defaults = inspect.unwrap(call).__kwdefaults__
        assert defaults["timeout"] == httpx2.Timeout(5.0)
        defaults["timeout"] = httpx2.Timeout(120.0)


@pytest.fixture(scope="session", autouse=True)
def _certificates_read_once() -> Iterator[None]:
    """Let HTTP clients share what they trust: each would read the system's certificates anew, which takes 40 ms."""
    made = httpcore2.default_ssl_context

    @functools.cache
    def read(trust_env: bool, *_of_the_environment: str | None) -> ssl.SSLContext:
        return made(_trust_env=trust_env)

    def shared(*, _trust_env: bool = True) -> ssl.SSLContext:
        return read(_trust_env, os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))

    patch = pytest.MonkeyPatch()
    patch.setattr(httpcore2, "default_ssl_context", shared)
    yield
    patch.undo()


@pytest.fixture(scope="session", autouse=True)
def _statements_compiled_once() -> Iterator[None]:
    from tests.databases import know_copies, share_statements

    patch = pytest.MonkeyPatch()
    share_statements(patch.setattr)
    know_copies(patch.setattr)
    yield
    patch.undo()


@pytest.fixture(scope="session", autouse=True)
def _loopback_only() -> Iterator[None]:
    """Make every connection from the tests' own process to another machine an error."""
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
    """Under CI=true a skipped test fails: the project's own files install everything that tests need."""
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


@pytest.hookimpl(tryfirst=True)
def pytest_report_teststatus(report: pytest.TestReport) -> tuple[str, str, str] | None:
    """Report tests without their test data as a category of their own, with one line at the end."""
    lacks_data = report.skipped and isinstance(report.longrepr, tuple) and HOW_TO_HAVE_DATA in report.longrepr[2]
    return (WITHOUT_DATA, "s", "SKIPPED") if lacks_data else None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print how many tests lacked the test data, and how to get it."""
    if lacking := len(terminalreporter.stats.get(WITHOUT_DATA, ())):
        terminalreporter.write_line(
            f"{lacking} tests were skipped for want of the test data: "
            f"{HOW_TO_HAVE_DATA} to the folder that has openpai/, hived/ and philly/ (CONTRIBUTING.md, Set-up)"
        )
