"""The client addresses that rate limits count, and the networks of trusted reverse proxies."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Final

from starlette.requests import HTTPConnection

from corral.kernel.errors import InvalidInput

Network = IPv4Network | IPv6Network

_OWN_BITS: Final = 64
"""Prefix length in bits under which IPv6 clients are counted. Providers give a customer a /64, so that one customer can
use 2^64 addresses."""
_LONGEST: Final = 64
"""Characters kept of a client address that is not an IP address; a proxy can pass on any text."""


def networks(listed: Iterable[str]) -> tuple[Network, ...]:
    """Parse a setting that lists addresses and network prefixes.

    Raises InvalidInput for an entry that is neither.
    """
    found: list[Network] = []
    for each in listed:
        try:
            network = ip_network(each, strict=False)
        except ValueError:
            message = f"trusted_proxies has {each[:60]!r}; write addresses and networks such as 10.0.0.0/8."
            raise InvalidInput("invalid-setting", message) from None
        found.append(network)
        if isinstance(network, IPv4Network):  # an IPv4 client of a dual-stack socket has an IPv4-mapped address
            found.append(ip_network(f"::ffff:{network.network_address}/{96 + network.prefixlen}"))
    return tuple(found)


def counted_as(host: str) -> str:
    """Return the address that limits count a client under: the IPv4 address, or the /64 of an IPv6 address."""
    try:
        address = ip_address(host)
    except ValueError:
        return host[:_LONGEST]
    if address.version == 4:
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ip_network((address.packed, _OWN_BITS), strict=False))


def address_key(connection: HTTPConnection) -> str:
    """Return the rate-limit key of the address that a call came from."""
    return f"address:{counted_as(connection.client.host if connection.client else '')}"
