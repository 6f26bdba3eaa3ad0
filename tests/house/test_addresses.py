"""No file names a package registry, and lock files have hashes but no addresses: a checkout uses the machine's registry."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Spelt in parts, so that this file names none of them.
REGISTRIES = [
    ".".join(parts)
    for parts in (
        ("pypi", "org"),
        ("files", "pythonhosted", "org"),
        ("registry", "npmjs", "org"),
        ("registry", "yarnpkg", "com"),
        ("proxy", "golang", "org"),
        ("static", "crates", "io"),
        ("deb", "debian", "org"),
    )
]


def tracked() -> list[Path]:
    """Every text file that git tracks."""
    listed = subprocess.run(["git", "grep", "-lI", ""], cwd=ROOT, capture_output=True, text=True, check=True)
    return [ROOT / path for path in listed.stdout.splitlines() if (ROOT / path).is_file()]


def test_no_file_names_a_package_registry() -> None:
    named = {
        path.relative_to(ROOT).as_posix(): host for path in tracked() for host in REGISTRIES if host in path.read_text()
    }
    assert not named


def test_the_requirements_are_locked_by_hash_and_without_addresses() -> None:
    for name in ("uv", "server", "dev", "image"):
        text = (ROOT / "requirements" / f"{name}.txt").read_text()
        pins = re.findall(r"^[a-z0-9][^\s=]*==", text, re.MULTILINE)
        assert pins and text.count("--hash=sha256:") >= len(pins)
        assert "://" not in text and "--index-url" not in text


def test_the_server_lock_and_the_developers_lock_agree() -> None:
    def pins(name: str) -> dict[str, str]:
        text = (ROOT / "requirements" / f"{name}.txt").read_text()
        return dict(re.findall(r"^([a-z0-9][^\s=;\[]*)(?:\[[^\]]*\])?==([^\s;\\]+)", text, re.MULTILINE))

    server, dev = pins("server"), pins("dev")
    assert server.items() <= dev.items()


def test_the_portals_lock_holds_no_addresses() -> None:
    lock = ROOT / "web" / "package-lock.json"
    if not lock.is_file():
        assert not (ROOT / "web" / "package.json").is_file(), "web/ has no package-lock.json"
        return
    packages = json.loads(lock.read_text())["packages"]
    resolved = [name for name, entry in packages.items() if "resolved" in entry and not entry.get("link")]
    assert not resolved, "run npm with omit-lockfile-registry-resolved=true"
    unchecked = {name: entry for name, entry in packages.items() if name and "integrity" not in entry}
    elsewhere = [
        entry.get("optional") and ("linux" not in entry.get("os", []) or entry.get("cpu") == ["arm"])
        for entry in unchecked.values()
    ]
    assert all(elsewhere), f"only optional packages of other platforms may lack a hash: {sorted(unchecked)}"


def test_the_portals_lock_is_complete_for_npm_ci() -> None:
    packages = json.loads((ROOT / "web" / "package-lock.json").read_text())["packages"]
    tied = re.compile(r"darwin|win32|linux|freebsd|android|wasm32")
    missing = [
        name
        for entry in packages.values()
        for name in entry.get("optionalDependencies", {})
        if tied.search(name) and not any(path.endswith(f"node_modules/{name}") for path in packages)
    ]
    assert not missing, "run `make lock`"
