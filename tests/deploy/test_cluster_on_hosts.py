"""`corral deploy up` from empty hosts to a cluster of Kubernetes, cut on the way; all tests share that cluster."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from cryptography import x509

from corral.deploy.steps.kubeadm import CLOSED
from tests.deploy.cluster_on_hosts import FULL, GUARD, HEAD, TIMEOUT, WORKERS, Cluster, as_found, state_of
from tests.deploy.cluster_on_hosts import SETTINGS as BARE
from tests.deploy.corral_on_hosts import LINK, SECTION, Portal, on_a_worker, over_two_workers
from tests.deploy.counted_ssh import CountedSsh
from tests.testbeds.hosts import bundle, fetched
from tests.testbeds.hosts.machines import Machines
from tests.testbeds.kubernetes.images import BUSYBOX
from tests.waiting import pause

pytestmark = [pytest.mark.timeout(1800), pytest.mark.skipif(bool(bundle.missing()), reason=bundle.missing())]
REGISTRY = 5443
SETTINGS = f"{BARE}registry: {{host: {HEAD}}}\n"
_TOKEN: Final = re.compile(r"\b[a-z0-9]{6}\.[a-z0-9]{16}\b")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster whose control plane and first worker were cut on their way, and whose second worker was not.

    At the cut `up` is killed while kubeadm waits for the API, which cannot answer until then, and so is kubeadm, as by a
    loss of power.
    """
    machines = Machines((HEAD, *WORKERS))
    closed = "INPUT -p tcp --dport 6443 -j DROP"
    try:
        made = Cluster(machines, tmp_path_factory.mktemp("lab"))
        made.given = fetched.with_registry(made.folder / "given", made.given)
        made.write_list(SETTINGS)
        made.found = as_found(machines, WORKERS[1])
        machines.run(HEAD, f"iptables -A {closed}")
        chosen = ("--host", HEAD, "--host", WORKERS[0])
        # The check would find the port that is closed here.
        made.cut_up("init --config", *chosen, "--skip-check", "ports", begun=lambda: _wait_for_manifests(machines))
        machines.run(HEAD, f'pkill -9 -f "[k]ubeadm init"; iptables -D {closed}')
        report = made.up(given=made.packed())
        assert "init --config /etc/kubernetes/corral.yaml" in report[HEAD]["done"]
        assert "join head as a worker" in report[WORKERS[1]]["done"]
        yield made
    finally:
        machines.stop()


def _wait_for_manifests(machines: Machines) -> None:
    machines.run(HEAD, "until [ -e /etc/kubernetes/manifests/etcd.yaml ]; do sleep 0.1; done")


def test_hosts_become_nodes_and_a_cut_leaves_no_difference(cluster: Cluster) -> None:
    nodes = json.loads(cluster.kubectl("get nodes -o json"))["items"]
    ready = {
        each["metadata"]["name"]: next(c["status"] for c in each["status"]["conditions"] if c["type"] == "Ready")
        for each in nodes
    }
    assert ready == {HEAD: "True", "gpu1": "True", "gpu2": "True"}
    assert {each["status"]["nodeInfo"]["kubeletVersion"] for each in nodes} == {f"v{cluster.version}"}
    assert state_of(cluster, "gpu1") == state_of(cluster, "gpu2")
    images = cluster.machines.run("gpu1", f"ctr -n k8s.io images list | grep ^{BUSYBOX}")
    assert "io.cri-containerd.pinned=pinned" in images, "a kubelet does not remove it where the disk is full"


def test_pods_of_two_workers_reach_each_other(cluster: Cluster) -> None:
    server = _pod("server", "gpu1", "while true; do echo hello | nc -l -p 8080; done")
    cluster.kubectl("apply -f -", json.dumps(server).encode())
    cluster.kubectl("wait --for=condition=Ready pod/server --timeout=500s")
    address = cluster.kubectl("get pod server -o jsonpath={.status.podIP}").strip()
    # No other registry has its image.
    client = _pod(
        "client", "gpu2", f"until nc -w 5 {address} 8080 </dev/null | grep hello; do sleep 0.2; done", "Always"
    )
    cluster.kubectl("apply -f -", json.dumps(client).encode())
    cluster.kubectl("wait --for=jsonpath={.status.phase}=Succeeded pod/client --timeout=500s")
    assert cluster.kubectl("logs client").strip() == "hello"
    cluster.kubectl("delete pod server client --now")


