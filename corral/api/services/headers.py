"""The headers that pass between a browser and a service of a job: pure functions.

The portal's and Corral's own secrets never reach the job, and the job sets nothing outside its own host.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple
from urllib.parse import urlsplit

Header = tuple[bytes, bytes]

_HOP_BY_HOP: Final = frozenset(
    {
        b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization", b"proxy-connection", b"te",
        b"trailer", b"transfer-encoding", b"upgrade",
    }
)  # fmt: skip
_OWN_ASKED: Final = frozenset(
    {b"host", b"cookie", b"authorization", b"origin", b"referer", b"expect", b"content-length", b"forwarded",
     b"x-real-ip"}
)  # fmt: skip
"""Request headers that Corral writes itself, or leaves out."""
_OWN_PREFIXES: Final = (b"x-forwarded-", b"x-corral-")
_REFUSED: Final = frozenset(
    {
        b"set-cookie", b"set-cookie2", b"location", b"content-length", b"cross-origin-resource-policy",
        b"clear-site-data", b"service-worker-allowed", b"strict-transport-security", b"alt-svc", b"nel", b"report-to",
        b"origin-agent-cluster", b"public-key-pins", b"date",
    }
)  # fmt: skip
"""Response headers that Corral writes itself, or that act beyond the path or the origin of the service."""
_NOT_PASSED_ON: Final = _HOP_BY_HOP | _OWN_ASKED
_NOT_TAKEN: Final = _HOP_BY_HOP | _REFUSED
_REWRITTEN: Final = frozenset({b"cookie", b"authorization", b"origin", b"referer"})
_ADDED: Final[tuple[Header, ...]] = (
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"content-security-policy", b"frame-ancestors 'self'"),
    (b"origin-agent-cluster", b"?1"),
)
_NONE: Final[frozenset[bytes]] = frozenset()
_OPENER: Final = (b"cross-origin-opener-policy", b"same-origin-allow-popups")
_RESERVED: Final = re.compile(r"(__host-(http-)?|__secure-|__http-)?corral_", re.IGNORECASE)
"""Names of cookies that are the portal's or the proxy's."""
_KEPT_ATTRIBUTES: Final = frozenset({"expires", "max-age", "httponly", "secure", "samesite", "partitioned"})


class Place(NamedTuple):
    """Where a service stands for the browser and for itself."""

    origin: str
    """The job's origin: `http://JOB.localhost:8080`."""
    prefix: str
    """The path of the service there, without a slash at its end: `/proxy/JOB/main-0/web`."""
    keeps_path: bool
    """Whether the service is given paths with the prefix."""
    number: int
    hosts: tuple[str, ...]
    """Names and addresses under which the service may know itself."""
    has_cookies: bool = True
    """Whether the service gets and sets cookies: not where its host is other jobs', too, whose pages would read them."""

    @property
    def host(self) -> str:
        """The value of the Host header for the service, which accept a name of their own machine."""
        return f"localhost:{self.number}"


def for_service(
    headers: Iterable[Header], place: Place, is_own_token: Callable[[str], bool], authorization: str = ""
) -> list[Header]:
    """Return the headers of a request, except those of its body, for the service.

    `is_own_token` recognizes tokens of this server. `authorization` is used where the request has none for the job.
    The HTTP server leaves blanks at the end of values, which are no part of them.
    """
    listed = [(name, value.strip(b" \t")) for name, value in headers]
    dropped = _NOT_PASSED_ON | _named_in_connection(listed)
    kept = [each for each in listed if each[0] not in dropped and not each[0].startswith(_OWN_PREFIXES)]
    scheme, _, host = place.origin.partition("://")
    kept += (
        (b"host", place.host.encode()),
        (b"x-forwarded-host", host.encode("latin-1")),
        (b"x-forwarded-proto", scheme.encode()),
        (b"x-forwarded-prefix", place.prefix.encode()),
    )
    own = [each for each in listed if each[0] in _REWRITTEN]
    cookies = "; ".join(_cookies(own)) if place.has_cookies else ""
    if cookies:
        kept.append((b"cookie", cookies.encode("latin-1")))
    given = next((value.decode("latin-1") for name, value in own if name == b"authorization"), "")
    chosen = authorization if not given or is_own_token(given.partition(" ")[2].strip()) else given
    if chosen:
        kept.append((b"authorization", chosen.encode("latin-1")))
    return kept + _of_page(own, place)


