"""Tickets of a real KDC: from a keytab, from a cache, and what is said where there is none."""

from __future__ import annotations

import base64
import contextlib
import os
import time
from pathlib import Path

import pytest

from corral.kernel.errors import Unavailable
from corral.storage.kerberos.keytab import MOST_BYTES, BadKeytab, principals_of
from corral.storage.kerberos.negotiate import Negotiator, words_of_page
from corral.storage.kerberos.tickets import Identity, Tickets
from tests.testbeds.kerberos import REALM, Kdc
from tests.waiting import pause

CORRAL = f"corral@{REALM}"


def why(tickets: Tickets, host: str = "localhost") -> str:
    with pytest.raises(Unavailable) as refused:
        tickets.header(host)
    message = refused.value.message
    assert message.startswith("Kerberos gives no ticket: ") and message.endswith(".") and "\n" not in message
    return message


def test_a_keytab_gives_tickets_without_kinit(kdc: Kdc) -> None:
    tickets = Tickets(Identity(CORRAL, str(kdc.home / "corral.keytab")))
    scheme, _, token = tickets.header("localhost").partition(" ")
    assert scheme == "Negotiate" and b"\x2b\x06\x01\x05\x05\x02" in base64.b64decode(token)[:20]  # SPNEGO's number
    held = tickets.held()
    assert held.principal == CORRAL and held.seconds > 3600
    assert not (kdc.home / "no-cache").exists(), "the tickets are nobody else's business"


def test_tickets_are_renewed_by_the_keytab_before_they_expire(kdc: Kdc) -> None:
    tickets = Tickets(Identity(f"short@{REALM}", str(kdc.keytab("short", life="32s"))))
    begun = time.monotonic()  # the next ticket is asked for when this one has 30 s left
    while kdc.issued("short") < 2:
        assert tickets.header("localhost") and tickets.held().seconds > 0
        assert time.monotonic() - begun < 120
        time.sleep(pause(begun))


def test_a_ticket_cache_of_somebody_else_is_used_and_its_end_is_told(kdc: Kdc, monkeypatch: pytest.MonkeyPatch) -> None:
    keytab = kdc.home / "corral.keytab"
    monkeypatch.setenv("KRB5CCNAME", kdc.cache("renewed", keytab, "corral"))
    tickets = Tickets(Identity())
    assert tickets.header("localhost").startswith("Negotiate ") and tickets.held().principal == CORRAL
    monkeypatch.setenv("KRB5CCNAME", kdc.cache("ended", keytab, "corral", life="1s"))
    begun, told = time.monotonic(), ""
    while not told:
        with contextlib.suppress(Unavailable):
            Tickets(Identity()).header("localhost")
            assert time.monotonic() - begun < 120
            time.sleep(pause(begun))
            continue
        told = why(Tickets(Identity()))
    assert "expired; renew the ticket cache, or name a keytab" in told


def test_another_process_environment_may_name_the_keytab(kdc: Kdc, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KRB5_CLIENT_KTNAME", str(kdc.home / "corral.keytab"))
    monkeypatch.setenv("KRB5CCNAME", "MEMORY:of-the-environment")
    assert Tickets(Identity()).header("localhost").startswith("Negotiate ")


def test_what_is_wrong_is_one_sentence_with_what_to_change(kdc: Kdc, tmp_path: Path) -> None:
    keytab, other = str(kdc.home / "corral.keytab"), tmp_path / "other"
    other.write_text("not a keytab")
    assert "set KRB5_CLIENT_KTNAME to a keytab" in why(Tickets(Identity()))
    assert "name it" in why(Tickets(Identity(advice="name it")))
    assert f"has no key of ada@{REALM}, but of {CORRAL}" in why(Tickets(Identity(f"ada@{REALM}", keytab)))
    assert f"the keytab {tmp_path}/none is not there" in why(Tickets(Identity(CORRAL, f"{tmp_path}/none")))
    assert f"the keytab {other} does not have the form of a keytab" in why(Tickets(Identity(CORRAL, str(other))))
    nowhere = why(Tickets(Identity(CORRAL, keytab)), "127.0.0.9")
    assert "not found in Kerberos database; name the daemon by the host name of its HTTP principal" in nowhere


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as somebody else")
def test_a_keytab_that_the_server_may_not_read_is_said(kdc: Kdc, tmp_path: Path) -> None:
    closed = tmp_path / "closed.keytab"
    closed.write_bytes((kdc.home / "corral.keytab").read_bytes())
    closed.chmod(0o600)
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)
    os.seteuid(65534)
    try:
        with pytest.raises(BadKeytab, match="cannot be read by this user: Permission denied"):
            principals_of(closed)
    finally:
        os.seteuid(0)


