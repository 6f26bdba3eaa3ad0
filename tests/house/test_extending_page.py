"""`docs/extending.md` lists every seam of the code, and modules that are there."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "extending.md").read_text()
SEAMS, IMPORTS = (PAGE.partition(f"## {name}")[2].partition("\n## ")[0] for name in ("The seams", "What a plug-in may"))
ASKED = re.compile(
    r"(?:GROUP|HASHES|RUNTIME|SECRETS_OF_ACCOUNTS)(?:: Final)? = \"(corral\.\w+)\"|plug_ins\(\"(corral\.\w+)\""
)


def groups_of_the_code() -> set[str]:
    """The entry-point groups that modules of the core name."""
    core = [path for path in (ROOT / "corral").rglob("*.py") if "compat" not in path.parts]
    return {one or other for path in core for one, other in ASKED.findall(path.read_text())}


def test_the_page_has_every_entry_point_group() -> None:
    listed = set(re.findall(r"^\| [^|]+ \| `(corral\.\w+)` \|", SEAMS, re.MULTILINE))
    assert len(listed) > 10
    assert listed == groups_of_the_code()


@pytest.mark.parametrize(
    "module", sorted(set(re.findall(r"`(corral(?:\.\w+)+)`", SEAMS + IMPORTS)) - groups_of_the_code())
)
def test_every_module_that_the_page_promises_is_there(module: str) -> None:
    assert importlib.import_module(module).__doc__
