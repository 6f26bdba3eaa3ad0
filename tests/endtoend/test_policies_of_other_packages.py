"""Policies from other packages, found by their entry points, order real jobs on a real server and jobs of a trace."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from corral.scheduler.policy.registry import GROUP
from tests.endtoend.platform import ROOT, Platform, on_devices
from tests.entry_points import corrals_own, distribution

pytestmark = pytest.mark.timeout(300)

EXAMPLE = ROOT / "examples" / "policy"
CLUSTER = "kind: Cluster\nnode: {cpu: 4, memory: 1Gi, devices: 1}\nnodes: [node1]\n"
SHORTEST = """
from math import inf

class Shortest:
    changes_with_time = False

    def key(self, gang, history, now):
        return (gang.max_duration_seconds or inf, gang.submitted_at)

class Failing:
    changes_with_time = False

    def key(self, gang, history, now):
        raise ValueError("it has no estimate")

class Endless:
    changes_with_time = False

    def key(self, gang, history, now):
        while True:
            try:
                sum(range(1000))
            except Exception:
                pass
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of modules with two small parts and with the package of `examples/policy`, installed as a user would."""
    site = corrals_own(tmp_path_factory.mktemp("packages") / "site")
    (site / "shortest_policy.py").write_text(SHORTEST)
    points = {"shortest": "shortest_policy:Shortest", "failing": "shortest_policy:Failing"} | {
        "endless": "shortest_policy:Endless"
    }
    distribution(site, "shortest-policy", {GROUP: points})
    uv = Path(sys.executable).with_name("uv")
    options = ("--quiet", "--no-deps", "--no-build-isolation")
    command: list[str | Path] = [uv, "pip", "install", *options, "--target", site, EXAMPLE]
    env = dict(os.environ, PATH=f"{uv.parent}{os.pathsep}{os.environ['PATH']}", VIRTUAL_ENV=sys.prefix)
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return site


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory, site: Path) -> Iterator[Platform]:
    folder = tmp_path_factory.mktemp("server")
    (folder / "cluster.yaml").write_text(CLUSTER)
    made = Platform(folder, cluster=folder / "cluster.yaml", env={"PYTHONPATH": f"{site}:{ROOT}"})
    made.up()
    yield made
    made.down()


def _apply(platform: Platform, text: str, code: int = 0) -> str:
    path = platform.folder / "policy.yaml"
    path.write_text(text)
    return platform.refused("apply", str(path), code=code) if code else platform.corral("apply", str(path))


def _order(platform: Platform, **durations: str) -> list[str]:
    """The names of jobs of these durations in the order in which they run, one after the other, after one that runs."""
    holds = platform.submit(on_devices("holds", 1))
    platform.until(holds, lambda job: job["state"] == "running")
    bounds = {name: {"maxDuration": duration} if duration else {} for name, duration in durations.items()}
    jobs = [platform.submit(on_devices(name, 1, command="true", **bound)) for name, bound in bounds.items()]
    for job in jobs:
        platform.queued(job)
    platform.client.stop(holds["id"])
    ended = [platform.ended(job) for job in jobs]
    return [job["name"] for job in sorted(ended, key=lambda job: str(job["startedAt"]))]


def test_a_policy_document_names_the_order_of_another_package(platform: Platform) -> None:
    _apply(platform, "{kind: Policy, order: shortest}")
    assert _order(platform, hours="3h", unknown="", minutes="5m", hour="1h") == ["minutes", "hour", "hours", "unknown"]
    _apply(platform, "{kind: Policy, order: fifo}")
    assert _order(platform, late="3h", early="5m") == ["late", "early"]


def test_an_unknown_part_is_refused_with_the_names_that_can_stand_there(platform: Platform) -> None:
    said = _apply(platform, "{kind: Policy, order: shortst}", code=1)
    assert "There is no policy 'shortst'; choose one of:" in said and "shortest" in said
    said = _apply(platform, "{kind: Policy, preempt: shortest}", code=1)
    assert "shortest is installed, but is no preempt part; choose one of: order, rules." in said


def test_jobs_run_by_the_default_order_and_an_event_says_why_when_a_part_fails(platform: Platform) -> None:
    _apply(platform, "{kind: Policy, order: failing}")
    assert _order(platform, first="3h", second="5m") == ["first", "second"]
    told = platform.client.server_events(limit=10)["items"]
    failed = [each for each in told if each["kind"] == "server.policy-part-failed"]
    assert 1 <= len(failed) <= 3 and "order failing raised ValueError: it has no estimate." in failed[-1]["message"]
    _apply(platform, "{kind: Policy, order: fair}")


def test_jobs_run_by_the_default_order_when_a_part_never_answers(platform: Platform) -> None:
    _apply(platform, "{kind: Policy, order: endless}")
    assert _order(platform, first="3h", second="5m") == ["first", "second"]
    told = platform.client.server_events(limit=10)["items"]
    late = [each for each in told if "The policy's order endless took too long for one plan." in each["message"]]
    assert 1 <= len(late) <= 3
    _apply(platform, "{kind: Policy, order: fair}")


def test_the_example_policy_orders_real_jobs(platform: Platform) -> None:
    _apply(platform, "{kind: Policy, preset: response-ratio}")
    assert _order(platform, hours="10h", unknown="", seconds="10s") == ["seconds", "hours", "unknown"]
    _apply(platform, "{kind: Policy, order: fair}")


def test_the_example_policy_starts_a_long_job_of_a_trace_before_short_ones_that_came_later(
    site: Path, tmp_path: Path
) -> None:
    trace = tmp_path / "trace.csv"
    short = [f"{90 * number},100,1,short-{number},ada" for number in range(40)]
    trace.write_text("\n".join(["submitted,seconds,devices,name,user", *short, "1,600,1,long,ada"]) + "\n")

    def started_before_the_long_job(policy: str) -> int:
        results = tmp_path / f"{policy}.json"
        options: list[str | Path] = ["--trace", trace, "--cluster", "1x1", "--policy", policy, "--results", results]
        env = dict(os.environ, PYTHONPATH=f"{site}{os.pathsep}{ROOT}")
        program = [sys.executable, "-m", "corral.cli.main", "sim", "run", *options]
        done = subprocess.run(program, env=env, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        jobs = sorted(json.loads(results.read_text())["jobs"], key=lambda job: job["started"])
        assert len(jobs) == 41
        return [job["name"] for job in jobs].index("long")

    assert started_before_the_long_job("srtf") == 40
    assert 1 <= started_before_the_long_job("response-ratio") < 20


def test_the_example_policy_is_a_package_of_fewer_than_60_lines() -> None:
    files = ("response_ratio.py", "pyproject.toml")
    assert sum(len((EXAMPLE / name).read_text().splitlines()) for name in files) < 60
