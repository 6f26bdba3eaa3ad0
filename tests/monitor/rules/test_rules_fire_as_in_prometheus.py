"""Each example rule fires after its `for` and not before, in Corral's evaluator and in promtool alike."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from corral.monitor.rules.rules_file import Group, parse_rules
from tests.endtoend import test_prometheus as own_rules
from tests.monitor.rules.promtool_cases import Case, firing, promtool_test
from tests.testbeds import prometheus

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(bool(prometheus.missing()), reason=prometheus.missing()),
]
EXAMPLES: Final = Path(__file__).resolve().parents[3] / "examples/prometheus"


def _gauge(name: str, labels: str = "", bad: str = "1x200", good: str = "0x200") -> Case:
    series = f'{name}{{instance="10.0.0.1:9102"{labels and ","}{labels}}}'
    return Case({series: bad}, {series: good})


def _by_label(name: str, label: str, bad: str, good: str, labels: str = "") -> Case:
    """A gauge of value 1 whose label says whether something is wrong."""
    start = f'{name}{{instance="10.0.0.1:9102"{labels and ","}{labels}'
    return Case({f'{start},{label}="{bad}"}}': "1x200"}, {f'{start},{label}="{good}"}}': "1x200"})


def _node(label: str, bad: str, good: str) -> Case:
    return _by_label("pai_node_count", label, bad, good, 'node_name="n1",host_ip="10.0.0.1"')


_DISK: Final = '{instance="n1:9100",mountpoint="/host-root/data",device="/dev/sda1"}'
_MEMORY: Final = {
    f'node_memory_{name}_bytes{{instance="n1:9100"}}': f"{value}x200"
    for name, value in (("MemTotal", 1000), ("Buffers", 10), ("Cached", 20))
}
_FREE: Final = 'node_memory_MemFree_bytes{instance="n1:9100"}'
_GPU: Final = {f'gpu_utilization{{instance="n1:9102",minor_number="{number}"}}': "50x200" for number in range(3)}
_CONFIGURED: Final = 'configured_gpu_count{instance="n1:9102"}'
_IDLE: Final = 'node_cpu_seconds_total{instance="n1:9100",cpu="0",mode="idle"}'
_PORT: Final = 'task_ib_port_physical_state{node_name="n1",ib_port="mlx5_0:1"}'
_POD: Final = 'name="rest-server-x",node_name="n1",host_ip="10.0.0.1"'


def _latency(over: int) -> dict[str, str]:
    """Buckets of which the one up to 60 s has all observations, and that up to 20 s all but so many of ten a minute."""
    counts = {"20": 10 - over, "60": 10, "+Inf": 10}
    return {
        f'cmd_nvidia_smi_latency_seconds_bucket{{instance="n1:9102",le="{bound}"}}': f"0+{count}x200"
        for bound, count in counts.items()
    }


CASES: Final = {
    "NvidiaSmiLatencyTooLarge": Case(_latency(10), _latency(0), begins=1),
    "NvidiaSmiDoubleEccError": _gauge("nvidiasmi_ecc_error_count", 'minor_number="3",type="double"', bad="2x200"),
    "NvidiaMemoryLeak": _gauge("nvidiasmi_memory_leak_count", 'minor_number="3"'),
    "NvidiaZombieProcess": _gauge("zombie_process_count", 'command="nvidia-smi"'),
    "GpuUsedByExternalProcess": _gauge("gpu_used_by_external_process_count", 'minor_number="0",pid="812"'),
    "GpuUsedByZombieContainer": _gauge("gpu_used_by_zombie_container_count", 'minor_number="0",container_id="ab12"'),
    "NodeGpuCountChanged": Case({**_GPU, _CONFIGURED: "4x200"}, {**_GPU, _CONFIGURED: "3x200"}),
    "NodeGpuLowPerfState": _gauge(
        "nvidiasmi_performance_state", 'minor_number="1",clocks_throttle_reasons=""', bad="8x200", good="2x200"
    ),
    "PaiJobsZombie": _gauge("zombie_container_count", 'type="job_exit_hangs"'),
    "PaiJobPending": _by_label("pai_job_pod_count", "phase", "pending", "running", 'job_name="a~b",pod_bound="true"'),
    "k8sApiServerNotOk": _by_label("k8s_api_server_count", "error", "timeout", "ok", 'host_ip="10.0.0.1"'),
    "k8sDockerDaemonNotOk": _by_label("docker_daemon_count", "error", "timeout", "ok"),
    "NodeFilesystemUsage": Case(
        {f"node_filesystem_avail_bytes{_DISK}": "20x200", f"node_filesystem_size_bytes{_DISK}": "100x200"},
        {f"node_filesystem_avail_bytes{_DISK}": "21x200", f"node_filesystem_size_bytes{_DISK}": "100x200"},
    ),
    "NodeMemoryUsage": Case({**_MEMORY, _FREE: "19x200"}, {**_MEMORY, _FREE: "20x200"}),
    "NodeCPUUsage": Case({_IDLE: "0+1x200"}, {_IDLE: "0+2x200"}, begins=1),
    "NodeDiskPressure": _node("disk_pressure", "true", "false"),
    "NodeOutOfDisk": _node("out_of_disk", "true", "false"),
    "NodeNotReady": _node("ready", "unknown", "true"),
    "AzureAgentConsumeTooMuchMem": _gauge(
        "process_mem_usage_byte", 'cmd="/opt/omsagent -d",pid="7"', bad="1073741825x200", good="1073741824x200"
    ),
    "PaiServicePodNotRunning": _by_label("pai_pod_count", "phase", "failed", "running", _POD),
    "PaiServicePodNotReady": _by_label("pai_pod_count", "ready", "false", "true", f'phase="running",{_POD}'),
    "WatchdogNotUp": _gauge("up", 'pai_service_name="watchdog"', bad="0x200", good="1x200"),
    "JobExporterHangs": Case(
        {'collector_iteration_count_total{instance="n1:9102",name="gpu_collector"}': "7x200"},
        {'collector_iteration_count_total{instance="n1:9102",name="gpu_collector"}': "0+2x200"},
        begins=1,
    ),
    "ROCmSmiFailed": _by_label("rocmsmi_status", "error", "timeout", "ok", 'node_name="n1"'),
    "DmesgGPUFault": _by_label("system_dmesg_status", "error", "page fault", "ok", 'node_name="n1"'),
    "IBPortDown": Case({_PORT: "-1x200"}, {_PORT: "1x200"}),
    "IBLinkFlap": Case({_PORT: "0x200"}, {_PORT: "1x200"}),
    "IBLinkFlapRepeat": Case({_PORT: "0x200"}, {_PORT: "1x20 0 1x200"}, begins=8),
    "NodeUnschedulable": _node("unschedulable", "true", "false"),
}

MADE_RULES: Final = """\
groups:
  - name: made
    rules:
      - alert: Kept
        expr: x > 0
        for: 2m
        keep_firing_for: 3m
      - alert: Flaps
        expr: x > 0
        for: 2m
      - alert: Missing
        expr: absent(x{job="a"})
        labels: {severity: "{{ $labels.job }}!"}
      - alert: Texts
        expr: x
        labels: {job: b, was: "{{$labels.job}}", empty: ""}
        annotations:
          value: "{{ $value }}"
          human: "{{ $value | humanize }} {{ $value | humanize1024 }} {{ $value | humanizePercentage }}"
          long: "{{ $value | humanizeDuration }} {{ printf \\"%.2f s\\" $value }} {{ $value | printf \\"%g\\" }}"
          none: "{{ $labels.none }}{{ .Labels.job }}{{ .Value }}"
