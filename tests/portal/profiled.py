"""Put PyTorch traces of a job into the portal's server, as if its tasks had written them."""

from __future__ import annotations

import gzip
import json
import sqlite3
import time
from pathlib import Path
from typing import Any

import msgspec
from playwright.sync_api import Page, expect

from corral.model.profiles import ProfileDoc, ProfileRow
from corral.profiles.advice import Given
from corral.profiles.kinds import read
from corral.profiles.taken import Taken
from corral.service.profiles.report import pack, report_of
from tests.portal.harness import Portal

LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


def span(name: str, begin: float, end: float, kind: str, thread: int = 1) -> dict[str, Any]:
    """A span of a Chrome trace; times in milliseconds."""
    return {
        "ph": "X",
        "cat": kind,
        "name": name,
        "pid": 7,
        "tid": thread,
        "ts": begin * 1e3,
        "dur": (end - begin) * 1e3,
    }


def steps(*, loading: float, talking: float) -> list[dict[str, Any]]:
    """Ten steps of 100 ms, of which parts are spent waiting for data and for other ranks."""
    spans = []
    for number in range(10):
        begin, loaded = number * 100.0, number * 100.0 + loading
        talks = begin + 95 - talking
        spans += [
            span(LOADER, begin, loaded, "user_annotation"),
            span("Memcpy HtoD", loaded, loaded + 3, "gpu_memcpy"),
            span("sm80_gemm_f16", loaded + 3, talks, "kernel"),
            span("ncclDevKernel_AllReduce", talks, begin + 95, "kernel", thread=2),
            span("aten::mm", loaded, begin + 95, "cpu_op"),
            span("Optimizer.step#SGD.step", begin + 95, begin + 100, "user_annotation"),
        ]
    return spans


def plant_trace(portal: Portal, job: str, *, ranks: int, loading: float, ago: float = 0.0) -> str:
    """Keep a trace of a job, as the server does; its id. The last rank waits for nobody, and its peers for it."""
    taken = []
    for index in range(ranks):
        spans = steps(loading=loading, talking=5 if index == ranks - 1 else 30)
        text = json.dumps({"schemaVersion": 1, "traceEvents": spans, "traceName": "x"})
        taken.append(Taken(f"worker-{index}", 7, trace=gzip.compress(text.encode())))
    return _keep(portal, job, f"{job}-{int(loading):08x}", "torch", taken, ago)


def plant_memory(portal: Portal, job: str, *, ranks: int) -> str:
    """Keep a memory profile of a job whose ranks grew by 60 MiB each, mostly beneath one function; its id."""
    mib = 1024
    looks = [(at * 100.0, at * 100.0 + 2, (200 + 2 * at) * mib) for at in range(30)]
    parts = [(begin, size, 90 * mib, 16 * mib, 0, 400 * mib) for begin, _, size in looks]
    names = {"": 170 * mib, "[heap]": 30 * mib, "/usr/lib/libtorch_cpu.so": 90 * mib, "/dev/shm/torch_7": 16 * mib}
    facts = {
        "seconds": 3.0, "begun": 50.0, "rate": 500, "sampling": 50.0, "fine": looks, "parts": parts, "before": names,
        "after": {**names, "": 228 * mib},
    }  # fmt: skip
    calls = [
        {"ph": phase, "name": name, "tid": 1, "ts": at * 1e6, "args": {"filename": "train.py", "line": line}}
        for phase, name, line, at in (
            ("B", "train", 40, 0), ("B", "decode_image", 12, 0), ("E", "decode_image", 12, 2.2), ("B", "log", 9, 2.2),
            ("E", "log", 9, 3), ("E", "train", 40, 3),
        )
    ]  # fmt: skip
    trace = gzip.compress(json.dumps(calls).encode())
    taken = [Taken(f"worker-{index}", 7, text=json.dumps(facts), trace=trace) for index in range(ranks)]
    return _keep(portal, job, f"{job}-0000beef", "memory", taken)


