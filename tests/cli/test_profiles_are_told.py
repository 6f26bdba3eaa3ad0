"""What `corral profile --what system` prints beside its curves."""

from __future__ import annotations

from typing import Any

import pytest

from corral.cli.profile_text import text_of


def facts(*names: str) -> dict[str, Any]:
    curves = [{"name": name, "unit": "MiB/s", "points": [1.0, 2.0], "most": 2.0} for name in names]
    return {"what": "system", "curves": [{"rank": "worker-0", "seconds": 1.0, "curves": curves}], "advice": []}


@pytest.mark.parametrize("names", [("network sent",), ("read from the disk", "network received", "network sent")])
def test_network_figures_are_said_to_be_the_nodes_once(names: tuple[str, ...]) -> None:
    assert text_of(facts(*names)).count("the whole node's") == 1


def test_figures_without_a_network_have_no_such_line() -> None:
    assert "node" not in text_of(facts("read from the disk"))
