"""The portal opens the services of a job in a tab of their own, and what a hostile one among them tries fails."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.portal import service_pages
from tests.portal.harness import Portal, Theme, open_context
from tests.portal.test_everyone_can_use_it import NAMELESS, PALE

SCRIPT = (Path(__file__).parent / "hostile_page.py").read_text()

# Each attempt tells what it got, or how it failed.
ATTEMPTS = """async ([portal, other, job]) => {
  const told = {};
  const attempt = async (name, what) => {
    try { told[name] = String(await what()); } catch (error) { told[name] = `failed: ${error.name}`; }
  };
  const all = { credentials: 'include' };
  for (const name of ['corral_session', 'corral_service', '__Host-corral_session'])
    for (const rest of ['', '; path=/', '; domain=localhost; path=/', '; domain=127.0.0.1; path=/', '; path=/proxy'])
      document.cookie = `${name}=stolen${rest}`;
  document.cookie = '=corral_session=stolen; path=/';
  await attempt('cookies', () => document.cookie);
  await attempt('storage', () => localStorage.getItem('of-the-portal'));
  await attempt('opener', () => window.opener);
  await attempt('api', async () => (await fetch(`${portal}/api/v3/me`, all)).status);
  await attempt('page of the portal', async () => (await fetch(portal, all)).status);
  await attempt('unread', async () => (await fetch(`${portal}/api/v3/me`, { ...all, mode: 'no-cors' })).type);
  await attempt('stop', async () =>
    (await fetch(`${portal}/api/v3/jobs/${job}/stop`, { ...all, mode: 'no-cors', method: 'POST', body: '{}' })).type);
  await attempt('stop by header', async () =>
    (await fetch(`${portal}/api/v3/jobs/${job}/stop`,
      { ...all, method: 'POST', headers: { 'X-Corral-CSRF': '1' } })).status);
  await attempt('own api', async () => (await fetch('/api/v3/me', all)).status);
  await attempt('other job', async () => (await fetch(other, all)).status);
  await attempt('unread of other job', async () => (await fetch(other, { ...all, mode: 'no-cors' })).type);
  await attempt('posted to other job', async () =>
    (await fetch(other, { ...all, mode: 'no-cors', method: 'POST', body: 'x' })).type);
  await attempt('worker', async () => {
    const made = await navigator.serviceWorker.register(location.pathname, { scope: '/' });
    return made.scope;
  });
  const loads = (tag, address) => new Promise((done) => {
    const made = document.createElement(tag);
    made.onload = () => done('loaded');
    made.onerror = () => done('error');
    made.src = address;
    document.body.append(made);
  });
  await attempt('script of the portal', () => loads('script', `${portal}/api/v3/me`));
  await attempt('script of other job', () => loads('script', other));
  const framed = async (address) => {
    const made = document.createElement('iframe');
    await new Promise((done) => { made.onload = done; made.src = address; document.body.append(made); });
    return made.contentWindow.document.body.innerText;
  };
  await attempt('frame of the portal', () => framed(portal));
  await attempt('frame of other job', () => framed(other));
  await attempt('socket to other job', () => new Promise((done) => {
    const made = new WebSocket(other.replace('http', 'ws') + 'socket');
    made.onopen = () => done('open');
    made.onerror = () => done('error');
  }));
  await attempt('socket to the portal', () => new Promise((done) => {
    const made = new WebSocket(`${portal.replace('http', 'ws')}/api/v3/jobs/${job}/tasks/worker/0/exec?cmd=id`);
    made.onmessage = (event) => done(JSON.parse(event.data).error.code);
    made.onerror = () => done('error');
  }));
  await attempt('own socket', () => new Promise((done) => {
    const made = new WebSocket(location.href.replace('http', 'ws') + 'socket');
    made.onopen = () => made.send('hello');
    made.onmessage = (event) => done(event.data);
    made.onerror = () => done('error');
  }));
  return told;
}"""
REFUSED = {
    "storage": "null",
    "opener": "null",
    "api": "failed: TypeError",
    "page of the portal": "failed: TypeError",
    "unread": "failed: TypeError",
    "stop": "failed: TypeError",
    "stop by header": "failed: TypeError",
    "own api": "404",
    "other job": "failed: TypeError",
    "unread of other job": "failed: TypeError",
    "posted to other job": "failed: TypeError",
    "worker": "failed: SecurityError",
    "script of the portal": "error",
    "script of other job": "error",
    "frame of the portal": "failed: SecurityError",
    "frame of other job": "failed: SecurityError",
    "socket to other job": "error",
    "own socket": "hello",
}
"""What a hostile page is told of each attempt, whether its job has a host or a port of its own."""


@pytest.fixture
def window(browser: Browser, portal: Portal) -> Iterator[BrowserContext]:
    """A signed-in window that is not watched, because it goes to other origins."""
    opened = open_context(browser, portal)
    yield opened
    opened.close()


def serve(portal: Portal, name: str) -> str:
    """Submit a job with the hostile page, and wait until it serves; its id."""
    worker = {"command": ["python3", "-c", SCRIPT], "ports": ["web"], "resources": {"cpu": "0.1", "devices": 0}}
    job = str(portal.client.submit(json.dumps({"name": name, "roles": {"worker": worker}}))["id"])
    portal.begun(job, words=b"serving")
    return job


def opened(page: Page, job: str) -> Page:
    """The tab in which the job's page opens its service."""
    tab = service_pages.opened(page, job, "web")
    expect(tab.get_by_role("heading", name="A page of the job")).to_be_visible()
    return tab


