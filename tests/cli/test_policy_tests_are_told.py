"""`corral policy test`: exit codes tell a failed assertion from unreadable input; reports come in four forms."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from xml.etree import ElementTree

import pytest

from corral.cli.main import run
from corral.spec.assertions.parser import AssertionProblem, parse_assertion
from corral.spec.assertions.syntax import METRICS

ROOT = Path(__file__).resolve().parents[2]

TRACE = """submitted,seconds,devices,name,user,queue
0,100,4,a,ann,research
10,50,2,b,bob,research
20,60,2,c,ann,vision
20,40,1,d,bob,vision
"""
CLUSTER = "kind: Cluster\nnode: {devices: {count: 4}}\nracks: {r: {nodes: [n1]}}\n---\n"
DOCUMENTS = (
    CLUSTER
    + "kind: Policy\nname: default\npreset: fifo\n---\nkind: Queue\nname: research\n---\nkind: Queue\nname: vision\n"
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a trace, documents, and other documents under which job c never starts."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "week.csv").write_text(TRACE)
    for name, text in (("quotas", DOCUMENTS), ("tight", DOCUMENTS + "limit: {devices: 1}\n")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "all.yaml").write_text(text)
    return tmp_path


def check(*assertions: str, documents: str = "quotas", more: tuple[str, ...] = ()) -> int:
    asserted = [word for each in assertions for word in ("--assert", each)]
    return run(
        ["policy", "test", "--trace", "week.csv", "--documents", documents, "--processes", "1", *asserted, *more]
    )


def test_exit_code_0_says_that_all_hold_and_1_that_one_does_not(capsys: pytest.CaptureFixture[str]) -> None:
    assert check("wait.max(queue=research) <= 100s", "utilisation >= 10%") == 0
    assert "All 2 assertions hold." in capsys.readouterr().out
    assert (
        check("wait.p95(queue=vision) <= base", "preemptions == 0", documents="tight", more=("--base", "quotas")) == 1
    )
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "week.csv played under tight, against quotas."
    assert lines[3].split() == ["no", "wait.p95(queue=vision)", "<=", "base", "never", "<=", "2m10s", "2m10s"]
    assert any(line.split()[:2] == ["vision", "2"] and "2m10s → never" in line for line in lines)
    assert "1 of 4 jobs never end under tight; a job that never starts waits for ever." in lines
    assert lines[-1] == "1 of 2 assertions does not hold."


@pytest.mark.parametrize(
    ("assertion", "more", "said"),
    [
        ("wait.p95(queue=reserch) <= 1h", (), 'Column 16 .* no queue reserch; did you mean "research"?'),
        ("wiat.p95 <= 1h", (), 'Column 1 .* no metric wiat; did you mean "wait"?'),
        ("wait.p95 <= base", (), "there is no base to compare with; give --base"),
        ("wait.p95 <= base", ("--base", "main"), "git cannot read quotas: not a git repository"),
        ("wait.p95 <= 1h", ("--documents", "none"), "The folder none is not there"),
        ("wait.p95 <= 1h", ("--trace", "none.csv"), "none.csv is not there"),
        ("wait.p95 <= 1h", ("--trace", "quotas/all.yaml"), "fits no format"),
        ("wait.p95 <= 1h", ("--picture", "none/picture.svg"), "none/picture.svg: No such file or directory"),
        ("wait.p95 <= 1h", ("--out", "report.pdf"), "The ending of report.pdf is none of .md, .xml"),
        ("wait.p95 <= 1h", ("--assertions", "week.csv"), "Column 1 of the assertion submitted,seconds"),
        ("wait.p95 <= 1h", ("--assertions", "none"), "none is not there"),
    ],
)
def test_exit_code_2_says_that_something_cannot_be_read(
    assertion: str, more: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check(assertion, more=more) == 2
    found = capsys.readouterr()
    assert re.search(said, found.err) and not found.out and "Traceback" not in found.err


def test_without_an_assertion_nothing_is_tested(capsys: pytest.CaptureFixture[str]) -> None:
    assert check() == 2
    assert "Say what must hold" in capsys.readouterr().err


def test_assertions_stand_in_a_file_too(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "assertions.txt").write_text("# waits\n\nwait.max <= 1h\n  utilisation >= 99%  \n")
    assert check(more=("--assertions", "assertions.txt", "-o", "json")) == 1
    found = json.loads(capsys.readouterr().out)
    assert [each["assertion"] for each in found["assertions"]] == ["wait.max <= 1h", "utilisation >= 99%"]


def test_json_has_figures_in_seconds_and_null_for_never(capsys: pytest.CaptureFixture[str]) -> None:
    check("wait.max(queue=vision) <= base", documents="tight", more=("--base", "quotas", "-o", "json"))
    found = json.loads(capsys.readouterr().out)
    assert found["held"] is False and (found["documents"], found["base"]) == ("tight", "quotas")
    (one,) = found["assertions"]
    assert (one["unit"], one["value"], one["wanted"], one["base"], one["held"]) == (
        "seconds",
        None,
        130.0,
        130.0,
        False,
    )
    queues = {each["queue"]: each for each in found["queues"]}
    assert set(queues) == {None, "research", "vision"}
    assert queues["research"]["before"]["wait_p95"] == 90.0 and queues["vision"]["after"]["wait_p95"] is None


def test_junit_has_a_test_case_for_each_assertion(capsys: pytest.CaptureFixture[str]) -> None:
    check("wait.max < 1s", 'completion.max(user="ann") <= 1h', more=("-o", "junit"))
    suite = ElementTree.fromstring(capsys.readouterr().out.encode())[0]
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    failed, held = suite
    assert failed.get("name") == "wait.max < 1s" and len(held) == 0
    assert failed[0].text == "wait.max is 2m10s, wanted < 1s."


def test_markdown_has_tables_and_a_picture(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "out").mkdir()
    outs = ("--out", "out/report.md", "--out", "out/report.xml", "--picture", "waits.svg")
    assert (
        check("wait.max(queue=vision) <= base", documents="tight", more=("--base", "quotas", "-o", "markdown", *outs))
        == 1
    )
    shown, beside = capsys.readouterr().out, (folder / "out/report.md").read_text()
    assert "### Policy test: The assertion does not hold." in shown
    assert "| ❌ | `wait.max(queue=vision) <= base` | never | <= 2m10s | 2m10s |" in shown
    assert "![Waits by queue](waits.svg)" in shown and "![Waits by queue](../waits.svg)" in beside
    assert ElementTree.parse(folder / "out/report.xml").getroot().tag == "testsuites"
    picture = ElementTree.parse(folder / "waits.svg").getroot()
    texts = [each.text for each in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert {"quotas", "tight", "research", "vision", "1m30s", "never"} <= set(texts)


def test_without_a_file_the_picture_is_drawn_by_mermaid(capsys: pytest.CaptureFixture[str]) -> None:
    check("wait.max <= 1h", documents="tight", more=("--base", "quotas", "-o", "markdown"))
    lines = capsys.readouterr().out.splitlines()
    assert "```mermaid" in lines
    axis = next(line for line in lines if "x-axis" in line)
    assert '"vision (base)", "vision (never)"' in axis
    assert next(line for line in lines if " bar [" in line).count(",") == axis.count(",") == 3


def test_two_processes_find_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("wait.mean <= base", "rho.max <= 10")
    codes = {check(*asked, documents="tight", more=("--base", "quotas", "-o", "json"))}
    alone = capsys.readouterr().out
    codes.add(check(*asked, documents="tight", more=("--base", "quotas", "-o", "json", "--processes", "2")))
    assert codes == {1} and capsys.readouterr().out == alone


def test_what_the_page_shows_is_what_is_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (ROOT / "docs" / "policy-tests.md").read_text()
    block = re.search(r"```console\n\$ corral (.*)\n((?:.*\n)*?)```", page)
    assert block is not None
    monkeypatch.chdir(ROOT)
    assert run([*shlex.split(block[1]), "--processes", "1"]) == 1
    assert capsys.readouterr().out == block[2]
    for refusal in re.findall(r"^(Column [0-9]+ of the assertion (.*): there .*)$", page, re.MULTILINE):
        with pytest.raises(AssertionProblem) as refused:
            parse_assertion(refusal[1])
        assert refused.value.message == refusal[0]


def test_the_page_describes_every_metric() -> None:
    page = (ROOT / "docs" / "policy-tests.md").read_text()
    rows = {
        row[0]: row for row in re.findall(r"^\| `(\w+)` \| (.*?) \| (number|duration) \| (.*?) \|$", page, re.MULTILINE)
    }
    assert list(rows) == list(METRICS)
    for name, kind in METRICS.items():
        _, meaning, unit, statistic = rows[name]
        assert meaning.startswith(kind.meaning) and unit == kind.unit.value
        assert statistic.startswith(f"`{kind.statistic}`" if kind.statistic else ("needed" if kind.by_job else "none"))
