"""What the plan makes of a section `registry`: what runs on its host, how others ask it, and what it is filled with."""

from __future__ import annotations

import base64
import hashlib
import io
import os
import ssl
import subprocess
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from corral.deploy.checks.before_up import refusals_before_up
from corral.deploy.checks.facts import Facts, Service
from corral.deploy.checks.ours import REGISTRY_UNIT_FILE
from corral.deploy.checks.report import Seen, Survey
from corral.deploy.hosts.reader import Hosts
from corral.deploy.remote import work
from corral.deploy.remote.registry_keys import registry_keys
from corral.deploy.steps import files, registry
from corral.deploy.steps.bundle import Bundle, BundleFile, ImageArchive
from corral.deploy.steps.drift import differences
from corral.deploy.steps.installation import installation_of
from corral.deploy.steps.membership import refusal_of_removal
from corral.deploy.steps.outcome import failure_of
from corral.deploy.steps.plan import plan_of
from corral.deploy.steps.registry import repository_of
from corral.deploy.steps.step import HostPlan, Step
from corral.spec.errors import SpecError
from tests.deploy.facts import LIST, hosts, of_host
from tests.deploy.test_drift import NOW

PROXY, ETCD, OWN = "registry.k8s.io/kube-proxy:v1.34.4", "registry.k8s.io/etcd:3.6.5-0", "registry.example:5000/tool:2"
DIGESTS = {PROXY: f"sha256:{'1' * 64}", ETCD: f"sha256:{'2' * 64}", OWN: f"sha256:{'3' * 64}"}
SECTION = "registry: {host: gpu1}\n"
FOLDER = "/var/lib/corral-registry"


def bundle() -> Bundle:
    """A bundle of three images, each in an archive of its own."""
    archives = tuple(
        ImageArchive(BundleFile(Path(f"{at}.tar"), f"{at}.tar", str(at) * 64, 1), {name: digest})
        for at, (name, digest) in enumerate(DIGESTS.items())
    )
    programs = tuple(BundleFile(Path(name), f"/usr/local/bin/{name}", "c" * 64, 1) for name in ("kubeadm", "kubelet"))
    return Bundle("x86_64", programs, archives)


def surveyed(**changed: Facts) -> Survey:
    known = {"head": of_host(1), "gpu1": of_host(2), "gpu2": of_host(3)} | changed
    return Survey({name: Seen(each, 0.0, 0.0) for name, each in known.items()})


def plans(section: str = SECTION, given: Bundle | None = None, **changed: Facts) -> dict[str, HostPlan]:
    return {each.name: each for each in plan_of(hosts(LIST + section), surveyed(**changed), given or bundle())}


def named(plan: HostPlan, name: str) -> list[Step]:
    return [step for step in plan.doable if step.call[0] == name]


def content_of(plan: HostPlan, path: str) -> str:
    (step,) = [step for step in plan.doable if step.call[:2] == ("write_file", path)]
    return step.content.decode()


def parts_of(address: str = "10.0.0.2") -> dict[str, bytes]:
    """The files of the archive of certificates and keys."""
    with tarfile.open(fileobj=io.BytesIO(registry_keys(address))) as archive:
        return {each.name: archive.extractfile(each).read() for each in archive}  # type: ignore[union-attr]


def running(**changes: object) -> Facts:
    """The facts of the registry's host, on which every step of the registry was done."""
    own, bare = parts_of(), plans()["gpu1"]
    there = {step.call[1]: step.content for step in bare.doable if step.kind == "file" and "registry" in step.call[1]}
    there |= {registry.AUTHORITY_FILE: own["ca.crt"], registry.SERVER_FILE: own["tls.crt"]}
    found = replace(
        of_host(2),
        packages={registry.PACKAGE: "2.8.2"},
        files=there,
        programs={registry.CLIENT_FILE: "e" * 64},
        services={registry.SERVICE: Service("active", "enabled")},
        held={repository_of(name): digest for name, digest in DIGESTS.items()},
    )
    return replace(found, **changes)  # type: ignore[arg-type]


