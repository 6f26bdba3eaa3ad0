"""The portal's pages load offline, quickly and up to date, and never hide an answer of the API."""

from __future__ import annotations

import gzip

import httpx2
import pytest

from tests.api.harness import Server


@pytest.fixture
def http(server: Server) -> httpx2.Client:
    """Plain HTTP, not signed in."""
    return httpx2.Client(base_url=server.url, trust_env=False)


def test_a_portal_that_is_not_built_says_how(http: httpx2.Client) -> None:
    page = http.get("/")
    assert page.status_code == 200 and "make portal" in page.text
    assert page.headers["content-type"].startswith("text/html")


def test_files_are_served_with_the_right_age_and_routes_get_the_page(server: Server, http: httpx2.Client) -> None:
    folder = server.folder / "portal"
    (folder / "assets").mkdir(parents=True)
    (folder / "index.html").write_text("<!doctype html>the page")
    (folder / "assets" / "app-1a2b.js").write_text("1")
    assert http.get("/").text.endswith("the page")
    assert http.get("/jobs/abc").text.endswith("the page")
    assert http.get("/sign-in").headers["cache-control"] == "no-cache"
    script = http.get("/assets/app-1a2b.js")
    assert "immutable" in script.headers["cache-control"]
    assert script.headers["content-type"].startswith("text/javascript")
    again = http.get("/", headers={"if-none-match": http.get("/").headers["etag"]})
    assert again.status_code in (200, 304)


@pytest.mark.parametrize("path", ["/api/v3/nothing", "/api/v9", "/missing.js", "/%2e%2e/%2e%2e/key.txt"])
def test_what_is_missing_is_not_the_page(http: httpx2.Client, path: str) -> None:
    response = http.get(path)
    assert response.status_code == 404
    assert response.json()["code"] == "no-such-address"


def test_the_page_is_only_read(http: httpx2.Client) -> None:
    response = http.post("/jobs")
    assert response.status_code == 405 and response.json()["code"] == "method-not-allowed"


@pytest.mark.parametrize(
    ("accepted", "compressed"),
    [("gzip, br", True), ("br;q=1, gzip;q=0.5", True), ("gzip;q=0", False), ("identity", False)],
)
def test_a_script_is_sent_compressed_to_who_accepts_that(
    server: Server, http: httpx2.Client, accepted: str, compressed: bool
) -> None:
    folder = server.folder / "portal" / "assets"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "long-3c4d.js").write_text("'long';" * 1000)
    (folder / "long-3c4d.js.gz").write_bytes(gzip.compress(b"'long';" * 1000))
    found = http.get("/assets/long-3c4d.js", headers={"accept-encoding": accepted})
    assert found.text == "'long';" * 1000
    assert found.headers["content-type"].startswith("text/javascript")
    assert found.headers.get("content-encoding") == ("gzip" if compressed else None)
    assert (int(found.headers["content-length"]) < 1000) == compressed
    assert found.headers["vary"] == "Accept-Encoding" and "immutable" in found.headers["cache-control"]
