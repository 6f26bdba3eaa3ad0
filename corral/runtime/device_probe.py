"""Tell the server once which devices a node has and how they are linked, as their driver or its tool tells it.

It runs in a YARN container of its own. The server reads the texts; nothing is decided here.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from glob import glob
from typing import Any

from corral.runtime.peers import Refused
from corral.runtime.slot_calls import SlotCalls

_QUERY = "index,uuid,name,memory.total,ecc.errors.uncorrected.volatile.total"
_SECONDS = 60
"""Seconds that the vendor's tool may take; it is slow where the driver has to be loaded first."""
_MOST = 128 * 1024
"""Characters of a text that are sent."""
_TRIES = 20
_KFD = "sys/class/kfd/kfd/topology/nodes"
"""The topology of AMD's kernel driver: a folder for each processor and GPU."""
KFD_FILES = ("[0-9]*/properties", "[0-9]*/name", "[0-9]*/io_links/*/properties", "[0-9]*/mem_banks/*/properties")
_RENDERED = re.compile(r"^drm_render_minor ([0-9]{1,4})$", re.MULTILINE)
_MOST_FILE = 8 * 1024
"""Characters of one of these files; in all they have at most 512 KiB."""
_MOST_FILES = 512 * 1024
_ASCEND = re.compile(r"davinci([0-9]{1,4})")


def probe(calls: SlotCalls, root: str = "/") -> int:
    """Send what the vendor's tool prints, or the kernel tells; the exit code of the process."""
    report = _report(root)
    for _ in range(_TRIES):
        try:
            calls.probed(report)
        except Refused as error:
            print(f"corral: {error}", file=sys.stderr, flush=True)
            return 3
        except OSError as error:
            print(f"corral: the server does not answer ({error}); trying again", file=sys.stderr, flush=True)
            time.sleep(2)
        else:
            return 0
    return 1


def _report(root: str) -> dict[str, Any]:
    """The texts about the devices of the first vendor that has any here."""
    devices, trouble = _printed(f"--query-gpu={_QUERY}", "--format=csv,noheader,nounits")
    if not trouble:
        return {"devices": devices, "topology": _printed("topo", "-m")[0], "trouble": ""}
    if files := _kernel_files(os.path.join(root, _KFD), os.path.join(root, "sys/class/drm")):
        if sum(map(len, files.values())) > _MOST_FILES:
            return {"devices": "", "topology": "", "trouble": "the topology of AMD's driver is too long"}
        return {"vendor": "amd", "devices": "", "topology": "", "trouble": "", "files": files}
    if names := _ascend_names(os.path.join(root, "dev")):
        return {"vendor": "ascend", "devices": "\n".join(names), "topology": "", "trouble": ""}
    return {"devices": "", "topology": "", "trouble": trouble}


def _kernel_files(topology: str, drm: str) -> dict[str, str]:
    """The files of AMD's topology by their paths below it, if it has a GPU, and the memory errors of its GPUs."""
    found = {}
    for pattern in KFD_FILES:
        for path in sorted(glob(os.path.join(topology, pattern))):
            found[os.path.relpath(path, topology)] = _read(path)
    gpus = [path for path, text in found.items() if re.search(r"^simd_count [1-9]", text, re.MULTILINE)]
    for path in gpus:
        if minor := _RENDERED.search(found[path]):
            errors = _read(os.path.join(drm, f"renderD{minor[1]}", "device/ras/umc_err_count"))
            if errors:
                found[os.path.join(os.path.dirname(path), "umc_err_count")] = errors
    return found if gpus else {}


def _ascend_names(folder: str) -> list[str]:
    """The device files of Ascend NPUs, by their numbers."""
    try:
        numbers = sorted(int(match[1]) for name in os.listdir(folder) if (match := _ASCEND.fullmatch(name)))
    except OSError:
        return []
    return [f"davinci{number}" for number in numbers]


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(_MOST_FILE)
    except OSError:
        return ""


def _printed(*words: str) -> tuple[str, str]:
    """What the tool prints, and why it printed nothing."""
    command: list[Any] = ["nvidia-smi", *words]
    try:
        done = subprocess.run(command, capture_output=True, timeout=_SECONDS, stdin=subprocess.DEVNULL, check=False)
    except FileNotFoundError:
        return "", "nvidia-smi is not installed"
    except (OSError, subprocess.TimeoutExpired) as error:
        return "", f"nvidia-smi does not run: {error}"[:300]
    text = done.stdout.decode(errors="replace")[:_MOST]
    return (
        (text, "") if done.returncode == 0 else ("", f"nvidia-smi ended with {done.returncode}: {text.strip()[:200]}")
    )