def test_the_dns_of_the_cluster_is_ready(cluster: Cluster) -> None:
    begun = time.monotonic()
    while cluster.kubectl("-n kube-system get deployment coredns -o jsonpath={.status.readyReplicas}").strip() != "2":
        assert time.monotonic() - begun < GUARD, cluster.kubectl("-n kube-system describe pods -l k8s-app=kube-dns")
        time.sleep(pause(begun))


def test_a_second_up_does_nothing(cluster: Cluster) -> None:
    cluster.write_list(SETTINGS)
    cluster.up()
    report = cluster.up()
    assert {name: (each["state"], each["done"]) for name, each in report.items()} == dict.fromkeys(
        cluster.machines.address, ("prepared", [])
    )


def test_the_diff_names_what_someone_changed_on_a_host(cluster: Cluster) -> None:
    cluster.write_list(SETTINGS)
    code, text, said = cluster.ask("diff", *TIMEOUT, "--bundle", str(cluster.given))
    assert (code, text) == (0, ""), f"{text} {said}"
    changed = "/etc/sysctl.d/90-corral.conf"
    dropin = "/etc/systemd/system/kubelet.service.d/20-nice.conf"
    cluster.machines.run(
        "gpu1", f"mkdir -p {Path(dropin).parent}; cat >{dropin}; systemctl daemon-reload", b"[Service]\nNice=1\n"
    )
    cluster.machines.run("gpu1", f"rm /opt/cni/bin/portmap; echo odd >>{changed}")
    digest = cluster.machines.run("gpu1", f"sha256sum {changed}")[:12]
    config = "/var/lib/kubelet/config.yaml"
    cluster.machines.run("gpu1", f"cp -p {config} /root/kept; echo by-hand >>{config}")
    other_config = cluster.machines.run("gpu1", f"sha256sum {config}")[:12]
    tag = "find /var/lib/corral-registry -path '*busybox/_manifests/tags/1/current/link'"
    (link,) = cluster.machines.run(HEAD, tag).split()
    other = f"sha256:{'0' * 64}"
    cluster.machines.run(HEAD, f"printf {other} >{link}")
    code, text, said = cluster.ask("diff", *TIMEOUT, "--bundle", str(cluster.given), "-o", "json")
    assert code == 1, said
    found = [(each["host"], each["kind"], each["what"], each["found"]) for each in json.loads(text)["differences"]]
    assert found == [
        (HEAD, "registry", BUSYBOX, other[:19]),
        ("gpu1", "file", changed, f"sha256:{digest}"),
        ("gpu1", "program", "/opt/cni/bin/portmap", "absent"),
        ("gpu1", "service", "containerd", "enabled, active, not restarted since its files changed"),
        ("gpu1", "drop-in", dropin, "changes kubelet"),
        ("gpu1", "file", config, f"sha256:{other_config}"),
    ]
    cluster.machines.run("gpu1", f"mv /root/kept {config}")
    cluster.machines.run("gpu1", f"rm -r {Path(dropin).parent}; systemctl daemon-reload")
    report = cluster.up("--host", "gpu1", "--host", HEAD)
    assert f"change {changed}" in report["gpu1"]["done"]
    assert report[HEAD]["done"] == [f"give the registry {BUSYBOX}"]


def test_the_registry_admits_nodes_alone_and_takes_no_images(cluster: Cluster) -> None:
    address = f"{cluster.machines.address[HEAD]}:{REGISTRY}"
    stranger = ["curl", "--silent", "--insecure", "--max-time", "60", f"https://{address}/v2/"]
    done = subprocess.run(stranger, capture_output=True, text=True, check=False, timeout=GUARD)
    assert done.returncode and not done.stdout, "it asks for a certificate"
    files = "/etc/corral-registry"
    known = f"--tlscacert {files}/ca.crt --tlscert {files}/client.pem --tlskey {files}/client.pem"
    push = f"ctr -n k8s.io images push --local {known} {address}/odd:1 {BUSYBOX} 2>&1 || true"
    assert "405" in cluster.machines.run("gpu1", push), "a node writes nothing"


