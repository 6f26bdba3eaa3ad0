"""The Kerberos tickets of one identity, and plain sentences for what is wrong with them."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Final, NamedTuple

from corral.kernel.errors import CorralError, Unavailable
from corral.storage.kerberos import gssapi
from corral.storage.kerberos.keytab import BadKeytab, principals_of

_LIBRARY_MISSING: Final = (
    "the GSSAPI library of MIT Kerberos is not installed; install libgssapi-krb5-2 (Debian) or krb5-libs (Fedora)"
)
_IN_ENVIRONMENT: Final = "set KRB5_CLIENT_KTNAME to a keytab, or KRB5CCNAME to a ticket cache that is renewed"
_KDC_AWAY: Final = "start the realm's KDC, or correct its address in krb5.conf"
_OTHER_KEYS: Final = "the principal has newer keys than the keytab: export the keytab again"
_KNOWN: Final = (
    ("Clock skew too great", "set the clocks of this machine and of the KDC, such as by NTP"),
    ("Cannot contact any KDC", _KDC_AWAY),
    ("Cannot find KDC", "name the realm's KDC in krb5.conf"),
    ("Cannot determine realm", "name the default realm in krb5.conf"),
    ("default realm", "name the default realm in krb5.conf"),
    (" expired", "renew the ticket cache, or name a keytab"),
    ("Preauthentication failed", _OTHER_KEYS),
    ("integrity check failed", _OTHER_KEYS),
    ("Client '", "make the principal at the KDC, or name another one"),
    ("Client not found", "make the principal at the KDC, or name another one"),
    ("Server ", "name the daemon by the host name of its HTTP principal"),
)
"""By a part of the library's message, the first that matches."""


class Identity(NamedTuple):
    """Who calls. Without a keytab the process's environment says it (`KRB5_CLIENT_KTNAME`, `KRB5CCNAME`)."""

    principal: str = ""
    """`corral@REALM` or `corral/host@REALM`; "" is whichever principal there are tickets or keys of."""
    keytab: str = ""
    advice: str = _IN_ENVIRONMENT
    """What to do where there are neither."""


class Tickets:
    """The tickets of one identity. They are asked for, and renewed, when a call needs them."""

    def __init__(self, identity: Identity) -> None:
        self.identity = identity
        self._store: dict[str, str] = {}
        if identity.keytab:
            key = hashlib.sha256(repr(identity[:2]).encode()).hexdigest()[:16]
            # in this process's memory: neither a file of somebody's nor left behind
            self._store = {
                "client_keytab": f"FILE:{identity.keytab}",
                "ccache": f"MEMORY:corral-{os.getpid()}-{key}",
            }

    def header(self, host: str) -> str:
        """The header `Authorization` for the HTTP service of a host. It may take seconds: the KDC is asked.

        Raises Unavailable.
        """
        import base64

        try:
            with gssapi.credential(self.identity.principal, self._store) as found:
                return f"Negotiate {base64.b64encode(found.token('HTTP', host)).decode()}"
        except (gssapi.GssError, gssapi.NoLibrary) as error:
            raise self._trouble(error) from None

    def held(self) -> gssapi.Held:
        """Whose ticket there is, and for how long; it is asked for if there is a keytab. Raises Unavailable."""
        try:
            with gssapi.credential(self.identity.principal, self._store) as found:
                return found.held()
        except (gssapi.GssError, gssapi.NoLibrary) as error:
            raise self._trouble(error) from None

    def _trouble(self, error: Exception) -> CorralError:
        return Unavailable("kerberos", f"Kerberos gives no ticket: {self._why(error)}.", retry_after=10)

    def _why(self, error: Exception) -> str:
        if isinstance(error, gssapi.NoLibrary):
            return _LIBRARY_MISSING
        if why := self._keytab_trouble():
            return why
        said = str(error)[:300]
        if self.identity.keytab and " expired" in said:
            return f"{said}, and the KDC gives no new one; {_KDC_AWAY}"
        for words, advice in _KNOWN:
            if words in said:
                return f"{said}; {advice}"
        return f"{said}; {self.identity.advice}"

    def _keytab_trouble(self) -> str:
        """What is wrong with the keytab, as far as this machine can know; "" when nothing is."""
        if not self.identity.keytab:
            return ""
        try:
            there = principals_of(Path(self.identity.keytab))
        except BadKeytab as trouble:
            return f"the keytab {self.identity.keytab} {trouble}"
        wanted = self.identity.principal
        if any(wanted in (each, each.rpartition("@")[0], "") for each in there):
            return ""
        names = ", ".join(there[:5]) or "no principal"
        return f"the keytab {self.identity.keytab} has no key of {wanted or 'any principal'}, but of {names}"
