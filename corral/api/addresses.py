"""Client addresses as limits count them, and the reverse proxies whose word for an address is taken."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Final

from starlette.requests import HTTPConnection

from corral.kernel.errors import InvalidInput

Network = IPv4Network | IPv6Network

_OWN_BITS: Final = 64
"""The part of an IPv6 address that a provider gives one customer: whoever has one address has 2^64 of them."""
_LONGEST: Final = 64
"""Characters kept of an address that is none: what a proxy passes on may be any text."""


def networks(listed: Iterable[str]) -> tuple[Network, ...]:
    """The networks of a setting, each an address or a prefix.

    Raises InvalidInput where one of them is neither.
    """
    found: list[Network] = []
    for each in listed:
        try:
            network = ip_network(each, strict=False)
        except ValueError:
            message = f"trusted_proxies has {each[:60]!r}; write addresses and networks such as 10.0.0.0/8."
            raise InvalidInput("invalid-setting", message) from None
        found.append(network)
        if isinstance(network, IPv4Network):  # the same machine, at a socket that listens on IPv6 too
            found.append(ip_network(f"::ffff:{network.network_address}/{96 + network.prefixlen}"))
    return tuple(found)


def counted_as(host: str) -> str:
    """The address that limits count a client under: an IPv4 address, or the /64 of an IPv6 address."""
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
    """The key of a call's address in the limits."""
    return f"address:{counted_as(connection.client.host if connection.client else '')}"
