"""Check Kerberos: whether this machine gets tickets for the principal as which Corral calls."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Final

from corral.engines.kind import Finding
from corral.kernel.errors import CorralError
from corral.storage.kerberos.tickets import Identity, Tickets

_SOON: Final = 600
"""Seconds from which a ticket that nobody here renews is said to end soon."""


async def tickets(identity: Identity) -> AsyncIterator[Finding]:
    """Whose ticket there is; nothing where no principal is set. A daemon's own line says that it asks for Kerberos."""
    if not identity.principal:
        return
    try:
        held = await asyncio.to_thread(Tickets(identity).held)
    except CorralError as error:
        yield Finding("Kerberos", "bad", error.message)
        return
    minutes = held.seconds // 60
    if identity.keytab:
        yield Finding("Kerberos", "good", f"the keytab gives tickets of {held.principal} for {minutes} minutes")
    elif held.seconds < _SOON:
        message = (
            f"the ticket of {held.principal} ends in {minutes} minutes, and Corral cannot renew it: set yarn_keytab"
        )
        yield Finding("Kerberos", "note", message)
    else:
        yield Finding("Kerberos", "good", f"a ticket of {held.principal} is valid for {minutes} minutes")
