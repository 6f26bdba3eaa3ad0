"""What tasks made of the cache of compiled code, on the page of their job."""

from __future__ import annotations

import json
import re

from playwright.sync_api import Page, expect

from tests.portal.harness import Portal

# It stands for a compiler that keeps its results in the folder that it is told.
COMPILES = 'mkdir -p "$CCACHE_DIR"; test -e "$CCACHE_DIR/a" || printf x > "$CCACHE_DIR/a"'


def compiled(portal: Portal, name: str) -> str:
    """A job whose task has left a result in the cache of its user, and that has ended."""
    document = {"name": name, "compileCache": "user", "roles": {"worker": {"command": COMPILES}}}
    job = portal.client.submit(json.dumps(document))["id"]
    assert portal.client.wait(job)["state"] == "succeeded"
    return str(job)


def test_a_job_says_what_was_found_and_what_was_compiled_anew(page: Page, portal: Portal) -> None:
    first, second = compiled(portal, "compiled-first"), compiled(portal, "compiled-second")
    page.goto(f"/jobs/{first}")
    card = page.get_by_role("region", name="Compiled code")
    expect(card).to_contain_text("Its task found no compiled code and compiled anew.")
    page.goto(f"/jobs/{second}")
    expect(card).to_contain_text(re.compile(r"Its task started from compiled code, [\d.]+ MiB in all"))
    expect(card.get_by_role("row", name=re.compile(r"^worker-0 1 file, "))).to_be_visible()


def test_a_job_without_a_cache_says_nothing_of_it(page: Page, portal: Portal) -> None:
    job = portal.client.submit(json.dumps({"name": "plain", "roles": {"worker": {"command": "true"}}}))["id"]
    portal.client.wait(job)
    page.goto(f"/jobs/{job}")
    expect(page.get_by_role("region", name="Tasks")).to_be_visible()
    expect(page.get_by_role("region", name="Compiled code")).to_have_count(0)
