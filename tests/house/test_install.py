"""The wheels contain the portal, install and run without Node, and the client's has no server dependencies."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import tomllib
import urllib.request
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import corral

ROOT = Path(__file__).resolve().parents[2]
CLIENT = ROOT / "packages" / "client"
TOOLS = Path(sys.executable).parent
READY_SECONDS = 60.0
JOB = """
name: hello
framework: shell
roles:
  worker: {replicas: 1, command: echo hello}
"""


def bare_environment(*folders: Path) -> dict[str, str]:
    """This process's environment with a PATH without Node, and without this checkout on Python's path."""
    environment = {key: value for key, value in os.environ.items() if key not in {"PYTHONPATH", "VIRTUAL_ENV"}}
    return environment | {"PATH": ":".join(str(folder) for folder in folders)}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout, built without Node from a portal that `make setup` has built."""
    return build(ROOT, tmp_path_factory.mktemp("wheel"), "--wheel")


@pytest.fixture(scope="module")
def client_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of the light distribution, built from its sdist as a registry's users would."""
    return build(ROOT / "packages" / "client", tmp_path_factory.mktemp("client-wheel"))


def build(source: Path, folder: Path, *what: str) -> Path:
    done = subprocess.run(
        [TOOLS / "python", "-m", "build", *what, "--no-isolation", "--outdir", folder, source],
        env=bare_environment(TOOLS),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = folder.glob("corral*.whl")
    return built


def install(what: str | Path, folder: Path) -> Path:
    """A new environment with only `what` and its dependencies; returns its folder of programs."""
    quiet = {"check": True, "capture_output": True, "env": bare_environment(Path("/usr/bin"), Path("/bin"))}
    subprocess.run([TOOLS / "uv", "venv", "--python", sys.executable, folder], **quiet)  # type: ignore[call-overload]
    locked = ("--constraint", ROOT / "requirements" / "server.txt")
    fresh = ("--refresh-package", "corral", "--refresh-package", "corral-client")  # uv would not notice changed modules
    subprocess.run(  # type: ignore[call-overload]
        [TOOLS / "uv", "pip", "install", "--python", folder / "bin" / "python", *locked, *fresh, what], **quiet
    )
    return folder / "bin"


@pytest.fixture(scope="module")
def client_programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The client alone, as `pip install ./packages/client` installs it."""
    return install(ROOT / "packages" / "client", tmp_path_factory.mktemp("client") / "env")


@pytest.fixture(scope="module")
def server_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server that `pip install .` put into an empty environment, on a machine without Node."""
    folder = tmp_path_factory.mktemp("server")
    programs = install(ROOT, folder / "env")
    process = subprocess.Popen(
        [programs / "corral", "up", "--data", folder / "data", "--port", "0"],
        cwd=folder,
        env=bare_environment(programs, without_node(folder / "bin")) | {"XDG_CONFIG_HOME": str(folder / "config")},
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


def without_node(folder: Path) -> Path:
    """The machine's programs except Node's."""
    folder.mkdir()
    for program in [*Path("/bin").iterdir(), *Path("/usr/bin").iterdir()]:
        if program.name not in {"node", "nodejs", "npm", "npx"} and not (folder / program.name).is_symlink():
            (folder / program.name).symlink_to(program)
    return folder


def test_the_wheel_holds_the_portal(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert "corral/portal/static/index.html" in names
    assert any(name.startswith("corral/portal/static/assets/") and name.endswith(".js") for name in names)


def test_the_wheel_holds_nothing_but_the_package(wheel: Path) -> None:
    tops = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert tops == {"corral", f"{wheel.name.split('-py3')[0]}.dist-info"}


def test_server_is_an_extra_that_asks_for_nothing_more(wheel: Path) -> None:
    (name,) = [name for name in zipfile.ZipFile(wheel).namelist() if name.endswith(".dist-info/METADATA")]
    metadata = zipfile.ZipFile(wheel).read(name).decode()
    assert "Provides-Extra: server\n" in metadata and "extra == 'server'" not in metadata


def test_an_installed_server_serves_the_portal_without_node(server_url: str) -> None:
    with urllib.request.urlopen(server_url, timeout=120) as answer:
        page = answer.read().decode()
    assert answer.headers["Content-Type"].startswith("text/html")
    (script,) = re.findall(r'<script type="module"[^>]+src="([^"]+\.js)"', page)[:1]
    with urllib.request.urlopen(server_url + script, timeout=120) as answer:
        assert len(answer.read()) > 10_000


@pytest.mark.parametrize("command", [["version"], ["--help"], ["cp", "--help"], ["ssh", "config"]], ids=" ".join)
def test_the_client_runs_without_the_server(client_programs: Path, command: list[str]) -> None:
    done = subprocess.run([client_programs / "corral", *command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_client_checks_job_files_without_the_server(client_programs: Path, tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(JOB)
    done = subprocess.run(
        [client_programs / "corral", "validate", tmp_path / "job.yaml"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(not shutil.which("ssh"), reason="OpenSSH is not here: apt-get install openssh-client")
def test_the_client_looks_at_machines_without_the_server(client_programs: Path, tmp_path: Path) -> None:
    (tmp_path / "hosts.yaml").write_text("hosts: {one: {address: 127.0.0.1, roles: [storage], ssh: {port: 1}}}")
    done = subprocess.run(
        [client_programs / "corral", "deploy", "check"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 5, done.stderr
    assert "nothing listens at 127.0.0.1 port 1" in done.stdout


def test_the_client_names_what_a_server_needs_when_it_is_asked_to_be_one(client_programs: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [client_programs / "corral", "up", "--data", tmp_path / "data"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1 and "pip install corral" in done.stderr


def test_the_client_is_light(client_wheel: Path, client_programs: Path) -> None:
    parts = {
        "/".join(name.split("/")[:2]) for name in zipfile.ZipFile(client_wheel).namelist() if name[:7] == "corral/"
    }
    packages = (
        "__init__.py",
        "py.typed",
        "benchmarks",
        "cli",
        "client",
        "compat",
        "deploy",
        "kernel",
        "profiles",
        "runtime",
        "spec",
    )
    assert parts == {f"corral/{part}" for part in packages}
    (site,) = client_programs.parent.glob("lib/python3*/site-packages")
    assert not {"fastapi", "numpy", "sqlalchemy", "cryptography"} & {path.name for path in site.iterdir()}


def test_the_two_distributions_agree() -> None:
    whole, light = (tomllib.loads((folder / "pyproject.toml").read_text())["project"] for folder in (ROOT, CLIENT))
    for field in ("version", "license", "requires-python", "scripts"):
        assert whole[field] == light[field]
    assert whole["version"] == corral.__version__
    assert set(light["dependencies"]) < set(whole["dependencies"])
    assert (ROOT / "LICENSE").read_text() == (CLIENT / "LICENSE").read_text()


def test_every_dependency_is_imported() -> None:
    """The exception is httptools, which uvicorn uses when it is installed."""
    modules = {"argon2-cffi": "argon2", "nvidia-ml-py": "pynvml", "pyyaml": "yaml"}
    source = "\n".join(path.read_text() for path in (ROOT / "corral").rglob("*.py"))
    named = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    names = {re.split(r"[\[>=]", requirement)[0] for requirement in named} - {"httptools"}
    taken = set(re.findall(r"(?:^\s*import |^\s*from |import_module\(.)(\w+)", source, re.MULTILINE))
    unused = {name for name in names if modules.get(name, name.replace("-", "_")) not in taken}
    assert not unused
