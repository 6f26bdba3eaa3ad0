"""Suite files: SuperBench's shape is read, and what is wrong is refused with its path."""

from __future__ import annotations

import json
import re

import pytest

from corral.benchmarks.rules.document import read_rules
from corral.benchmarks.suite.catalogue import KINDS, unit_of
from corral.benchmarks.suite.document import read_suite
from corral.benchmarks.suite.jobs import Machine, Programs, document_of, runs_of
from corral.benchmarks.suites.named import names, rules_text, suite_text
from corral.kernel.errors import InvalidInput, NotFound

MACHINES = [Machine(f"local/n{at}", 8000, 2**34, at and 4, "a100") for at in range(3)]

OF_SUPERBENCH = b"""
version: v0.12
superbench:
  enable: [all-reduce, 'model-benchmarks:small']
  monitor: {enable: true, sample_duration: 1}
  var:
    default_timeout: &t 600
  benchmarks:
    all-reduce:
      enable: false
      modes:
      - {name: mpi, proc_num: 2, node_num: all, mca: {btl: tcp}}
      - {name: torch.distributed, node_num: 2}
    model-benchmarks:small:
      timeout: 60
      modes: [{name: local, proc_num: 4, prefix: 'CUDA_VISIBLE_DEVICES={proc_rank}', parallel: yes}]
      frameworks: [pytorch]
      models: [lstm, lstm]
      parameters: {batch_size: 2}
    disk-benchmark: {}
"""


def test_a_suite_of_superbenchs_shape_is_read() -> None:
    first, second = read_suite(OF_SUPERBENCH).benchmarks
    assert [(mode.name, mode.processes, mode.nodes) for mode in first.modes] == [
        ("mpi", 2, None), ("torch.distributed", 1, 2),
    ]  # fmt: skip
    assert (second.name, second.models, second.timeout_seconds) == ("model-benchmarks:small", ("lstm",), 60)
    assert second.parameters == {"steps": 20, "warmup": 3, "batch_size": 2}


def test_without_a_choice_all_that_are_enabled_run() -> None:
    text = b"superbench: {benchmarks: {cpu-stream: {}, matmul: {enable: false}, 'matmul:two': {enable: true}}}"
    assert [each.name for each in read_suite(text).benchmarks] == ["cpu-stream", "matmul:two"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[1]", "the suite file must be a mapping"),
        ("a: [", "not valid YAML at line"),
        ("a: &a [1]\nb: *a", "no aliases"),
        ("superbench: {}", "superbench.benchmarks must be a mapping"),
        ("superbench: {benchmarks: {x: {}}}", 'There is no benchmark "x"; there are process-launch'),
        ("superbench: {benchmarks: {cpu-stream: 1}}", "superbench.benchmarks.cpu-stream must be a mapping"),
        ("superbench: {benchmarks: {cpu-stream: {run: 1}}}", "cpu-stream.run is not known here"),
        ("superbench: {benchmarks: {cpu-stream: {enable: 1}}}", "cpu-stream.enable must be true or false"),
        ("superbench: {benchmarks: {cpu-stream: {timeout: 0}}}", "cpu-stream.timeout must be a whole number from 1"),
        ("superbench: {benchmarks: {cpu-stream: {parameters: {size: 1}}}}", "it has size_mib, repeat"),
        ("superbench: {benchmarks: {cpu-stream: {parameters: {size_mib: -1}}}}", "from 1 to 65536"),
        ("superbench: {benchmarks: {cpu-stream: {parameters: {size_mib: 1e3}}}}", "from 1 to 65536"),
        ("superbench: {benchmarks: {cpu-stream: {models: [a]}}}", "it has no models"),
        ("superbench: {benchmarks: {cpu-stream: {modes: [{name: ssh}]}}}", "must be one of local, torch.distributed"),
        ("superbench: {benchmarks: {cpu-stream: {modes: [{name: mpi}]}}}", "must be local"),
        ("superbench: {benchmarks: {all-reduce: {modes: [{name: local}]}}}", "must be torch.distributed or mpi"),
        ("superbench: {benchmarks: {all-reduce: {modes: [{node_num: -1, name: mpi}]}}}", "node_num must be"),
        ("superbench: {enable: x, benchmarks: {cpu-stream: {}}}", 'names "x", which is not among'),
        ("superbench: {benchmarks: {cpu-stream: {enable: false}}}", "enables no benchmark"),
        ("superbench: {benchmarks: {'cpu-stream:a/b': {}}}", "is no name of a benchmark"),
        ("#" * 300_000, "at most 256 KiB"),
        ("superbench: " + "[" * 50_000, "not valid YAML"),
    ],
)
def test_what_is_no_suite_is_refused_with_its_path(text: str, said: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(said)):
        read_suite(text.encode())


