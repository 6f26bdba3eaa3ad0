"""A real Prometheus over made-up series, asked for single values of expressions."""

from __future__ import annotations

import json
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from corral.monitor.rules.series import Labels, labels_of
from tests.reserved import free_port
from tests.testbeds import prometheus

Points = Mapping[Labels, list[tuple[float, float]]]


class Prometheus:
    """Prometheus on loopback that has read series from a file."""

    def __init__(self, folder: Path, series: Points) -> None:
        """Write the series as blocks and start; raises RuntimeError with its log when it ends."""
        (folder / "series.txt").write_text(_open_metrics(series))
        words = ("tsdb", "create-blocks-from", "openmetrics", "series.txt", "data")
        done = subprocess.run(
            [prometheus.program("promtool"), *words], cwd=folder, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        (folder / "prometheus.yml").write_text("{}")
        self._port = free_port()
        words_of_server = (
            str(prometheus.program("prometheus")),
            "--config.file=prometheus.yml",
            "--storage.tsdb.path=data",
            "--storage.tsdb.retention.time=100y",
            f"--web.listen-address=127.0.0.1:{self._port}",
        )
        with open(folder / "prometheus.log", "w") as log:
            self._process = subprocess.Popen(words_of_server, cwd=folder, stdout=log, stderr=subprocess.STDOUT)
        while not self._ready():
            if self._process.poll() is not None:
                raise RuntimeError((folder / "prometheus.log").read_text())
            time.sleep(0.05)

    def ask(self, expression: str, at: float) -> dict[Labels, float] | str:
        """The series of an expression; the message of a refusal as a text."""
        asked = urllib.parse.urlencode({"query": expression, "time": f"{at:.3f}"})
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/api/v1/query?{asked}", timeout=60) as answer:
                data: dict[str, Any] = json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            return str(json.load(error)["error"])
        if data["resultType"] == "scalar":
            return {(): float(data["result"][1])}
        return {labels_of(each["metric"]): float(each["value"][1]) for each in data["result"]}

    def end(self) -> None:
        """Stop it."""
        self._process.terminate()
        self._process.wait(60)

    def _ready(self) -> bool:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{self._port}/-/ready", timeout=60).close()
        except OSError:
            return False
        return True


def _open_metrics(series: Points) -> str:
    lines = []
    for labels, points in series.items():
        name = dict(labels)["__name__"]
        shown = ",".join(f'{key}="{value}"' for key, value in labels if key != "__name__")
        lines += [f"{name}{{{shown}}} {value} {at:.3f}" for at, value in points]
    return "\n".join((*lines, "# EOF", ""))