def test_a_service_is_restarted_after_a_cut_between_its_file_and_its_restart(cluster: Cluster) -> None:
    cluster.write_list(SETTINGS.replace("containerd: |\n", "containerd: |\n    # changed\n"))
    cluster.cut_up("restart containerd", "--host", "gpu2")
    report = cluster.up("--host", "gpu2")
    assert set(report["gpu2"]["done"]) <= {"change /etc/containerd/config.toml", "restart containerd"}
    changed, started = cluster.machines.run(
        "gpu2",
        "stat -c %Y /etc/containerd/config.toml; "
        'date -d "$(systemctl show -p ExecMainStartTimestamp --value containerd)" +%s',
    ).split()
    assert int(started) >= int(changed)
    assert not cluster.machines.run("gpu2", "ls /var/lib/corral/unfinished").split()


def test_the_status_names_each_component_and_what_is_not_well(cluster: Cluster) -> None:
    parts = _components(cluster, lambda parts: all(part["good"] for part in parts))
    named = {(part["host"], part["name"]): part for part in parts}
    for host in cluster.machines.address:
        assert named[host, "kubelet"]["version"] == named[host, "node"]["version"] == f"v{cluster.version}"
        assert named[host, "containerd"]["since"]
    assert {"etcd-head", "kube-apiserver-head"} <= {name for _, name in named}
    cluster.machines.run("gpu1", "systemctl stop kubelet")
    try:
        code, text, said = cluster.ask("status", *TIMEOUT)
    finally:
        cluster.machines.run("gpu1", "systemctl start kubelet")
        _components(cluster, lambda parts: all(part["good"] for part in parts))  # its node may be lost for a while
    assert code == 4, said
    assert re.search(r"✘ +gpu1 +kubelet +inactive", text) and "gpu1: journalctl -u kubelet" in text


def test_renewed_certificates_end_later_and_the_api_has_them(cluster: Cluster) -> None:
    before = _ends(cluster)
    ended, text, said = cluster.ask("certs", "renew")
    assert (ended, text) == (0, "head: its certificates are renewed.\n"), said
    after = _ends(cluster)
    assert after.keys() == before.keys()
    signed = {name for name in after if after[name] > before[name]}
    assert {"apiserver", "etcd-server", "admin.conf"} <= signed and "ca" not in signed
    code = "import ssl, sys; print(ssl.get_server_certificate((sys.argv[1], 6443)))"
    words = [sys.executable, "-c", code, cluster.machines.address[HEAD]]
    shown = subprocess.run(words, capture_output=True, text=True, check=True, timeout=GUARD).stdout
    assert shown.strip() == cluster.machines.run(HEAD, "cat /etc/kubernetes/pki/apiserver.crt").strip()


def test_tokens_are_in_no_log_and_expire_soon(cluster: Cluster) -> None:
    assert "kubeadm" in cluster.logs()
    assert not _TOKEN.findall(cluster.logs())
    secrets = json.loads(cluster.kubectl("-n kube-system get secrets -o json"))["items"]
    for name in cluster.machines.address:
        assert not cluster.machines.run(name, "find /run /tmp /var/lib/corral -name *join*").split()
    assert all("expiration" in each["data"] for each in secrets if each["type"] == "bootstrap.kubernetes.io/token")


def _components(cluster: Cluster, wanted: Callable[[list[dict[str, Any]]], bool]) -> list[dict[str, Any]]:
    """The components of the cluster as soon as they are as wanted."""
    begun = time.monotonic()
    while True:
        code, text, said = cluster.ask("status", *TIMEOUT, "-o", "json")
        parts: list[dict[str, Any]] = json.loads(text)["components"]
        if code in (0, 4) and wanted(parts):
            return parts
        assert time.monotonic() - begun < GUARD, f"{parts} {said}"
        time.sleep(pause(begun))


