"""Devices of known models are compared with their data sheets, and one below the least of it is told."""

from __future__ import annotations

import pytest

from corral.benchmarks.results.lines import NodeResult
from corral.benchmarks.rules.diagnosis import Diagnosis
from corral.benchmarks.rules.expected import read_expected, too_low, with_expected
from corral.benchmarks.suite.document import read_suite
from corral.benchmarks.suites.named import expected_text, suite_text
from corral.kernel.errors import InvalidInput

A100 = "NVIDIA A100-SXM4-80GB"
TEXT = b"""
metrics: {m/x_bw: {of: memory, part: 0.5, least: 0.8}}
devices: [{models: [Fast 9], memory: 1000, source: a data sheet}]
"""


def test_a_device_below_the_least_of_its_data_sheet_is_told_with_source_and_share() -> None:
    table = read_expected(TEXT)
    assert too_low("Fast 9", {"m/x_bw:0": 400.0, "m/x_bw:1": 399.0, "m/y_bw:0": 1.0}, table) == [
        "m/x_bw:1 is 399, 80% of the 500 of Fast 9 (a data sheet); 400 is the least"
    ]
    assert too_low("Slow 1", {"m/x_bw:0": 1.0}, table) == []


def test_a_node_without_another_defect_is_defective_by_its_data_sheet_alone() -> None:
    slow = NodeResult("slow", {"mem-bw/d2d_bw:0": 900.0, "mem-bw/d2d_bw:1": 300.0}, f"2x {A100}")
    well = NodeResult("well", {"mem-bw/d2d_bw:0": 900.0, "mem-bw/d2d_bw:1": 900.0}, f"2x {A100}")
    odd = NodeResult("odd", {"mem-bw/d2d_bw:0": 300.0}, "")
    table = read_expected(expected_text(""))
    found = with_expected([Diagnosis(each, ()) for each in ("slow", "well", "odd")], [slow, well, odd], table)
    assert [(each.node, each.defective) for each in found] == [("slow", True), ("well", False), ("odd", False)]
    (breach,) = found[0].breaches
    assert len(breach.details) == 1 and "NVIDIA A100 data sheet" in breach.details[0]


def test_a_model_is_known_by_the_driver_and_by_kubernetes_labels() -> None:
    table = read_expected(expected_text(""))
    slow = {"matmul:device/fp32_flops:0": 100.0}
    assert too_low(A100, slow, table) and too_low(A100.replace(" ", "-"), slow, table)


def test_every_expected_metric_is_measured_by_the_suite_for_devices() -> None:
    suite = read_suite(suite_text("devices"))
    measured = {f"{each.name}/{metric}" for each in suite.benchmarks for metric in each.kind.metrics}
    table = read_expected(expected_text(""))
    expected = {metric.rpartition("_")[0] for known in table.values() for metric in known}
    assert expected and expected <= measured


@pytest.mark.parametrize(
    "text",
    [
        b"metrics: {}",
        b"metrics: {}\ndevices: [1]",
        b"metrics: {}\ndevices: [{models: [a]}]",
        b"metrics: {m: 1}\ndevices: [{models: [a], source: b}]",
        b"metrics: {m: {of: x, part: 2, least: 0.5}}\ndevices: [{models: [a], x: 1, source: b}]",
        b"metrics: {m: {of: x, part: 1, least: 0.5}}\ndevices: [{models: [a], x: -1, source: b}]",
        b"metrics: {m: {of: x, part: 1, least: 0.5}}\ndevices: [{models: [a], x: .nan, source: b}]",
    ],
)
def test_a_file_of_another_form_is_refused_in_one_sentence(text: bytes) -> None:
    with pytest.raises(InvalidInput) as caught:
        read_expected(text)
    assert caught.value.message.startswith("The expected values are not understood: ")