def test_its_host_runs_it_and_is_filled_before_it_joins_and_all_nodes_ask_it() -> None:
    found = plans()
    own = [step.call[0] for step in found["gpu1"].doable]
    wanted = [registry.MAKE_KEYS, registry.START, registry.FILL, "join_cluster"]
    assert [name for name in own if name in wanted] == wanted
    assert registry.PACKAGE in named(found["gpu1"], "install_packages")[0].call
    assert registry.PACKAGE not in named(found["gpu2"], "install_packages")[0].call
    for name in ("head", "gpu2"):
        (trust,) = named(found[name], registry.TRUST)
        assert trust.joining is not None and (trust.joining.first, trust.joining.there) == ("gpu1", False)
    assert not named(found["gpu1"], registry.TRUST)
    for plan in found.values():
        assert 'config_path = "/etc/containerd/certs.d"' in content_of(plan, files.CONTAINERD_FILE)
        text = content_of(plan, f"{files.MIRRORS_FOLDER}/registry.example:5000/hosts.toml")
        assert '[host."https://10.0.0.2:5443/v2/registry.example_5000"]' in text
        assert content_of(plan, f"{files.MIRRORS_FOLDER}/docker.io/hosts.toml")
    text = content_of(found["gpu1"], registry.CONFIG_FILE)
    assert 'addr: "10.0.0.2:5443"' in text and "readonly: {enabled: true}" in text and f'"{FOLDER}"' in text
    assert not [each for each in plans("").values() if registry.SERVICE in str(each) or "certs.d" in str(each)]


def test_archives_are_sent_of_images_that_its_host_does_not_import_itself() -> None:
    (fill,) = named(plans()["gpu1"], registry.FILL)
    assert [each.target for each in fill.files] == ["1.tar"], "etcd is of control planes alone"
    assert fill.call[1] == "sent"
    assert f"{OWN} registry.example_5000/tool:2 {DIGESTS[OWN]}" in fill.call and len(fill.detail) == 3
    (fill,) = named(plans("registry: {host: head, folder: /data}\n")["head"], registry.FILL)
    assert not fill.files and not fill.content and fill.call[1:4:2] == ("none", "/data/corral-registry")


def test_a_registry_that_runs_needs_nothing_and_an_image_of_another_digest_is_given_again() -> None:
    assert not [step for step in plans(gpu1=running())["gpu1"].doable if "registry" in step.title]
    held = {**running().held, repository_of(PROXY): DIGESTS[ETCD]}
    (fill,) = named(plans(gpu1=running(held=held))["gpu1"], registry.FILL)
    assert fill.title == f"give the registry {PROXY}"
    found = differences(hosts(LIST + SECTION), surveyed(gpu1=running(held=held)), None, (), NOW, bundle())
    ((what, wanted, there),) = [
        (each.what, each.wanted, each.found) for each in found if each.kind == "registry" and each.host == "gpu1"
    ]
    assert (what, wanted, there) == (PROXY, "sha256:111111111111", "sha256:222222222222")


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"programs": {}}, "there are none"),
        ({"unfinished": frozenset({registry.UNFINISHED_KEYS})}, "it was begun and not ended"),
        ({"reached": "10.0.0.77"}, "they are not for 10.0.0.77"),
        ({"time": of_host(2).time + 800 * 86400}, "they end within 30 days"),
    ],
)
def test_certificates_are_made_again_for_a_reason(changes: dict[str, object], why: str) -> None:
    now = of_host(2).time
    own = running()
    line = f"# Corral's own certificate for 10.0.0.2 until {now + 825 * 86400:.0f}\n".encode()
    server = line + own.files[registry.SERVER_FILE].split(b"\n", 1)[1]
    own = replace(own, files={**own.files, registry.SERVER_FILE: server})
    assert not named(plans(gpu1=own)["gpu1"], registry.MAKE_KEYS)
    plan = plans(gpu1=replace(own, **changes))["gpu1"]  # type: ignore[arg-type]
    assert [step.detail for step in named(plan, registry.MAKE_KEYS)] == [(why,)]
    assert named(plan, registry.START), "it reads them at its start"
    told = drift_of_certificates(gpu1=replace(own, **changes))  # type: ignore[arg-type]
    address = changes.get("reached", "10.0.0.2")
    assert told["gpu1"] == (f"for {address}, 30 days or more", why), "what is the cause, and no other certificates"


def drift_of_certificates(**changed: Facts) -> dict[str, tuple[str, str]]:
    """What `diff` says of the registry's certificates on each host: wanted, and found."""
    found = differences(hosts(LIST + SECTION), surveyed(**changed), None, (), NOW, bundle())
    return {each.host: (each.wanted, each.found) for each in found if each.what == "certificates"}


