"""A real etcd, apiserver and controller manager for tests, each killed and started at will.

Every control plane has a temporary folder, loopback ports, an authority and tokens of its own, so any number can run at
once.
"""

from __future__ import annotations

import collections
import contextlib
import http.client
import json
import os
import random
import secrets
import shutil
import ssl
import subprocess
import tempfile
import threading
import time
import urllib.request
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from tests.reserved import free_port, one_of
from tests.testbeds.kubernetes import remains
from tests.testbeds.kubernetes.binaries import program
from tests.testbeds.kubernetes.certificates import Authority
from tests.testbeds.kubernetes.daemons import Daemon, answers

ADMINISTRATOR: Final = "administrator"
ALL_CONTROLLERS: Final = "*"
OURS: Final = "*,-resourceclaim-controller"
"""The controllers of a cluster on which only Corral writes claims."""
_SERVICES: Final = [f"10.{second}.{third}" for second in range(100, 150) for third in range(256)]
_KEPT_SECONDS: Final = 60
"""Seconds that idle connections are reused; the apiserver closes them after 90."""

_AUDIT: Final = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "Metadata", "verbs": ["create", "update", "patch", "delete", "deletecollection"]},
        {"level": "None"},
    ],
}


class Refused(RuntimeError):
    """The apiserver refused a call: `status` is its HTTP code, `body` its answer."""

    def __init__(self, status: int, body: str) -> None:
        super().__init__(f"{status}: {body[:1000]}")
        self.status, self.body = status, body


