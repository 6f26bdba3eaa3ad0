"""Calls about single pods, with deadlines within the leader's lease and temporary errors marked as Unavailable."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from corral.engines.kubernetes.api.concurrency_limit import Gate
from corral.engines.kubernetes.api.resources import PODS, Call
from corral.engines.kubernetes.api.transport import MERGE_PATCH, Transport
from corral.engines.kubernetes.pods.labels import attempt_of
from corral.engines.kubernetes.pods.manifest import pod_name
from corral.engines.kubernetes.watch.pod_structs import Pod
from corral.kernel.errors import Conflict, CorralError, NotFound, TooManyRequests, Unauthenticated, Unavailable
from corral.kernel.ids import AttemptId

CALL_SECONDS: Final = 3.0
"""Seconds to wait for an answer. Afterwards another server may lead."""
_VALIDATION: Final = {True: "Strict", False: "Ignore"}
"""By default the API server would check for unknown fields and report them in a header."""
POD: Final = msgspec.json.Decoder(Pod)


class PodCalls:
    """Finds, labels and deletes the pods of one server in one namespace."""

    def __init__(
        self,
        transport: Transport,
        server: str,
        namespace: str,
        lease_left: Callable[[], float] = lambda: CALL_SECONDS,
    ) -> None:
        """`lease_left` returns the seconds for which this server may still act."""
        self._transport, self._server, self._namespace = transport, server, namespace
        self._lease_left = lease_left
        self._gate = Gate()

    async def find(self, attempt: AttemptId) -> Pod | None:
        """Return the attempt's pod, or None if this server has none."""
        try:
            body = await self.ask(Call("get", PODS, self._namespace, pod_name(attempt)))
        except NotFound:
            return None
        except CorralError as error:
            raise passing(error) from None
        pod = POD.decode(body)
        return pod if attempt_of(pod, self._server) == attempt else None

    async def delete(self, attempt: AttemptId, uid: str, grace_seconds: float, *, force: bool = False) -> None:
        """Delete the pod with this UID; no effect if it is gone.

        The grace is at least one second. With 0, which `force` sends, the API server does not wait for the kubelet.
        """
        options = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "gracePeriodSeconds": 0 if force else max(1, round(grace_seconds)),
            "preconditions": {"uid": uid},
        }
        call = Call("delete", PODS, self._namespace, pod_name(attempt))
        try:
            await self.ask(call, options, repeatable=True)
        except (NotFound, Conflict):
            return
        except CorralError as error:
            raise passing(error) from None

    async def label(self, attempt: AttemptId, uid: str, labels: Mapping[str, str]) -> None:
        """Set labels on the pod with this UID. Raises Conflict or NotFound when it is gone."""
        call = Call("patch", PODS, self._namespace, pod_name(attempt))
        body = {"metadata": {"uid": uid, "labels": dict(labels)}}
        try:
            await self.ask(call, body, repeatable=True, content=MERGE_PATCH)
        except Conflict:
            raise
        except CorralError as error:
            raise passing(error) from None

    async def ask(
        self,
        call: Call,
        body: Mapping[str, Any] | None = None,
        *,
        repeatable: bool | None = None,
        content: str = "",
        strict: bool = False,
    ) -> bytes:
        """Make one call with a JSON body, with the rest of the lease as its limit.

        `strict` refuses fields unknown to the cluster, for bodies that are not all Corral's own.
        Raises Unavailable when the lease is over.
        """
        async with self._gate.call():
            left = self._lease_left()
            if not left:
                message = f"This server does not know whether it still leads, so it does not {call}."
                raise Unavailable("lease-over", message)
            return await self._transport.ask(
                call,
                params={} if body is None or call.verb == "delete" else {"fieldValidation": _VALIDATION[strict]},
                body=None if body is None else msgspec.json.encode(body),
                content=content or "application/json",
                deadline=min(CALL_SECONDS, left),
                repeatable=repeatable,
            )


def passing(error: CorralError) -> CorralError:
    """Turn temporary errors into Unavailable.

    They are a busy cluster, expired credentials, and a write conflict on an object (often a quota).
    """
    if isinstance(error, TooManyRequests | Unauthenticated) or error.code == "kubernetes-conflict":
        return Unavailable(error.code, error.message)
    return error
