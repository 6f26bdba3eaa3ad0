"""A real admission webhook for pods, which the API server calls over TLS."""

from __future__ import annotations

import base64
import json
import ssl
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

import trustme

from tests.engines.kubernetes.test_testbed import until
from tests.reserved import free_port
from tests.testbeds.kubernetes.controlplane import ControlPlane, Refused

_CONFIGURATIONS: Final = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"


class Webhook:
    """A webhook that is asked before any pod is created in one namespace.

    It refuses pods with the annotation `WHY`, whose value is the message, with the HTTP code `code`. The API server
    waits `seconds` for it.
    """

    WHY: Final = "corral.test/forbidden"

    def __init__(self, plane: ControlPlane, name: str, namespace: str, *, code: int = 403, seconds: int = 10) -> None:
        self._plane, self.name, self._namespace, self._code = plane, name, namespace, code
        self._seconds = seconds
        self._authority = trustme.CA()
        self._port = free_port()
        self._server: ThreadingHTTPServer | None = None
        self._speaks = threading.Event()

    def __enter__(self) -> Webhook:
        self.answer()
        try:
            self._plane.request("POST", _CONFIGURATIONS, self._configuration())
            until(lambda: self._answers("only a probe") or None, "the API server asks the webhook")
        except BaseException:
            self.vanish()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._plane.request("DELETE", f"{_CONFIGURATIONS}/{self.name}")
        until(lambda: self._answers("") or None, "the API server asks the webhook no more")
        self.vanish()

    def answer(self) -> None:
        """Answer from now on, at the same address as before."""
        self._speaks.set()
        if self._server is not None:
            return
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._authority.issue_cert("127.0.0.1").configure_cert(context)
        self._server = ThreadingHTTPServer(("127.0.0.1", self._port), _handler(self._verdict))
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def hang(self) -> None:
        """Accept requests and answer none."""
        self._speaks.clear()

    def vanish(self) -> None:
        """Stop listening."""
        if self._server is not None:
            self._server.block_on_close = False
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def _verdict(self, pod: dict[str, Any]) -> dict[str, Any]:
        self._speaks.wait(60)
        why = pod["metadata"].get("annotations", {}).get(self.WHY)
        return {"allowed": True} if why is None else {"allowed": False, "status": {"code": self._code, "message": why}}

    def _configuration(self) -> dict[str, Any]:
        authority = base64.b64encode(self._authority.cert_pem.bytes()).decode()
        pods = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
        hook = {
            "name": self.name,
            "clientConfig": {"url": f"https://127.0.0.1:{self._port}/pods", "caBundle": authority},
            "rules": [pods],
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": self._namespace}},
            "failurePolicy": "Fail",
            "sideEffects": "None",
            "timeoutSeconds": self._seconds,
            "admissionReviewVersions": ["v1"],
        }
        return {"metadata": {"name": self.name}, "webhooks": [hook]}

    def _answers(self, said: str) -> bool:
        """Whether refused pods get this message; with an empty one, whether pods are admitted."""
        metadata = {"name": "probe", "annotations": {self.WHY: said}}
        pod = {"metadata": metadata, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        try:
            self._plane.request("POST", f"/api/v1/namespaces/{self._namespace}/pods?dryRun=All", pod)
        except Refused as refused:
            return bool(said) and said in refused.body
        return not said


def _handler(verdict: Callable[[dict[str, Any]], dict[str, Any]]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.0"  # the API server keeps no connection to a server that may vanish

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["request"]
            response = {"uid": asked["uid"], **verdict(asked["object"])}
            review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
            body = json.dumps(review).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    return Handler
