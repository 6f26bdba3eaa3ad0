"""Configuration documents in the CLI, without a server: reading, names and colours."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from corral.cli import output
from corral.cli.configuration import coloured_diff, named, names_configuration
from corral.cli.main import run

QUEUE = "kind: Queue\nname: research\nlimit: {devices: 4}\n"


def _validated(tmp_path: Path, text: str, *options: str) -> int:
    (tmp_path / "file.yaml").write_text(text)
    return run(["validate", str(tmp_path / "file.yaml"), *options])


@pytest.mark.parametrize(
    "text",
    [
        QUEUE,
        f"kind: Cluster\nnodes: [a]\n---\n{QUEUE}",
        "kind: VirtualCluster\nname: v\ncells: [{level: node, count: 1}]\n",
        "kind: Policy\norder: fair\n",
    ],
)
def test_configuration_is_validated_as_what_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    assert _validated(tmp_path, text) == 0
    assert capsys.readouterr().out == f"ok: {tmp_path / 'file.yaml'}\n"


def test_a_mistake_has_its_file_line_and_what_was_meant(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _validated(tmp_path, f"kind: Cluster\nnodes: [a]\n---\n{QUEUE}wieght: 2\n") == 2
    said = capsys.readouterr().out
    assert "file.yaml:7:1: wieght" in said and 'did you mean "weight"?' in said


def test_a_job_is_still_a_job(tmp_path: Path) -> None:
    assert _validated(tmp_path, "name: one\nroles: {main: {command: 'true'}}\n") == 0
    assert _validated(tmp_path, "kind: UnifiedJob\nname: one\n") == 2


def test_a_file_for_the_start_may_name_no_kind(tmp_path: Path) -> None:
    assert _validated(tmp_path, "nodes: [a, b]\n", "--cluster") == 0
    assert _validated(tmp_path, f"kind: Cluster\nnodes: [a]\n---\n{QUEUE}", "--cluster") == 0
    assert _validated(tmp_path, "nodes: [a, a]\n", "--cluster") == 2


@pytest.mark.parametrize("word", ["queue", "Queues", "policy", "vc", "queue/research", "quue/research"])
def test_a_kind_and_whatever_has_a_slash_is_configuration(word: str) -> None:
    assert names_configuration(word)


@pytest.mark.parametrize("word", ["digits", "alice~digits", "1m7zmn56gcn5b", "queued"])
def test_every_other_word_is_a_job(word: str) -> None:
    assert not names_configuration(word)


def test_a_document_is_named_by_kind_and_name() -> None:
    assert named("queue/research") == ("queue", "research")
    for wrong in ("queue", "queue/", "/research", "a/b/c"):
        with pytest.raises(click.UsageError, match="KIND/NAME"):
            named(wrong)


def test_a_difference_is_coloured_only_where_colours_are_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    diff = "--- a\n+++ b\n@@ -1 +1,2 @@\n same\n-gone\n+came\n"
    assert coloured_diff(diff) == diff
    monkeypatch.setattr(output, "coloured", lambda: True)
    shown = coloured_diff(diff)
    assert click.unstyle(shown) == diff
    assert (
        "\x1b[31m-gone" in shown and "\x1b[32m+came" in shown and "\x1b[36m@@" in shown and "\x1b[32m+++" not in shown
    )
