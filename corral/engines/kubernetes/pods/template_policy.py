"""Check a podTemplate against the rights that an administrator allows, so that it cannot take over nodes or secrets.

Every field that reaches beyond the pod needs a word, and is refused unless the setting `pod_templates` has that word.
The namespace's Pod Security level applies as well; this rule is the same on all clusters, and its message names field
and word. NFS exports and volume claims must be in the allowed storage places, however a job names them. Corral's own
Secrets (other jobs' values, tasks' tokens) are always refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from corral.engines.kubernetes.volumes.storage_places import reach
from corral.kernel.errors import Forbidden, InvalidInput

WORDS: Final = (
    "privileged",
    "capabilities",
    "hostPath",
    "hostNetwork",
    "hostPID",
    "hostIPC",
    "serviceAccount",
    "secrets",
    "networkVolumes",
)
"""The rights that a template may be allowed, named like the fields."""
OURS: Final = "corral-"
"""The name prefix of Corral's own Secrets."""
_HOST: Final = ("hostNetwork", "hostPID", "hostIPC")
_ACCOUNT: Final = ("serviceAccountName", "serviceAccount")
_OF_THE_POD: Final = frozenset({"name", "emptyDir", "configMap", "downwardAPI", "image", "projected", "secret"})
"""Volumes that stay within the namespace. The Secrets and tokens in them are checked separately."""
_NODE_VOLUMES: Final = frozenset({"hostPath", "flexVolume", "gitRepo"})
"""Volumes that reach a node's files or programs. All other volumes use the network."""
_APPARMOR: Final = "container.apparmor.security.beta.kubernetes.io/"
"""Prefix of the annotations for AppArmor profiles before the field existed. Kubelets still read them."""
_EPHEMERAL: Final = "make the claim beforehand and name it: kube-scheduler, which would place it, is not asked"


def check_words(words: tuple[str, ...]) -> None:
    """Raise InvalidInput for an unknown right."""
    for word in words:
        if word not in WORDS:
            known = ", ".join(WORDS)
            raise InvalidInput("bad-setting", f"pod_templates has {word!r}; it may have {known}.")


def check_rights(
    template: Mapping[str, Any],
    allowed: tuple[str, ...],
    places: tuple[str, ...],
    path: str = "kubernetes.podTemplate",
    *,
    reserved: tuple[str, ...] = (),
) -> None:
    """Raise Forbidden for the first field of a template that is not allowed, naming the field and its word.

    `places` are those that jobs may mount (`places.reach`); `reserved` are the names of Secrets of which no template may
    have one, beside those that begin with `OURS`.
    """
    for field, word, why in _required_rights(template, places, frozenset(reserved)):
        if word and word in allowed:
            continue
        how = why or f"this server does not allow {word} (its administrator may, with pod_templates={word})"
        raise Forbidden("pod-template-forbidden", f"{path}.{field} is refused: {how}.")


def _required_rights(
    template: Mapping[str, Any], places: tuple[str, ...], reserved: frozenset[str]
) -> Iterator[tuple[str, str, str]]:
    """Yield each field that reaches beyond the pod: the field, the word it needs, and why nobody may set it."""
    metadata, spec = _map(template.get("metadata")), _map(template.get("spec"))
    for name, profile in _map(metadata.get("annotations")).items():
        if str(name).startswith(_APPARMOR) and profile == "unconfined":
            yield f"metadata.annotations[{name}]", "privileged", ""
    yield from ((f"spec.{name}", name, "") for name in _HOST if spec.get(name))
    yield from ((f"spec.{name}", "serviceAccount", "") for name in _ACCOUNT if spec.get(name))
    if spec.get("automountServiceAccountToken"):
        yield "spec.automountServiceAccountToken", "serviceAccount", ""
    yield from _unconfined("spec.securityContext", _map(spec.get("securityContext")))
    for at, volume in enumerate(_maps(spec.get("volumes"))):
        yield from _of_volume(f"spec.volumes[{at}]", volume, places, reserved)
    for kind in ("containers", "initContainers"):
        for at, container in enumerate(_maps(spec.get(kind))):
            yield from _of_container(f"spec.{kind}[{at}]", container, reserved)


