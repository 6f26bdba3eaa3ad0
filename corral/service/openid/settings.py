"""The settings of an OpenID Connect provider, checked before the first sign-in."""

from __future__ import annotations

from urllib.parse import urlsplit

import msgspec

from corral.kernel.errors import InvalidInput

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


class OpenIdSettings(msgspec.Struct, frozen=True):
    """The provider, this server's registration there, and how its claims become accounts here."""

    issuer: str
    client_id: str
    client_secret: str = ""
    """Empty for a public client, which relies on PKCE alone."""
    scopes: str = "openid profile email"
    user_claim: str = "preferred_username"
    """The claim with the account's name; a dot leads into an object."""
    groups_claim: str = ""
    """The claim with the groups. Empty: the provider manages no groups. A token without it means no groups."""
    admin_groups: tuple[str, ...] = ()
    """Members of these groups are administrators, and nobody else is. Empty: the provider does not decide it."""
    allowed_groups: tuple[str, ...] = ()
    """Only members of these groups may sign in. Empty: everybody may."""
    link_by_name: bool = False
    """Whether a person gets an unlinked account of the same name that has no password and is no administrator's."""
    label: str = ""
    """The text of the portal's sign-in button."""

    def __repr__(self) -> str:
        return f"OpenIdSettings({self.issuer}, {self.client_id})"

    def checked(self) -> OpenIdSettings:
        """Return these settings if they can be used.

        The issuer must be HTTPS, because it decides who signs in. Raises InvalidInput `invalid-setting`.
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
    """Return the address if it can be used.

    Raises InvalidInput unless it is HTTPS (HTTP only on loopback), or if it has a user or a fragment.
    """
    parts = urlsplit(url)
    plain = parts.scheme == "http" and parts.hostname in _LOOPBACK
    if not parts.hostname or not (parts.scheme == "https" or plain) or parts.username or parts.fragment:
        raise InvalidInput("invalid-setting", f"{what} cannot be {url[:200]!r}: it must be an https:// address.")
    return url
