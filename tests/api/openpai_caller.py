"""Why: the tests of OpenPAI's API call as its own clients do: with a JWT, forms and JSON, and look at `{code, message}`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx2

from tests.api.harness import Server

PASSWORD = "correct horse"


class Pai:
    """Somebody who calls OpenPAI's API, or nobody when there is no token."""

    def __init__(self, url: str, token: str = "", *, basic: str = "") -> None:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        if basic:
            headers = {"Authorization": f"Basic {basic}"}
        self.token = token
        self._http = httpx2.Client(base_url=url, headers=headers, trust_env=False, timeout=30)

    def call(self, method: str, path: str, **terms: Any) -> httpx2.Response:
        """One call; `path` begins with `/`."""
        return self._http.request(method, path, **terms)

    def get(self, path: str) -> Any:
        """What is at `path`, which must be there."""
        answer = self.call("GET", path)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def put(self, path: str, body: Any) -> str:
        """Change something, which must be taken; the message."""
        return self._changed("PUT", path, body)

    def post(self, path: str, body: Any) -> str:
        """Make something, which must be taken; the message."""
        return self._changed("POST", path, body)

    def delete(self, path: str, body: Any = None, status: int = 201) -> str:
        """Remove something, which must be taken; the message."""
        return self._changed("DELETE", path, body, status)

    def refused(self, method: str, path: str, **terms: Any) -> tuple[int, str, str]:
        """Status, name and message of a call that must be refused, in the one shape."""
        answer = self.call(method, path, **terms)
        assert answer.status_code >= 400, answer.text
        body = answer.json()
        assert set(body) == {"code", "message"}
        assert answer.headers["content-type"].startswith("application/json")
        return answer.status_code, body["code"], body["message"]

    def close(self) -> None:
        """Let go of the connection."""
        self._http.close()

    def _changed(self, method: str, path: str, body: Any, status: int = 201) -> str:
        answer = self.call(method, path, json=body)
        assert answer.status_code == status, answer.text
        message = answer.json()["message"]
        assert isinstance(message, str)
        return message


def signed_in(server: Server, user: str, *, role: str = "user") -> Pai:
    """`user` signed in at OpenPAI's API by name and password; the account is made if it is new."""
    if not server.call(server.store.password_hash(user)):
        server.token(user, role=role)
        server.call(server.store.change_user(user, password_hash=server.call(server.service.passwords.hash(PASSWORD))))
    return Pai(server.url, login(server, user)["token"])


def login(server: Server, user: str, password: str = PASSWORD, **more: Any) -> Mapping[str, Any]:
    """What signing in with a password gives."""
    with httpx2.Client(base_url=server.url, trust_env=False, timeout=30) as http:
        form = {"username": user, "password": password, **more}
        answer = http.post("/api/v2/authn/basic/login", data=form)
    assert answer.status_code == 200, answer.text
    told = answer.json()
    assert isinstance(told, dict)
    return told
