"""The disk below the task's folder, by fio where it is installed, else by plain writes and reads."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import time

from corral.benchmarks.programs.given import Given

_MIB = 2**20
_PATTERNS = {"seq_write": ("write", "1M"), "seq_read": ("read", "1M"), "rand_write": ("randwrite", "4k"),
             "rand_read": ("randread", "4k")}  # fmt: skip


def measure(given: Given) -> dict[str, float]:
    """Return GB/s; with fio, operations in a second and latencies of random accesses too."""
    fio = shutil.which("fio")
    with tempfile.TemporaryDirectory(dir=".") as folder:
        if fio is None:
            return _plain(folder, given.parameters["size_mib"])
        return _fio(fio, folder, given.parameters["size_mib"], given.parameters["seconds"])


def _fio(fio: str, folder: str, size: int, seconds: int) -> dict[str, float]:
    figures: dict[str, float] = {}
    for name, (pattern, block) in _PATTERNS.items():
        argv = [fio, f"--name={name}", f"--filename={folder}/data", f"--rw={pattern}", f"--bs={block}"]
        argv += [f"--size={size}M", f"--runtime={seconds}", "--time_based", "--ioengine=psync", "--end_fsync=1"]
        argv += ["--output-format=json", "--randseed=7"]
        answer = subprocess.run(argv, capture_output=True, text=True, timeout=seconds * 10 + 120)
        if answer.returncode:
            raise OSError(f"fio ended with {answer.returncode}: {answer.stderr.strip()[-200:]}")
        (job,) = json.loads(answer.stdout[answer.stdout.index("{") :])["jobs"]
        side = job["read" if "read" in pattern else "write"]
        figures[f"{name}_bw"] = side["bw_bytes"] / 1e9
        if name.startswith("rand"):
            figures[f"{name}_iops_throughput"] = side["iops"]
            figures[f"{name}_lat"] = side["clat_ns"]["mean"] / 1000
    return figures


def _plain(folder: str, size: int) -> dict[str, float]:
    block = os.urandom(_MIB)
    with open(os.path.join(folder, "data"), "w+b") as file:
        begun = time.perf_counter()
        for _ in range(size):
            file.write(block)
        file.flush()
        os.fsync(file.fileno())
        written = time.perf_counter() - begun
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        file.seek(0)
        begun = time.perf_counter()
        for _ in range(size):
            if file.read(_MIB) != block:
                raise OSError("a file was read back with other contents")
        read = time.perf_counter() - begun
    return {"seq_write_bw": size * _MIB / max(written, 1e-9) / 1e9, "seq_read_bw": size * _MIB / max(read, 1e-9) / 1e9}
