"""A client for tests of OpenPAI's API: it signs in with a JWT, sends forms or JSON, and reads `{code, message}`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx2

from tests.api.harness import Server

PASSWORD = "correct horse"


class Pai:
    """A caller of OpenPAI's API, anonymous without a token."""

    def __init__(self, url: str, token: str = "", *, basic: str = "") -> None:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        if basic:
            headers = {"Authorization": f"Basic {basic}"}
        self.token = token
        self._http = httpx2.Client(base_url=url, headers=headers, trust_env=False, timeout=120)

    def call(self, method: str, path: str, **terms: Any) -> httpx2.Response:
        """Make one call; `path` begins with `/`."""
        return self._http.request(method, path, **terms)

    def get(self, path: str) -> Any:
        """The JSON at `path`; the call must succeed."""
        answer = self.call("GET", path)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def put(self, path: str, body: Any) -> str:
        """PUT, which must succeed; returns the message."""
        return self._changed("PUT", path, body)

    def post(self, path: str, body: Any) -> str:
        """POST, which must succeed; returns the message."""
        return self._changed("POST", path, body)

    def delete(self, path: str, body: Any = None, status: int = 201) -> str:
        """DELETE, which must succeed; returns the message."""
        return self._changed("DELETE", path, body, status)

    def refused(self, method: str, path: str, **terms: Any) -> tuple[int, str, str]:
        """Status, code and message of a call that must be refused, in OpenPAI's error format."""
        answer = self.call(method, path, **terms)
        assert answer.status_code >= 400, answer.text
        body = answer.json()
        assert set(body) == {"code", "message"}
        assert answer.headers["content-type"].startswith("application/json")
        return answer.status_code, body["code"], body["message"]

    def close(self) -> None:
        """Close the connection."""
        self._http.close()

    def _changed(self, method: str, path: str, body: Any, status: int = 201) -> str:
        answer = self.call(method, path, json=body)
        assert answer.status_code == status, answer.text
        message = answer.json()["message"]
        assert isinstance(message, str)
        return message


def signed_in(server: Server, user: str, *, role: str = "user") -> Pai:
    """Sign `user` in at OpenPAI's API by name and password; the account is made if it is new."""
    if not server.call(server.store.password_hash(user)):
        server.token(user, role=role)
        server.call(
            server.store.change_user(user, password_hash=server.call(server.service.passwords.hasher.hash(PASSWORD)))
        )
    return Pai(server.url, login(server, user)["token"])


def login(server: Server, user: str, password: str = PASSWORD, **more: Any) -> Mapping[str, Any]:
    """The answer to a sign-in with a password."""
    with httpx2.Client(base_url=server.url, trust_env=False, timeout=120) as http:
        form = {"username": user, "password": password, **more}
        answer = http.post("/api/v2/authn/basic/login", data=form)
    assert answer.status_code == 200, answer.text
    told = answer.json()
    assert isinstance(told, dict)
    return told
