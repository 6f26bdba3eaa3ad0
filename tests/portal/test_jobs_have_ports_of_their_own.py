"""Where jobs have no hosts of their own they have ports: what a hostile page tries there fails; ports are given back."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import trustme
from playwright.sync_api import Browser, BrowserContext, expect

from corral.client import Client
from tests import warm
from tests.portal.harness import NAMED, Portal
from tests.portal.test_services_are_opened import ATTEMPTS, REFUSED, opened, serve
from tests.reserved import first_of_free, task_ports
from tests.waiting import pause

PREFIX = "__Host-Http-corral_"
# What the page sets over HTTPS for the host that it shares with the portal and with the other job.
PLANT = """async ([names]) => {
  for (const name of names)
    for (const rest of ['', '; path=/', '; path=/; secure', '; path=/api; secure', '; domain=corral.test; path=/; secure'])
      document.cookie = `${name}=stolen${rest}`;
  const read = document.cookie;
  history.pushState(null, '', '/api/v3/me');
  return [read, document.cookie];
}"""


@pytest.fixture(scope="module")
def secure(browser: Browser) -> Iterator[Portal]:
    """A server with a certificate whose jobs have ports; browsers reach it by a name."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o711)  # each user's tasks run under a system user of their own
        with _serving(Path(name)) as portal:
            yield portal


@contextlib.contextmanager
def _serving(folder: Path) -> Iterator[Portal]:
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1", NAMED)
    authority.cert_pem.write_to_path(str(folder / "ca"))
    issued.private_key_pem.write_to_path(str(folder / "key"))
    issued.cert_chain_pems[0].write_to_path(str(folder / "certificate"))
    first = first_of_free(25)
    data = folder / "data"
    environment = {**os.environ, **task_ports(), "XDG_CONFIG_HOME": str(folder / "config")}
    environment |= {"CORRAL_JOB_PORTS": f"{first}-{first + 24}"}
    start = ["up", "--detach", "--data", str(data), "--port", "0", "-o", "json"]
    start += ["--tls-cert", str(folder / "certificate"), "--tls-key", str(folder / "key")]
    done = warm.corral(start, env=environment, seconds=240)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    try:
        with Client(told["url"], ca=str(folder / "ca")) as client:
            client.login(link=told["link"].partition("#link=")[2])
            yield Portal(f"https://{NAMED}:{urlsplit(told['url']).port}", told["link"], client, data / "corral.db")
    finally:
        warm.corral(["down", "--data", str(data), "--stop-jobs"], env=environment, seconds=240).check_returncode()


@pytest.fixture
def window(browser: Browser, secure: Portal) -> Iterator[BrowserContext]:
    """A window that signed in by a link."""
    context = browser.new_context(base_url=secure.url, ignore_https_errors=True)
    context.set_default_timeout(60_000)
    page = context.new_page()
    page.goto(f"/sign-in#link={secure.client.login_link(str(secure.client.me()['user']))['link']}")
    expect(page.get_by_role("link", name="Submit").first).to_be_visible()
    yield context
    context.close()


def test_a_hostile_page_at_a_port_reads_and_does_nothing_outside_its_job(
    window: BrowserContext, secure: Portal
) -> None:
    victim, hostile = serve(secure, "victim"), serve(secure, "hostile")
    page = window.new_page()
    page.goto("/")
    page.evaluate("localStorage.setItem('of-the-portal', 'secret')")
    before = {each["name"]: each["value"] for each in window.cookies()}
    assert f"{PREFIX}session" in before
    other, tab = opened(page, victim), opened(page, hostile)
    ports = [urlsplit(each).port for each in (secure.url, other.url, tab.url)]
    assert len(set(ports)) == 3
    assert tab.url == f"https://{NAMED}:{ports[2]}/proxy/{hostile}/worker-0/web/"
    told = tab.evaluate(ATTEMPTS, [secure.url, other.url, victim])
    assert {each.partition("=")[2] for each in told.pop("cookies").split("; ")} == {"stolen"}, "a cookie was read"
    assert told == {**REFUSED, "socket to the portal": "csrf"}
    ours = [f"{PREFIX}session", f"{PREFIX}service_{victim}", f"{PREFIX}port_{ports[1]}", "corral_session"]
    for read in tab.evaluate(PLANT, [ours]):
        assert {each.partition("=")[0] for each in read.split("; ")} <= {"corral_session", "corral_service", ""}
    after = {
        (each["name"], each["path"]): each["value"] for each in window.cookies() if each["name"].startswith(PREFIX)
    }
    assert "stolen" not in after.values() and {path for _, path in after} == {"/"}
    assert after[f"{PREFIX}session", "/"] == before[f"{PREFIX}session"]
    seen = other.evaluate("async () => (await fetch('seen')).text()")
    assert [each.partition("\n")[0] for each in json.loads(seen)] == ["/", "/seen"], "another page asked the victim"
    tab.goto(tab.url.partition("/api")[0] + f"/proxy/{hostile}/worker-0/web/seen")
    known = tab.locator("body").inner_text() + seen
    secrets = [value for (name, _), value in after.items() if not name.startswith(f"{PREFIX}port_")]
    assert "cookie" not in known.lower() and not any(each in known for each in secrets)
    page.goto(f"/jobs/{victim}")
    expect(page.get_by_role("link", name="Open web")).to_be_visible()
    assert secure.client.job(victim)["state"] == "running"


def test_a_port_is_closed_when_its_job_is_over(window: BrowserContext, secure: Portal) -> None:
    job = serve(secure, "short")
    port = urlsplit(opened(window.new_page(), job).url).port
    secure.client.stop(job)
    secure.client.wait(job, timeout=240)
    begun = time.monotonic()
    while _is_open(port):
        assert time.monotonic() - begun < 120, "the port is still listened at"
        time.sleep(pause(begun))


def _is_open(port: int | None) -> bool:
    with socket.socket() as probe:
        probe.settimeout(60)
        return probe.connect_ex(("127.0.0.1", port)) == 0
