"""Tell the server once which devices a node has and how they are linked, as `nvidia-smi` prints it.

It runs in a YARN container of its own. The server reads the texts; nothing is decided here.
"""

from __future__ import annotations

import subprocess
import sys
import time
from typing import Any

from corral.runtime.peers import Refused
from corral.runtime.slot_calls import SlotCalls

_QUERY = "index,uuid,name,memory.total,ecc.errors.uncorrected.volatile.total"
_SECONDS = 60
"""Seconds that the vendor's tool may take; it is slow where the driver has to be loaded first."""
_MOST = 128 * 1024
"""Characters of a text that are sent."""
_TRIES = 20


def probe(calls: SlotCalls) -> int:
    """Send what the vendor's tool prints; the exit code of the process."""
    devices, trouble = _printed(f"--query-gpu={_QUERY}", "--format=csv,noheader,nounits")
    topology, _ = ("", "") if trouble else _printed("topo", "-m")
    report = {"devices": devices, "topology": topology, "trouble": trouble}
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
