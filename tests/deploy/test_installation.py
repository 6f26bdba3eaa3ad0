"""Corral in the plan of a cluster: its chart's values, its data's folders, and the portal's certificate."""

from __future__ import annotations

import ssl
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from corral.cli.deploy import deploy_command
from corral.deploy.checks.facts import Facts
from corral.deploy.checks.report import Seen, Survey
from corral.deploy.hosts.reader import Hosts
from corral.deploy.remote.portal import chain_at, own_certificate, portal_text
from corral.deploy.steps import files
from corral.deploy.steps.bundle import Bundle, BundleFile, ImageArchive
from corral.deploy.steps.installation import installation_of
from corral.deploy.steps.plan import plan_of
from corral.deploy.steps.step import HostPlan, Portal, Step
from corral.kernel.errors import InvalidInput, NotFound
from corral.own_certificate import names
from corral.spec.errors import SpecError
from tests.deploy.facts import LIST, hosts, of_host

IMAGE, DATABASE = "registry.example:5000/corral:1", "docker.io/library/postgres:17"
SECTION = f"corral: {{host: gpu1, image: '{IMAGE}', postgresql: '{DATABASE}'}}\n"
DIGESTS = {IMAGE: f"sha256:{'1' * 64}", DATABASE: f"sha256:{'2' * 64}"}


def listed(more: str = "") -> Hosts:
    section = f"corral: {{host: gpu1, image: '{IMAGE}', postgresql: '{DATABASE}'{more}}}\n"
    return hosts(f"cluster: lab\n{LIST}{section}")


def bundle(**changes: Any) -> Bundle:
    archives = tuple(
        ImageArchive(BundleFile(Path(f"{at}.tar"), f"{at}.tar", str(at) * 64, 1), {name: digest})
        for at, (name, digest) in enumerate(DIGESTS.items())
    )
    helm = BundleFile(Path("helm"), "/usr/local/bin/helm", "a" * 64, 1)
    chart = BundleFile(Path("corral.tgz"), "corral.tgz", "b" * 64, 1)
    programs = tuple(
        BundleFile(Path(name), f"/usr/local/bin/{name}", "c" * 64, 1) for name in ("kubeadm", "kubelet", "kubectl")
    )
    return replace(Bundle("x86_64", programs, archives, helm, chart), **changes)


def plans(chosen: Hosts, given: Bundle | None, head: Facts | None = None) -> dict[str, HostPlan]:
    known = {"head": head or of_host(1), "gpu1": of_host(2), "gpu2": of_host(3)}
    survey = Survey({name: Seen(each, 0.0, 0.0) for name, each in known.items()})
    return {each.name: each for each in plan_of(chosen, survey, given)}


def called(plan: HostPlan, name: str) -> Step:
    (found,) = [step for step in plan.steps if step.call and step.call[0] == name]
    return found


def installed(chosen: Hosts, given: Bundle, portal: bytes, **changes: Any) -> Facts:
    """The facts of a control plane on which Corral is installed."""
    asked = installation_of(chosen, "head", {"head": of_host(1)})
    assert asked is not None
    there = {files.CERTIFICATE_FILE: portal, files.VALUES_FILE: asked.values_text(given).encode()}
    return replace(of_host(1), files=there, programs={"/usr/local/bin/helm": "a" * 64}, **changes)


def corrals(plan: HostPlan) -> list[str]:
    """What is still needed for Corral."""
    wanted = {"write_certificate", "install_corral", "make_data"}
    return [step.call[0] for step in plan.doable if step.call[0] in wanted]


def test_the_plan_shows_each_step_of_corral_on_its_host() -> None:
    found = plans(listed(), bundle())
    assert corrals(found["head"]) == ["write_certificate", "install_corral"]
    assert corrals(found["gpu1"]) == ["make_data"] and corrals(found["gpu2"]) == []
    chart = called(found["head"], "install_corral")
    assert chart.detail == ("https://10.0.0.1:30443",) and chart.kind == "chart"
    assert [each.target for each in chart.files] == ["corral.tgz"]
    assert "a certificate of its own for 10.0.0.1" in called(found["head"], "write_certificate").title
    (helm,) = [step for step in found["head"].doable if step.title == "install helm"]
    assert helm.call == ("install_programs", "corral")
    assert not [step for step in found["gpu1"].doable if step.title == "install helm"]


