"""A real OpenID provider; a test sets its accounts, and the account that its browser signs in with."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tests.reserved import free_port
from tests.testbeds.kubernetes.daemons import Daemon, answers
from tests.testbeds.oidc import packages

CLIENT: Final = "corral"
SECRET: Final = "a secret of thirty-two characters"
_SCRIPT: Final = Path(__file__).resolve().parent / "provider.mjs"


class Provider:
    """One running provider; `people` are its accounts' claims by subject."""

    def __init__(
        self, base: str, people: Mapping[str, Mapping[str, Any]], *, secret: str = SECRET, redirects: Sequence[str] = ()
    ) -> None:
        self._home = Path(tempfile.mkdtemp(prefix="corral-oidc-"))
        port = free_port()
        self.issuer = f"http://127.0.0.1:{port}"
        told = {"issuer": self.issuer, "port": port, "people": people, "clients": [_client(base, secret, redirects)]}
        (self._home / "told.json").write_text(json.dumps(told))
        command: list[str | Path] = ["sh", "-c", 'exec node "$0" "$1" <told.json', _SCRIPT, packages.folder()]
        self._daemon = Daemon("oidc-provider", command, self._home)
        well_known = f"{self.issuer}/.well-known/openid-configuration"
        try:
            self._daemon.start(lambda: answers(well_known, self.issuer))
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Provider:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop it and remove its folder."""
        self._daemon.stop()
        shutil.rmtree(self._home, ignore_errors=True)


def _client(base: str, secret: str, redirects: Sequence[str]) -> dict[str, Any]:
    known: dict[str, Any] = {
        "client_id": CLIENT,
        "redirect_uris": [f"{base}/api/v3/oidc/callback", *redirects],
        "post_logout_redirect_uris": [f"{base}/sign-in"],
        "grant_types": ["authorization_code"],
        "response_types": ["code"],
        "backchannel_logout_uri": f"{base}/api/v3/oidc/backchannel-logout",
        "backchannel_logout_session_required": True,
    }
    if secret:
        return {**known, "client_secret": secret}
    return {**known, "token_endpoint_auth_method": "none"}
