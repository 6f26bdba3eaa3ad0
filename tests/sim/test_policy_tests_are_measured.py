"""A policy test measures what jobs lived through, and reads documents from folders and from revisions of git."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from math import inf, isnan
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corral.kernel.errors import CorralError, InvalidInput, NotFound
from corral.scheduler import find_policy, find_preempt
from corral.sim.comparison import Question
from corral.sim.fairness import finish_time_ratios
from corral.sim.machines import plain_site
from corral.sim.policy_test import documents
from corral.sim.policy_test.documents import DocumentFiles, base_documents, documents_at, documents_of
from corral.sim.policy_test.measurement import Measurement
from corral.sim.policy_test.played import Side, check_assertions, play_all, report_of
from corral.sim.progress import Costs
from corral.sim.simulation import Knobs, Simulation
from corral.sim.trace import Trace, TraceJob
from corral.spec.assertions.evaluation import statistic_of
from corral.spec.assertions.parser import AssertionProblem, parse_assertion
from corral.spec.assertions.syntax import Metric
from tests.examples import examples

QUEUES = (
    b"kind: Queue\nname: research\n---\nkind: Queue\nname: vision\nlimit: {devices: 1}\n"
    b"---\nkind: Policy\nname: default\npreset: fifo\n"
)
JOBS = (
    TraceJob("a", 0.0, 100.0, 4, "ann", "research"),
    TraceJob("b", 10.0, 50.0, 2, "bob", "research"),
    TraceJob("c", 20.0, 60.0, 2, "ann", "vision"),
    TraceJob("d", 20.0, 40.0, 1, "bob", "vision"),
)
"""On four devices: b runs from 100 to 150, d from 100 to 140, and c never under its queue's limit."""


def side(text: bytes = QUEUES, name: str = "quotas", knobs: Knobs | None = None) -> Side:
    question = Question(Path("none"), "1x4", "", knobs or Knobs())
    return Side(question, DocumentFiles(name, (("queues.yaml", text),)))


def measured(*jobs: TraceJob, text: bytes = QUEUES) -> Measurement:
    simulation = side(text).simulation(Trace(jobs))
    simulation.run()
    return Measurement(simulation.lives(), simulation.site.devices)


def value(measurement: Measurement, text: str) -> float:
    metric = parse_assertion(f"{text} == {text}").left
    assert isinstance(metric, Metric)
    return measurement.measure(metric)


@pytest.mark.parametrize(
    ("metric", "wanted"),
    [
        ("wait.max(queue=research)", 90.0),
        ("wait.p50(queue=research)", 0.0),
        ("wait.mean(queue=research)", 45.0),
        ("wait.max(queue=vision, size=1)", 80.0),
        ("wait.max(queue=vision)", inf),
        ("completion.max(user=bob)", 140.0),
        ("run.sum(user=bob)", 90.0),
        ("slowdown.max(size=2, queue=research)", 140.0 / 50.0),
        ("utilisation", (400 + 100 + 40) / (150 * 4)),
        ("utilisation(queue=research)", 500 / 600),
        ("preemptions", 0.0),
        ("lost", 0.0),
        ("rho.max(size=2)", inf),
    ],
)
def test_each_metric_is_of_the_jobs_that_the_filters_leave(metric: str, wanted: float) -> None:
    assert value(measured(*JOBS), metric) == pytest.approx(wanted)


def test_interruptions_and_what_they_cost_are_counted() -> None:
    shortest = find_policy("srtf")
    jobs = (TraceJob("long", 0.0, 1000.0, 4), TraceJob("short", 100.0, 50.0, 4))
    policy = replace(shortest, preempt=find_preempt("order"), consolidation=False)
    site = plain_site("1x4")
    assert site is not None
    simulation = Simulation(jobs, site, policy, Knobs(Costs(restart=5.0, checkpoint=60.0)))
    result = simulation.run()
    found = Measurement(simulation.lives(), 4)
    assert (value(found, "preemptions"), value(found, "lost")) == (1.0, 40.0 * 4)
    assert value(found, "rho.max") == max(finish_time_ratios(result.jobs, 4))
    assert value(found, "utilisation") == pytest.approx(result.utilisation)