def test_without_the_section_nothing_of_corral_is_planned() -> None:
    found = plans(hosts(), bundle())
    assert not any(corrals(each) for each in found.values())
    assert "Corral" not in str([each.to_document() for each in found.values()])


def test_a_host_gets_the_images_of_the_pods_that_run_there() -> None:
    found = plans(listed(), bundle())
    for name, images in (("gpu1", (IMAGE, DATABASE)), ("gpu2", (IMAGE,))):
        assert called(found[name], "import_images").detail == images, name
    assert "all images are there" in [step.title for step in found["head"].steps]


def test_the_values_keep_the_data_on_the_chosen_host_and_the_portal_behind_tls() -> None:
    chosen = listed(
        ", folder: /srv, namespace: ai, port: 30001, address: lab.example, values: '{user: 70, replicas: 1}'"
    )
    found = plans(chosen, bundle())
    values = yaml.safe_load(called_file(found["head"], files.VALUES_FILE))
    assert values["image"] == {"repository": "registry.example:5000/corral", "tag": "1", "pullPolicy": "IfNotPresent"}
    assert values["database"]["trial"]["volume"] == {
        "hostPath": {"path": "/srv/corral-data/database", "type": "Directory"}
    }
    assert (values["url"], values["user"], values["replicas"]) == ("https://lab.example:30001", 70, 1)
    assert values["tls"] == {"existingSecret": "corral-portal"}
    assert values["service"] == {"type": "NodePort", "nodePort": 30001}
    data = called_file(found["gpu1"], files.DATA_FILE).splitlines()[1:]
    assert data == ["999 /srv/corral-data/database", "70 /srv/corral-data/blobs"]
    assert called(found["head"], "install_corral").call == ("install_corral", files.VALUES_FILE, "ai")


def called_file(plan: HostPlan, path: str) -> str:
    (found,) = [step for step in plan.steps if step.call[:2] == ("write_file", path)]
    return found.content.decode()


def test_what_is_installed_is_left_alone() -> None:
    chosen, given = listed(), bundle()
    found = plans(chosen, given, installed(chosen, given, own_certificate("10.0.0.1")))
    assert corrals(found["head"]) == []
    found = plans(chosen, None, installed(chosen, given, own_certificate("10.0.0.1")))
    assert "Corral is there" in [step.title for step in found["head"].steps]


@pytest.mark.parametrize("mark", ["corral", "portal"])
def test_what_a_cut_left_of_it_is_done_again(mark: str) -> None:
    chosen, given = listed(), bundle()
    head = installed(chosen, given, own_certificate("10.0.0.1"), unfinished=frozenset({mark}))
    assert corrals(plans(chosen, given, head)["head"]) == [
        {"corral": "install_corral", "portal": "write_certificate"}[mark]
    ]


@pytest.mark.parametrize("what", ["chart", "image"])
def test_a_new_chart_or_image_is_installed(what: str) -> None:
    chosen, given = listed(), bundle()
    head = installed(chosen, given, own_certificate("10.0.0.1"))
    newer = bundle(chart=BundleFile(Path("corral.tgz"), "corral.tgz", "d" * 64, 1))
    if what == "image":
        other = ImageArchive(given.archives[0].file, {IMAGE: f"sha256:{'9' * 64}"})
        newer = bundle(archives=(other, given.archives[1]))
    assert corrals(plans(chosen, newer, head)["head"]) == ["install_corral"]


def test_a_certificate_of_its_own_is_made_again_for_another_address_and_before_its_end() -> None:
    given, there = bundle(), own_certificate("10.0.0.1")
    for more in ("", ", address: 10.0.0.7"):
        chosen = listed(more)
        found = corrals(plans(chosen, given, installed(chosen, given, there))["head"])
        assert ("write_certificate" in found) is bool(more)
    chosen = listed()
    soon = replace(installed(chosen, given, there), time=float(there.split()[7]) - 29 * 86400)
    step = called(plans(chosen, given, soon)["head"], "write_certificate")
    assert (step.needed, step.detail) == (True, ("it ends within 30 days",))


