"""Begin the program of `task_profile` in a task: the command that reads it, and the py-spy that is sent to it."""

from __future__ import annotations

import pkgutil
import platform
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from corral.runtime.task_processes import MARK

_READ = "import sys;i=sys.stdin.buffer;exec(compile(i.read(int(i.readline())),'profile','exec'))"
START = f"""\
for python in python3 python; do
  command -v "$python" >/dev/null && exec "$python" -I -S -c "{_READ}" {MARK}
done
echo 'This task has no Python 3, which profiles are taken with.'
exit 127
"""
"""A shell's text; its standard input is `program` with its size before it, and the request as a line."""

_MODULES = (
    "task_processes", "task_stacks", "task_memory", "task_system", "profiler_server", "xplane", "task_profiler_servers",
    "task_profile",
)  # fmt: skip
"""Each after those that it imports."""


def program() -> bytes:
    """The program of `task_profile` with its modules, as one text that a Python without Corral runs."""
    lines = ["import sys, types"]
    lines += [f"sys.modules[{name!r}] = types.ModuleType({name!r})" for name in ("corral", "corral.runtime")]
    for module in _MODULES:
        name = f"corral.runtime.{module}"
        text = (pkgutil.get_data("corral.runtime", f"{module}.py") or b"").decode()
        lines.append(f"made = sys.modules[{name!r}] = types.ModuleType({name!r})")
        lines.append(f"exec(compile({text!r}, {name!r}, 'exec'), made.__dict__)")
    return "\n".join([*lines, "made.main()"]).encode()


def py_spy_for(asked: Mapping[str, Any]) -> bytes:
    """This server's py-spy, if it runs on the machine that asks for it; else nothing."""
    if (platform.system(), platform.machine()) != (asked.get("system"), asked.get("machine")):
        return b""
    beside = Path(sys.executable).with_name("py-spy")
    found = str(beside) if beside.is_file() else shutil.which("py-spy")
    return Path(found).read_bytes() if found else b""


def why_no_py_spy(asked: Mapping[str, Any]) -> str:
    """Why the task has no py-spy, and what to do."""
    machine = f"{asked.get('system')} on {asked.get('machine')}"
    here = f"{platform.system()} on {platform.machine()}"
    if machine == here:
        return "py-spy is neither in the task nor on the server; install it there: pip install 'corral[profile]'."
    return f"py-spy is not in the task ({machine}), and that of the server ({here}) does not run there."
