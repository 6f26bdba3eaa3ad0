"""Start this machine's Chromium for tests that look at pages as people do."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from typing import Final

from playwright.sync_api import Browser, expect, sync_playwright

from tests.conftest import ROOT
from tests.portal import steady_network
from tests.portal.harness import NAMED

expect.set_options(timeout=60_000)

_PROGRAMS: Final = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
"""The programs that run the pages, the best first: the shell takes half of Chromium's processor time."""


def missing() -> str:
    """Why no browser can be started, "" if one can."""
    found = _program()
    return "" if found else "no Chromium here, so the portal is not tested: apt-get install -y chromium-headless-shell"


def unbuilt() -> str:
    """Why a server shows no pages, "" if it does."""
    built = (ROOT / "corral" / "portal" / "static" / "index.html").is_file()
    return "" if built else "the portal is not built, so it is not tested: make portal"


@contextlib.contextmanager
def launched() -> Iterator[Browser]:
    """A browser without its windows if that is here; it ends with the block.

    Until then Playwright's event loop runs in this thread, where no other can.
    """
    arguments = ["--no-sandbox", "--disable-dev-shm-usage", f"--host-resolver-rules=MAP {NAMED} 127.0.0.1"]
    surroundings: dict[str, str | float | bool] = {**os.environ, steady_network.PROGRAM: str(_program())}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=steady_network.__file__, args=arguments, env=surroundings)
        try:
            yield browser
        finally:
            browser.close()


def _program() -> str | None:
    return next(filter(None, map(shutil.which, _PROGRAMS)), None)
