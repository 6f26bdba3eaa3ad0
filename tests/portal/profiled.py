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
    good = [(each, read(each, "torch")[0]) for each in taken]
    at, id = time.time() - ago, f"{job}-{int(loading):08x}"
    packed = pack(id, *report_of("torch", good, "trainer"), taken)
    folder = portal.database.parent / "blobs" / "profiles"
    (folder / f"{packed.digest}.tar.gz").write_bytes(packed.content)
    doc = ProfileDoc(tuple(each.task for each in taken), ranks, files=packed.files)
    text = msgspec.json.encode(doc).decode()
    row = ProfileRow(id, job, "root", "root", "torch", 2, at, at, "done", text, packed.digest, len(packed.content))
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