def test_a_node_whose_registry_s_certificates_end_says_so_and_one_with_others_says_that() -> None:
    there = running()
    end = f"# Corral's own certificate for 10.0.0.2 until {there.time + 86400:.0f}\n".encode()
    server = end + there.files[registry.SERVER_FILE].split(b"\n", 1)[1]
    there = replace(there, files={**there.files, registry.SERVER_FILE: server})
    own = replace(
        of_host(3),
        files={registry.AUTHORITY_FILE: there.files[registry.AUTHORITY_FILE]},
        programs={registry.CLIENT_FILE: "e" * 64},
    )
    wanted = "as the registry has them"
    told = drift_of_certificates(gpu1=there, gpu2=own)
    assert told["gpu2"] == (wanted, "those of gpu1 are made again first: they end within 30 days")
    assert told["head"] == (wanted, "absent")
    other = replace(own, programs={registry.CLIENT_FILE: "f" * 64})
    assert drift_of_certificates(gpu1=there, gpu2=other)["gpu2"] == (wanted, "others")


def test_a_node_trusts_again_where_the_registry_has_other_certificates() -> None:
    there = running()
    own = replace(
        of_host(3),
        files={registry.AUTHORITY_FILE: there.files[registry.AUTHORITY_FILE]},
        programs={registry.CLIENT_FILE: "e" * 64},
    )
    assert not named(plans(gpu1=there, gpu2=own)["gpu2"], registry.TRUST)
    for other in (replace(own, programs={registry.CLIENT_FILE: "f" * 64}), replace(own, files={})):
        (step,) = named(plans(gpu1=there, gpu2=other)["gpu2"], registry.TRUST)
        assert step.joining is not None and step.joining.there
    alone = {name: each for name, each in surveyed(gpu2=own).seen.items() if name != "gpu1"}
    (plan,) = [each for each in plan_of(hosts(LIST + SECTION), Survey(alone), bundle()) if each.name == "gpu2"]
    assert not named(plan, registry.TRUST)
    assert plan.notes == ("gpu1, which has the registry, was not reached: how this host asks it is left as it is.",)


CORRAL = (
    "corral: {host: gpu1, image: 'hub.example/corral:1', postgresql: 'postgres:17', values: '{settings: {a: 1}}'}\n"
)


@pytest.mark.parametrize(("address", "endpoint"), [("10.0.0.2", "10.0.0.2:5443"), ("fd00::2", "[fd00::2]:5443")])
def test_the_server_watches_its_certificate_and_goes_on_while_its_host_is_away(address: str, endpoint: str) -> None:
    known = {"head": of_host(1), "gpu1": replace(of_host(2), reached=address)}
    chosen = hosts(f"cluster: lab\n{LIST}{SECTION}{CORRAL}")
    asked = installation_of(chosen, "head", known)
    assert asked is not None
    values = asked.values_text(bundle())
    assert yaml.safe_load(values)["settings"] == {"cluster_registry": endpoint, "a": 1}
    del known["gpu1"]
    for there, told in ((values.encode(), endpoint), (b"", ""), (b"settings: 3", ""), (b"{", "")):
        known["head"] = replace(of_host(1), files={files.VALUES_FILE: there})
        asked = installation_of(chosen, "head", known)
        assert asked is not None and asked.registry == told, there
    asked = installation_of(hosts(f"cluster: lab\n{LIST}{CORRAL}"), "head", known)
    assert asked is not None and yaml.safe_load(asked.values_text(bundle()))["settings"] == {"a": 1}


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ("registry: {host: gpu9}\n", 'there is no "gpu9" below hosts'),
        ("registry: {host: gpu1, port: 30500}\n", "at most 29999"),
        ("registry: {host: gpu1, folder: '/da\"ta'}\n", "alone may be in it"),
        ("registry: {host: gpu1, mirrors: [Docker.io]}\n", "the name of a registry"),
        ("volumes: {v: {host: gpu1, folder: /var/lib/corral-registry/v, size: 1Gi}}\n" + SECTION, "the volume v overlap"),
        (
            "kubernetes: {containerd: '[plugins.\"io.containerd.cri.v1.images\".registry]'}\n" + SECTION,
            "take that part out",
        ),
    ],
)  # fmt: skip
def test_a_list_that_cannot_be_is_refused(section: str, message: str) -> None:
    with pytest.raises(SpecError) as caught:
        hosts(LIST + section)
    assert message in str(caught.value)


