"""Administrators read the audit log by REST and by `corral audit`, with filters that are bounded."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from corral.cli.audit import audit_command
from corral.kernel.errors import InvalidInput
from tests.api.harness import Server
from tests.api.openpai_caller import signed_in


def test_what_an_account_did_and_was_refused_is_found(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    root, ann = signed_in(server, "auditor", role="admin"), signed_in(server, "audited")
    token = server.token("auditor", role="admin")
    assert root.call("POST", "/api/v3/users", json={"name": "audited-2"}).status_code == 201
    assert ann.call("DELETE", "/api/v3/users/audited-2").status_code == 403
    root.call("DELETE", "/api/v3/users/audited-2").raise_for_status()

    def found(query: str) -> list[tuple[str, str, bool]]:
        lines = root.get(f"/api/v3/audit?resource=user:audited-2&{query}")["items"]
        return [(each["actor"], each["action"], each["allowed"]) for each in lines]

    did = ("auditor", "user.delete", True), ("audited", "user.delete", False), ("auditor", "user.create", True)
    assert found("") == list(did)
    assert found("refused=true") == [did[1]]
    assert found("by=auditor&action=user.create") == [did[2]]
    assert found("from=2100-01-01T00:00:00Z") == found("to=2001-01-01T00:00:00Z") == []
    assert found("refused=true&from=2026-01-01&to=2100-01-01") == [did[1]]
    assert found("from=2100-01-01") == found("to=2001-01-01") == []
    for query in ("refused=perhaps", f"action={'a' * 101}", f"by={'a' * 201}"):
        assert root.call("GET", f"/api/v3/audit?{query}").status_code == 422, query
    for name in ("from", "to"):
        refused = root.call("GET", f"/api/v3/audit?{name}=yesterday")
        assert refused.status_code == 400
        assert f"{name} is a time such as 2026-11-27T10:00:00Z or 2026-11-27" in refused.json()["message"]
    assert ann.call("GET", "/api/v3/audit?by=audited").status_code == 403

    monkeypatch.setenv("CORRAL_URL", server.url)
    monkeypatch.setenv("CORRAL_TOKEN", token)
    words = ["--resource", "user:audited-2", "--since", "1d"]
    told = CliRunner().invoke(audit_command, [*words, "--limit", "2"], catch_exceptions=False).stdout.splitlines()
    assert [line.split()[1:3] for line in told[1:]] == [["auditor", "user.delete"], ["audited", "user.delete"]]
    assert [line.split()[-1] == "refused" for line in told[1:]] == [False, True]
    as_json = CliRunner().invoke(audit_command, [*words, "--refused", "-o", "json"], catch_exceptions=False)
    assert [each["actor"] for each in json.loads(as_json.stdout)] == ["audited"]
    older = CliRunner().invoke(audit_command, [*words, "--until", "1h"], catch_exceptions=False)
    assert "The audit log has no such line." in older.output
    none = CliRunner().invoke(audit_command, ["--by", "nobody-of-this-name"], catch_exceptions=False)
    assert "The audit log has no such line." in none.output
    for option in ("--since", "--until"):
        bad = CliRunner().invoke(audit_command, [option, "soon"])
        assert isinstance(bad.exception, InvalidInput) and option in str(bad.exception)
    root.close()
    ann.close()