def test_a_keytab_older_than_the_principals_key_is_said(kdc: Kdc) -> None:
    keytab = kdc.keytab("changed")
    kdc.renew_key("changed")
    told = why(Tickets(Identity(f"changed@{REALM}", str(keytab))))
    assert "the principal has newer keys than the keytab: export the keytab again" in told


def test_a_kdc_that_is_away_is_said_and_found_again(kdc: Kdc) -> None:
    tickets = Tickets(Identity(f"late@{REALM}", str(kdc.keytab("late"))))
    kdc.stop()
    try:
        assert "Cannot contact any KDC" in why(tickets)
    finally:
        kdc.start()
    assert tickets.header("localhost").startswith("Negotiate ")


def test_a_ticket_serves_while_the_kdc_is_away_until_it_ends(kdc: Kdc) -> None:
    tickets = Tickets(Identity(f"brief@{REALM}", str(kdc.keytab("brief", life="6s"))))
    tickets.header("localhost")
    kdc.stop()
    begun, told = time.monotonic(), ""
    try:
        while not told:
            assert time.monotonic() - begun < 120
            time.sleep(pause(begun))
            try:
                tickets.header("localhost")
            except Unavailable as error:
                told = error.message
    finally:
        kdc.start()
    assert "expired, and the KDC gives no new one; start the realm's KDC" in told
    assert tickets.header("localhost").startswith("Negotiate ")


def test_no_more_of_a_keytab_is_read_than_any_has(tmp_path: Path) -> None:
    large, cut = tmp_path / "large", tmp_path / "cut"
    large.write_bytes(b"\x05\x02" + bytes(MOST_BYTES))
    with pytest.raises(BadKeytab, match="more than 1 MiB"):
        principals_of(large)
    cut.write_bytes(b"\x05\x02" + (100).to_bytes(4, "big") + b"\x00\x02\x00\xffREALM")
    with pytest.raises(BadKeytab, match="is damaged"):
        principals_of(cut)
    (tmp_path / "hole").write_bytes(b"\x05\x02" + (-8).to_bytes(4, "big", signed=True) + bytes(8))
    assert principals_of(tmp_path / "hole") == ()


def test_only_a_daemon_that_asks_is_told_who_calls_by_kerberos() -> None:
    negotiator = Negotiator(Identity())
    url, terms = "http://nn:9870/webhdfs/v1/", {"params": {"user.name": "me", "op": "LISTSTATUS"}}
    for status, challenge in ((403, "Negotiate"), (401, "PseudoAuth"), (401, "Basic realm=x"), (401, "")):
        assert not negotiator.is_asked(url, status, challenge)
    assert negotiator.terms(url, terms) == terms
    assert negotiator.is_asked(url, 401, "Basic realm=x, Negotiate")
    assert negotiator.terms(url, terms) == {"params": {"op": "LISTSTATUS"}}
    assert negotiator.terms("http://other:9870/", terms) == terms


def test_hadoops_page_is_one_sentence() -> None:
    said = "GSSException: Failure unspecified at GSS-API level (Mechanism level: Clock skew too great (37))"
    page = f"<html><table><tr><th>MESSAGE:</th><td>{said} &gt; 5</td></tr></table>".encode()
    assert words_of_page(page) == f"{said} > 5; set the clocks of both machines, such as by NTP"
    assert words_of_page(b"<html>nothing") == "" == words_of_page(b'{"RemoteException": {}}')
