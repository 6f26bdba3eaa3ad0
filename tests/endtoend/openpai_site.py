"""A plain client of OpenPAI's API that checks every answer against OpenPAI's description."""

from __future__ import annotations

import json
import time
from typing import Any

import httpx2
import yaml

from tests.api.openpai_description import Description
from tests.endtoend.platform import Platform
from tests.waiting import pause

PASSWORD = "correct horse"
JOB = """\
protocolVersion: 2
name: {name}
type: job
prerequisites: [{{type: dockerimage, name: image, uri: "ubuntu:22.04"}}]
secrets: {{key: very-secret}}
taskRoles:
  worker:
    instances: {instances}
    dockerImage: image
    resourcePerInstance: {{cpu: 1, memoryMB: 64, gpu: {gpu}}}
    commands: [{command}]
extras: {{submitFrom: tests}}
"""
PATIENCE = 300.0


class Site:
    """A server as OpenPAI's clients see it: an administrator `root` and a user `alice`, each with a token."""

    def __init__(self, platform: Platform, description: Description) -> None:
        self.platform = platform
        self.url = platform.url
        self.description = description
        self.http = httpx2.Client(base_url=platform.url, trust_env=False, timeout=120)
        self.admin = platform.client.token
        self.called: set[str] = set()
        made = {"username": "alice", "password": PASSWORD, "email": "alice@example.com", "virtualCluster": ["default"]}
        self.call("POST", "/api/v2/users", json=made, token=self.admin, status=201)
        self.alice = self.sign_in("alice")

    def close(self) -> None:
        """Close the connection."""
        self.http.close()

    def sign_in(self, name: str, password: str = PASSWORD) -> str:
        """A new token for an account."""
        form = {"username": name, "password": password}
        return str(self.call("POST", "/api/v2/authn/basic/login", data=form, token="")["token"])

    def call(
        self,
        method: str,
        path: str,
        *,
        token: str | None = None,
        status: int = 200,
        query: dict[str, Any] | None = None,
        json: Any = None,
        data: dict[str, Any] | None = None,
        content: str | None = None,
        **names: Any,
    ) -> Any:
        """Call an operation by its path in the description; the answer must have `status` and the described form."""
        token = self.alice if token is None else token
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        if content is not None:
            headers["Content-Type"] = "text/yaml"
        address = path.format(**names)
        path = path.replace("{which}", "{token}")
        answer = self.http.request(
            method, address, headers=headers, params=query, json=json, data=data, content=content
        )
        is_json = answer.headers.get("content-type", "").startswith("application/json")
        found = answer.json() if is_json else answer.text
        assert answer.status_code == status, f"{method} {address}: {answer.status_code} {found}"
        self.called.add(f"{method} {path}")
        self.description.check(method, path, status, found)
        return found

    def submit(self, name: str, command: str = "true", *, instances: int = 1, gpu: int = 0) -> dict[str, str]:
        """Submit a job of alice's; returns the two path parameters that find it."""
        text = JOB.format(name=name, command=json.dumps(command), instances=instances, gpu=gpu)
        yaml.safe_load(text)
        self.call("POST", "/api/v2/jobs", content=text, status=202)
        return {"user": "alice", "job": name}

    def job(self, names: dict[str, str]) -> dict[str, Any]:
        """The job's present detail."""
        return dict(self.call("GET", "/api/v2/jobs/{user}~{job}", **names))

    def until(self, names: dict[str, str], *states: str) -> dict[str, Any]:
        """Poll a job until its state is one of these, as OpenPAI's clients do, which have no event stream."""
        begun = time.monotonic()
        while (found := self.job(names))["jobStatus"]["state"] not in states:
            assert time.monotonic() - begun < PATIENCE, f"still {found['jobStatus']['state']}: {found}"
            time.sleep(pause(begun))
        return found
