"""Why: what people install is the wheel: it must hold the portal, run without Node, and stay light without the server."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import urllib.request
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOLS = Path(sys.executable).parent
READY_SECONDS = 60.0
JOB = """
name: hello
framework: shell
roles:
  worker: {replicas: 1, command: echo hello}
"""


def bare_environment(*folders: Path) -> dict[str, str]:
    """This process's environment with a PATH that has no Node, and nothing of this checkout on Python's path."""
    environment = {key: value for key, value in os.environ.items() if key not in {"PYTHONPATH", "VIRTUAL_ENV"}}
    return environment | {"PATH": ":".join(str(folder) for folder in folders)}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout, built by a machine without Node from a portal that `make setup` has built."""
    folder = tmp_path_factory.mktemp("wheel")
    done = subprocess.run(
        [TOOLS / "python", "-m", "build", "--wheel", "--no-isolation", "--outdir", folder],
        cwd=ROOT,
        env=bare_environment(TOOLS),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = folder.glob("corral-*.whl")
    return built


def install(wheel: Path, folder: Path, extras: str) -> Path:
    """A new environment with nothing but the wheel and what it asks for; returns its folder of programs."""
    quiet = {"check": True, "capture_output": True, "env": bare_environment(Path("/usr/bin"), Path("/bin"))}
    subprocess.run([TOOLS / "uv", "venv", "--python", sys.executable, folder], **quiet)  # type: ignore[call-overload]
    subprocess.run(  # type: ignore[call-overload]
        [
            *(TOOLS / "uv", "pip", "install", "--python", folder / "bin" / "python"),
            *("--constraint", ROOT / "requirements" / "server.txt", f"corral{extras} @ {wheel.as_uri()}"),
        ],
        **quiet,
    )
    return folder / "bin"


@pytest.fixture(scope="module")
def client_programs(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The client alone, installed."""
    return install(wheel, tmp_path_factory.mktemp("client") / "env", "")


@pytest.fixture(scope="module")
def server_url(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server that runs from the wheel on a machine without Node."""
    folder = tmp_path_factory.mktemp("server")
    programs = install(wheel, folder / "env", "[server]")
    process = subprocess.Popen(
        [programs / "corral", "up", "--data", folder / "data", "--port", "0"],
        env=bare_environment(programs, Path("/usr/bin"), Path("/bin")) | {"XDG_CONFIG_HOME": str(folder / "config")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout
    said = []
    guard = threading.Timer(READY_SECONDS, process.kill)
    guard.start()
    for line in process.stdout:
        said.append(line)
        if found := re.search(r"(http://\S+?)/sign-in", line):
            break
    else:
        pytest.fail("`corral up` said no sign-in link:\n" + "".join(said))
    guard.cancel()
    yield found[1]
    process.send_signal(signal.SIGTERM)
    process.stdout.read()
    assert process.wait(30) == 0


def test_the_wheel_holds_the_portal(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert "corral/portal/static/index.html" in names
    assert any(name.startswith("corral/portal/static/assets/") and name.endswith(".js") for name in names)


def test_the_wheel_holds_nothing_but_the_package(wheel: Path) -> None:
    tops = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert tops == {"corral", f"{wheel.name.split('-py3')[0]}.dist-info"}


def test_an_installed_server_serves_the_portal_without_node(server_url: str) -> None:
    with urllib.request.urlopen(server_url, timeout=20) as answer:
        page = answer.read().decode()
    assert answer.headers["Content-Type"].startswith("text/html")
    (script,) = re.findall(r'<script[^>]+src="([^"]+\.js)"', page)[:1]
    with urllib.request.urlopen(server_url + script, timeout=20) as answer:
        assert len(answer.read()) > 10_000


@pytest.mark.parametrize("command", [["version"], ["--help"]], ids=" ".join)
def test_the_client_runs_without_the_server(client_programs: Path, command: list[str]) -> None:
    done = subprocess.run([client_programs / "corral", *command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_client_checks_job_files_without_the_server(client_programs: Path, tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(JOB)
    done = subprocess.run(
        [client_programs / "corral", "validate", tmp_path / "job.yaml"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_client_names_what_a_server_needs_when_it_is_asked_to_be_one(client_programs: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [client_programs / "corral", "up", "--data", tmp_path / "data"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "corral[server]" in done.stderr and "Traceback" not in done.stderr
