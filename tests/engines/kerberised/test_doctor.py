"""`corral doctor --engine yarn` says whether the keytab gives tickets, and what to change if not."""

from __future__ import annotations

import pytest

from corral.engines.kind import Finding
from corral.engines.yarn.doctor.kerberos_check import tickets
from corral.engines.yarn.settings import identity_of
from tests.testbeds.kerberos import REALM, Kdc

CORRAL = f"corral@{REALM}"


async def found(principal: str, keytab: str = "") -> list[Finding]:
    return [each async for each in tickets(identity_of(principal, keytab))]


async def test_without_a_principal_nothing_is_checked() -> None:
    assert await found("") == []


async def test_a_keytab_that_gives_tickets_is_good(kdc: Kdc) -> None:
    (finding,) = await found(CORRAL, f"{kdc.home}/corral.keytab")
    assert finding.state == "good" and f"tickets of {CORRAL} for " in finding.message


async def test_what_is_wrong_is_said_with_the_settings_to_change(kdc: Kdc) -> None:
    (none,) = await found(CORRAL)
    assert none.state == "bad" and "set yarn_principal and yarn_keytab" in none.message
    (other,) = await found(f"ada@{REALM}", f"{kdc.home}/corral.keytab")
    assert other.state == "bad" and f"has no key of ada@{REALM}, but of {CORRAL}" in other.message


async def test_a_ticket_cache_that_ends_soon_is_noted(kdc: Kdc, monkeypatch: pytest.MonkeyPatch) -> None:
    keytab = kdc.home / "corral.keytab"
    for life, state in (("2h", "good"), ("9m", "note")):
        monkeypatch.setenv("KRB5CCNAME", kdc.cache(life, keytab, "corral", life=life))
        (finding,) = await found(CORRAL)
        assert finding.state == state, finding.message
    assert "Corral cannot renew it: set yarn_keytab" in finding.message
