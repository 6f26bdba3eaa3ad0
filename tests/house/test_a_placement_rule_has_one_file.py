"""What a placement rule is called in job files, and the codes of its reasons, stand in the file of the rule."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RULES = ROOT / "corral" / "spec" / "placement"
GENERATED = ROOT / "corral" / "client" / "schema.py"
WORDS = {
    "maxSkew": "topology",
    "max_skew": "topology",
    "sameModel": "topology",
    '"spread.maxSkew"': "topology",
    '"no-cell-holds-block"': "topology",
    '"no-room-in-block"': "topology",
    '"same-model"': "topology",
    '"exclusive-nodes"': "sharing",
    '"one-task-per-node"': "sharing",
    '"anti-affinity"': "sharing",
    '"no-pinned-cell"': "pinned_cell",
    '"pinned-cells"': "pinned_cell",
    '"corral.dev/rdma"': "network",
}
"""By word, the rule whose file alone has it."""
SOURCES = {path: path.read_text() for path in sorted((ROOT / "corral").rglob("*.py")) if path != GENERATED}


@pytest.mark.parametrize("word", WORDS)
def test_only_the_file_of_its_rule_has_the_word(word: str) -> None:
    whole = re.compile(rf"(?<![A-Za-z_]){re.escape(word)}(?![A-Za-z_])")
    having = [path.relative_to(ROOT).as_posix() for path, text in SOURCES.items() if whole.search(text)]
    assert having == [(RULES / f"{WORDS[word]}.py").relative_to(ROOT).as_posix()]