@given(
    st.lists(
        st.tuples(st.integers(0, 500), st.integers(1, 300), st.integers(1, 4), st.booleans()), min_size=1, max_size=12
    )
)
@settings(max_examples=examples(30), deadline=None)
def test_measures_agree_with_the_figures_of_the_simulator(said: list[tuple[int, int, int, bool]]) -> None:
    jobs = [
        TraceJob(f"j{number}", float(at), float(seconds), devices, queue="research" if mine else "default")
        for number, (at, seconds, devices, mine) in enumerate(said)
    ]
    simulation = side().simulation(Trace(tuple(jobs)))
    result = simulation.run()
    found = Measurement(simulation.lives(), 4)
    assert found.never_ended == 0
    assert value(found, "utilisation") == pytest.approx(result.utilisation)
    waits = sorted(job.queueing_seconds for job in result.jobs)
    assert value(found, "wait.p95") == statistic_of("p95", waits)
    parts = [value(found, f"utilisation(queue={queue})") for queue in found.queues]
    assert sum(parts) == pytest.approx(result.utilisation)


def test_a_report_has_every_queue_before_and_after_and_says_who_never_starts() -> None:
    free = QUEUES.replace(b"limit: {devices: 1}", b"limit: {devices: 4}")
    sides = [side(), side(free, "quotas at main")]
    trace = Trace(JOBS)
    assertions = [parse_assertion("wait.max(queue=vision) <= base"), parse_assertion("utilisation >= 80%")]
    check_assertions(assertions, trace, ["research", "vision"], has_base=True)
    report = report_of("week.csv", assertions, play_all(sides, [each.simulation(trace) for each in sides], 1))
    assert [outcome.held for outcome in report.outcomes] == [False, True] and not report.held
    assert (report.documents, report.base) == ("quotas", "quotas at main")
    assert [row.name for row in report.queues] == ["", "research", "vision"]
    assert report.queues[2].after.wait_p95 == inf
    assert report.queues[2].before is not None and report.queues[2].before.wait_p95 == 130.0
    assert list(report.notes) == ["1 of 4 jobs never end under quotas; a job that never starts waits for ever."]
    assert report.headline == "1 of 2 assertions does not hold."


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("wait.p95(queue=reserch) <= 1h", 'Column 16 .* the trace has no queue reserch; did you mean "research"'),
        ("wait.p95(user=anna) <= 1h", 'the trace has no user anna; did you mean "ann"'),
        ("wait.p95(queue=empty) <= 1h", r"Column 1 .* no job of the trace is one of wait.p95\(queue=empty\)"),
        ("wait.p95(queue=vision, size=4) <= 1h", "no job of the trace is one of"),
        ("wait.p95 <= 2 * base", "Column 17 .* there is no base to compare with; give --base"),
    ],
)
def test_assertions_about_jobs_that_are_not_there_are_refused(text: str, reason: str) -> None:
    with pytest.raises(AssertionProblem, match=reason):
        check_assertions([parse_assertion(text)], Trace(JOBS), ["research", "vision", "empty"], has_base=False)


def test_nothing_is_undefined_only_where_nobody_has_a_value() -> None:
    found = measured(TraceJob("idle", 0.0, 0.0, 1, "ann", "research"))
    assert isnan(value(found, "slowdown.max")) and value(found, "preemptions") == 0.0


# ---- documents


