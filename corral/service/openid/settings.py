"""Why: what an administrator says of the provider is one value that is checked before the first person needs it."""

from __future__ import annotations

from urllib.parse import urlsplit

import msgspec

from corral.kernel.errors import InvalidInput

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


class OpenIdSettings(msgspec.Struct, frozen=True):
    """The provider, what this server is there, and how its claims become accounts here."""

    issuer: str
    client_id: str
    client_secret: str = ""
    """Empty: a public client, which proves itself by PKCE alone."""
    scopes: str = "openid profile email"
    user_claim: str = "preferred_username"
    """Where the account's name is; a dot goes into an object."""
    groups_claim: str = ""
    """Where the groups are; empty: the provider says nothing of groups. Where it is not in a token, there are none."""
    admin_groups: tuple[str, ...] = ()
    """Whoever is in one of them administers, and nobody else; empty: the provider says nothing about that."""
    allowed_groups: tuple[str, ...] = ()
    """Whoever is in none of them is refused; empty: everybody may come in."""
    link_by_name: bool = False
    """Whether an account of the same name that nobody has signed in to is given to them."""
    label: str = ""
    """What the portal's button says."""

    def __repr__(self) -> str:
        return f"OpenIdSettings({self.issuer}, {self.client_id})"

    def checked(self) -> OpenIdSettings:
        """Itself.

        Raises InvalidInput where it cannot be used: whoever answers for the provider decides who comes in.
        """
        check_address(self.issuer, "oidc_issuer")
        if not self.client_id:
            raise InvalidInput("invalid-setting", "The setting oidc_client_id is empty; the provider gave one.")
        if "openid" not in self.scopes.split():
            raise InvalidInput("invalid-setting", "The setting oidc_scopes must have the word openid in it.")
        if (self.admin_groups or self.allowed_groups) and not self.groups_claim:
            raise InvalidInput("invalid-setting", "Groups are named for OpenID Connect; set oidc_groups_claim, too.")
        return self


def check_address(url: str, what: str) -> str:
    """The address.

    Raises InvalidInput for one that is not HTTPS (but for this very machine), or has a user or a fragment in it.
    """
    parts = urlsplit(url)
    plain = parts.scheme == "http" and parts.hostname in _LOOPBACK
    if not parts.hostname or not (parts.scheme == "https" or plain) or parts.username or parts.fragment:
        raise InvalidInput("invalid-setting", f"{what} cannot be {url[:200]!r}: it must be an https:// address.")
    return url
