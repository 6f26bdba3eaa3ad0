"""Fetches a page from a peer, which may still be starting, and prints its length."""

from __future__ import annotations

import os
import sys
import time
import urllib.error
import urllib.request

for _ in range(100):
    try:
        with urllib.request.urlopen(sys.argv[1], timeout=10) as answer:
            print(f"client {os.environ['CORRAL_TASK_INDEX']} fetched {len(answer.read())} bytes", flush=True)
            break
    except urllib.error.URLError:
        time.sleep(0.1)
else:
    raise SystemExit(f"nobody answers at {sys.argv[1]}")
