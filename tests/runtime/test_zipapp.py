"""The runtime is one file that runs without Corral, and equal source gives an equal file."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from corral.kernel.plug_ins import runtime_modules
from corral.runtime.build import build_runtime

PLUG_IN = """
from corral.runtime.plug_in import Prepared
from inside.words import HELLO

def prepare(task):
    return Prepared([HELLO, "to", task.steps["to"]], {}, [])
"""


def test_it_runs_alone(tmp_path: Path) -> None:
    pyz = build_runtime(tmp_path / "runtime.pyz")
    asked = subprocess.run([sys.executable, "-I", "-S", str(pyz)], capture_output=True, text=True, check=False, cwd="/")
    assert asked.returncode == 2 and asked.stderr.startswith("usage: runtime run PLAN | ")


def test_the_same_source_gives_the_same_file(tmp_path: Path) -> None:
    first, second = build_runtime(tmp_path / "a.pyz"), build_runtime(tmp_path / "b.pyz")
    assert first.read_bytes() == second.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.pyz", "b.pyz"]


def test_it_has_the_packages_of_its_plug_ins(tmp_path: Path) -> None:
    package = tmp_path / "greeter" / "inside"
    package.mkdir(parents=True)
    (tmp_path / "greeter" / "__init__.py").write_text("raise ImportError('needs the server')\n")
    (package / "__init__.py").write_text("")
    (package / "words.py").write_text("HELLO = 'hello from a plug-in'\n")
    (package / "task.py").write_text(PLUG_IN)
    build = (
        "import sys, pathlib, corral.runtime.build as b; "
        "b.build_runtime(pathlib.Path(sys.argv[1]), ['inside.task', 'corral.compat.openpai.runtime.task'])"
    )
    pyz, plan = tmp_path / "runtime.pyz", tmp_path / "plan"
    paths = f"{Path.cwd()}:{tmp_path / 'greeter'}"
    subprocess.run([sys.executable, "-c", build, str(pyz)], check=True, env={"PYTHONPATH": paths})
    told = {"attempt": "a", "command": ["echo", "$(plug-in)"], "work": str(tmp_path), "plug_in": "inside.task"}
    plan.write_text(json.dumps(told | {"plug_in_steps": {"to": "you"}}))
    done = subprocess.run([sys.executable, "-I", "-S", pyz, "run", plan], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "hello from a plug-in to you\n"), done.stderr
    with zipfile.ZipFile(pyz) as archive:
        names = set(archive.namelist())
    assert {"inside/words.py", "corral/compat/openpai/runtime/keys.py"} <= names
    assert not any("language" in name for name in names)


def test_a_task_whose_plug_in_is_not_there_ends_with_a_sentence(tmp_path: Path) -> None:
    pyz, plan = build_runtime(tmp_path / "runtime.pyz"), tmp_path / "plan"
    plan.write_text(json.dumps({"attempt": "a", "command": ["true"], "work": str(tmp_path), "plug_in": "gone.task"}))
    done = subprocess.run([sys.executable, "-I", "-S", pyz, "run", plan], capture_output=True, text=True, check=False)
    assert done.returncode == 255 and "this task's runtime has no plug-in gone.task" in done.stderr


def test_a_runtime_is_not_built_without_a_plug_in_that_it_should_have(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"the runtime plug-in gone\.task cannot be found"):
        build_runtime(tmp_path / "runtime.pyz", ["gone.task"])


def test_with_the_plug_ins_of_an_engine_it_leaves_a_tenth_of_a_config_map_free(tmp_path: Path) -> None:
    """Kubernetes takes no ConfigMap of more than 1 MiB."""
    pyz = build_runtime(tmp_path / "runtime.pyz", runtime_modules())
    assert pyz.stat().st_size < 0.9 * 2**20
