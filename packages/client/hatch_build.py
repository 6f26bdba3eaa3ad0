"""Collect the packages of the light distribution from the source tree, two folders up, or beside it in an sdist."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# The packages that a client imports: commands, SDK, job language and their dependencies. `corral cp` unpacks as tasks
# do.
PARTS = (
    "__init__.py", "py.typed", "benchmarks", "cli", "client", "compat/__init__.py",
    "compat/alnair/__init__.py", "compat/alnair/language",
    "compat/frameworkcontroller/__init__.py", "compat/frameworkcontroller/language",
    "compat/openpai/__init__.py", "compat/openpai/commands", "compat/openpai/language",
    "deploy", "kernel", "profiles", "runtime/__init__.py", "runtime/tarheaders.py", "runtime/task_profile.py",
    "runtime/unpack.py", "spec",
)  # fmt: skip


def parts(root: Path) -> dict[str, str]:
    """Map each part's folder to its path in the distribution; `root` is the folder of this distribution.

    Raises FileNotFoundError when neither a checkout nor an sdist is around it.
    """
    for source in (root / "corral", root.parent.parent / "corral"):
        if all((source / part).exists() for part in PARTS):
            return {str(source / part): f"corral/{part}" for part in PARTS}
    raise FileNotFoundError("corral-client is built from Corral's source tree: install it from a full checkout.")


class ClientRoomsHook(BuildHookInterface[Any]):
    """Puts the client's packages into the wheel and the sdist."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called by hatchling before it collects files."""
        if version == "editable":
            raise RuntimeError("corral-client has no editable form: install the whole tree with `pip install -e .`.")
        build_data["force_include"].update(parts(Path(self.root)))
