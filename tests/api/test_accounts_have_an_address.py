"""An account's e-mail address is set, shown and removed by those who may change the account."""

from __future__ import annotations

from pathlib import Path

from tests.api.harness import serving
from tests.api.openpai_caller import signed_in


def test_an_address_is_set_changed_and_taken_away(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        root, ann = signed_in(server, "boss", role="admin"), signed_in(server, "ann")
        made = root.call("POST", "/api/v3/users", json={"name": "eve", "email": "eve@example.org"})
        assert made.json()["email"] == "eve@example.org"
        refused = root.call("POST", "/api/v3/users/eve", json={"email": "nowhere"})
        assert (refused.status_code, refused.json()["message"]) == (400, "nowhere is not a mail address.")
        assert ann.call("POST", "/api/v3/users/eve", json={"email": "ann@example.org"}).status_code == 403
        assert ann.call("POST", "/api/v3/users/ann", json={"email": "ann@example.org"}).status_code == 200
        assert root.call("POST", "/api/v3/users/eve", json={"role": "user"}).json()["email"] == "eve@example.org"
        assert root.call("POST", "/api/v3/users/eve", json={"email": ""}).json()["email"] == ""
        assert root.call("GET", "/api/v3/users/ann").json()["email"] == "ann@example.org"
