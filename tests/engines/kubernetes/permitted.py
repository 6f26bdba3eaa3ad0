"""Run Corral with exactly its documented permissions, and take some away during a test."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, Final

from corral.engines.kubernetes.api.permissions import FOR_DEVICES, NEEDED
from tests.engines.kubernetes.test_testbed import until
from tests.testbeds.kubernetes.controlplane import ControlPlane

_RBAC: Final = "rbac.authorization.k8s.io"
_Rule = tuple[str, str, str]
"""Verb, group, and resource as RBAC roles write it."""


class Permitted:
    """A cluster user with exactly the permissions that Corral needs; verbs can be taken away for a while."""

    def __init__(self, plane: ControlPlane, user: str) -> None:
        self._plane, self.user = plane, user
        self.kubeconfig: Path = plane.kubeconfig_for(user)
        self._rules = {
            (verb, permission.resource.group, f"{permission.resource.plural}/{permission.subresource}".rstrip("/"))
            for permission in NEEDED + FOR_DEVICES
            for verb in permission.verbs
        }
        whom = {"apiGroup": _RBAC, "kind": "User", "name": user}
        role = {"apiGroup": _RBAC, "kind": "ClusterRole", "name": user}
        plane.request("POST", self._path(), self._role())
        binding = {"metadata": {"name": user}, "roleRef": role, "subjects": [whom]}
        plane.request("POST", f"/apis/{_RBAC}/v1/clusterrolebindings", binding)
        self._wait(*self._rules, allowed=True)

    @contextlib.contextmanager
    def without(self, resource: str, *verbs: str, group: str = "") -> Iterator[None]:
        """Take these verbs on a resource away while the block runs."""
        taken = {(verb, group, resource) for verb in verbs}
        assert taken <= self._rules
        self._rules -= taken
        try:
            self._plane.request("PUT", self._path(self.user), self._role())
            self._wait(*taken, allowed=False)
            yield
        finally:
            self._rules |= taken
            self._plane.request("PUT", self._path(self.user), self._role())
            self._wait(*taken, allowed=True)

    @contextlib.asynccontextmanager
    async def losing(self, resource: str, *verbs: str, group: str = "") -> AsyncIterator[None]:
        """The same as `without`, beside an engine that keeps running."""
        taken = self.without(resource, *verbs, group=group)
        await asyncio.to_thread(taken.__enter__)
        try:
            yield
        finally:
            await asyncio.to_thread(taken.__exit__, None, None, None)

    def remove(self) -> None:
        """Take all permissions away."""
        self._plane.request("DELETE", f"/apis/{_RBAC}/v1/clusterrolebindings/{self.user}")
        self._plane.request("DELETE", self._path(self.user))

    @staticmethod
    def _path(name: str = "") -> str:
        return f"/apis/{_RBAC}/v1/clusterroles" + (f"/{name}" if name else "")

    def _role(self) -> dict[str, Any]:
        rules = [{"apiGroups": [group], "resources": [what], "verbs": [verb]} for verb, group, what in self._rules]
        return {"metadata": {"name": self.user}, "rules": rules}

    def _wait(self, *rules: _Rule, allowed: bool) -> None:
        """Wait until the API server applies the role's present rules."""
        for rule in rules:
            may = f"{self.user} {'may' if allowed else 'may not'} {rule[0]} {rule[2]}"
            until(lambda rule=rule: self._may(*rule) is allowed or None, may)

    def _may(self, verb: str, group: str, what: str) -> bool:
        resource, _, subresource = what.partition("/")
        asked = {"verb": verb, "group": group, "resource": resource, "subresource": subresource}
        review = {"spec": {"user": self.user, "resourceAttributes": asked}}
        found = self._plane.request("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
        return bool(found["status"]["allowed"])
