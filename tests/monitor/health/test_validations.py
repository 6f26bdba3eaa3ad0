"""A validation goes to its node alone, measures it, and is judged by the figures of similar nodes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from corral.kernel.errors import CorralError
from corral.model.cordons import VALIDATING
from corral.model.inventory import Device, Node
from corral.monitor.health.validation import (
    TAG,
    Figures,
    alike,
    built_in,
    read_figures,
    slow_figures,
    validation_job,
)
from corral.runtime import node_validation
from corral.spec.errors import SpecError

NODE = Node("local/n1", devices=(Device(0, "a", model="a100"), Device(1, "b", model="a100", healthy=False)))


def test_the_built_in_check_measures_this_machine(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-I", node_validation.__file__], cwd=tmp_path, capture_output=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    figures = read_figures(NODE, b"noise\n" + done.stdout, 5.0)
    assert figures is not None and figures.alike.startswith("2 a100, 0 processors, ")
    assert {"matrix_product_gflops", "memory_copy_gb_per_second", "disk_write_mb_per_second"} <= figures.figures.keys()


def test_a_wrong_product_fails_the_check(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def broken(*_: object) -> float:
        raise ArithmeticError("the product of two matrices is wrong")

    for name in ("_plain_product", "_numpy_product", "_torch_product"):
        monkeypatch.setattr(node_validation, name, broken)
    assert node_validation.main() == 1
    assert "product of two matrices is wrong" in capsys.readouterr().err


def test_the_job_goes_to_the_node_with_its_healthy_devices() -> None:
    job = validation_job(NODE, "validate-n1")
    (role,) = job.spec.roles
    assert job.name == "validate-n1" and TAG in job.spec.tags and role.retry_policy.max_retries == 0
    assert job.spec.nodes.include == ["local/n1"]
    assert [each.key for each in job.spec.nodes.tolerations] == [VALIDATING]
    assert role.resources.devices.millis == 1000


def test_an_administrators_document_is_pinned_too() -> None:
    text = built_in(NODE).replace("validation", "suite").replace('"maxDuration": "30m"', '"maxDuration": "3h"')
    job = validation_job(NODE, "validate-n1", text)
    assert job.spec.max_duration_seconds == 10_800 and job.spec.nodes.include == ["local/n1"]


@pytest.mark.parametrize("text", ["name: [", "kind: Nothing", '{"name": "x"}'])
def test_a_broken_document_is_refused(text: str) -> None:
    with pytest.raises((SpecError, CorralError)):
        validation_job(NODE, "validate-n1", text)


@pytest.mark.parametrize("told", [b"", b"[", b"\xff", b'{"figures": 1}'])
def test_figures_that_cannot_be_read_are_none(told: bytes) -> None:
    assert read_figures(NODE, b"CORRAL-VALIDATION " + told, 0.0) is None


def figures(node: str, rate: float) -> Figures:
    return Figures(node, alike(NODE), 0.0, {"copy_gb_per_second": rate, "matrix_gflops": 5.0})


def test_a_figure_far_below_that_of_similar_nodes_is_told() -> None:
    others = [figures(f"local/n{at}", 20.0 + at) for at in range(2, 5)]
    said = slow_figures(figures("local/n1", 10.0), others)
    assert said == "copy gb per second is 10, and 23 on 3 similar nodes"
    assert slow_figures(figures("local/n1", 19.0), others) == ""
    assert slow_figures(figures("local/n1", 10.0), others[:2]) == "", "two are too few"
    assert slow_figures(figures("local/n2", 10.0), others[:3]) == "", "a node is not compared with itself"
