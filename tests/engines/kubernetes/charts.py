"""Run helm and read the objects that the chart renders."""

from __future__ import annotations

import base64
import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from tests.testbeds.kubernetes.binaries import program
from tests.testbeds.kubernetes.controlplane import ControlPlane

CHART: Final = Path(__file__).resolve().parents[3] / "deploy" / "chart"
TRIAL: Final = {"database": {"trial": {"enabled": True}}}
Values = Mapping[str, Any]
Thing = dict[str, Any]


class Helm:
    """helm with a home of its own, and a cluster if one is given."""

    def __init__(self, home: Path, plane: ControlPlane | None = None) -> None:
        self._home, self._plane = home, plane

    def run(self, *words: str, values: Values | None = None, seconds: float = 1000) -> subprocess.CompletedProcess[str]:
        """Run `helm WORDS`, whatever its exit code."""
        cluster = ["--kubeconfig", str(self._plane.kubeconfig)] if self._plane else []
        given = ["--values", "-"] if values is not None else []
        return subprocess.run(
            [str(program("helm")), *words, *given, *cluster],
            input=None if values is None else json.dumps(values),
            env={**os.environ, "HOME": str(self._home)},
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )

    def done(self, *words: str, values: Values | None = None) -> str:
        """Run `helm WORDS`, which must succeed; returns its output."""
        ended = self.run(*words, values=values)
        assert ended.returncode == 0, f"helm {' '.join(words)}: {ended.stderr[-4000:]}"
        return ended.stdout

    def refused(self, values: Values) -> str:
        """The error of an install with these values."""
        ended = self.run("template", "corral", str(CHART), values=values)
        assert ended.returncode != 0, ended.stdout
        return ended.stderr

    def render(self, values: Values, *, release: str = "corral", namespace: str = "ml") -> Rendered:
        """The objects that an install with these values would create."""
        words = ["template", release, str(CHART), "--namespace", namespace]
        return Rendered(self.done(*words, values=values))


class Rendered:
    """The objects that a chart renders."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.things: list[Thing] = [thing for thing in yaml.safe_load_all(text) if thing]

    def of(self, kind: str) -> list[Thing]:
        """All objects of a kind."""
        return [thing for thing in self.things if thing["kind"] == kind]

    def one(self, kind: str, name: str) -> Thing:
        """The only object of this kind and name."""
        (found,) = [thing for thing in self.of(kind) if thing["metadata"]["name"] == name]
        return found

    def secret(self, name: str) -> dict[str, str]:
        """The values of a Secret."""
        data = self.one("Secret", name)["data"]
        return {key: base64.b64decode(value).decode() for key, value in data.items()}

    @property
    def server(self) -> Thing:
        """The server's pods."""
        spec: Thing = self.of("Deployment")[0]["spec"]["template"]["spec"]
        return spec

    def container(self, name: str) -> Thing:
        """One container of the server."""
        (found,) = [each for each in self.server["containers"] if each["name"] == name]
        assert isinstance(found, dict)
        return found

    def environment(self, name: str) -> dict[str, Any]:
        """The variables of one container of the server; those with `valueFrom` by that."""
        return {each["name"]: each.get("value", each.get("valueFrom")) for each in self.container(name)["env"]}


def merged(*values: Values) -> Thing:
    """Merge values over values, as helm does."""
    whole: Thing = {}
    for each in values:
        for key, value in each.items():
            there = whole.get(key)
            whole[key] = merged(there, value) if isinstance(there, dict) and isinstance(value, Mapping) else value
    return whole