def test_every_benchmark_and_all_of_corrals_own_files_are_read() -> None:
    listed = {each.name.partition(":")[0] for name in names() for each in read_suite(suite_text(name)).benchmarks}
    assert listed | {"mem-bw"} == set(KINDS)
    assert [rule.name for rule in read_rules(rules_text(""))] == ["failed", "slower", "later"]
    with pytest.raises(NotFound, match="is neither a suite"):
        suite_text("nowhere.yaml")


def test_a_benchmark_on_its_own_runs_on_each_node_and_one_together_on_as_many_as_it_says() -> None:
    suite = read_suite(b"superbench: {benchmarks: {matmul: {}, all-reduce: {modes: [{name: mpi, node_num: 2}]}}}")
    runs = runs_of(suite, MACHINES)
    assert [[machine.name for machine in run.machines] for run in runs] == [
        ["local/n0"], ["local/n1"], ["local/n2"], ["local/n0", "local/n1"],
    ]  # fmt: skip
    four = read_suite(b"superbench: {benchmarks: {all-reduce: {modes: [{name: mpi, node_num: 4}]}}}")
    with pytest.raises(InvalidInput, match="all-reduce needs 4 nodes, and there are 3"):
        runs_of(four, MACHINES)


def test_a_job_takes_whole_nodes_behind_all_others() -> None:
    suite = read_suite(b"superbench: {benchmarks: {all-reduce: {}}}")
    (run,) = runs_of(suite, MACHINES[1:])
    document = document_of(run, "bench-1", Programs("/opt/python", "image:1"))
    assert document["priority"] == "oppo" and document["sharing"] == {"exclusive": True, "oneTaskPerNode": True}
    assert document["nodes"] == {"include": ["local/n1", "local/n2"]}
    role = document["roles"]["worker"]
    assert (role["replicas"], role["resources"]["devices"], role["image"]) == (2, 4, "image:1")
    assert role["command"][0] == "/opt/python"
    assert any("$(peer:worker-1:host):$(peer:worker-1:port:bench)" in word for word in role["command"])
    json.dumps(document)


@pytest.mark.parametrize(
    ("metric", "better"),
    [("cpu-stream/copy_bw:0", True), ("a/x_lat", False), ("m/step_time:3", False), ("a/return_code", False)],
)
def test_the_end_of_a_metrics_name_tells_which_way_is_better(metric: str, better: bool) -> None:
    unit = unit_of(metric)
    assert unit is not None and unit.larger_is_better is better
    assert unit_of("a/other") is None


def test_a_benchmark_is_run_in_a_process_for_each_device_of_its_node() -> None:
    text = b"superbench: {benchmarks: {matmul: {modes: [{name: local, proc_num: devices}]}}}"
    machines = [Machine("local/a", 1000, 2**30, 8), Machine("local/b", 1000, 2**30, 0)]
    commands = [
        document_of(run, "n", Programs())["roles"]["worker"]["command"] for run in runs_of(read_suite(text), machines)
    ]
    assert [words[-1] for words in commands] == ["--processes=8", "--processes=1"]
    with pytest.raises(InvalidInput, match="proc_num must be a whole number"):
        read_suite(b"superbench: {benchmarks: {all-reduce: {modes: [{name: torch.distributed, proc_num: devices}]}}}")
