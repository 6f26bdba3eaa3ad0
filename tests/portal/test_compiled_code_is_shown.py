"""What tasks made of the cache of compiled code, on the page of their job."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.portal.harness import Portal

# It stands for a compiler that keeps its results in the folder that it is told.
COMPILES = 'mkdir -p "$CCACHE_DIR"; test -e "$CCACHE_DIR/a" || printf x > "$CCACHE_DIR/a"'


@pytest.fixture(autouse=True)
def _cold(portal: Portal) -> None:
    """Remove the bundles that another test left, because all jobs of one user share them."""
    for bundle in portal.client.caches()["items"]:
        portal.client.remove_cache(bundle["id"])


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


QUEUES = """
kind: Queue
name: compiling
compileCache: user
---
kind: Queue
name: compiling-too
parent: compiling
"""


@pytest.fixture
def compiling(portal: Portal) -> Iterator[None]:
    """The two queues; they are gone afterwards."""
    portal.client.apply(QUEUES)
    yield
    portal.clear()
    for name in ("compiling-too", "compiling"):
        portal.client.delete_configuration("queue", name)


@pytest.mark.usefixtures("compiling")
def test_the_default_of_a_queue_keeps_what_jobs_compile_that_say_nothing(page: Page, portal: Portal) -> None:
    jobs = {}
    for name, more in (("default-first", {}), ("default-second", {}), ("default-off", {"compileCache": "none"})):
        command = COMPILES if not more else 'test -z "$CCACHE_DIR"'
        document = {"name": name, "queue": "compiling-too", "roles": {"worker": {"command": command}}, **more}
        jobs[name] = portal.client.submit(json.dumps(document))["id"]
        assert portal.client.wait(jobs[name])["state"] == "succeeded", name
    first, second, off = (portal.client.job_cache(jobs[name]) for name in jobs)
    assert (first["hits"], second["hits"], off["tasks"], off["share"]) == (0, 1, 0, "none")
    assert second["uses"][0]["digest"] == first["uses"][0]["published"] != ""
    card = page.get_by_role("region", name="Compiled code")
    page.goto(f"/jobs/{jobs['default-second']}")
    expect(card).to_contain_text("The job file leaves it to the queue compiling, which says compileCache: user.")
    page.goto(f"/jobs/{jobs['default-off']}")
    expect(page.get_by_role("region", name="Tasks")).to_be_visible()
    expect(card).to_have_count(0)


def test_a_job_without_a_cache_says_nothing_of_it(page: Page, portal: Portal) -> None:
    job = portal.client.submit(json.dumps({"name": "plain", "roles": {"worker": {"command": "true"}}}))["id"]
    portal.client.wait(job)
    page.goto(f"/jobs/{job}")
    expect(page.get_by_role("region", name="Tasks")).to_be_visible()
    expect(page.get_by_role("region", name="Compiled code")).to_have_count(0)
