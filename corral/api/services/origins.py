"""The origins of jobs: which host belongs to which job, and which requests of other pages it takes.

A job has an origin of its own, so that browsers keep its pages away from the portal and from other jobs:
`JOB.localhost` on loopback, `JOB.DOMAIN` below the setting `services_domain`, else a port of the setting `job_ports`.
"""

from __future__ import annotations

import re
from ipaddress import ip_address
from typing import Final
from urllib.parse import SplitResult, urlsplit

from starlette.requests import HTTPConnection
from starlette.types import Scope

from corral.api.services.job_ports import JobPorts
from corral.kernel.errors import Conflict, Forbidden, InvalidInput
from corral.kernel.ids import JobId

_LOOPBACK: Final = "localhost"
_JOB: Final = re.compile(r"[0-9a-z]{13}")
_DOMAIN: Final = re.compile(r"(?=.{1,200}\Z)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)+")
_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_OWN_PAGES: Final = frozenset({"same-origin", "none"})


def checked_domain(domain: str, public_url: str) -> str:
    """Return the setting `services_domain` in lower case.

    Raises InvalidInput unless it is a domain beside a portal that browsers reach by HTTPS. Without HTTPS a job's page
    could set cookies for the portal.
    """
    if not domain:
        return ""
    domain, portal = domain.lower(), urlsplit(public_url)
    if not _DOMAIN.fullmatch(domain):
        raise InvalidInput("invalid-setting", f"services_domain has {domain[:60]!r}; write a domain: jobs.example.org.")
    if portal.scheme != "https":
        raise InvalidInput("invalid-setting", "services_domain needs a public_url that begins with https://.")
    host = portal.hostname or ""
    if host == domain or host.endswith(f".{domain}"):
        message = f"services_domain must not contain the portal: {host} belongs to {domain}."
        raise InvalidInput("invalid-setting", message)
    return domain


def label_of(scope: Scope, domain: str) -> str | None:
    """Return the label of a job's origin that a request names; None if it is not for such an origin.

    The label of a host that belongs to the origins but names no job is "".
    """
    hosts = [value.decode("latin-1").lower() for name, value in scope["headers"] if name == b"host"]
    labels = [_label(host, domain) for host in hosts]
    if all(label is None for label in labels):
        return None
    return (labels[0] or "") if len(labels) == 1 else ""


def _label(host: str, domain: str) -> str | None:
    name = re.sub(r":\d*\Z", "", host).rstrip(".")
    for parent in (_LOOPBACK, domain):
        if parent and name.endswith(f".{parent}"):
            label = name.removesuffix(f".{parent}")
            return label if _JOB.fullmatch(label) else ""
    return "" if domain and name == domain else None


def origin_for(connection: HTTPConnection, job: JobId) -> str:
    """Return the origin of a job for a caller of the API.

    Raises Conflict when the server has no domain and no (free) port for services and is not reached by a loopback
    address.
    """
    domain, public = connection.app.state.services_domain, urlsplit(connection.app.state.public_url)
    if domain:
        return f"https://{job}.{domain}{f':{public.port}' if public.port else ''}"
    host = _reached_at(connection)
    if not _is_loopback(host.hostname or ""):
        ports: JobPorts = connection.app.state.job_ports
        if not ports or not host.hostname:
            message = (
                "This server has no domain and no ports for services of jobs (settings services_domain and job_ports); "
                "use `corral forward`."
            )
            raise Conflict("no-services-domain", message)
        name = f"[{host.hostname}]" if ":" in host.hostname else host.hostname
        return f"https://{name}:{ports.take(job)}"
    return f"{host.scheme}://{job}.{_LOOPBACK}{f':{host.port}' if host.port else ''}"


def _reached_at(connection: HTTPConnection) -> SplitResult:
    """The address at which a caller reaches the server: its page's origin, for a reverse proxy may change the host.

    An address that is none is empty.
    """
    scheme = "https" if connection.scope["scheme"] in ("https", "wss") else "http"
    address = connection.headers.get("origin") or f"{scheme}://{connection.headers.get('host', '')}"
    try:
        parts = urlsplit(address[:300])
        _ = parts.port  # raises ValueError for one that is no number
    except ValueError:
        return urlsplit("")
    return parts if parts.scheme in ("http", "https") else urlsplit("")


def own_origin(connection: HTTPConnection, domain: str) -> str:
    """Return the origin of the page that a request for a job's origin must come from."""
    host = connection.headers.get("host", "").lower()
    below = domain and re.sub(r":\d*\Z", "", host).endswith(f".{domain}")
    return f"{'https' if below or connection.scope['scheme'] in ('https', 'wss') else 'http'}://{host}"


def check_page(connection: HTTPConnection, origin: str, *, shares_host: bool = False) -> None:
    """Check that a request comes from the job's own pages, or only shows one of them in a window of its own.

    Jobs below one domain, and at ports of one host, are of one site, so cookies alone do not keep their pages apart.
    Where they share the host, a browser must say which page asks. Raises Forbidden.
    """
    headers, method = connection.headers, connection.scope.get("method", "")
    sent, site = headers.get("origin"), headers.get("sec-fetch-site")
    if connection.scope["type"] == "websocket":
        _require(sent == origin)
        return
    shows = method in ("GET", "HEAD") and headers.get("sec-fetch-mode") == "navigate"
    if shows and headers.get("sec-fetch-dest") == "document":
        return
    _require(site in _OWN_PAGES or (site is None and not shares_host))
    _require(sent in (None, origin))
    _require(method in _SAFE or sent == origin)


def _require(fits: bool) -> None:
    if not fits:
        raise Forbidden("foreign-page", "Another page asked for this; only the pages of the job itself may.")


def _is_loopback(host: str) -> bool:
    if host == _LOOPBACK or host.endswith(f".{_LOOPBACK}"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
