"""Which addresses of services people may use, and what of them is shown."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from corral.model.notifications.destinations import read_networks
from corral.model.notifications.services import SCHEMES, read_service, service_refusal


@pytest.mark.parametrize(
    ("address", "host"),
    [
        ("tgram://123456:token/-100", None),
        ("discord://4174216298/JHMHI8qBe7bk2ZwO5U711o3dV_js", None),
        ("NTFYS://topic", None),
        ("ntfys://user:s3cret@ntfy.example.org:8443/topic?priority=high", "ntfy.example.org"),
        ("gotifys://gotify.example.org/token", "gotify.example.org"),
    ],
)
def test_of_an_address_only_the_scheme_is_shown(address: str, host: str | None) -> None:
    found = read_service(address)
    assert found.shown == f"{address.partition(':')[0].lower()}://…"
    assert (found.place and found.place.host) == host


@pytest.mark.parametrize(
    "address",
    [
        "json://10.0.0.1/s3cret",
        "mailto://me:s3cret@example.org",
        "syslog://s3cret",
        "windows://",
        "dbus://",
        "file:///etc/s3cret",
        "https://discord.com/api/webhooks/1/s3cret",
        "s3cret",
        "tgram:s3cret",
        "tgram://s3cret, json://10.0.0.1",
        "tgram://s3cret\r\nHost: x",
        "tgram://" + "s3cret" * 400,
        "ntfys:///s3cret",
        "ntfys://a#@10.0.0.1/s3cret",
        "ntfys://ntfy.example.org\\@10.0.0.1/s3cret",
        "gotifys://127.1/s3cret",
    ],
)
def test_other_addresses_are_refused_without_being_repeated(address: str) -> None:
    with pytest.raises(ValueError) as refused:
        read_service(address)
    assert "s3cret" not in str(refused.value) and len(str(refused.value)) < 200


@pytest.mark.parametrize(
    ("address", "listed", "said"),
    [
        ("ntfys://10.0.0.1/topic", "", "private"),
        ("ntfys://u:p@[::1]:8443/topic", "", "private"),
        ("matrixs://token@localhost/room", "", "private"),
        ("ntfys://169.254.169.254/topic", "10.0.0.0/8", "private"),
        ("ntfy://ntfy.example.org/topic", "", "must begin with ntfys://"),
        ("ntfys://ntfy.example.org/topic", "", ""),
        ("ntfy://10.1.2.3/topic", "10.0.0.0/8", ""),
        ("tgram://token/chat", "", ""),
    ],
)
def test_private_hosts_are_refused_unless_they_are_listed(address: str, listed: str, said: str) -> None:
    why = service_refusal(read_service(address), read_networks(listed))
    assert said in why if said else why == ""


def test_the_schemes_are_those_of_services_that_are_called_over_http() -> None:
    """None of them sends mail or datagrams, runs a program, or posts to any URL."""
    assert not {"mailto", "mailtos", "json", "jsons", "xmls", "forms", "apprises", "syslog", "rsyslog"} & set(SCHEMES)
    assert list(SCHEMES) == sorted(set(SCHEMES))


def test_the_page_on_notifications_names_every_scheme() -> None:
    page = (Path(__file__).parents[2] / "docs" / "notifications.md").read_text()
    (section,) = re.findall(r"## Other services\n(.*?)\n## ", page, re.DOTALL)
    named = set(re.findall(r"`([a-z0-9]+)`", section))
    assert {each for each in SCHEMES if each not in named and f"{each}s" not in named} == set()
