"""The services that the library `apprise` sends to, as far as Corral lets people use them.

An address of a service is a URL with the service's own scheme, such as `tgram://TOKEN/CHAT`. Named here are services that
are called over HTTP alone. What sends mail or datagrams, runs a program, reads a file or calls any URL is left out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from corral.model.notifications.destinations import (
    LONGEST_URL,
    Destination,
    Network,
    host_refusal,
    read_url,
)

_HOSTED: Final = frozenset(
    {
        *("betterstack", "cliq", "dingtalk", "discord", "feishu", "firehydrant", "flock", "gchat", "groupme"),
        *("ifttt", "ilert", "incidentio", "join", "kook", "lark", "line", "msgbird", "notifiarr"),
        *("onesignal", "opsgenie", "pagerduty", "pagertree", "pbul", "pover", "prowl", "pushed", "pushy", "qq"),
        *("revolt", "ryver", "schan", "signl4", "simplepush", "sinch", "spike", "splunk", "spugpush", "squadcast"),
        *("strmlabs", "tgram", "threema", "twilio", "twist", "viber", "victorops", "vonage", "webex", "wecombot"),
        *("whatsapp", "wxpusher", "wxteams", "zoom", "zulip"),
    }
)
"""Services at an address of their own; a call goes to their maker's hosts."""
_OWN: Final = {
    "barks": "bark",
    "goalerts": "goalert",
    "gotifys": "gotify",
    "hassios": "hassio",
    "mastodons": "mastodon",
    "matrixs": "matrix",
    "misskeys": "misskey",
    "mmosts": "mmost",
    "nctalks": "nctalk",
    "ntfys": "ntfy",
    "rockets": "rocket",
    "signals": "signal",
    "synologys": "synology",
}
"""Services that anybody may run: the scheme over HTTPS, and the one without."""
_PLAIN: Final = frozenset(_OWN.values())
SCHEMES: Final = tuple(sorted({*_HOSTED, *_OWN, *_PLAIN}))
"""All schemes that may be used."""
_SCHEME: Final = re.compile(r"([a-z0-9]{2,20})://", re.IGNORECASE)


class Service(NamedTuple):
    """What an address says of its service."""

    scheme: str
    place: Destination | None
    """The host that it names; None where the service has its own, and the host's place in the URL holds a token."""

    @property
    def shown(self) -> str:
        """The address without all that may be secret: any part of such an address can be a token."""
        return f"{self.scheme}://…"


def read_service(text: str) -> Service:
    """Read an address of a service.

    Raises ValueError with a clause that says what is wrong; it never repeats the address, which is a secret.
    """
    if len(text) > LONGEST_URL or not text.isascii() or any(not "!" <= sign <= "~" for sign in text):
        raise ValueError(f"it has at most {LONGEST_URL} printable ASCII characters and no spaces")
    found = _SCHEME.match(text)
    scheme = found[1].lower() if found else ""
    if scheme not in SCHEMES:
        raise ValueError("it must begin with the scheme of a service that may be used, such as tgram:// or ntfys://")
    if scheme in _HOSTED:
        return Service(scheme, None)
    rest = text.partition("://")[2]
    authority, *others = re.split(r"[/?]", rest, maxsplit=1)
    host = authority.rpartition("@")[2]
    if not host or "\\" in rest or "#" in authority:
        raise ValueError("it names no host")
    if scheme in ("ntfys", "ntfy") and not others:
        return Service(scheme, None)  # ntfys://TOPIC is a topic at ntfy.sh
    return Service(scheme, read_url(f"{'http' if scheme in _PLAIN else 'https'}://{host}/"))


def service_refusal(service: Service, listed: Sequence[Network]) -> str:
    """Why nothing is sent to a service, whatever names resolve to, as a clause; "" if it may."""
    if service.place is None:
        return ""
    if not service.place.encrypted and not listed:
        secure = next(name for name, plain in _OWN.items() if plain == service.scheme)
        return f"outside the networks that an administrator lists the address must begin with {secure}://"
    return host_refusal(service.place, listed)
