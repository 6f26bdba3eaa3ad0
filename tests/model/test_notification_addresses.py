"""Which addresses notifications may go to: a table of what is refused, and how URLs are read."""

from __future__ import annotations

from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.model.notifications.destinations import is_listed, read_networks, read_url, refusal

PRIVATE = [
    "127.0.0.1", "127.8.8.8", "0.0.0.0", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "100.64.0.1",
    "100.100.100.200", "169.254.169.254", "168.63.129.16", "192.0.0.192", "192.0.2.1", "198.18.0.1", "203.0.113.9",
    "224.0.0.1", "239.1.1.1", "240.0.0.1", "255.255.255.255",
    "::", "::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::7f00:1", "::127.0.0.1",
    "fe80::1", "fe80::a9fe:a9fe", "fc00::1", "fd00:ec2::254", "ff02::1", "2001:db8::1", "64:ff9b::7f00:1",
    "64:ff9b::10.0.0.1", "64:ff9b:1::1", "2002:7f00:1::", "2002:a00:1::", "2001:0:7f00:1::", "100::1",
]  # fmt: skip
PUBLIC = ["8.8.8.8", "1.1.1.1", "93.184.215.14", "2606:4700:4700::1111", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8"]


@pytest.mark.parametrize("text", PRIVATE)
def test_a_private_or_special_address_is_refused(text: str) -> None:
    assert "private or special address" in refusal(ip_address(text), ())


@pytest.mark.parametrize("text", PUBLIC)
def test_a_public_address_is_not(text: str) -> None:
    assert refusal(ip_address(text), ()) == ""


def test_a_listed_network_is_allowed_and_nothing_beside_it() -> None:
    listed = read_networks("10.20.0.0/16, fd00:1::/48")
    for text in ("10.20.3.4", "::ffff:10.20.3.4", "fd00:1::7"):
        assert refusal(ip_address(text), listed) == "" and is_listed(ip_address(text), listed)
    for text in ("10.21.0.1", "127.0.0.1", "fd00:2::7"):
        assert refusal(ip_address(text), listed)


@given(st.ip_addresses())
def test_every_address_that_is_not_refused_is_global(address: object) -> None:
    found = ip_address(str(address))
    if not refusal(found, ()):
        inner = getattr(found, "ipv4_mapped", None) or found
        assert not (inner.is_private or inner.is_loopback or inner.is_link_local or inner.is_multicast)


@pytest.mark.parametrize("text", ["10.0.0.1/8", "lan", "10.0.0.0/33", "10.0.0.0/8 10.1.0.0/16"])
def test_a_list_of_networks_that_is_none_is_refused_by_name(text: str) -> None:
    with pytest.raises(ValueError, match="is no network such as"):
        read_networks(text)


def test_a_url_is_shown_without_its_secrets() -> None:
    place = read_url("https://hooks.example.org/services/T0/B0/secret?token=x")
    assert (place.host, place.port, place.target) == ("hooks.example.org", 443, "/services/T0/B0/secret?token=x")
    assert place.shown == "https://hooks.example.org/…"
    assert read_url("http://[::1]:8080").shown == "http://[::1]:8080/…"


@pytest.mark.parametrize(
    "text",
    [
        "", "ftp://x.org/", "https://", "https:///path", "//x.org/", "https://u:p@x.org/", "https://u@x.org/",
        "https://x.org:0/", "https://x.org:99999/", "https://x.org:a/", "https://x.org/ y", "https://x.org/\r\nHost: y",
        "https://x.org/\x00", "https://exämple.org/", "https://[::1/", "https://x.org/" + "a" * 2000, "file:///etc/passwd",
    ],
)  # fmt: skip
def test_a_url_that_cannot_be_a_webhook_is_refused_without_repeating_it(text: str) -> None:
    with pytest.raises(ValueError, match="the URL") as refused:
        read_url(text)
    assert len(text) < 10 or text not in str(refused.value)