def test_a_bundle_without_what_the_list_asks_for_is_refused_before_anything_is_done() -> None:
    lacking = bundle(helm=None, chart=None, archives=())
    assert plans(listed(), lacking)["head"].bars == (
        "the bundle has no bin/helm, and the list asks for Corral",
        "the bundle has no charts/corral.tgz, and the list asks for Corral",
        f"the bundle has no image {IMAGE}, and the list asks for it",
        f"the bundle has no image {DATABASE}, and the list asks for it",
    )
    assert not plans(listed(), lacking)["gpu1"].bars


@pytest.mark.parametrize(
    ("section", "says"),
    [
        (SECTION.replace("gpu1", "gpu9"), 'there is no "gpu9" below hosts'),
        (SECTION.replace("corral:1", "corral"), "an image with its tag"),
        (SECTION.replace("}", ", certificate: a.pem}"), "certificate and key are given together"),
        (SECTION.replace("}", ", port: 443}"), "30000"),
        (SECTION.replace("}", ", values: '- 1'}"), "expected a mapping"),
        (SECTION.replace("}", ", folder: a/b}"), "expected an absolute path"),
    ],
)
def test_a_section_that_cannot_be_is_refused_with_its_line(section: str, says: str) -> None:
    with pytest.raises(SpecError, match=says):
        hosts(LIST + section)


@pytest.mark.parametrize("address", ["10.0.0.1", "fd00::1", "lab.example"])
def test_a_certificate_of_its_own_is_for_its_address_and_has_its_key(tmp_path: Path, address: str) -> None:
    made = own_certificate(address)
    assert (
        names(made.decode(), address) and not names(made.decode(), "10.0.0.9") and not names(made.decode(), "b.example")
    )
    (tmp_path / "portal.pem").write_bytes(made)
    ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(tmp_path / "portal.pem")


def test_a_given_certificate_is_refused_unless_its_key_fits(tmp_path: Path) -> None:
    for name in ("a", "b"):
        made = own_certificate("10.0.0.1").decode()
        key, _, rest = made.partition("-----BEGIN CERTIFICATE")
        (tmp_path / f"{name}.key").write_text(key)
        (tmp_path / f"{name}.crt").write_text(f"subject=x\n-----BEGIN CERTIFICATE{rest}")
    text = portal_text(Portal("", "a.crt", "a.key"), tmp_path).decode()
    assert text == (tmp_path / "a.key").read_text().rstrip() + "\n" + chain_at(tmp_path / "a.crt")
    with pytest.raises(InvalidInput, match="is not the private key"):
        portal_text(Portal("", "a.crt", "b.key"), tmp_path)
    with pytest.raises(NotFound):
        portal_text(Portal("", "a.crt", "c.key"), tmp_path)
    with pytest.raises(InvalidInput, match="no certificate"):
        chain_at(tmp_path / "a.key")
    (tmp_path / "c.key").write_text("-----BEGIN ENCRYPTED PRIVATE KEY-----\n")
    with pytest.raises(InvalidInput, match="asks for a password"):
        portal_text(Portal("", "a.crt", "c.key"), tmp_path)


def test_a_given_certificate_that_is_missing_ends_the_plan_before_a_host_is_asked(tmp_path: Path) -> None:
    (tmp_path / "hosts.yaml").write_text(LIST + SECTION.replace("}", ", certificate: a.pem, key: a.key}"))
    ended = CliRunner().invoke(deploy_command, ["plan", str(tmp_path / "hosts.yaml")])
    assert isinstance(ended.exception, NotFound) and "answered" not in ended.output


def test_a_given_certificate_is_written_when_it_is_another_one() -> None:
    given, one, two = bundle(), own_certificate("10.0.0.1"), own_certificate("10.0.0.1")
    chosen = listed(", certificate: a, key: b")
    for there, needed in ((one, False), (two, True)):
        known = replace(chosen, certificate=one.decode())
        step = called(plans(known, given, installed(known, given, there))["head"], "write_certificate")
        assert (step.needed, "the given certificate" in step.title) == (needed, True)