class ControlPlane:
    """etcd, kube-apiserver, kube-controller-manager (`controllers=""`: none) and, on request, kube-scheduler, all
    ready.

    `audit` records every write, for `writes`. `apiserver_flags` and `controller_flags` are passed on unchanged. `hosts`
    are more names and addresses for the apiserver's certificate. `service_address` is the address for pods (port 443),
    given to them as `KUBERNETES_SERVICE_HOST`.
    """

    def __init__(
        self,
        *,
        controllers: str = ALL_CONTROLLERS,
        scheduler: bool = False,
        audit: bool = False,
        apiserver_flags: Sequence[str] = (),
        controller_flags: Sequence[str] = (),
        hosts: Sequence[str] = (),
    ) -> None:
        begun = time.monotonic()
        remains.sweep()
        self.home = Path(tempfile.mkdtemp(prefix=remains.CONTROL_PLANES))
        remains.write_owner(self.home)
        self.port, self._etcd_port = free_port(), free_port()
        services = one_of("service-network", random.sample(_SERVICES, k=len(_SERVICES)))
        self.service_address = f"{services}.1"
        self.url = f"https://127.0.0.1:{self.port}"
        self.token = secrets.token_hex(16)
        self.authority = Authority(self.home / "pki")
        self.ca = self.authority.certificate
        self._audit = self.home / "audit.log" if audit else None
        self._connections = threading.local()
        self._context = ssl.create_default_context(cafile=str(self.ca))
        self.etcd = Daemon("etcd", self._etcd_command(), self.home)
        self.apiserver = Daemon(
            "kube-apiserver", [*self._apiserver_command(hosts, services), *apiserver_flags], self.home
        )
        self.kubeconfig = self._write_kubeconfig("admin", {"token": self.token})
        self.manager = None
        if controllers:
            words = [*self._manager_command(controllers), *controller_flags]
            self.manager = Daemon("kube-controller-manager", words, self.home)
        self.scheduler = Daemon("kube-scheduler", self._scheduler_command(), self.home) if scheduler else None
        self.start_seconds: dict[str, float] = {}
        try:
            self.start_seconds["etcd"] = self.etcd.start(self._etcd_ready)
            self.start_seconds["kube-apiserver"] = self.start_apiserver()
            if self.manager is not None:
                self.start_seconds["kube-controller-manager"] = self.manager.start(self._has_account)
            else:
                self._make_account()
            if self.scheduler is not None:
                self.start_seconds["kube-scheduler"] = self.scheduler.start(self._scheduler_ready)
        except BaseException:
            self.close()
            raise
        self.start_seconds["all"] = time.monotonic() - begun

    def __enter__(self) -> ControlPlane:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- Calls

    def request(
        self, method: str, path: str, body: Any = None, *, content: str = "application/json", seconds: float = 120
    ) -> Any:
        """One request as the administrator; returns the JSON. Raises Refused, and OSError when there is no answer."""
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": content}
        connection = self._connection(seconds)
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            got = answer.read()
        except http.client.HTTPException as error:  # killed in the middle of an answer
            self._connections.kept = None
            raise ConnectionError(f"{method} {path}: {error!r}") from error
        except BaseException:
            self._connections.kept = None
            raise
        if answer.status >= 400:
            raise Refused(answer.status, got.decode(errors="replace"))
        return json.loads(got) if got.startswith((b"{", b"[")) else got.decode()

    def _connection(self, seconds: float) -> http.client.HTTPSConnection:
        """This thread's connection; a new one when the apiserver has restarted or may have closed it."""
        kept, pid, since = getattr(self._connections, "kept", None) or (None, 0, 0.0)
        if kept is None or pid != self.apiserver.pid or time.monotonic() - since > _KEPT_SECONDS:
            kept = http.client.HTTPSConnection("127.0.0.1", self.port, context=self._context)
            self._connections.kept = (kept, self.apiserver.pid, time.monotonic())
        kept.timeout = seconds
        if kept.sock is not None:
            kept.sock.settimeout(seconds)
        return kept

    def kubectl(self, *words: str, given: str | None = None, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run kubectl as the administrator; raises RuntimeError with its output when `check` and it fails."""
        command = [str(program("kubectl")), "--kubeconfig", str(self.kubeconfig), *words]
        env = {**os.environ, "HOME": str(self.home)}
        done = subprocess.run(
            command, input=given, capture_output=True, text=True, timeout=400, check=False, cwd=self.home, env=env
        )
        if check and done.returncode != 0:
            raise RuntimeError(f"kubectl {' '.join(words)}: {done.stderr[-2000:]}")
        return done

    def kubeconfig_for(self, user: str, groups: Sequence[str] = ()) -> Path:
        """A kubeconfig for `user` (with a client certificate), a member of `groups`."""
        certificate, key = self.authority.client(user, groups)
        name = user.replace(":", "-")
        return self._write_kubeconfig(name, {"client-certificate": str(certificate), "client-key": str(key)})

    def add_namespace(self, name: str) -> None:
        """Make a namespace and wait for its default account, which every pod needs."""
        self.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        if self.manager is None:
            self._make_account(name)
        # After an outage of the apiserver the controllers ask it again at growing intervals of up to 30 s.
        deadline = time.monotonic() + 150
        while not self._has_account(name):
            assert time.monotonic() < deadline, f"namespace {name} has no account after 150 s"
            time.sleep(0.05)

    def writes(self, user: str = ADMINISTRATOR) -> collections.Counter[tuple[str, str]]:
        """Count the writes by `user`, by verb and resource (`pods/status` for a subresource), without refused ones."""
        assert self._audit is not None, "started without audit"
        found: collections.Counter[tuple[str, str]] = collections.Counter()
        told, _, _ = self._audit.read_text().rpartition("\n")  # its last line may be half written
        for line in told.splitlines():
            entry = json.loads(line)
            if entry["user"]["username"] != user or entry.get("responseStatus", {}).get("code", 0) >= 400:
                continue
            thing = entry["objectRef"]
            resource = "/".join(filter(None, (thing["resource"], thing.get("subresource"))))
            found[entry["verb"], resource] += 1
        return found

    @contextlib.contextmanager
    def scheduling(self, only: Collection[str] = ()) -> Iterator[None]:
        """Run a kube-scheduler while the block runs, for pods that no test binds; `only` to these nodes, if given."""
        daemon = Daemon("kube-scheduler", self._scheduler_command(), self.home)
        with self._closed(self._others(only) if only else ()):
            try:
                daemon.start(self._scheduler_ready)
                yield
            finally:
                daemon.stop()

    def _others(self, than: Collection[str]) -> list[str]:
        """The names of the open nodes that are not among these."""
        nodes = self.request("GET", "/api/v1/nodes")["items"]
        opened = [node["metadata"]["name"] for node in nodes if not node["spec"].get("unschedulable")]
        return [name for name in opened if name not in than]

    @contextlib.contextmanager
    def _closed(self, nodes: Iterable[str]) -> Iterator[None]:
        """Keep new pods off these nodes, which earlier tests of the session left, while the block runs."""
        with contextlib.ExitStack() as stack:
            for name in nodes:
                self._close(name, True)
                stack.callback(self._close, name, False)
            yield

    def _close(self, node: str, closed: bool) -> None:
        self.request(
            "PATCH",
            f"/api/v1/nodes/{node}",
            {"spec": {"unschedulable": closed}},
            content="application/merge-patch+json",
        )

    # -- Faults

    def start_apiserver(self) -> float:
        """Start the apiserver, on the same port and data as before, and wait until it is ready; returns the seconds."""
        return self.apiserver.start(self._apiserver_ready)

    def kill_apiserver(self) -> None:
        """Kill the apiserver as a crash would; etcd and the controllers stay."""
        self.apiserver.kill()

    def restart_apiserver(self) -> float:
        """Kill the apiserver and start it again: its watch cache is empty, so old resource versions are answered 410."""
        self.kill_apiserver()
        return self.start_apiserver()

    def compact(self) -> int:
        """Compact etcd to its newest revision, which is returned.

        An apiserver still answers compacted revisions from its cache: 410 needs a restart as well.
        """
        newest = int(self._etcd("range", {"key": "AA=="})["header"]["revision"])
        self._etcd("compaction", {"revision": str(newest), "physical": True})
        return newest

    def close(self) -> None:
        """Stop all of them and remove the folder."""
        for daemon in (self.scheduler, self.manager, self.apiserver, self.etcd):
            if daemon is not None:
                daemon.stop()
        shutil.rmtree(self.home, ignore_errors=True)

    # -- Start commands

    def _etcd_command(self) -> list[str | Path]:
        client, peer = f"http://127.0.0.1:{self._etcd_port}", f"http://127.0.0.1:{free_port()}"
        words = ["--name=corral", f"--data-dir={self.home / 'etcd'}", "--unsafe-no-fsync", "--log-level=warn"]
        words += [f"--listen-client-urls={client}", f"--advertise-client-urls={client}", f"--listen-peer-urls={peer}"]
        words += [f"--initial-advertise-peer-urls={peer}", f"--initial-cluster=corral={peer}"]
        return [program("etcd"), *words]

    def _apiserver_command(self, hosts: Sequence[str], services: str) -> list[str | Path]:
        names = ["127.0.0.1", "localhost", "kubernetes.default.svc", self.service_address, *hosts]
        certificate, key = self.authority.server("kube-apiserver", names)
        kubelet_certificate, kubelet_key = self.authority.client("kube-apiserver-kubelet", ["system:masters"])
        public, private = self.authority.signing_key("accounts")
        self._account_key = private
        tokens = self.home / "tokens.csv"
        tokens.touch(mode=0o600)
        tokens.write_text(f'{self.token},{ADMINISTRATOR},1,"system:masters"\n')
        flags = {
            "etcd-servers": f"http://127.0.0.1:{self._etcd_port}",
            "bind-address": "127.0.0.1",
            "advertise-address": "127.0.0.1",
            "secure-port": self.port,
            "endpoint-reconciler-type": "none",
            "tls-cert-file": certificate,
            "tls-private-key-file": key,
            "client-ca-file": self.ca,
            "token-auth-file": tokens,
            "authorization-mode": "Node,RBAC",
            "service-account-issuer": "https://kubernetes.default.svc",
            "service-account-key-file": public,
            "service-account-signing-key-file": private,
            "service-cluster-ip-range": f"{services}.0/24",
            "kubelet-client-certificate": kubelet_certificate,
            "kubelet-client-key": kubelet_key,
            "kubelet-preferred-address-types": "InternalIP",
            "allow-privileged": "true",
        }
        if self._audit is not None:
            policy = self.home / "audit.yaml"
            policy.write_text(yaml.safe_dump(_AUDIT))
            flags |= {"audit-policy-file": policy, "audit-log-path": self._audit}
        return [program("kube-apiserver"), *_flags(flags)]

    def _manager_command(self, controllers: str) -> list[str | Path]:
        # One identity for all controllers: an account for each takes five seconds. At their default of twenty requests
        # a second the first taint of five hundred nodes would stay for a hundred seconds.
        flags = {
            "kubeconfig": self.kubeconfig_for("system:kube-controller-manager", ["system:masters"]),
            "controllers": controllers,
            "leader-elect": "false",
            "bind-address": "127.0.0.1",
            "secure-port": free_port(),
            "cert-dir": self.home / "manager",
            "service-account-private-key-file": self._account_key,
            "root-ca-file": self.ca,
            "kube-api-qps": 500,
            "kube-api-burst": 1000,
        }
        return [program("kube-controller-manager"), *_flags(flags)]

    def _scheduler_command(self) -> list[str | Path]:
        self._scheduler_port = free_port()
        flags = {
            "kubeconfig": self.kubeconfig_for("system:kube-scheduler", ["system:masters"]),
            "leader-elect": "false",
            "bind-address": "127.0.0.1",
            "secure-port": self._scheduler_port,
            "cert-dir": self.home / "scheduler",
        }
        return [program("kube-scheduler"), *_flags(flags)]

    def _write_kubeconfig(self, name: str, user: Mapping[str, str]) -> Path:
        cluster = {"server": self.url, "certificate-authority": str(self.ca)}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": name, "user": dict(user)}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": name}}],
            "current-context": "test",
        }
        path = self.home / f"{name}.kubeconfig"
        path.touch(mode=0o600)
        path.write_text(yaml.safe_dump(config))
        return path

    def _etcd(self, what: str, body: Mapping[str, Any]) -> Any:
        url = f"http://127.0.0.1:{self._etcd_port}/v3/kv/{what}"
        with urllib.request.urlopen(url, data=json.dumps(body).encode(), timeout=30) as answer:
            return json.loads(answer.read())

    def _etcd_ready(self) -> bool:
        return answers(f"http://127.0.0.1:{self._etcd_port}/health", '"true"')

    def _scheduler_ready(self) -> bool:
        with contextlib.suppress(OSError, http.client.HTTPException):
            context = ssl._create_unverified_context()  # its certificate is self-signed; only its answer matters
            asked = http.client.HTTPSConnection("127.0.0.1", self._scheduler_port, timeout=5, context=context)
            asked.request("GET", "/healthz")
            return asked.getresponse().status == 200
        return False

    def _apiserver_ready(self) -> bool:
        with contextlib.suppress(OSError, http.client.HTTPException, Refused):
            return bool(self.request("GET", "/readyz", seconds=5) == "ok")
        return False

    def _has_account(self, namespace: str = "default") -> bool:
        with contextlib.suppress(OSError, http.client.HTTPException, Refused):
            self.request("GET", f"/api/v1/namespaces/{namespace}/serviceaccounts/default")
            return True
        return False

    def _make_account(self, namespace: str = "default") -> None:
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
        self.request("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts", account)


def _flags(flags: Mapping[str, object]) -> list[str]:
    return [f"--{name}={value}" for name, value in flags.items()]