def test_a_port_of_the_cluster_bars_it_and_one_that_is_taken_leaves_its_host_out() -> None:
    (bar,) = plans("registry: {host: gpu1, port: 10250}\n")["gpu1"].bars
    assert bar == "the registry's port 10250 is that of the kubelet: choose another one (registry.port)"
    chosen: Hosts = hosts(LIST + SECTION)
    taken = replace(of_host(2), listens=frozenset({5443}))
    found = refusals_before_up(chosen, surveyed(gpu1=taken), ("clock",))
    assert found["gpu1"].message == "ports: another program listens at port 5443, which the registry needs"
    assert "gpu1" not in refusals_before_up(chosen, surveyed(gpu1=running(listens=frozenset({5443}))), ("clock",))


def test_its_host_is_not_taken_out_of_the_cluster() -> None:
    refusal = refusal_of_removal("gpu1", running(), lost=False)
    assert refusal is not None and "the registry of the cluster" in refusal.message
    assert REGISTRY_UNIT_FILE in running().files


@pytest.mark.parametrize(
    ("image", "repository"),
    [
        ("registry.k8s.io/coredns/coredns:v1", "registry.k8s.io/coredns/coredns:v1"),
        ("busybox", "docker.io/library/busybox:latest"),
        ("ada/tool:2", "docker.io/ada/tool:2"),
        ("localhost/tool", "localhost/tool:latest"),
        ("10.0.0.9:5000/tool:3", "10.0.0.9_5000/tool:3"),
    ],
)
def test_images_of_each_registry_have_repositories_of_their_own(image: str, repository: str) -> None:
    assert repository_of(image) == repository


def test_nodes_and_the_registry_know_each_other_by_their_authority_and_no_other_client_is_admitted(
    tmp_path: Path,
) -> None:
    own, other = parts_of(), parts_of()
    both = own["tls.crt"] + own["tls.key"]
    for name, text in (*own.items(), ("other.pem", other["client.pem"]), ("both.pem", both)):
        (tmp_path / name).write_bytes(text)
    assert b"PRIVATE" not in own["ca.crt"] + own["tls.crt"] and own["ca.crt"] != other["ca.crt"]

    def admitted(client: str) -> bool:
        server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(tmp_path / "ca.crt"))
        server.load_cert_chain(tmp_path / "tls.crt", tmp_path / "tls.key")
        server.verify_mode = ssl.CERT_REQUIRED
        caller = ssl.create_default_context(cafile=str(tmp_path / "ca.crt"))
        if client:
            caller.load_cert_chain(tmp_path / client)
        to_server, to_caller = ssl.MemoryBIO(), ssl.MemoryBIO()
        one = caller.wrap_bio(to_caller, to_server, server_hostname="10.0.0.2")
        two = server.wrap_bio(to_server, to_caller, server_side=True)
        try:
            for side in (one, two, one, two):
                try:
                    side.do_handshake()
                except ssl.SSLWantReadError:
                    continue
        except ssl.SSLError:
            return False
        return bool(two.getpeercert())

    assert admitted("client.pem")
    assert not admitted("") and not admitted("other.pem") and not admitted("both.pem")


def call(host: Path, words: str, text: bytes = b"") -> tuple[int, str]:
    """Call a function in a folder in place of a host's root; returns its exit code and what it printed."""
    folder = Path(work.__file__).parent
    functions = "".join((folder / name).read_text() for name in ("do.sh", "registry.sh"))
    for there in ("/var/lib/corral", "/etc/", "/run/", "/proc/"):
        functions = functions.replace(there, f"{host}{there}")
    env = {**os.environ, "PATH": f"{host}/bin:{os.environ['PATH']}"}
    done = subprocess.run(
        ["sh", "-c", f"{functions}\n{words}\n"], input=text, capture_output=True, check=False, env=env
    )
    return done.returncode, done.stdout.decode()


def test_another_host_gets_the_key_of_nodes_and_not_that_of_the_registry(tmp_path: Path) -> None:
    for name in ("head", "gpu1"):
        (tmp_path / name / "etc/corral-registry").mkdir(parents=True)
        (tmp_path / name / "var/lib/corral/deploy").mkdir(parents=True)
    for name, text in parts_of().items():
        (tmp_path / "head/etc/corral-registry" / name).write_bytes(text)
    code, said = call(tmp_path / "head", "print_registry_access")
    assert code == 0
    content = base64.b64encode(base64.b64decode(said)) + b"\n"
    code, said = call(tmp_path / "gpu1", "trust_registry", content)
    got = tmp_path / "gpu1/etc/corral-registry"
    assert code == 0, said
    assert sorted(each.name for each in got.iterdir()) == ["ca.crt", "client.pem"]
    assert (got / "client.pem").stat().st_mode & 0o777 == 0o600
    assert not list((tmp_path / "gpu1/var/lib/corral/unfinished").iterdir())
    assert call(tmp_path / "gpu1", "trust_registry", content[:500])[0], "it was cut"
    assert [each.name for each in (tmp_path / "gpu1/var/lib/corral/unfinished").iterdir()] == ["registry-trust"]


