"""Debian's Prometheus, Alertmanager and node exporter around a server, and a made-up machine with devices to read."""

from __future__ import annotations

import contextlib
import json
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

import httpx2
import yaml

from corral.devices.figures.device_figures import DeviceFigures
from corral.kernel.ids import AttemptId
from corral.model.metrics.node_families import NodeMetric
from corral.model.metrics.samples import Samples, Value
from corral.monitor.agent.device_samples import device_values
from corral.monitor.agent.task_figures import TaskFigures
from corral.monitor.agent.task_names import TaskNames
from corral.monitor.agent.task_samples import task_values
from corral.service.metrics.exposition import page
from tests.endtoend.platform import Platform
from tests.reserved import free_port
from tests.testbeds import prometheus

EXAMPLE: Final = Path(__file__).resolve().parents[2] / "examples/prometheus"
SECONDS: Final = 120.0
"""Seconds after which a wait has failed."""
_GIB: Final = 2**30


class Monitoring:
    """The programs, which read a server every second with the token of an account; they end with the context."""

    def __init__(self, server: Platform, folder: Path) -> None:
        self._folder, self._server = folder, server
        self._stack = contextlib.ExitStack()
        self._client = httpx2.Client()
        self.machine = MadeUpMachine()
        self.prometheus, self.alertmanager, self.node_exporter = (f"127.0.0.1:{free_port()}" for _ in range(3))

    def __enter__(self) -> Monitoring:
        with contextlib.ExitStack() as stack:
            stack.enter_context(self._client)
            self._write()
            stack.enter_context(self.machine)
            for name, options, address, ready in (
                ("prometheus-node-exporter", (), self.node_exporter, "/"),
                (
                    "prometheus-alertmanager",
                    ("--config.file=alertmanager.yml", "--storage.path=alerts", "--cluster.listen-address="),
                    self.alertmanager,
                    "/-/ready",
                ),
                (
                    "prometheus",
                    ("--config.file=prometheus.yml", "--storage.tsdb.path=data"),
                    self.prometheus,
                    "/-/ready",
                ),
            ):
                stack.enter_context(_running(self._folder, name, options, address, ready))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def ask(self, query: str) -> list[dict[str, Any]]:
        """The series that a query finds now."""
        answer = self._client.get(f"http://{self.prometheus}/api/v1/query", params={"query": query}).json()
        assert answer["status"] == "success", (query, answer)
        found: list[dict[str, Any]] = answer["data"]["result"]
        return found

    def alerts(self) -> list[dict[str, Any]]:
        """The alerts that Alertmanager has."""
        found: list[dict[str, Any]] = self._client.get(f"http://{self.alertmanager}/api/v2/alerts").json()
        return found

    def _write(self) -> None:
        """The example's files with short times, and addresses of this machine."""
        token = json.loads(self._server.corral("token", "create", "prometheus", "-o", "json"))["token"]
        (self._folder / "corral.token").write_text(token)
        settings = yaml.safe_load((EXAMPLE / "prometheus.yml").read_text())
        settings["global"] = {"scrape_interval": "5s", "scrape_timeout": "5s", "evaluation_interval": "1s"}
        here = self._server.url.partition("://")[2]
        settings["scrape_configs"][0]["static_configs"] = [{"targets": [here, self.machine.address]}]
        settings["scrape_configs"].append({"job_name": "node", "static_configs": [{"targets": [self.node_exporter]}]})
        settings["alerting"] = {"alertmanagers": [{"static_configs": [{"targets": [self.alertmanager]}]}]}
        self._yaml("prometheus.yml", settings)
        rules = yaml.safe_load((EXAMPLE / "corral.rules.yml").read_text())
        for rule in rules["groups"][0]["rules"]:
            rule["for"] = "1s"
        self._yaml("corral.rules.yml", rules)
        hook = {
            "url": f"{self._server.url}/api/v3/alerts/webhook",
            "send_resolved": True,
            "http_config": {"authorization": {"credentials_file": "corral.token"}},
        }
        prometheus.program("prometheus-alertmanager")
        (self._folder / prometheus.TEMPLATES).symlink_to(prometheus.templates())
        route = {"receiver": "corral", "group_wait": "0s", "group_interval": "1s", "repeat_interval": "1h"}
        self._yaml("alertmanager.yml", {"route": route, "receivers": [{"name": "corral", "webhook_configs": [hook]}]})

    def _yaml(self, name: str, content: Mapping[str, Any]) -> None:
        (self._folder / name).write_text(yaml.safe_dump(content))


@contextlib.contextmanager
def _running(folder: Path, name: str, options: tuple[str, ...], address: str, ready: str) -> Iterator[None]:
    """Run a program until the context ends, which begins once it answers."""
    words = [str(prometheus.program(name)), *options, f"--web.listen-address={address}"]
    log = folder / f"{name}.log"
    with log.open("w") as file:
        process = subprocess.Popen(words, cwd=folder, stdout=file, stderr=subprocess.STDOUT)
    try:
        end = time.monotonic() + SECONDS
        while not _answers(f"http://{address}{ready}"):
            assert process.poll() is None and time.monotonic() < end, log.read_text()
            time.sleep(0.1)
        yield
    finally:
        process.terminate()
        process.wait(60)


def _answers(url: str) -> bool:
    try:
        return httpx2.get(url).status_code == 200
    except httpx2.TransportError:
        return False


class MadeUpMachine:
    """What the agent of a machine with two GPUs, a disk and a task would tell; `down` has it answer 503."""

    def __init__(self) -> None:
        self.down = False
        text, machine = page(_of_a_machine_with_devices(), everybody=False), self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(503 if machine.down else 200)
                self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
                self.end_headers()
                self.wfile.write(b"" if machine.down else text)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> MadeUpMachine:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def _of_a_machine_with_devices() -> Samples:
    devices = [
        DeviceFigures(
            "nvidia", index, id=f"GPU-{index}", model="NVIDIA A100-SXM4-40GB", bus=f"0000:0{index}:00.0", use=80.0 * index,
            memory_used=10 * _GIB, memory_total=40 * _GIB, temperature=40.0, power=200.0, clock=1410.0, xid=0,
            pcie_replays=0, ecc_uncorrected=0, nvlink_kib=4096, processes=(7,),
        )
        for index in range(2)
    ]  # fmt: skip
    task = TaskFigures(
        AttemptId("1m83aaaaaaaaa.0.worker.0.0"), (7,), 90.0, 150.0, _GIB, 4 * _GIB, 2**20, 0, 0, 1000.0, 2000.0, 3
    )
    names = TaskNames("ada", "ada~digits", "worker", "0", "1m83aaaaaaaaa", "research")
    disk = ("/dev/sda1", "ext4", "/")
    machine = (
        Value(NodeMetric.FILE_SYSTEM, disk, 100.0 * _GIB),
        Value(NodeMetric.FILE_SYSTEM_AVAILABLE, disk, 60.0 * _GIB),
        Value(NodeMetric.CLOCK, (), 0.001),
    )
    values = [value for device in devices for value in device_values(device, "gpu1")]
    return Samples((*values, *task_values(task, names, devices), *machine))