def git(folder: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "init.defaultBranch=main")
    subprocess.run(["git", "-C", str(folder), *identity, *arguments], check=True, capture_output=True, timeout=60)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository whose folder quotas/ of `main` was changed since, with a link and a file of another kind in it."""
    quotas = tmp_path / "quotas"
    quotas.mkdir()
    (quotas / "queues.yaml").write_bytes(QUEUES)
    (quotas / "notes.txt").write_text("not read")
    (quotas / "link.yaml").symlink_to("/etc/passwd")
    git(tmp_path, "init")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-m", "first")
    (quotas / "link.yaml").unlink()
    (quotas / "queues.yaml").write_bytes(QUEUES + b"---\nkind: Queue\nname: speech\n")
    return tmp_path


def test_a_revision_is_read_without_checking_it_out(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    quotas = repository / "quotas"
    monkeypatch.setenv("GIT_DIR", ".git")  # as in a hook
    monkeypatch.setenv("GIT_INDEX_FILE", ".git/index")
    at = base_documents("main", quotas)
    assert at.files == (("queues.yaml", QUEUES),) and at.name == f"{quotas} at main"
    assert b"speech" in documents_of(quotas).files[0][1]
    assert base_documents(str(quotas), quotas) == documents_of(quotas)


@pytest.mark.parametrize(
    ("revision", "reason"),
    [
        ("mian", "neither a folder nor a revision of git"),
        ("--output=x", "cannot name a revision"),
        ("a\nb", "cannot name a revision"),
    ],
)
def test_an_unknown_revision_is_refused(repository: Path, revision: str, reason: str) -> None:
    with pytest.raises(CorralError, match=reason):
        documents_at(revision, repository / "quotas")


def test_a_folder_that_was_not_there_has_no_documents(repository: Path) -> None:
    (repository / "other").mkdir()
    with pytest.raises(NotFound, match=r"other at main has no file of \.yaml"):
        documents_at("main", repository / "other")
    with pytest.raises(NotFound, match=r"The folder .* is not there\."):
        documents_of(repository / "nowhere")


def test_documents_are_bounded_before_they_are_read(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "MOST_BYTES", 10)
    with pytest.raises(InvalidInput, match="has more than"):
        documents_of(repository / "quotas")
    with pytest.raises(InvalidInput, match="has more than"):
        documents_at("main", repository / "quotas")


CLUSTER = b"kind: Cluster\nnode: {devices: {count: 4}}\nracks: {r: {nodes: [n1]}}\n"


@pytest.mark.parametrize(
    ("files", "machines", "reason"),
    [
        ({"a.yaml": QUEUES}, "", "A simulation needs one Cluster document that describes its nodes; quotas has 0"),
        ({"a.yaml": QUEUES, "b.yaml": QUEUES}, "1x4", "Queue/research of quotas is both in a.yaml and in b.yaml"),
        ({"a.yaml": CLUSTER}, "1x4", "A Cluster document of quotas describes the machines; leave out --cluster"),
        ({"a.yaml": b"kind: Queue\nname: x\nweigth: 2\n"}, "1x4", 'weigth.*did you mean "weight"'),
        ({"a.yaml": CLUSTER + b"---\nkind: Queue\nname: x\nguaranteed: {devices: 99}\n"}, "", "contradict each other"),
    ],
)  # fmt: skip
def test_documents_that_cannot_be_played_are_refused(files: dict[str, bytes], machines: str, reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        DocumentFiles("quotas", tuple(files.items())).site(machines)


def test_machines_come_from_a_file_too(tmp_path: Path) -> None:
    (tmp_path / "site.yaml").write_bytes(CLUSTER)
    site = DocumentFiles("quotas", (("a.yaml", QUEUES),)).site(str(tmp_path / "site.yaml"))
    assert site.devices == 4 and set(site.configuration.queues) == {"default", "research", "vision"}


def test_a_queue_without_a_document_is_refused_with_the_name_of_the_side() -> None:
    with pytest.raises(InvalidInput, match="quotas: The trace names the queue speech, which no document describes"):
        side().simulation(Trace((TraceJob("a", 0.0, 1.0, 1, queue="speech"),)))