def _ends(cluster: Cluster) -> dict[str, str]:
    code, text, said = cluster.ask("certs", "status", *TIMEOUT, "-o", "json")
    assert code == 0, said
    return {each["name"]: each["ends"] for each in json.loads(text)["certificates"]}


def _pod(name: str, node: str, script: str, pull: str = "Never") -> dict[str, Any]:
    container = {"name": "main", "image": BUSYBOX, "imagePullPolicy": pull, "command": ["sh", "-c", script]}
    spec = {"nodeName": node, "restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def bundle_of_portal(cluster: Cluster) -> Path:
    """What the cluster runs, with this Corral."""
    return bundle.with_corral(cluster.folder / "corral", cluster.given)


@pytest.fixture(scope="module")
def portal(cluster: Cluster) -> Iterator[Portal]:
    """Corral, as `up` installs it in the cluster, and its administrator, who signed in by the link that `up` ended with."""
    given = bundle_of_portal(cluster)
    cluster.write_list(SETTINGS + SECTION)
    code, text, said = cluster.ask("up", *TIMEOUT, *FULL, "--bundle", str(given))
    assert code == 0, f"{text}\n{said}\n{cluster.logs()[-6000:]}"
    last = text.splitlines()[-1]
    link = LINK.search(last)
    assert link is not None, text
    person = Portal(cluster.folder / "ada", link[0].partition("/sign-in")[0], cluster.folder / "hosts.portal.pem")
    assert f"Portal: {person.url}" in text and cluster.machines.address[HEAD] in person.url
    person.answers()
    person.corral("login", "--ca", str(person.ca), link[0])
    assert "link" in person.corral("login", "--ca", str(person.ca), link[0], code=4).lower(), "it is used up"
    assert link[1] not in cluster.logs()
    yield person


def test_up_ends_with_the_portal_and_a_link_that_admits_once(cluster: Cluster, portal: Portal) -> None:
    ssh = CountedSsh(cluster.folder / "bin")
    again = ("up", *TIMEOUT, *FULL, "--bundle", str(bundle_of_portal(cluster)))
    code, text, said = cluster.ask(*again, ssh=ssh)
    assert code == 0, said
    assert f"Portal: {portal.url}" in text and not LINK.search(text), "an administrator has signed in"
    look, link = ("", "exec sh -s"), ("exec sudo -n sh -s",)
    asked = {at: [*look, *(link if name == HEAD else ())] for name, at in cluster.machines.address.items()}
    assert ssh.by_host() == asked, "a connection and one look at each, and the question for a link"
    assert cluster.machines.run(HEAD, "cat /var/lib/corral/deploy/signed-in") == "corral\n", "it is not asked again"
    assert "PRIVATE KEY" not in cluster.logs() and "PRIVATE KEY" not in text + said
    assert "PRIVATE KEY" not in portal.ca.read_text()
    assert cluster.machines.run(HEAD, "stat -c %a /etc/kubernetes/corral-portal.pem").strip() == "600"
    kept = cluster.machines.run(
        "gpu1", "stat -c %a:%u /var/lib/corral-data/database /var/lib/corral-data/blobs"
    ).split()
    assert kept == ["700:999", "700:1000"]


def test_the_server_tells_when_the_certificate_of_the_cluster_s_registry_ends(cluster: Cluster, portal: Portal) -> None:
    ends = "corral_engine_certificate_end_seconds"
    question = ("metrics", "--family", ends, "--label", "of=registry", "--since", "30m", "-o", "json")
    portal.wait(lambda: portal.corral(*question), lambda found: json.loads(found)["items"])
    (series,) = json.loads(portal.corral(*question))["items"]
    (told,) = {value for value in series["mean"] if value is not None}
    there = x509.load_pem_x509_certificate(cluster.machines.run(HEAD, "cat /etc/corral-registry/tls.crt").encode())
    assert told == there.not_valid_after_utc.timestamp() and series["labels"]["engine"] == "kubernetes"


def test_a_job_runs_over_two_workers_and_is_stopped(cluster: Cluster, portal: Portal) -> None:
    serve = "echo listening; while true; do echo hello | nc -l -p 8080; done"
    call = 'until nc -w 5 "$(peer:server-0:host)" 8080 </dev/null | grep hello; do sleep 0.2; done; sleep 1000'
    job = portal.submit(over_two_workers("pair", serve, call))
    portal.until_all_run(job)
    pods = cluster.kubectl(f"-n corral get pods -l corral.dev/job={job} -o jsonpath={{.items[*].spec.nodeName}}")
    assert set(pods.split()) == set(WORKERS)
    portal.until_printed(job, "client-0", "hello")
    portal.until_printed(job, "server-0", "listening")
    portal.corral("stop", job)
    portal.until(job, "stopped")


def test_a_backup_gives_accounts_and_history_back(cluster: Cluster, portal: Portal) -> None:
    file = cluster.folder / "lab.backup"
    job = portal.submit(over_two_workers("before", "true", "true"))
    portal.until(job, "succeeded")
    portal.corral("users", "add", "grace")
    code, text, said = cluster.ask("backup", str(file))
    assert code == 0, said
    assert {line.split()[1] for line in text.splitlines()} >= {"store.db", "corral.key", "pki/ca.key"}
    assert file.stat().st_mode & 0o777 == 0o600
    assert not cluster.machines.run(HEAD, "find /var/lib/corral/deploy -name backup").split()
    portal.corral("users", "add", "late")
    code, _, said = cluster.ask("restore", str(file), "--cluster", "lab")
    assert code == 0, said
    portal.answers()
    users = [each["name"] for each in json.loads(portal.corral("users", "-o", "json"))]
    assert "grace" in users and "late" not in users, "the token of before opens the server"
    portal.until(job, "succeeded")


def test_a_removed_worker_is_as_it_was_found_also_after_a_cut(cluster: Cluster, portal: Portal) -> None:
    cluster.write_list(SETTINGS + SECTION)
    code, _, said = cluster.ask_of("remove-node", "gpu2", "--cluster", "other")
    assert code == 2 and "repeat that name" in said
    cluster.kubectl("apply -f -", json.dumps(_pod("lonely", "gpu2", "exec sleep 10000")).encode())
    cluster.kubectl("wait --for=condition=Ready pod/lonely --timeout=500s")
    code, text, said = cluster.ask_of("remove-node", "gpu2", "--cluster", "lab", "-o", "json")
    assert code == 4, said
    (refused,) = json.loads(text)["hosts"]
    assert refused["message"] == "tasks run on it that nobody would start again: default/lonely"
    assert "SchedulingDisabled" in cluster.kubectl("get node gpu2")
    assert cluster.kubectl("get pod lonely -o jsonpath={.status.phase}").strip() == "Running"
    words = ("remove-node", "gpu2", "--cluster", "lab", "--end-tasks")
    cluster.cut("gpu2: take back what up made", cluster.words_of(*words))
    code, _, said = cluster.ask_of(*words)
    assert code == 0 and "Take gpu2 off hosts.yaml" in said, said
    assert "gpu2" not in cluster.kubectl("get nodes")
    assert as_found(cluster.machines, "gpu2").splitlines() == cluster.found.splitlines()
    code, text, said = cluster.ask_of(*words, "--dry-run")
    assert code == 0 and text == "gpu2\n", said


def test_an_added_worker_takes_nothing_until_corral_has_validated_it_also_after_a_cut(
    cluster: Cluster, portal: Portal
) -> None:
    cluster.write_list(SETTINGS + SECTION)
    code, _, said = cluster.ask_of("remove-node", "gpu2", "--cluster", "lab", "--end-tasks")
    assert code == 0, said
    given = bundle_of_portal(cluster)
    words = ("add-node", "gpu2", *TIMEOUT, *FULL, "--bundle", str(given))
    taints = "get node gpu2 -o jsonpath={.spec.taints[*].key}"

    def joined() -> None:
        cluster.kubectl("wait --for=create node/gpu2 --timeout=500s")
        assert CLOSED in cluster.kubectl(taints).split()

    cluster.cut("] join head as a worker", cluster.words_of(*words), begun=joined)
    again = ("deploy", *words, "--validate", "--hosts", str(cluster.listed), "-o", "json")
    (added,) = json.loads(portal.corral(*again, seconds=GUARD))["hosts"]
    ends = ["validate it by a pod", "validate it by Corral", "offer it to the scheduler"]
    assert added["state"] == "added" and added["done"][-3:] == ends
    signs = json.loads(portal.corral("nodes", "health", "kubernetes/gpu2", "-o", "json"))
    last, first = [each for each in signs if each["what"] == "moved"][:2]  # what was before may have moved it, too
    assert (first["after"], last["after"]) == ("validating", "healthy")
    assert last["reason"].startswith("its validation validate-gpu2-") and last["reason"].endswith(" succeeded")
    assert CLOSED not in cluster.kubectl(taints).split()
    assert CLOSED not in cluster.machines.run("gpu2", "cat /var/lib/kubelet/kubeadm-flags.env")
    assert not cluster.kubectl("-n kube-system get pods --field-selector metadata.name=corral-validation-gpu2").strip()
    job = portal.submit(on_a_worker("after", "gpu2", "echo hello"))
    portal.until(job, "succeeded")
    report = cluster.up(given=given)
    assert not any(each["done"] for each in report.values())


def test_an_upgrade_leaves_a_running_job_alone_and_waits_for_it_also_after_a_cut(
    cluster: Cluster, portal: Portal
) -> None:
    """The programs of the later bundle are the same but for the version that they tell. Corral itself runs on gpu1."""
    beat = "echo begun; while true; do sleep 1; done"
    job = portal.submit(on_a_worker("steady", "gpu2", beat))
    portal.until_printed(job, "main-0", "begun")
    cluster.version, cluster.given = bundle.LATER, bundle.later()
    cluster.write_list(SETTINGS + SECTION)
    patient = ("--drain-timeout", str(2 * GUARD))
    command = cluster.words("upgrade", *TIMEOUT, *FULL, *patient, "--bundle", str(bundle_of_portal(cluster)))
    cluster.cut("] upgrade node to v1.34.5", command)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as upgrade:
        assert upgrade.stderr is not None and upgrade.stdout is not None
        said = []
        for line in upgrade.stderr:
            said.append(line)
            if line.startswith("gpu2: waiting for corral/"):
                break
        assert upgrade.poll() is None, "".join(said) + cluster.logs()[-4000:]
        try:
            assert _versions(cluster) == {HEAD: ("v1.34.5", ""), "gpu1": ("v1.34.5", ""), "gpu2": ("v1.34.4", "true")}
            cluster.kubectl("-n corral rollout status statefulset/corral-postgresql --timeout=800s")
            cluster.kubectl("-n corral rollout status deployment/corral --timeout=800s")
            portal.answers()
            assert json.loads(portal.corral("get", job, "-o", "json"))["state"] == "running"
            assert portal.corral("logs", job, "main-0").count("begun") == 1, "it was not started again"
        finally:
            portal.corral("stop", job)
        said += upgrade.stderr.readlines()
        text = upgrade.stdout.read()
        assert upgrade.wait(timeout=GUARD) == 0, "".join([*said, text]) + cluster.logs()[-4000:]
    assert _versions(cluster) == dict.fromkeys((HEAD, *WORKERS), ("v1.34.5", ""))
    # The pods of kube-proxy are replaced one after the other.
    images = "-n kube-system get pods -o jsonpath={.items[*].spec.containers[*].image}"
    portal.wait(lambda: cluster.kubectl(images), lambda found: "v1.34.5" in found and "v1.34.4" not in found)


def _versions(cluster: Cluster) -> dict[str, tuple[str, str]]:
    """The version of each kubelet, and whether its node is cordoned."""
    return {
        each["metadata"]["name"]: (
            each["status"]["nodeInfo"]["kubeletVersion"],
            str(each["spec"].get("unschedulable", "")).lower(),
        )
        for each in json.loads(cluster.kubectl("get nodes -o json"))["items"]
    }
