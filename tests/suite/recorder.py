"""The pytest plugin of a run: records each test's outcome into the file of `--outcomes`, and schedules the lanes.

A run that is ended by SIGTERM, as by a CI whose patience is over, says which tests ran at that moment.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from types import FrameType

import pytest

from tests.suite import outcomes
from tests.suite.lanes import LongestFirst
from tests.suite.outcomes import FAILED, SKIPPED, Outcome, Run

_MOST_SAID = 20_000
"""Characters kept of a test's output: its end, where the error is."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--outcomes`."""
    parser.addoption("--outcomes", default="", metavar="FILE", help="write what became of each test to FILE, as JSON")


@pytest.hookimpl(trylast=True)  # after the terminal's
def pytest_configure(config: pytest.Config) -> None:
    """Record in the process that gets all reports: with lanes, xdist's controller."""
    if config.getoption("outcomes") and not hasattr(config, "workerinput"):
        alone = not config.pluginmanager.hasplugin("xdist")
        terminal = config.pluginmanager.getplugin("terminalreporter")
        recorder = Recorder(Path(config.getoption("outcomes")), terminal, alone)
        config.pluginmanager.register(recorder)
        signal.signal(signal.SIGTERM, recorder.end)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> LongestFirst:
    """Give whole files to the lanes, the longest first."""
    return LongestFirst(config, log)


class Recorder:
    """Collects a run's reports and writes them at its end; of tests that run alone it keeps the output of passing ones
    too.
    """

    def __init__(self, path: Path, terminal: pytest.TerminalReporter, alone: bool) -> None:
        self._path = path
        self._terminal = terminal
        self._alone = alone
        self._run = Run()
        self._begun = time.monotonic()
        self._running: dict[str, float] = {}
        """When each test that runs now began, by its name."""

    def end(self, number: int, _frame: FrameType | None) -> None:
        """Say what runs, and die of the signal."""
        now = time.monotonic()
        running = [f"{test} (for {now - since:.0f} s)" for test, since in self._running.items()]
        line = f"ended by {signal.Signals(number).name} after {now - self._begun:.0f} s; running: "
        os.write(1, f"\n{line}{', '.join(running) or 'no test'}\n".encode())
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Note that a test begins."""
        self._running[nodeid] = time.monotonic()

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """Note that a test is over."""
        self._running.pop(nodeid, None)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add one of a test's reports: of its set-up, its call or its tear-down."""
        outcome = self._run.outcomes.setdefault(report.nodeid, Outcome(report.nodeid))
        outcome.seconds += report.duration
        node = getattr(report, "node", None)
        outcome.lane = node.gateway.id if node is not None else ""
        worse = report.outcome == FAILED or (report.outcome == SKIPPED and outcome.state != FAILED)
        if worse:
            outcome.state = report.outcome
        if report.outcome == FAILED and not self._alone:
            after = f"failed after {time.monotonic() - self._begun:.0f} s"
            self._terminal.write_line(f"\n{after}: {report.nodeid}: {_first_line(report)}")
        if worse or (self._alone and report.when == "teardown"):  # the last report has the sections of all three
            outcome.said = (outcome.said + f"[{report.when}]\n{_said(report)}")[-_MOST_SAID:]

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Remember a file that could not be collected; every lane reports it."""
        told = any(broken.startswith(f"{report.nodeid}\n") for broken in self._run.broken)
        if report.outcome == FAILED and not told:
            self._run.broken.append(f"{report.nodeid}\n{report.longreprtext}"[:_MOST_SAID])

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        """Write the run to its file."""
        self._run.code = int(exitstatus)
        self._run.seconds = time.monotonic() - self._begun
        outcomes.write(self._path, self._run)


def _said(report: pytest.TestReport) -> str:
    if isinstance(report.longrepr, tuple):  # a skip: file, line, reason
        return str(report.longrepr[2])
    return "\n".join([report.longreprtext, *(f"-- {name} --\n{text}" for name, text in report.sections)])


def _first_line(report: pytest.TestReport) -> str:
    """The first line of what a failed test says; "" if it says nothing."""
    crash = getattr(report.longrepr, "reprcrash", None)
    said = crash.message if crash is not None else report.longreprtext
    return said.strip().partition("\n")[0][:300]
