"""Plug-ins are found in this tree and in installed distributions, and none of this tree is replaced."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from corral.kernel.plug_ins import own_plug_ins, plug_ins, runtime_modules

ROOT = Path(__file__).resolve().parents[2]
DIALECT = """
from corral.spec.dialects.dialect import Dialect, Translated
from corral.spec.errors import SpecError

class Tiny(Dialect):
    name = "tiny"

    def recognises(self, data):
        return isinstance(data, dict) and "tiny" in data

    def read(self, source, document, asked):
        if not isinstance(source.data["tiny"], str):
            raise SpecError([source.problem(("tiny",), "a command is text")])
        roles = [{"name": "worker", "command": ["sh", "-c", source.data["tiny"]]}]
        spec = {"jobType": "shell", "roles": roles, "replicaSpec": {"role": "worker", "replicas": 1}}
        made = {"apiVersion": "corral.dev/v1alpha1", "kind": "UnifiedJob", "metadata": {"name": "tiny"}, "spec": spec}
        return Translated(made, source, lambda path: ("tiny",))

class Usurper(Dialect):
    def __init__(self):
        raise AssertionError("a name of this tree was replaced")
"""
PROGRAM = """
import json
from corral.spec.errors import SpecError
from corral.spec.job_reader import read_job
print(json.dumps(read_job("tiny: echo hello").job.spec.roles[0].command))
try:
    read_job("# a comment\\ntiny: [1]")
except SpecError as error:
    print(error.problems[0].line, error.problems[0].message)
"""


def test_tenants_of_this_tree_declare_theirs() -> None:
    assert {"alnair", "frameworkcontroller", "openpai"} <= own_plug_ins("corral.dialects").keys()
    assert "corral.compat.openpai.runtime.task" in runtime_modules()
    assert plug_ins("corral.no-such-group") == {}


def test_every_declared_plug_in_can_be_loaded() -> None:
    groups = ("actions", "commands", "dialects", "frameworks", "notices", "password_hashes", "routes", "runtime")
    points = [point for group in groups for point in own_plug_ins(f"corral.{group}").values()]
    assert len(points) >= 10
    assert all(point.load() is not None for point in points)


def test_a_dialect_of_another_distribution_is_read_and_replaces_none(tmp_path: Path) -> None:
    (tmp_path / "tiny_dialect.py").write_text(DIALECT)
    information = tmp_path / "tiny_dialect-1.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: tiny-dialect\nVersion: 1\n")
    points = "[corral.dialects]\ntiny = tiny_dialect:Tiny\nopenpai = tiny_dialect:Usurper\n"
    (information / "entry_points.txt").write_text(points)
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    command, problem = done.stdout.strip().splitlines()
    assert json.loads(command) == ["sh", "-c", "echo hello"]
    assert problem == "2 a command is text"
