"""A podTemplate may use only the parts of a node and the namespace that the administrator allowed."""

from __future__ import annotations

from typing import Any

import pytest

from corral.engines.kubernetes.pods.template_policy import WORDS, check_rights
from corral.engines.kubernetes.settings import settings_of
from corral.engines.kubernetes.volumes.storage_places import ANY_CLAIM
from corral.kernel.errors import Forbidden, InvalidInput


def container(**fields: Any) -> dict[str, Any]:
    return {"containers": [{"name": "task", **fields}]}


PLACES = ("nfs://filer.example/exports/data", "pvc://scratch")
UNCONFINED = {"type": "Unconfined"}


def volume(**source: Any) -> dict[str, Any]:
    return {"volumes": [{"name": "v", **source}]}


SECRET = {"secretKeyRef": {"name": "registry", "key": "k"}}
TOKEN = {"sources": [{"serviceAccountToken": {"path": "t"}}]}
NEEDS: list[tuple[dict[str, Any], str, str]] = [
    (container(securityContext={"privileged": True}), "containers[0].securityContext.privileged", "privileged"),
    (container(securityContext={"procMount": "Unmasked"}), "containers[0].securityContext.procMount", "privileged"),
    (
        container(securityContext={"capabilities": {"add": ["SYS_ADMIN"]}}),
        "containers[0].securityContext.capabilities.add",
        "capabilities",
    ),
    (
        {"initContainers": [{"name": "i", "securityContext": {"privileged": True}}]},
        "initContainers[0].securityContext.privileged",
        "privileged",
    ),
    (volume(hostPath={"path": "/"}), "volumes[0].hostPath", "hostPath"),
    ({"hostNetwork": True}, "hostNetwork", "hostNetwork"),
    (volume(flexVolume={"driver": "x"}), "volumes[0].flexVolume", "hostPath"),
    (volume(gitRepo={"repository": "x"}), "volumes[0].gitRepo", "hostPath"),
    (volume(iscsi={"targetPortal": "10.0.0.1"}), "volumes[0].iscsi", "networkVolumes"),
    (volume(cephfs={"monitors": ["10.0.0.1"]}), "volumes[0].cephfs", "networkVolumes"),
    (volume(csi={"driver": "nfs.csi.k8s.io"}), "volumes[0].csi", "networkVolumes"),
    (volume(ofTomorrow={}), "volumes[0].ofTomorrow", "networkVolumes"),
    ({"securityContext": {"appArmorProfile": UNCONFINED}}, "securityContext.appArmorProfile", "privileged"),
    ({"securityContext": {"seccompProfile": UNCONFINED}}, "securityContext.seccompProfile", "privileged"),
    (
        container(securityContext={"seccompProfile": UNCONFINED}),
        "containers[0].securityContext.seccompProfile",
        "privileged",
    ),
    (
        container(securityContext={"seLinuxOptions": {"type": "spc_t"}}),
        "containers[0].securityContext.seLinuxOptions",
        "privileged",
    ),
    ({"hostPID": True}, "hostPID", "hostPID"),
    ({"hostIPC": True}, "hostIPC", "hostIPC"),
    ({"serviceAccountName": "admin"}, "serviceAccountName", "serviceAccount"),
    ({"automountServiceAccountToken": True}, "automountServiceAccountToken", "serviceAccount"),
    (volume(projected=TOKEN), "volumes[0].projected.sources[0].serviceAccountToken", "serviceAccount"),
    (volume(secret={"secretName": "tls"}), "volumes[0].secret", "secrets"),
    (container(env=[{"name": "A", "valueFrom": SECRET}]), "containers[0].env[0]", "secrets"),
    (container(envFrom=[{"secretRef": {"name": "registry"}}]), "containers[0].envFrom[0]", "secrets"),
    (
        volume(projected={"sources": [{"secret": {"name": "tls"}}]}),
        "volumes[0].projected.sources[0].secret",
        "secrets",
    ),
]


@pytest.mark.parametrize(("spec", "field", "word"), NEEDS)
def test_what_reaches_beyond_the_pod_needs_its_word(spec: dict[str, Any], field: str, word: str) -> None:
    others = tuple(each for each in WORDS if each != word)
    with pytest.raises(Forbidden) as caught:
        check_rights({"spec": spec}, others, PLACES)
    assert f"podTemplate.spec.{field} is refused" in caught.value.message
    assert f"pod_templates={word}" in caught.value.message
    check_rights({"spec": spec}, (word,), PLACES)