def plant_functions(portal: Portal, job: str, *, ranks: int, ago: float = 0.0) -> str:
    """Keep a profile of the functions of a job whose ranks decode images for half of the time; its id."""
    batch, forward = "train (train.py:61);next_batch (data.py:40)", "train (train.py:64);forward"
    stacks = {
        f"{batch};decode_image (data.py:22);Image.resize (PIL/Image.py:2365)": 88,
        f"{batch};decode_image (data.py:22);Image.load (PIL/ImageFile.py:300)": 62,
        f"{batch};collate (data.py:31)": 24,
        f"{forward} (model.py:17);Linear.forward (nn/linear.py:134)": 58,
        f"{forward} (model.py:21);softmax (nn/functional.py:2142)": 16,
        "train (train.py:66);backward (autograd/graph.py:829)": 34,
        "train (train.py:70);all_reduce (distributed_c10d.py:2810)": 12,
        "train (train.py:73);save_checkpoint (train.py:31)": 6,
    }
    text = "".join(f"<module> (train.py:88);{stack} {samples}\n" for stack, samples in stacks.items())
    return _keep(
        portal, job, f"{job}-0000cafe", "python", [Taken(f"worker-{at}", 7, text=text) for at in range(ranks)], ago
    )


def plant_system(portal: Portal, job: str) -> str:
    """Keep a profile of a job's machine, whose one thread waits for the disk for half of the time; its id."""
    mib = 2**20
    looks = [
        {
            "at": at / 10, "user": at / 20, "ran": at / 20, "waited": at / 200, "read": at * 9.0 * mib,
            "rchar": at * 10.0 * mib, "major": at * 30.0, "voluntary": at * 40.0, "resident": 900.0 * mib,
            "received": at * 3.0 * mib,
            "cached": (200.0 + 9 * at) * mib,
        }
        for at in range(31)
    ]  # fmt: skip
    thread = {"ran": 1.5, "waited": 0.1, "disk": 0.48, "ready": 0.5}
    devices = [[at / 5, 0, 20 + at, 20_000, 80_000] for at in range(15)]
    facts = {"looks": looks, "threads": [thread], "processors": 4, "devices": devices}
    return _keep(portal, job, f"{job}-0000feed", "system", [Taken("worker-0", 0, text=json.dumps(facts))])


def _keep(portal: Portal, job: str, id: str, what: str, taken: list[Taken], ago: float = 0.0) -> str:
    good = [(each, read(each, what)[0]) for each in taken]
    at, given = time.time() - ago, {each.task: Given(2000, 2 << 30) for each in taken}
    packed = pack(id, *report_of(what, good, "trainer", given), taken)
    folder = portal.database.parent / "blobs" / "profiles"
    (folder / f"{packed.digest}.tar.gz").write_bytes(packed.content)
    doc = ProfileDoc(tuple(each.task for each in taken), len(taken), files=packed.files)
    text = msgspec.json.encode(doc).decode()
    row = ProfileRow(id, job, "root", "root", what, 2, at, at, "done", text, packed.digest, len(packed.content))
    marks = ", ".join("?" * len(row))
    names = ", ".join(f'"{name}"' for name in row._fields)
    with sqlite3.connect(portal.database, timeout=60) as database:
        database.execute(f"INSERT INTO profiles ({names}) VALUES ({marks})", row)
    return id


def take_profiles(portal: Portal, pictures: Path, page: Page) -> None:
    """Take the picture of a trace of four ranks, with its advice and its timeline."""
    job = portal.submit("llm-warmup", replicas=4)
    plant_trace(portal, job, ranks=4, loading=5, ago=300)
    plant_trace(portal, job, ranks=4, loading=40)
    page.goto(f"/jobs/{job}?tab=profiles")
    expect(page.get_by_role("figure", name="Timeline")).to_be_visible()
    page.get_by_label("Compare with").select_option(index=1)
    expect(page.get_by_role("table", name="Differences")).to_be_visible()
    page.screenshot(path=pictures / "profiles.png", full_page=True)
    take_flames(portal, pictures, page)


def take_flames(portal: Portal, pictures: Path, page: Page) -> None:
    """Take the picture of a flame graph of two ranks."""
    job = portal.submit("trainer", replicas=2)
    plant_functions(portal, job, ranks=2)
    page.goto(f"/jobs/{job}?tab=profiles")
    expect(page.get_by_role("figure", name="Flame graph")).to_be_visible()
    expect(page.get_by_role("table", name="Functions")).to_contain_text("Image.resize")
    page.screenshot(path=pictures / "flame-graph.png", full_page=True)
