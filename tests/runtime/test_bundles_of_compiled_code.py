"""A task's cache is restored from a bundle that was checked, and published after success; nothing of it fails a task."""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from corral.model.compile_caches import key_of
from corral.runtime import cache_facts
from corral.runtime.cache_bundle import TooLarge, files_in, pack, restore
from corral.runtime.cache_facts import facts_of, versions
from corral.runtime.compile_cache import VARIABLES, CompileCache
from corral.runtime.peers import Refused
from corral.runtime.plan import Plan
from corral.runtime.unpack import UnsafeArchive


class Server:
    """A server that keeps one bundle under one key."""

    def __init__(self, content: bytes = b"", *, given: bytes | None = None) -> None:
        """`given` is what it hands out in place of the content that was published."""
        self.content, self.given = content, given
        self.uses: list[dict[str, Any]] = []
        self.refusal, self.most = "", 1 << 20

    def call(self, method: str, path: str, body: dict[str, Any]) -> Any:
        if path.endswith("/use"):
            self.uses.append(body)
            return None
        digest = hashlib.sha256(self.content).hexdigest() if self.content else ""
        answer = {"key": "a" * 64, "digest": digest, "size": len(self.content), "mostBytes": self.most}
        return answer | {"refusal": self.refusal}

    def read(self, path: str, piece: int) -> Iterator[bytes]:
        content = self.content if self.given is None else self.given
        for at in range(0, len(content), 100):
            yield content[at : at + 100]

    def upload(self, path: str, file: Any, size: int, digest: str) -> None:
        content = file.read(size)
        assert hashlib.sha256(content).hexdigest() == digest and len(content) == size
        self.content = content


def cache(folder: Path, server: Server) -> CompileCache:
    folder.mkdir(exist_ok=True)
    plan = Plan("job~0~worker~0~0", ["true"], str(folder), compile_cache={"image": "", "devices": []})
    return CompileCache(plan, server)  # type: ignore[arg-type]


def bundle(folder: Path, files: dict[str, str]) -> bytes:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    out = io.BytesIO()
    pack(str(folder), files.keys(), out, 1 << 20)
    return out.getvalue()


def test_what_one_task_compiled_the_next_one_finds(tmp_path: Path) -> None:
    server = Server()
    first = cache(tmp_path / "first", server)
    names = first.restore({})
    told = {name for name, value in names.items() if value.startswith(first.folder)}
    assert told == VARIABLES.keys() == {
        "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "JAX_COMPILATION_CACHE_DIR", "VLLM_CACHE_ROOT", "CCACHE_DIR",
    }  # fmt: skip
    Path(names["TRITON_CACHE_DIR"]).mkdir()
    (Path(names["TRITON_CACHE_DIR"]) / "kernel.so").write_text("code")
    first.finish(succeeded=True)
    assert not Path(first.folder).exists()
    second = cache(tmp_path / "second", server)
    found = Path(second.restore({})["TRITON_CACHE_DIR"]) / "kernel.so"
    assert found.read_text() == "code"
    before = server.content
    second.finish(succeeded=True)
    assert server.content is before, "nothing new was compiled, so nothing is published"
    assert server.uses[-1]["newFiles"] == 0 and server.uses[-1]["files"] == 1


def test_a_failed_task_publishes_nothing(tmp_path: Path) -> None:
    server = Server()
    failed = cache(tmp_path / "task", server)
    (Path(failed.restore({})["CCACHE_DIR"])).mkdir()
    (Path(failed.folder) / "ccache" / "half").write_text("half")
    failed.finish(succeeded=False)
    assert server.content == b"" and server.uses[-1]["newFiles"] == 1


def test_a_variable_of_the_job_is_left_alone(tmp_path: Path) -> None:
    assert "CCACHE_DIR" not in cache(tmp_path / "task", Server()).restore({"CCACHE_DIR": "/own"})


@pytest.mark.parametrize("altered", [b"x", b"x" * 5000, b""])
def test_an_altered_bundle_is_not_taken_and_the_task_starts_empty(
    tmp_path: Path, altered: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    server = Server(bundle(tmp_path / "made", {"triton/kernel.so": "code"}), given=altered)
    names = cache(tmp_path / "task", server).restore({})
    assert not Path(names["TRITON_CACHE_DIR"]).exists()
    assert "was not taken" in capsys.readouterr().err and server.uses[0]["refused"]


def test_a_flipped_bit_is_found(tmp_path: Path) -> None:
    good = bundle(tmp_path / "made", {"triton/kernel.so": "code"})
    server = Server(good, given=good[:-1] + bytes([good[-1] ^ 1]))
    assert not Path(cache(tmp_path / "task", server).restore({})["TRITON_CACHE_DIR"]).exists()


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE])
def test_a_poisoned_bundle_writes_nothing(tmp_path: Path, kind: bytes) -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        member = tarfile.TarInfo("a")
        archive.addfile(member, io.BytesIO())
        member = tarfile.TarInfo("bad")
        member.type, member.linkname = kind, "a"
        archive.addfile(member)
    task = cache(tmp_path / "task", Server(out.getvalue()))
    task.restore({})
    assert os.listdir(task.folder) == []


