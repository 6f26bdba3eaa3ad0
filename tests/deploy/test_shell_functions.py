"""The functions that run on a host: what they write down before they change it, so that a cut or a reset finds it."""

from __future__ import annotations

import base64
import hashlib
import subprocess
from pathlib import Path

import pytest

from corral.deploy.remote import work

_FUNCTIONS = Path(work.__file__).with_name("do.sh")


@pytest.fixture
def state(tmp_path: Path) -> Path:
    (tmp_path / "corral/deploy").mkdir(parents=True)
    return tmp_path / "corral"


def call(state: Path, words: str, text: bytes = b"") -> int:
    """Call a function, with its records below `state` and not on this machine."""
    functions = _FUNCTIONS.read_text().replace("/var/lib/corral", str(state))
    script = f"{functions}\n{words}\n"
    return subprocess.run(["sh", "-c", script], input=text, capture_output=True, check=False).returncode


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def test_what_a_new_file_calls_for_is_marked_before_it_is_there(state: Path, tmp_path: Path) -> None:
    target = tmp_path / "config.toml"
    assert call(state, f"write_file {target} none containerd", b"!") == 1  # no base64: as if it was cut
    assert not target.exists() and (state / "unfinished/containerd").exists()
    assert call(state, f"write_file {target} none containerd", base64.b64encode(b"new\n")) == 0
    assert target.read_text() == "new\n"
    assert call(state, "finished containerd") == 0
    assert not (state / "unfinished/containerd").exists()


@pytest.mark.parametrize(("name", "mode"), [("config.toml", 0o600), ("corral.conf", 0o644)])
def test_containerds_configuration_is_roots_alone(state: Path, tmp_path: Path, name: str, mode: int) -> None:
    target = tmp_path / name
    assert call(state, f"write_file {target} none", base64.b64encode(b"1\n")) == 0
    assert target.stat().st_mode & 0o777 == mode


def test_what_was_not_there_is_written_down_once_with_its_folders(state: Path, tmp_path: Path) -> None:
    target = tmp_path / "a/b/file"
    content = base64.b64encode(b"1\n")
    for digest in ("none", hashlib.sha256(b"1\n").hexdigest()):
        assert call(state, f"write_file {target} {digest}", content) == 0
    assert lines(state / "deploy/made") == [str(target)]
    assert lines(state / "deploy/folders") == [str(tmp_path / "a"), str(tmp_path / "a/b")]
    assert not (state / "deploy/before").exists()


def test_what_was_there_is_copied_before_its_first_change_alone(state: Path, tmp_path: Path) -> None:
    target = tmp_path / "fstab"
    target.write_bytes(b"0\n")
    target.chmod(0o600)
    for before, after in ((b"0\n", b"1\n"), (b"1\n", b"2\n")):
        digest = hashlib.sha256(before).hexdigest()
        assert call(state, f"write_file {target} {digest}", base64.b64encode(after)) == 0
    kept = state / f"deploy/before{target}"
    assert (kept.read_bytes(), target.read_bytes()) == (b"0\n", b"2\n")
    assert kept.stat().st_mode & 0o777 == target.stat().st_mode & 0o777 == 0o600
    assert not lines(state / "deploy/made")


@pytest.mark.parametrize("missing", ["openssl", "sha256sum"])
def test_files_that_did_not_arrive_whole_are_not_put_in_place(state: Path, tmp_path: Path, missing: str) -> None:
    program = tmp_path / "first" / missing
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nexit 127\n")
    program.chmod(0o755)
    install = f"PATH={program.parent}:$PATH; install_programs kubelet"
    sent = state / "deploy/received" / str(tmp_path).lstrip("/") / "bin/tool"
    sent.parent.mkdir(parents=True)
    sent.write_bytes(b"tool")
    target = tmp_path / "bin/tool"

    def listing(content: bytes) -> bytes:
        return base64.b64encode(f"{hashlib.sha256(content).hexdigest()}  {str(target).lstrip('/')}\n".encode())

    assert call(state, install, listing(b"another")) == 1
    assert not target.exists() and not (state / "unfinished").exists()
    assert call(state, install, listing(b"tool")) == 0
    assert target.read_bytes() == b"tool" and target.stat().st_mode & 0o777 == 0o755
    assert (state / "unfinished/kubelet").exists() and not (state / "deploy/received").exists()


def test_the_server_is_not_asked_for_a_link_once_an_administrator_has_signed_in(state: Path, tmp_path: Path) -> None:
    said = tmp_path / "said"

    def asked(namespace: str = "corral") -> tuple[int, bool]:
        """The exit code, and whether the server was asked."""
        (tmp_path / "asked").unlink(missing_ok=True)
        kubectl = f"kubectl() {{ : >{tmp_path}/asked; cat {said}; }}\n"
        return call(state, f"{kubectl}print_link {namespace}"), (tmp_path / "asked").exists()

    assert asked() == (1, True) and not (state / "deploy/signed-in").exists(), "it did not answer"
    said.write_text("")
    assert asked() == (1, True) and not (state / "deploy/signed-in").exists(), "its answer was lost"
    said.write_text("https://10.0.0.1:30443/sign-in#link=abc\nasked\n")
    assert asked() == (0, True) and not (state / "deploy/signed-in").exists(), "the link is not used yet"
    said.write_text("asked\n")
    assert asked() == (0, True)
    assert asked() == (0, False)
    assert asked("other") == (0, True), "another installation has administrators of its own"
