"""Which addresses messages may go to: none that only this server's network reaches, unless they are listed.

So nobody can use the server to call services behind its firewall (server-side request forgery). A host that is written
as an address is judged when a channel is added. A name is judged each time, after it was resolved, and the connection
goes to the address that was judged. Nothing that a user is told depends on what a name resolves to, so that nobody can
look up names that only this server's network knows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final, NamedTuple
from urllib.parse import urlsplit

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

LONGEST_URL: Final = 2000
_NAT64: Final = IPv6Network("64:ff9b::/96")
_SPECIAL: Final = tuple(map(IPv4Network, ("100.64.0.0/10", "168.63.129.16/32", "192.0.0.0/24")))
"""Carrier-grade NAT and protocol assignments, where two clouds have their metadata, and the host of Azure's agents."""
_PORTS: Final = {"https": 443, "http": 80}
_LOOPBACK: Final = IPv4Address("127.0.0.1")
_UNENCRYPTED: Final = "the address must begin with https:// outside the networks that an administrator lists"


class Destination(NamedTuple):
    """Where a URL leads."""

    encrypted: bool
    host: str
    port: int
    target: str
    """Path and query."""

    @property
    def shown(self) -> str:
        """The URL without path, query and user, which may hold secrets."""
        scheme = "https" if self.encrypted else "http"
        usual = self.port == _PORTS[scheme]
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{scheme}://{host}{'' if usual else f':{self.port}'}/…"


def read_url(text: str) -> Destination:
    """Read the URL of a webhook.

    Raises ValueError with a clause that says what is wrong; it never repeats the URL, which is a secret.
    """
    if len(text) > LONGEST_URL or not text.isascii() or any(not "!" <= sign <= "~" for sign in text):
        raise ValueError(f"the URL has at most {LONGEST_URL} printable ASCII characters and no spaces")
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise ValueError("the URL has no valid host and port") from None
    if parts.scheme not in _PORTS or not parts.hostname:
        raise ValueError("the URL must begin with https:// and name a host")
    if parts.username is not None or parts.password is not None:
        raise ValueError("the URL must not hold a user or a password")
    if port == 0 or len(parts.hostname) > 253 or parts.hostname.endswith("..") or _is_odd_number(parts.hostname):
        raise ValueError("the URL has no valid host and port")
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Destination(parts.scheme == "https", parts.hostname, port or _PORTS[parts.scheme], target)


def read_networks(text: str) -> tuple[Network, ...]:
    """Read a comma-separated list of networks, such as `10.0.0.0/8, fd00::/8`.

    Raises ValueError naming the first text that is no network.
    """
    found = []
    for each in filter(None, (part.strip() for part in text.split(","))):
        try:
            found.append(ip_network(each))
        except ValueError:
            raise ValueError(f"{each[:100]!r} is no network such as 10.0.0.0/8") from None
    return tuple(found)


def is_listed(address: Address, listed: Iterable[Network]) -> bool:
    """Whether an administrator's network contains the address; one embedded in an IPv6 address counts as itself."""
    return any(inner in network for inner in _meanings(address) for network in listed)


def refusal(address: Address, listed: Sequence[Network]) -> str:
    """Why no message may go to the address, as a clause; "" if it may."""
    if is_listed(address, listed):
        return ""
    for inner in _meanings(address):
        special = inner.is_multicast or inner.is_reserved or any(inner in network for network in _SPECIAL)
        if special or not inner.is_global:
            return f"{address} is a private or special address; an administrator can list its network (notify_private)"
    return ""


def host_refusal(place: Destination, listed: Sequence[Network]) -> str:
    """Why no message may go to a host whatever names resolve to, as a clause; "" if it is a name, or may be used."""
    if not place.encrypted and not listed:
        return _UNENCRYPTED
    name = place.host.rstrip(".")
    address = _LOOPBACK if name == "localhost" or name.endswith(".localhost") else address_of(place.host)
    return "" if address is None else address_refusal(place, address, listed)


def address_refusal(place: Destination, address: Address, listed: Sequence[Network]) -> str:
    """Why no message for a place may go to one of its addresses, as a clause; "" if it may."""
    why = refusal(address, listed)
    return why or ("" if place.encrypted or is_listed(address, listed) else _UNENCRYPTED)


def _is_odd_number(host: str) -> bool:
    """Whether a resolver reads the host as an IPv4 address that is not written as four numbers (`127.1`, `0x7f000001`).

    A name's last part is no number: WHATWG's URL standard, "ends in a number checker".
    """
    if ":" in host:
        return False
    last = host.rstrip(".").rpartition(".")[2]
    return (last.isdigit() or last.startswith("0x")) and (host.endswith(".") or address_of(host) is None)


def address_of(text: str) -> Address | None:
    """The address that a resolver's answer or a host in a URL is; None if it is a name."""
    try:
        return ip_address(text.partition("%")[0])
    except ValueError:
        return None


def _meanings(address: Address) -> tuple[Address, ...]:
    """The address, and the IPv4 addresses that gateways or the system would reach for it."""
    if isinstance(address, IPv4Address):
        return (address,)
    if address.ipv4_mapped is not None:
        return (address.ipv4_mapped,)
    if address in _NAT64:
        return (IPv4Address(int(address) & 0xFFFF_FFFF),)
    found: list[Address] = [address]
    if address.sixtofour is not None:
        found.append(address.sixtofour)
    if address.teredo is not None:
        found += address.teredo
    return tuple(found)