def _of_volume(
    where: str, volume: Mapping[str, Any], places: tuple[str, ...], reserved: frozenset[str]
) -> Iterator[tuple[str, str, str]]:
    for kind in (each for each, said in volume.items() if said is not None and each not in _OF_THE_POD):
        if kind == "ephemeral":
            yield f"{where}.{kind}", "", _EPHEMERAL
        elif kind in ("nfs", "persistentVolumeClaim"):
            if why := _in_no_place(kind, _map(volume[kind]), places):
                yield f"{where}.{kind}", "", why
        else:
            yield f"{where}.{kind}", "hostPath" if kind in _NODE_VOLUMES else "networkVolumes", ""
    for source in ("secret", "csi"):
        inner = volume.get(source)
        if isinstance(inner, Mapping):
            reference = inner.get("nodePublishSecretRef")
            name = inner.get("secretName") or (reference.get("name") if isinstance(reference, Mapping) else "")
            if name:
                yield _of_secret(f"{where}.{source}", name, reserved)
    for at, each in enumerate(_maps(_map(volume.get("projected")).get("sources"))):
        inner = each.get("secret")
        if isinstance(inner, Mapping):
            yield _of_secret(f"{where}.projected.sources[{at}].secret", inner.get("name"), reserved)
        if "serviceAccountToken" in each:
            yield f"{where}.projected.sources[{at}].serviceAccountToken", "serviceAccount", ""


def _in_no_place(kind: str, source: Mapping[str, Any], places: tuple[str, ...]) -> str:
    """Return why a volume's source may not be mounted, "" if jobs may mount data from there."""
    if kind == "nfs":
        server, export = str(source.get("server", "")), str(source.get("path", ""))
        if not server or "/" in server or ".." in export.split("/"):
            return "it must name a server, and a path without '..'"
        uri = f"nfs://{server}/{export.lstrip('/')}"
    else:
        uri = f"pvc://{source.get('claimName', '')}"
    try:
        reach(uri, places, writable=True)
    except InvalidInput as error:
        return error.message.rstrip(".")
    return ""


def _of_container(where: str, container: Mapping[str, Any], reserved: frozenset[str]) -> Iterator[tuple[str, str, str]]:
    context = _map(container.get("securityContext"))
    within = f"{where}.securityContext"
    for field, word in (("privileged", "privileged"), ("procMount", "privileged")):
        if context.get(field) not in (None, False, "Default"):
            yield f"{within}.{field}", word, ""
    if _map(context.get("capabilities")).get("add"):
        yield f"{within}.capabilities.add", "capabilities", ""
    yield from _unconfined(within, context)
    for at, variable in enumerate(_maps(container.get("env"))):
        source = variable.get("valueFrom")
        inner = source.get("secretKeyRef") if isinstance(source, Mapping) else None
        if isinstance(inner, Mapping):
            yield _of_secret(f"{where}.env[{at}]", inner.get("name"), reserved)
    for at, source in enumerate(_maps(container.get("envFrom"))):
        inner = source.get("secretRef")
        if isinstance(inner, Mapping):
            yield _of_secret(f"{where}.envFrom[{at}]", inner.get("name"), reserved)


def _unconfined(where: str, context: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield fields of a security context that lift the node's confinement of containers."""
    for profile in ("appArmorProfile", "seccompProfile"):
        if _map(context.get(profile)).get("type") == "Unconfined":
            yield f"{where}.{profile}", "privileged", ""
    if context.get("seLinuxOptions"):
        yield f"{where}.seLinuxOptions", "privileged", ""
    if _map(context.get("windowsOptions")).get("hostProcess"):
        yield f"{where}.windowsOptions.hostProcess", "privileged", ""


def _of_secret(where: str, name: object, reserved: frozenset[str]) -> tuple[str, str, str]:
    if str(name).startswith(OURS) or name in reserved:
        return where, "", f"the Secret {name} is Corral's own; name the job's secrets in roles[].secrets"
    return where, "secrets", ""


def _map(found: object) -> Mapping[str, Any]:
    return found if isinstance(found, Mapping) else {}


def _maps(found: object) -> list[Mapping[str, Any]]:
    return [each for each in found if isinstance(each, Mapping)] if isinstance(found, list) else []