"""
MADE_SERIES: Final = {
    "Kept": "0 1 1 1 1 0 0 1 0 0 0 0 0 1 1 1 stale _x20",
    "Flaps": "1 1 0 1 1 1 1 0 1 1 1 _ _ _ 1 _x8 1 1 1",
    "Missing": "1 1 stale _ 1 _x9 1 1",
    "Texts": "0 1 -1 0.000012345 0.25 1e6 123456789 1e17 -61 3599.5 86400 1234567.891 0.1 100 1e-7 7200 999.95",
}


@pytest.mark.parametrize("file", ["openpai.rules.yml", "corral.rules.yml"])
def test_every_rule_fires_in_time_and_as_promtool_says(file: str, tmp_path: Path) -> None:
    groups = parse_rules((EXAMPLES / file).read_bytes(), file)
    alerts = {rule.name: rule for group in groups for rule in group.rules if not rule.records}
    cases: dict[str, Any] = CASES if file == "openpai.rules.yml" else own_rules.CASES
    assert list(alerts) == list(cases)
    tests = []
    for name, case in cases.items():
        fires = case.begins + int(alerts[name].hold) // 60
        bad, good = (firing(groups, name, series, fires + 3) for series in (case.bad, case.good))
        assert [bool(each) for each in bad] == [minute >= fires for minute in range(fires + 4)], name
        assert not any(good), name
        tests += [promtool_test(name, case.bad, bad, (fires - 1, fires, fires + 3))]
        tests += [promtool_test(name, case.good, good, (fires, fires + 3))]
    shutil.copy(EXAMPLES / file, tmp_path)
    _promtool(tmp_path, file, tests)


def test_states_and_texts_of_alerts_are_those_of_prometheus(tmp_path: Path) -> None:
    groups = parse_rules(MADE_RULES, "made.yml")
    tests = []
    for name, values in MADE_SERIES.items():
        series = {'x{job="a"}': values}
        minutes = len(values.split()) + 25
        by_minute = firing(groups, name, series, minutes)
        assert any(by_minute) and not all(by_minute)
        tests.append(promtool_test(name, series, by_minute, range(minutes + 1)))
    (tmp_path / "made.yml").write_text(MADE_RULES)
    _promtool(tmp_path, "made.yml", tests)


def _promtool(folder: Path, rules: str, tests: list[dict[str, Any]]) -> None:
    made = {"rule_files": [rules], "evaluation_interval": "1m", "tests": tests}
    (folder / "tests.yml").write_text(yaml.safe_dump(made))
    for words in (("check", "rules", rules), ("test", "rules", "tests.yml")):
        done = subprocess.run(
            [prometheus.program("promtool"), *words], cwd=folder, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_the_examples_have_all_groups() -> None:
    groups: tuple[Group, ...] = parse_rules((EXAMPLES / "openpai.rules.yml").read_bytes())
    assert sum(not rule.records for group in groups for rule in group.rules) == 23 + 6
