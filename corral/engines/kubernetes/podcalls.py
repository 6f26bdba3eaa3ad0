"""Why: the few calls about one pod are bounded by how long a server may lead, and say which troubles pass."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from corral.engines.kubernetes.gate import Gate
from corral.engines.kubernetes.names import attempt_of
from corral.engines.kubernetes.objects import Pod
from corral.engines.kubernetes.pods import pod_name
from corral.engines.kubernetes.resources import PODS, Call
from corral.engines.kubernetes.transport import MERGE_PATCH, Transport
from corral.kernel.errors import Conflict, CorralError, NotFound, TooManyRequests, Unauthenticated, Unavailable
from corral.kernel.ids import AttemptId

CALL_SECONDS: Final = 3.0
"""For no longer is an answer waited for: another server may lead after that."""
_VALIDATION: Final = {True: "Strict", False: "Ignore"}
"""By default the API server would look for unknown fields and tell of them in a header."""
POD: Final = msgspec.json.Decoder(Pod)


class PodCalls:
    """Finds and deletes the pods of one server in one namespace."""

    def __init__(
        self,
        transport: Transport,
        server: str,
        namespace: str,
        lease_left: Callable[[], float] = lambda: CALL_SECONDS,
    ) -> None:
        """`lease_left` tells for how many seconds this server may still act."""
        self._transport, self._server, self._namespace = transport, server, namespace
        self._lease_left = lease_left
        self._gate = Gate()

    async def find(self, attempt: AttemptId) -> Pod | None:
        """The attempt's pod; None when there is none of this server's."""
        try:
            body = await self.ask(Call("get", PODS, self._namespace, pod_name(attempt)))
        except NotFound:
            return None
        except CorralError as error:
            raise passing(error) from None
        pod = POD.decode(body)
        return pod if attempt_of(pod, self._server) == attempt else None

    async def delete(self, attempt: AttemptId, uid: str, grace_seconds: float, *, force: bool = False) -> None:
        """Ask for the end of the pod with this UID; nothing when it is gone.

        The grace is at least a second: with 0, which `force` asks for, the API server does not wait for the kubelet.
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
        """Give the pod with this UID labels; raises Conflict or NotFound when it is gone."""
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
        """The answer to one call with a JSON body, waited for as long as the lease lasts.

        `strict` has fields that the cluster does not know refused: for bodies that are not all Corral's own.

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
    """A busy cluster, credentials that ran out, and an object (often a quota) that others write too pass."""
    if isinstance(error, TooManyRequests | Unauthenticated) or error.code == "kubernetes-conflict":
        return Unavailable(error.code, error.message)
    return error
