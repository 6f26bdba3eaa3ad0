"""What a bundle has, what of it a host lacks, and how a host joins: a pinned authority and a token that is in no log."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from corral.deploy.checks import ours
from corral.deploy.checks.facts import Facts, Service
from corral.deploy.checks.report import Seen, Survey
from corral.deploy.hosts.reader import Hosts
from corral.deploy.remote.bundle import bundle_of
from corral.deploy.remote.joining import Starts, joining_text
from corral.deploy.remote.sending import archive_of
from corral.deploy.remote.ssh import NotReached
from corral.deploy.steps import files, kubeadm
from corral.deploy.steps.bundle import Bundle
from corral.deploy.steps.plan import plan_of
from corral.deploy.steps.step import HostPlan, Joining
from corral.kernel.errors import Conflict, InvalidInput, NotFound
from corral.spec.errors import SpecError
from tests.deploy.bundles import ARM, DIGEST, PROXY, image, program, small_bundle
from tests.deploy.facts import hosts, of_host

TOKEN = "abcdef.0123456789abcdef"
COMMAND = f"kubeadm join 10.0.0.9:6443 --token {TOKEN} --discovery-token-ca-cert-hash sha256:{'b' * 64}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return small_bundle(tmp_path)


def plan(name: str, bundle: Bundle | None, **known: Facts) -> HostPlan:
    return next(each for each in plan_of(chosen(), Survey(seen(known)), bundle) if each.name == name)


def chosen() -> Hosts:
    return hosts()


def seen(known: dict[str, Facts]) -> dict[str, Seen]:
    return {name: Seen(each, 0.0, 0.0) for name, each in known.items()}


def calls(found: HostPlan) -> list[str]:
    return [step.call[0] for step in found.doable]


def test_a_bare_worker_gets_programs_and_its_own_images_and_joins(folder: Path) -> None:
    found = plan("gpu1", bundle_of(folder), head=of_host(1), gpu1=of_host(2))
    assert calls(found)[-10:] == [
        "install_programs", "install_programs", "write_file", "write_file", "restart", "write_file", "enable",
        "import_images", "write_file", "join_cluster",
    ]  # fmt: skip
    (imported,) = [step for step in found.doable if step.call[0] == "import_images"]
    assert imported.detail == (PROXY,)
    digest = hashlib.sha256((folder / "images/proxy.tar").read_bytes()).hexdigest()
    assert imported.content.decode() == f"{digest}  proxy.tar\n"
    joining = found.doable[-1].joining
    assert joining == Joining("head", False, "10.0.0.1:6443", "10.0.0.2")
    assert not found.later


def test_a_control_plane_gets_all_images_and_begins_the_cluster(folder: Path) -> None:
    found = plan("head", bundle_of(folder), head=of_host(1))
    assert calls(found)[-4:] == ["write_file", "start_cluster", "write_file", "apply_network"]
    (imported,) = [step for step in found.doable if step.call[0] == "import_images"]
    assert len(imported.files) == 2
    assert not found.later


@pytest.mark.parametrize("path", ["/opt/cni/bin/portmap", "/usr/local/bin/runc"])
def test_a_program_that_is_lost_comes_back_and_the_service_that_is_marked_is_restarted(folder: Path, path: str) -> None:
    whole = node(folder)
    own = replace(whole, programs={name: digest for name, digest in whole.programs.items() if name != path})
    found = plan("gpu1", bundle_of(folder), head=of_host(1), gpu1=own)
    (installed,) = [step for step in found.doable if step.kind == "program"]
    assert installed.detail == (path,)
    assert [step.call for step in found.doable if step.kind == "service"] == [("restart", installed.call[1])]


def test_without_a_bundle_only_a_host_with_its_programs_goes_on(folder: Path) -> None:
    own = node(folder, unfinished=frozenset({"containerd"}))
    assert calls(plan("gpu1", None, head=of_host(1), gpu1=own))[-2:] == ["restart", "write_file"]
    elsewhere = replace(own, programs={})  # of the same versions, but not where the units look for them
    assert not {"restart", "enable"} & set(calls(plan("gpu1", None, head=of_host(1), gpu1=elsewhere)))


def test_secrets_of_further_lines_are_in_no_plan() -> None:
    found = hosts(
        "hosts: {a: {address: 10.0.0.1, roles: [control-plane]}}\nkubernetes: {containerd: 'password = \"hunter2\"'}"
    )
    assert "hunter2" not in str(plan_of(found, Survey(seen({"a": of_host(1)})))[0].to_document())


def test_without_a_bundle_hosts_are_only_prepared() -> None:
    found = plan("gpu1", None, head=of_host(1), gpu1=of_host(2))
    assert not {"install_programs", "join_cluster", "restart"} & set(calls(found))


def node(folder: Path, **changes: Any) -> Facts:
    """A worker on which all was done from the bundle."""
    bundle = bundle_of(folder)
    there = replace(
        of_host(2),
        programs={each.target: each.digest for each in bundle.programs},
        images={name: digest for each in bundle.archives for name, digest in each.images.items()},
        versions={"containerd": "v2.1.9", "kubeadm": "v1.34.4", "kubelet": "v1.34.4"},
        services=dict.fromkeys(("containerd", "kubelet"), Service("active", "enabled")),
        leftovers=("/etc/kubernetes/kubelet.conf",),
        files={
            files.CONTAINERD_FILE: files.CONTAINERD.encode(),
            ours.CONTAINERD_UNIT_FILE: files.CONTAINERD_UNIT.encode(),
            ours.KUBELET_UNIT_FILE: files.KUBELET_UNIT.encode(),
        },
    )
    return replace(there, **changes)


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ({}, []),
        ({"unfinished": frozenset({"containerd"})}, ["restart containerd"]),
        ({"unfinished": frozenset({"kubelet"})}, ["restart kubelet"]),
        ({"unfinished": frozenset({"kubeadm"})}, ["join head as a worker"]),
        ({"images": {}}, [f"import the image {PROXY}"]),
        ({"images": {PROXY: "sha256:00"}}, [f"import the image {PROXY}"]),
    ],
)  # fmt: skip
def test_what_a_cut_left_is_brought_to_its_end(folder: Path, changes: dict[str, Any], wanted: list[str]) -> None:
    found = plan("gpu1", bundle_of(folder), head=of_host(1), gpu1=node(folder, **changes))
    of_node = {"program", "image", "service", "kubeadm"}
    assert [step.title for step in found.doable if step.kind in of_node] == wanted


def test_a_program_that_differs_is_sent_alone_and_its_service_restarted(folder: Path) -> None:
    (folder / "bin/kubelet").write_bytes(program(mark=b"another"))
    own = node(folder)
    (folder / "bin/kubelet").write_bytes(program(mark=b"kubelet"))
    found = plan("gpu1", bundle_of(folder), head=of_host(1), gpu1=own)
    of_node = [step for step in found.doable if step.kind in ("program", "service")]
    assert [step.title for step in of_node] == ["install Kubernetes' programs", "restart kubelet"]
    assert of_node[0].detail == ("/usr/local/bin/kubelet",)


def test_a_bundle_that_cannot_be_this_host_s_is_an_obstacle(folder: Path) -> None:
    arm = replace(node(folder), arch="aarch64")
    assert plan("gpu1", bundle_of(folder), gpu1=arm).bars == ("the bundle is for x86_64, and it is aarch64",)
    other = replace(node(folder), versions={"kubeadm": "v1.33.1", "kubelet": "v1.34.4"})
    (bar,) = plan("gpu1", bundle_of(folder), gpu1=other).bars
    assert bar == "the bundle has kubeadm v1.33.1, and the list asks for v1.34.4"
    old = replace(other, programs={}, versions={"kubeadm": "v1.34.4", "kubelet": "v1.33.1"})
    (bar,) = plan("gpu1", bundle_of(folder), gpu1=old).bars
    assert bar.endswith("up does not upgrade nodes to v1.34.4: corral deploy upgrade does")


def test_a_folder_that_is_no_bundle_is_refused(folder: Path) -> None:
    with pytest.raises(NotFound, match="no folder"):
        bundle_of(folder / "none")
    (folder / "bin/runc").write_bytes(program(ARM))
    with pytest.raises(InvalidInput, match=r"runc is for aarch64, and .* is for x86_64"):
        bundle_of(folder)
    (folder / "bin/runc").write_text("#!/bin/sh\n")
    with pytest.raises(InvalidInput, match="not a program for"):
        bundle_of(folder)
    (folder / "bin/runc").unlink()
    with pytest.raises(NotFound, match="runc"):
        bundle_of(folder)


@pytest.mark.parametrize(
    ("index", "says"),
    [
        ({"manifests": []}, "no image with a name"),
        ({"manifests": [{"digest": DIGEST}]}, "no image with a name"),
        ({"manifests": "x"}, "no manifests"),
        ([], "no manifests"),
        ({"manifests": [{"digest": "md5:1", "annotations": {"io.containerd.image.name": "a:1"}}]}, "digest of a:1"),
        ({"manifests": [{"digest": DIGEST, "annotations": {"io.containerd.image.name": "a\nb"}}]}, "name of an image"),
    ],
)
def test_an_archive_of_images_that_is_none_is_refused(folder: Path, index: Any, says: str) -> None:
    image(folder / "images/odd.tar", index=index)
    with pytest.raises(InvalidInput, match=says):
        bundle_of(folder)


def test_a_damaged_or_oddly_named_archive_is_refused(folder: Path) -> None:
    (folder / "images/odd.tar").write_bytes(b"no tar")
    with pytest.raises(InvalidInput, match="OCI's layout"):
        bundle_of(folder)
    (folder / "images/odd.tar").unlink()
    image(folder / "images/a b.tar", "a:1")
    with pytest.raises(InvalidInput, match="Rename"):
        bundle_of(folder)


def test_a_file_that_shrinks_while_it_is_sent_ends_the_sending(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"x" * 4096)
    pieces = archive_of([(path, "x")])
    next(pieces)
    path.write_bytes(b"")
    with pytest.raises(Conflict, match="changed while it was sent"):
        list(pieces)
    with pytest.raises(Conflict, match="cannot be read any more"):
        list(archive_of([(tmp_path / "none", "x")]))


def join(code: int, output: str) -> bytes:
    async def ask(name: str, what: str) -> tuple[int, str]:
        assert (name, what) == ("head", "make_token")
        return code, output

    return asyncio.run(joining_text(chosen().hosts[1], Joining("head", True, "10.0.0.1:6443", "10.0.0.2"), ask))


def test_a_worker_joins_by_a_token_and_the_hash_of_the_authority_s_key() -> None:
    document = yaml.safe_load(join(0, f"W1128 a warning\n{COMMAND}\n"))
    trust = document["discovery"]["bootstrapToken"]
    assert trust == {"apiServerEndpoint": "10.0.0.1:6443", "caCertHashes": [f"sha256:{'b' * 64}"], "token": TOKEN}
    assert document["nodeRegistration"]["kubeletExtraArgs"] == [{"name": "node-ip", "value": "10.0.0.2"}]


@pytest.mark.parametrize(
    ("code", "output"),
    [(1, COMMAND), (0, ""), (0, TOKEN), (0, COMMAND.replace("b", "x")), (0, f"{COMMAND} --control-plane")],
)
def test_a_control_plane_that_gives_no_token_is_a_failure_without_secrets(code: int, output: str) -> None:
    with pytest.raises(NotReached) as caught:
        join(code, output)
    assert TOKEN not in str(caught.value)


def test_those_who_join_wait_for_the_control_plane_that_starts_now() -> None:
    async def tried(told: bool) -> tuple[bool, bool]:
        starts = Starts()
        starts.expect("head")
        waiting = asyncio.create_task(starts.wait(Joining("head", False, "", "")))
        await asyncio.sleep(0)
        assert not waiting.done()
        starts.tell("head", good=told)
        starts.tell("head", good=False)  # as its steps end
        return await waiting, await starts.wait(Joining("other", True, "", ""))

    assert asyncio.run(tried(told=True)) == (True, True)
    assert asyncio.run(tried(told=False)) == (False, True)


def test_further_documents_and_lines_are_the_list_s_own() -> None:
    proxy = "    apiVersion: kubeproxy.config.k8s.io/v1alpha1\n    kind: KubeProxyConfiguration\n"
    listed = "hosts: {a: {address: 10.0.0.1, roles: [control-plane, worker]}}\nkubernetes:\n  kubeadm: |\n"
    found = hosts(listed + proxy)
    documents = list(yaml.safe_load_all(kubeadm.init_text("", found, found.hosts[0], "10.0.0.1")))
    assert [each["kind"] for each in documents] == [
        "ClusterConfiguration", "InitConfiguration", "KubeProxyConfiguration",
    ]  # fmt: skip
    assert documents[1]["nodeRegistration"]["taints"] == []
    for refused in ("    kind: ClusterConfiguration\n", "    - 1\n", "    a: [\n"):
        with pytest.raises(SpecError, match="expected"):
            hosts(listed + refused)