def from_service(headers: Iterable[Header], place: Place) -> list[Header]:
    """Return the headers of a response, except those of its body, for the browser."""
    listed = list(headers)
    dropped = _NOT_TAKEN | _named_in_connection(listed)
    kept = [each for each in listed if each[0] not in dropped and not each[0].startswith(b"access-control-")]
    kept += _ADDED
    if not any(name == _OPENER[0] for name, _ in listed):
        kept.append(_OPENER)
    for name, value in listed:
        if name == b"set-cookie":
            if place.has_cookies and (cookie := kept_cookie(value.decode("latin-1"), place)):
                kept.append((name, cookie.encode("latin-1")))
        elif name == b"location":
            kept.append((name, location(value.decode("latin-1"), place).encode("latin-1")))
    return kept


def kept_cookie(text: str, place: Place) -> str:
    """Return a `Set-Cookie` for the job's own host and path; "" for one that must not be set."""
    pair, *attributes = text.split(";")
    name, sign, _ = pair.partition("=")
    if not sign or not name.strip() or _RESERVED.match(name.strip()):
        return ""
    kept = [pair.strip()]
    for each in attributes:
        attribute, _, value = each.strip().partition("=")
        if attribute.lower() in _KEPT_ATTRIBUTES:
            kept.append(each.strip())
        elif attribute.lower() == "path" and value.startswith("/"):
            kept.append(f"Path={_below(value, place)}")
    return "; ".join(kept)


def location(text: str, place: Place) -> str:
    """Return a redirect for the browser: addresses of the service itself become those of the job's origin."""
    try:
        parts = urlsplit(text)
        own = parts.scheme in ("http", "https") and parts.netloc.lower() in _netlocs(place)
    except ValueError:
        return text
    if own:
        rest = parts._replace(scheme="", netloc="").geturl()
        return place.origin + _below(rest if rest.startswith("/") else f"/{rest}", place)
    if text.startswith("/") and not text.startswith(("//", "/\\")):
        return _below(text, place)
    return text


def _netlocs(place: Place) -> set[str]:
    own = {f"{host}:{place.number}" for host in (*place.hosts, "localhost", "127.0.0.1", "[::1]")}
    return own | {place.origin.partition("://")[2].lower()}


def _below(path: str, place: Place) -> str:
    inside = path == place.prefix or path.startswith((f"{place.prefix}/", f"{place.prefix}?"))
    return path if place.keeps_path or inside else place.prefix + path


def _cookies(headers: list[Header]) -> list[str]:
    pairs = [
        pair.strip() for name, value in headers if name == b"cookie" for pair in value.decode("latin-1").split(";")
    ]
    return [pair for pair in pairs if pair and not _RESERVED.match(pair.lstrip("= \t"))]


def _of_page(headers: list[Header], place: Place) -> list[Header]:
    """The page that asks, as the service knows itself; pages of others are left out."""
    found: list[Header] = []
    for name, value in headers:
        if name == b"origin" and value.decode("latin-1") == place.origin:
            found.append((name, f"http://{place.host}".encode()))
        elif name == b"referer" and value.decode("latin-1").startswith(f"{place.origin}/"):
            path = value.decode("latin-1").removeprefix(place.origin)
            own = path if place.keeps_path else path.removeprefix(place.prefix)
            found.append((name, f"http://{place.host}{own}".encode("latin-1")))
    return found


def _named_in_connection(headers: list[Header]) -> frozenset[bytes]:
    told = [value for name, value in headers if name == b"connection"]
    return frozenset(word.strip() for value in told for word in value.lower().split(b",")) if told else _NONE
