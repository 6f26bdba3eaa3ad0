"""Check from the API server's own watch events that no device was ever in two pods."""

from __future__ import annotations

import contextlib
import http.client
import json
import ssl
import threading
import urllib.request
from dataclasses import dataclass
from typing import Any

from tests.testbeds.kubernetes.controlplane import ControlPlane

_OVER = ("Succeeded", "Failed")
_TURN = "timeoutSeconds=2"
"""Duration of one watch; short, so that the end of the test is noticed."""

Device = tuple[str, str, str]
"""Driver, pool and name."""


@dataclass(frozen=True)
class Change:
    """A change of one object; etcd's revision orders the changes of all resources."""

    revision: int
    sort: str
    gone: bool
    object: dict[str, Any]


class Chronicle:
    """Records all changes of the pods and claims of a namespace while the block runs."""

    def __init__(self, plane: ControlPlane, namespace: str) -> None:
        self._plane = plane
        self._paths = {
            "pod": f"/api/v1/namespaces/{namespace}/pods",
            "claim": f"/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaims",
        }
        self._context = ssl.create_default_context(cafile=str(plane.ca))
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._follow, args=(sort,)) for sort in self._paths]
        self.changes: list[Change] = []
        self.faults: list[str] = []
        """Errors that ended a watch early: then changes may be missing."""

    def __enter__(self) -> Chronicle:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _follow(self, sort: str) -> None:
        try:
            listed = self._plane.request("GET", self._paths[sort])
            assert not listed["items"], "a namespace of its own"
            version = listed["metadata"]["resourceVersion"]
            while not self._over.is_set():
                version = self._watch(sort, version)
        except (OSError, http.client.HTTPException, ValueError, RuntimeError) as error:
            self.faults.append(f"{sort}: {error}")

    def _watch(self, sort: str, version: str) -> str:
        path = f"{self._paths[sort]}?watch=1&allowWatchBookmarks=true&{_TURN}&resourceVersion={version}"
        asked = urllib.request.Request(self._plane.url + path, headers={"Authorization": f"Bearer {self._plane.token}"})
        with contextlib.closing(urllib.request.urlopen(asked, context=self._context, timeout=60)) as answer:
            for line in answer:
                event = json.loads(line)
                if event["type"] == "ERROR":
                    raise RuntimeError(event["object"]["message"])
                version = event["object"]["metadata"]["resourceVersion"]
                if event["type"] != "BOOKMARK":
                    change = Change(int(version), sort, event["type"] == "DELETED", event["object"])
                    self.changes.append(change)
        return str(version)

    def told(self) -> Account:
        """The account of devices after all recorded changes."""
        account = Account()
        for change in sorted(self.changes, key=lambda change: change.revision):
            if change.sort == "claim":
                account.allocate(change.object)
            elif change.gone or change.object["status"].get("phase") in _OVER:
                account.end(change.object["metadata"]["name"])
            else:
                account.go_on(change.object)
        return account


class Account:
    """The devices of pods that have not ended, change by change."""

    def __init__(self) -> None:
        self.twice: list[str] = []
        """Every time that a device was in two pods that had not ended."""
        self.most = 0
        """The largest number of devices in pods at once."""
        self._given: dict[str, dict[str, set[Device]]] = {}
        self._wants: dict[str, dict[str, set[str]]] = {}
        self.holders: dict[Device, str] = {}
        """The pod that holds each device now."""
        self._users: dict[str, set[str]] = {}

    def allocate(self, claim: dict[str, Any]) -> None:
        """Record a claim's devices by request; a deleted claim keeps them for its pods."""
        results = claim.get("status", {}).get("allocation", {}).get("devices", {}).get("results", ())
        given: dict[str, set[Device]] = {}
        for result in results:
            given.setdefault(result["request"], set()).add((result["driver"], result["pool"], result["device"]))
        if given:
            name = claim["metadata"]["name"]
            self._given[name] = given
            for pod in sorted(self._users.get(name, ())):
                self._hold(pod)

    def go_on(self, pod: dict[str, Any]) -> None:
        """Record a pod that exists and has not ended."""
        name, spec = pod["metadata"]["name"], pod["spec"]
        claims = {each["name"]: each["resourceClaimName"] for each in spec.get("resourceClaims", ())}
        wants: dict[str, set[str]] = {}
        for container in spec["containers"]:
            for use in container.get("resources", {}).get("claims", ()):
                wants.setdefault(claims[use["name"]], set()).add(use.get("request", ""))
        self._wants[name] = wants
        for claim in wants:
            self._users.setdefault(claim, set()).add(name)
        self._hold(name)

    def end(self, pod: str) -> None:
        """Record that a pod has ended or is gone."""
        for claim in self._wants.pop(pod, ()):
            self._users[claim].discard(pod)
        for device in [device for device, holder in self.holders.items() if holder == pod]:
            del self.holders[device]

    def _hold(self, pod: str) -> None:
        for claim, requests in self._wants[pod].items():
            for request, devices in self._given.get(claim, {}).items():
                for device in devices if request in requests or "" in requests else ():
                    other = self.holders.setdefault(device, pod)
                    if other != pod:
                        self.twice.append(f"{device} was in {other} and in {pod}")
        self.most = max(self.most, len(self.holders))