@pytest.mark.parametrize("name", ["../outside", "/etc/outside"])
def test_a_bundle_that_leads_outside_is_refused(tmp_path: Path, name: str) -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        archive.addfile(tarfile.TarInfo(name), io.BytesIO())
    out.seek(0)
    with pytest.raises(UnsafeArchive):
        restore(out, str(tmp_path / "target"))
    assert not (tmp_path / "outside").exists()


def test_packing_follows_no_link_that_the_program_left(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    folder = tmp_path / "cache"
    folder.mkdir()
    (folder / "link").symlink_to(tmp_path / "secret")
    (folder / "inside").symlink_to(tmp_path)
    (folder / "own").write_text("own")
    assert set(files_in(str(folder))) == {"own"}
    (tmp_path / "linked").symlink_to(folder)
    assert files_in(str(tmp_path / "linked")) == {}


def test_a_bundle_above_the_limit_is_not_published(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    server = Server()
    server.most = 200
    task = cache(tmp_path / "task", server)
    task.restore({})
    (Path(task.folder) / "large").write_bytes(os.urandom(4096))
    task.finish(succeeded=True)
    assert server.content == b"" and "more than 200 bytes" in capsys.readouterr().err
    with pytest.raises(TooLarge):
        (tmp_path / "large").write_bytes(os.urandom(4096))
        pack(str(tmp_path), ["large"], io.BytesIO(), 100)


def test_a_server_that_refuses_or_is_away_costs_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    server = Server()
    server.refusal = "ann is not in the group vision"
    task = cache(tmp_path / "task", server)
    assert task.restore({}) == {}
    task.finish(succeeded=True)
    assert "ann is not in the group vision" in capsys.readouterr().err

    class Away(Server):
        def call(self, method: str, path: str, body: dict[str, Any]) -> Any:
            raise Refused("the server answers 404")

    assert cache(tmp_path / "other", Away()).restore({}) == {}


def test_the_seconds_to_the_first_step_are_told(tmp_path: Path) -> None:
    server, now = Server(), [10.0]
    plan = Plan("job~0~worker~0~0", ["true"], str(tmp_path), compile_cache={"image": "", "devices": []})
    task = CompileCache(plan, server, lambda: now[0])  # type: ignore[arg-type]
    task.restore({})
    task.begin()
    now[0] = 14.5
    task.stepped()
    now[0] = 99.0
    task.finish(succeeded=True)
    assert server.uses[-1]["firstStepSeconds"] == 4.5


def test_versions_are_read_from_the_names_of_packages(tmp_path: Path) -> None:
    for name in ("torch-2.5.1.dist-info", "jax-0.4.dist-info", "torchvision-0.2.dist-info"):
        (tmp_path / name).mkdir()
    assert versions([str(tmp_path / "missing"), str(tmp_path)]) == {"torch": "2.5.1", "jax": "0.4"}


@pytest.mark.parametrize(
    ("image", "told"),
    [
        (f"registry.example/torch:2.15@sha256:{'a' * 64}", f"sha256:{'a' * 64}"),
        (f"mirror.example/torch@sha256:{'a' * 64}", f"sha256:{'a' * 64}"),
        (f"torch@sha256:{'a' * 63}", f"torch@sha256:{'a' * 63}"),
        ("torch:2.15", "torch:2.15"),
    ],
)
def test_an_image_that_is_named_by_its_digest_counts_by_it(image: str, told: str) -> None:
    assert facts_of({"image": image}, ["train"], {}, image_seen=False)["image"] == told


def test_a_key_has_image_versions_devices_driver_and_processor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("torch-2.15.0", "triton-4.0", "vllm-0.9"):
        (tmp_path / f"{package}.dist-info").mkdir()
    texts = {"/proc/cpuinfo": "flags : avx2 fma\n", "/proc/driver/nvidia/version": "driver 580\nGCC\n"}
    monkeypatch.setattr(cache_facts, "_text", lambda path: texts.get(path, ""))
    given = {"image": "torch:2.15", "devices": ["H200"]}

    def facts() -> dict[str, str]:
        return facts_of(given, ["train"], {"PYTHONPATH": str(tmp_path)}, image_seen=True)

    known = facts()
    told = {name: known[name] for name in ("image", "torch", "triton", "vllm", "devices", "driver")}
    assert told == {
        "image": "torch:2.15", "torch": "2.15.0", "triton": "4.0", "vllm": "0.9", "devices": "H200", "driver": "driver 580",
    }  # fmt: skip
    keys = {key_of(known)}
    given = given | {"image": "torch:2.16"}
    keys.add(key_of(facts()))
    given = given | {"devices": ["A100"]}
    keys.add(key_of(facts()))
    texts["/proc/driver/nvidia/version"] = "driver 590\n"
    keys.add(key_of(facts()))
    texts["/proc/cpuinfo"] = "flags : avx2 avx512f fma\n"
    keys.add(key_of(facts()))
    (tmp_path / "triton-4.0.dist-info").rename(tmp_path / "triton-4.1.dist-info")
    keys.add(key_of(facts()))
    assert len(keys) == 6, "each of them alone makes another key"
    texts["/proc/cpuinfo"] = "flags : fma avx512f avx2\n"
    assert key_of(facts()) in keys, "the order of flags does not count"
