"""kubeadm and systemd take what `up` writes for them."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from corral.deploy.checks.ours import (
    BALANCER_UNIT_FILE,
    CONTAINERD_UNIT_FILE,
    KUBELET_UNIT_FILE,
    MARK,
    REGISTRY_UNIT_FILE,
)
from corral.deploy.hosts.reader import Host, Hosts, load_hosts
from corral.deploy.steps import balancer, files, hadoop_files, kubeadm, registry
from tests.deploy.cluster_on_hosts import SETTINGS
from tests.testbeds.kubernetes.binaries import missing, program

UNITS = Path("/etc/systemd/system")
OF_HOSTS = """\
hosts:
  head: {address: 10.0.0.1, roles: [control-plane, worker]}
  gpu1: {address: 10.0.0.2, roles: [worker]}
"""


def listed(settings: str = SETTINGS) -> Hosts:
    return load_hosts(f"cluster: lab\n{OF_HOSTS}{settings}")


def host(name: str) -> Host:
    found = listed().named(name)
    assert found is not None
    return found


def joining(name: str, address: str, endpoint: str, **more: object) -> str:
    token, authority = "abcdef.0123456789abcdef", "1" * 64
    return kubeadm.join_text(host(name), address, endpoint, token, authority, **more)  # type: ignore[arg-type]


DOCUMENTS = {
    "one control plane": kubeadm.init_text(MARK, listed(), host("head"), "10.0.0.1"),
    "several": kubeadm.init_text(MARK, listed(""), host("head"), "10.0.0.1", balancer.ENDPOINT),
    "several by IPv6": kubeadm.init_text(MARK, listed(), host("head"), "fd00::1", kubeadm.endpoint_of("fd00::9")),
    "a worker": joining("gpu1", "10.0.0.2", "10.0.0.1:6443"),
    "a worker that is not validated": joining("gpu1", "10.0.0.2", "10.0.0.1:6443", closed=True),
    "a further control plane": joining("head", "10.0.0.3", balancer.ENDPOINT, key="2" * 64),
    "a further one by IPv6": joining("head", "fd00::3", kubeadm.endpoint_of("fd00::9"), key="2" * 64),
}


def validated(folder: Path, text: str) -> subprocess.CompletedProcess[str]:
    (folder / "document.yaml").write_text(text)
    words = [str(program("kubeadm")), "config", "validate", "--config", str(folder / "document.yaml")]
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=300)


@pytest.mark.timeout(1800)
@pytest.mark.skipif(bool(missing()), reason=missing())
@pytest.mark.parametrize("name", DOCUMENTS)
def test_kubeadm_takes_the_documents(name: str, tmp_path: Path) -> None:
    """Without a warning, as of a field that it does not know; with one field of another name it is refused."""
    done = validated(tmp_path, DOCUMENTS[name])
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "ok", "")
    other = re.sub("^( *)nodeRegistration:", r"\1nodeRegistrations:", DOCUMENTS[name], count=1, flags=re.MULTILINE)
    assert other != DOCUMENTS[name]
    done = validated(tmp_path, other)
    assert done.returncode or "nodeRegistrations" in done.stderr


def units() -> dict[str, str]:
    """The units that `up` writes, by path."""
    found = {
        CONTAINERD_UNIT_FILE: files.CONTAINERD_UNIT, KUBELET_UNIT_FILE: files.KUBELET_UNIT,
        BALANCER_UNIT_FILE: balancer.UNIT, REGISTRY_UNIT_FILE: registry.UNIT,
        str(UNITS / f"{hadoop_files.FIREWALL}.service"): hadoop_files.FIREWALL_UNIT,
    }  # fmt: skip
    return found | {
        str(UNITS / f"{name}.service"): hadoop_files.unit_text(name, "1Gi") for name in hadoop_files.DAEMONS
    }


@pytest.fixture
def system(tmp_path: Path) -> Path:
    """A folder in place of a host's root, with systemd's own units and the programs that those of `up` start."""
    shutil.copytree("/usr/lib/systemd/system", tmp_path / "usr/lib/systemd/system", symlinks=True)
    for path, text in units().items():
        at = tmp_path / path.lstrip("/")
        at.parent.mkdir(parents=True, exist_ok=True)
        at.write_text(text)
        for started in re.findall(r"^Exec\w+=-?(/\S+)", text, re.MULTILINE):
            there = tmp_path / started.lstrip("/")
            there.parent.mkdir(parents=True, exist_ok=True)
            there.write_text("#!/bin/sh\n")
            there.chmod(0o755)
    return tmp_path


def verified(root: Path, path: str) -> str:
    """What systemd says of a unit."""
    words = [
        "systemd-analyze",
        "verify",
        f"--root={root}",
        "--man=no",
        "--generators=no",
        "--recursive-errors=no",
        path,
    ]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)
    return "" if done.returncode == 0 and not done.stderr else f"{done.returncode}: {done.stderr}"


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not installed")
@pytest.mark.parametrize("path", units())
def test_systemd_takes_the_units(path: str, system: Path) -> None:
    assert not verified(system, path)
    unit = system / path.lstrip("/")
    unit.write_text(unit.read_text().replace("ExecStart=/", "ExecStarts=/", 1))
    assert "ExecStarts" in verified(system, path)