def test_a_hostile_page_reads_and_does_nothing_outside_its_job(window: BrowserContext, portal: Portal) -> None:
    victim, hostile = serve(portal, "victim"), serve(portal, "hostile")
    port = portal.url.rpartition(":")[2]
    page = window.new_page()
    page.goto("/")
    page.evaluate("localStorage.setItem('of-the-portal', 'secret')")
    other = opened(page, victim)
    assert other.url == f"http://{victim}.localhost:{port}/proxy/{victim}/worker-0/web/"
    tab = opened(page, hostile)
    assert tab.url == f"http://{hostile}.localhost:{port}/proxy/{hostile}/worker-0/web/"
    told = tab.evaluate(ATTEMPTS, [portal.url, other.url, victim])
    assert {each.partition("=")[2] for each in told.pop("cookies").split("; ")} == {"1", "stolen"}
    assert told == {**REFUSED, "socket to the portal": "not-signed-in"}
    seen = other.evaluate("async () => (await fetch('seen')).text()")
    assert [each.partition("\n")[0] for each in json.loads(seen)] == ["/", "/seen"], "another page asked the victim"
    secrets = [each["value"] for each in window.cookies() if each["name"] in ("corral_session", "corral_service")]
    assert portal.client.token in secrets
    set_by_page = {each["domain"] for each in window.cookies() if each["value"] == "stolen"}
    assert set_by_page == {f"{hostile}.localhost"}, "a page set a cookie for another host"
    known = tab.evaluate("async () => (await fetch('seen')).text()") + seen
    assert not any(each in known for each in secrets if each != "stolen")
    page.goto(f"/jobs/{victim}")
    expect(page.get_by_role("link", name="Open web")).to_be_visible()
    assert portal.client.job(victim)["state"] == "running"


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_the_buttons_can_be_read_and_are_named(browser: Browser, portal: Portal, theme: Theme) -> None:
    job = serve(portal, f"seen-{theme}")
    window = open_context(browser, portal, width=390, theme=theme)
    page = window.new_page()
    for address, name in ((f"/jobs/{job}", "Open web"), (f"/jobs/{job}/open/worker-0/none", "Back to the job")):
        page.goto(address)
        expect(page.get_by_role("link", name=name)).to_be_visible()
        assert page.evaluate(NAMELESS) == []
        assert page.evaluate(PALE) == []
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, (
            "the page is wider than the phone"
        )
    window.close()


def test_a_service_of_another_user_is_not_offered_and_not_opened(
    portal: Portal, page_of: Callable[[str], Page]
) -> None:
    job = serve(portal, "private")
    mallory = page_of("mallory")
    mallory.goto(f"/jobs/{job}")
    expect(mallory.get_by_role("heading", name="Tasks")).to_be_visible()
    expect(mallory.get_by_role("link", name="Open web")).to_have_count(0)
    mallory.goto(f"/jobs/{job}/open/worker-0/web")
    expect(mallory.get_by_role("alert")).to_contain_text(re.compile("mallory may not open the services of the job"))


def test_a_tab_ends_with_the_job(window: BrowserContext, portal: Portal) -> None:
    job = serve(portal, "short")
    tab = opened(window.new_page(), job)
    portal.client.stop(job)
    portal.client.wait(job, timeout=240)
    answer = tab.reload()
    assert answer is not None and answer.status == 409
    expect(tab.locator("body")).to_contain_text("is not running")