@pytest.mark.parametrize(
    "spec",
    [
        volume(secret={"secretName": "corral-1m809yt675yxr"}),
        container(envFrom=[{"secretRef": {"name": "corral-1m809yt675yxr"}}]),
        volume(ephemeral={"volumeClaimTemplate": {}}),
    ],
)
def test_corrals_own_secrets_and_volumes_that_nobody_would_place_are_for_nobody(spec: dict[str, Any]) -> None:
    with pytest.raises(Forbidden):
        check_rights({"spec": spec}, WORDS, PLACES)


@pytest.mark.parametrize(
    ("spec", "field"),
    [(spec, field) for spec, field, word in NEEDS if word == "secrets"],
)
def test_secrets_that_the_server_reserves_are_for_nobody(spec: dict[str, Any], field: str) -> None:
    with pytest.raises(Forbidden, match="Corral's own") as caught:
        check_rights({"spec": spec}, WORDS, PLACES, reserved=("tls", "registry", SECRET["secretKeyRef"]["name"]))
    assert f"podTemplate.spec.{field} is refused" in caught.value.message
    check_rights({"spec": spec}, WORDS, PLACES, reserved=("tl", "other"))


@pytest.mark.parametrize(
    "spec",
    [
        {},
        [],
        {"hostNetwork": False, "volumes": [{"name": "v", "emptyDir": {}}, "odd"], "containers": "none"},
        container(securityContext={"privileged": False, "capabilities": {"drop": ["ALL"]}, "procMount": "Default"}),
        volume(persistentVolumeClaim={"claimName": "scratch"}),
        volume(nfs={"server": "filer.example", "path": "/exports/data"}),
        volume(nfs={"server": "filer.example", "path": "/exports/data/digits"}),
        {"volumes": [{"name": "v", "image": {"reference": "x"}, "nfs": None}, {"name": "w", "downwardAPI": {}}]},
        {"securityContext": {"seccompProfile": {"type": "RuntimeDefault"}, "runAsUser": 1000}},
        container(env=[{"name": "A", "value": "1"}, "odd"], envFrom=[{"configMapRef": {"name": "c"}}]),
    ],
)
def test_what_stays_inside_the_pod_needs_nothing(spec: Any) -> None:
    check_rights({"spec": spec}, (), PLACES)


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ({"persistentVolumeClaim": {"claimName": "home"}}, "pvc://home is in no place that jobs may use"),
        ({"nfs": {"server": "filer.example", "path": "/exports"}}, "nfs://filer.example/exports is in no place"),
        ({"nfs": {"server": "other.example", "path": "/exports/data"}}, "nfs://other.example/exports/data is in no"),
        ({"nfs": {"server": "filer.example", "path": "/exports/data/../home"}}, "a path without '..'"),
        ({"nfs": {"server": "filer.example/exports/data", "path": "/"}}, "it must name a server"),
        ({"nfs": {"path": "/exports/data"}}, "it must name a server"),
    ],
)
def test_exports_and_claims_are_held_to_the_places_of_data_whatever_the_words(source: dict[str, Any], why: str) -> None:
    with pytest.raises(Forbidden) as caught:
        check_rights({"spec": volume(**source)}, WORDS, PLACES)
    (kind,) = source
    assert f"podTemplate.spec.volumes[0].{kind} is refused: " in caught.value.message and why in caught.value.message


def test_where_every_claim_is_a_place_a_podtemplate_has_every_claim() -> None:
    check_rights({"spec": volume(persistentVolumeClaim={"claimName": "home"})}, (), (ANY_CLAIM,))


def test_a_profile_is_not_left_by_an_annotation_either() -> None:
    name = "container.apparmor.security.beta.kubernetes.io/task"
    template = {"metadata": {"annotations": {name: "unconfined"}}}
    with pytest.raises(Forbidden, match=r"metadata\.annotations"):
        check_rights(template, (), PLACES)
    check_rights(template, ("privileged",), PLACES)


def test_a_word_that_allows_nothing_is_refused_at_the_start() -> None:
    with pytest.raises(InvalidInput, match="pod_templates has 'root'; it may have privileged, "):
        settings_of("server", namespace="n", pod_templates="hostPath, root")
    assert settings_of("server", namespace="n", pod_templates="hostPath,secrets").pod_templates == (
        "hostPath",
        "secrets",
    )