CTR = """#!/bin/sh
echo "ctr $*" >>$SEEN
case $* in
  *push*$REFUSED*) echo 'ctr: 507 Insufficient Storage' && exit 1 ;;
  *'k8s.io images list'*) echo "x:1 type $DIGEST 1" && echo "y:1 type $DIGEST 1" ;;
  *'corral-registry images list'*) echo y:1 ;;
esac
"""


def test_a_failed_push_leaves_nothing_behind_and_the_next_fill_needs_no_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one that fails is the first of two."""
    digest = f"sha256:{'4' * 64}"
    for name in ("bin", "run", "proc/net", "var/lib/corral/deploy/received"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("systemctl", "systemd-run", "journalctl"):
        (tmp_path / "bin" / name).write_text(f'#!/bin/sh\necho "{name} $*" >>$SEEN\n')
    (tmp_path / "bin/ctr").write_text(CTR)
    for path in (tmp_path / "bin").iterdir():
        path.chmod(0o755)
    (tmp_path / "proc/net/tcp").write_text("   0: 0100007F:1543 00000000:0000 0A 0\n")
    (tmp_path / "config.yml").write_text('  addr: "10.0.0.2:5443"\n    readonly: {enabled: true}\n')
    for name in "xy":
        link = tmp_path / f"data/docker/registry/v2/repositories/docker.io/{name}/_manifests/tags/1/current/link"
        link.parent.mkdir(parents=True)
        link.write_text(digest)
    received = tmp_path / "var/lib/corral/deploy/received"
    (received / "0.tar").write_text("image")
    listed = base64.encodebytes(f"{hashlib.sha256(b'image').hexdigest()}  0.tar\n".encode())
    images = " ".join(f"'{name}:1 docker.io/{name}:1 {digest}'" for name in "xy")
    monkeypatch.setenv("SEEN", str(tmp_path / "seen"))
    monkeypatch.setenv("DIGEST", digest)
    monkeypatch.setenv("REFUSED", "docker.io/x:1")
    code, said = call(tmp_path, f"fill_registry sent {tmp_path}/config.yml {tmp_path}/data {images}", listed)
    seen = (tmp_path / "seen").read_text().splitlines()
    assert code and "507 Insufficient Storage" in said
    assert "ctr -n corral-registry images import --local --no-unpack 0.tar" in seen
    after = seen[next(at for at, each in enumerate(seen) if " push " in each) + 1 :]
    assert not [each for each in after if " push " in each], "the other one is not pushed"
    for wanted in (
        "journalctl",
        "systemctl stop corral-registry-fill",
        "ctr -n corral-registry images remove --sync y:1",
    ):
        assert [each for each in after if each.startswith(wanted)], wanted
    assert not received.exists() and not (tmp_path / "run/corral-registry.yml").exists()

    received.mkdir()
    (received / "other").write_text("of a step that was cut")
    monkeypatch.setenv("REFUSED", "none at all")
    code, said = call(tmp_path, f"fill_registry none {tmp_path}/config.yml {tmp_path}/data {images}")
    assert code == 0, said
    assert not received.exists() and not (tmp_path / "run/corral-registry.yml").exists()


def test_an_image_of_another_digest_than_the_bundle_says_is_not_pushed(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    ctr = tmp_path / "bin/ctr"
    ctr.write_text(f"#!/bin/sh\ncase $* in *list*) echo 'x:1 type sha256:{'4' * 64} 1';; *) echo pushed;; esac\n")
    ctr.chmod(0o755)
    code, said = call(tmp_path, f"push_image 127.0.0.1:5443 /none x:1 docker.io/x:1 sha256:{'5' * 64}")
    assert code and said == "corral: another digest of x:1\n"
    refusal = failure_of(Step("registry", "fill the registry with 2 images"), said)
    assert refusal.message.endswith("an image has another digest than the bundle's list says")
