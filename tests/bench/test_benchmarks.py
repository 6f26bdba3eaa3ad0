"""Every benchmark in bounds.toml has a module."""

from __future__ import annotations

import importlib

import pytest

from bench.bounds import load_bounds


@pytest.mark.parametrize("name", load_bounds())
def test_every_benchmark_can_be_run(name: str) -> None:
    module = importlib.import_module(load_bounds()[name].module)
    assert callable(module.measure) and module.__doc__
