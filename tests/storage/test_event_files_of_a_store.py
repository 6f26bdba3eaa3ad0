"""What is new in the event files of an object store is copied, and told as a task's curves."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from s3fs import S3FileSystem

from corral.kernel.errors import InvalidInput, Unavailable
from corral.runtime.build import build_runtime
from corral.storage import event_mirror
from corral.storage.event_mirror import mirror
from tests.runtime.event_files.encoder import NAME, scalars

PROGRAM = """
import s3fs, sys
s3fs.S3FileSystem().pipe_file(sys.argv[1], bytes.fromhex(sys.argv[2]))
"""


@pytest.fixture
def store(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Iterator[S3FileSystem]:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    S3FileSystem.clear_instance_cache()
    yield S3FileSystem(use_listings_cache=False)
    S3FileSystem.clear_instance_cache()


def copied(uri: str, folder: Path, since: float = 0.0) -> int:
    S3FileSystem.clear_instance_cache()  # each copy is made by a process of its own
    return mirror(uri, folder, since)


def test_only_what_is_new_is_copied_and_a_shorter_file_is_copied_anew(store: S3FileSystem, tmp_path: Path) -> None:
    uri = f"s3://data/{tmp_path.name}"
    assert copied(uri, tmp_path) == 0, "nothing is there yet"
    store.pipe_file(f"{uri}/runs/a/{NAME}", b"12345")
    store.pipe_file(f"{uri}/runs/a/model.pt", b"x" * 100)
    store.pipe_file(f"{uri}/.hidden/{NAME}", b"no")
    copy = tmp_path / "runs" / "a" / NAME
    assert copied(uri, tmp_path) == 5 and copy.read_bytes() == b"12345"
    store.pipe_file(f"{uri}/runs/a/{NAME}", b"1234567")
    assert copied(uri, tmp_path) == 2 and copy.read_bytes() == b"1234567"
    store.pipe_file(f"{uri}/runs/a/{NAME}", b"new")
    assert copied(uri, tmp_path) == 3 and copy.read_bytes() == b"new"
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == [NAME]


def test_copies_are_bounded_and_old_files_are_not_begun(
    store: S3FileSystem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_mirror, "MOST_BYTES", 10)
    monkeypatch.setattr(event_mirror, "MOST_KEPT", 25)
    uri = f"s3://data/{tmp_path.name}"
    store.pipe_file(f"{uri}/{NAME}", b"x" * 100)
    assert copied(uri, tmp_path, since=time.time() + 100) == 0
    assert [copied(uri, tmp_path) for _ in range(4)] == [10, 10, 5, 0]
    assert copied(uri, tmp_path, since=time.time() + 100) == 0


def test_a_deep_or_wide_store_is_read_so_far(
    store: S3FileSystem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = f"s3://data/{tmp_path.name}"
    store.pipe_file(f"{uri}/1/2/3/4/5/{NAME}", b"x")
    store.pipe_file(f"{uri}/1/2/3/4/5/6/{NAME}", b"too deep")
    assert copied(uri, tmp_path) == 1
    monkeypatch.setattr(event_mirror, "MOST_ENTRIES", 3)
    for number in range(10):
        store.pipe_file(f"{uri}/wide/{number}-{NAME}", b"x")
    assert copied(f"{uri}/wide", tmp_path / "wide") == 3


def test_a_refusal_is_one_sentence(store: S3FileSystem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidInput, match="cannot be staged"):
        mirror("gopher://data/x", tmp_path, 0.0)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    with pytest.raises(Unavailable, match="could not be"):
        copied("s3://data/x", tmp_path)


class Told(BaseHTTPRequestHandler):
    """Takes what a task tells."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.told.append((self.path, body))  # type: ignore[attr-defined]
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.mark.parametrize("wrong", [False, True], ids=["there", "wrong"])
def test_the_runtime_tells_curves_of_a_folder_in_the_store(
    environment: dict[str, str], tmp_path: Path, wrong: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The task writes to the store itself; the program beside it is the runtime as it is shipped.

    The credentials are secrets of the job.
    """
    uri, now, work = f"s3://data/{tmp_path.name}/runs", time.time(), tmp_path / "work"
    work.mkdir()
    (tmp_path / "token").write_text("token")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Told)
    server.told = []  # type: ignore[attr-defined]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    written = scalars((now - 20, "loss", 0.5), (now - 1, "loss", 0.25)).hex()
    plan: dict[str, Any] = {
        "attempt": "job.0.worker.0.0",
        "command": [sys.executable, "-c", PROGRAM, f"{uri}/{NAME}", written],
        "work": str(work),
        "report": {"file": "", "pattern": "", "steps": 0, "tensorboard": ["gopher://none/x" if wrong else uri]},
        "stage_command": [sys.executable, "-m", "corral.storage", "stage"],
        "api_url": f"http://127.0.0.1:{server.server_port}",
        "token_file": str(tmp_path / "token"),
        "secrets_file": str(tmp_path / "secrets"),
    }
    given = {name: value for name, value in environment.items() if name in ("AWS_ENDPOINT_URL", "AWS_DEFAULT_REGION")}
    secrets = [{"env": name, "file": "", "value": value} for name, value in environment.items() if name not in given]
    (tmp_path / "secrets").write_text(json.dumps(secrets))
    (tmp_path / "plan").write_text(json.dumps(plan))
    (tmp_path / "tmp").mkdir()
    for name in environment:
        monkeypatch.delenv(name, raising=False)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    runtime = build_runtime(tmp_path / "runtime.pyz")
    ran = subprocess.run(
        [sys.executable, runtime, "run", tmp_path / "plan"], capture_output=True, text=True, timeout=120, check=False
    )
    server.shutdown()
    assert ran.returncode == 0, ran.stderr
    told = [each for path, body in server.told if path.endswith("/scalars") for each in body["scalars"]]  # type: ignore[attr-defined]
    shown = [(each["run"], each["tag"], each["value"]) for each in told]
    assert shown == ([] if wrong else [(f"data/{tmp_path.name}/runs", "loss", value) for value in (0.5, 0.25)])
    assert ("gopher: cannot be staged" in ran.stderr) is wrong, ran.stderr
    assert not [*(tmp_path / "tmp").iterdir(), *work.iterdir()], "the copies are gone"
