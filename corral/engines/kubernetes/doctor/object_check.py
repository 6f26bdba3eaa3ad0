"""Check whether a cluster has the definitions and permissions for jobs as objects."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable

from corral.engines.kind import Finding
from corral.engines.kubernetes.api.permissions import Permission
from corral.engines.kubernetes.api.resources import Resource
from corral.engines.kubernetes.api.transport import Transport
from corral.engines.kubernetes.doctor.cluster_check import missing
from corral.engines.kubernetes.objects.job_objects import KubernetesDocuments
from corral.engines.kubernetes.settings import KubernetesSettings
from corral.kernel.errors import CorralError
from corral.model.kubernetes_objects import ObjectAddress
from corral.spec.crd import SCHEMA_ANNOTATION, schema_digest
from corral.spec.job_objects import UnifiedJobKind


async def objects(
    transport: Transport, settings: KubernetesSettings, kinds: Iterable[ObjectAddress]
) -> AsyncIterator[Finding]:
    """Check whether the objects of some kinds can be taken as jobs."""
    for kind in kinds:
        resource = Resource(kind.plural, kind.group, kind.version)
        wanted = (
            Permission(resource, ("list", "watch", "patch"), "jobs as objects", everywhere=True),
            Permission(resource, ("patch",), "what becomes of jobs that are objects", "status", everywhere=True),
        )
        yield await _defined(transport, kind)
        async for finding in missing(transport, settings, wanted):
            yield finding


async def _defined(transport: Transport, kind: ObjectAddress) -> Finding:
    name, ours = f"objects {kind.title}", kind.title == UnifiedJobKind().title
    try:
        annotations = await KubernetesDocuments(transport, (kind,)).definition(kind.title)
    except CorralError as error:
        return Finding(name, "note", f"whether they are defined may not be asked: {error.message}")
    mend = "apply what `corral crd` prints"
    if annotations is None:
        return Finding(name, "bad", f"the cluster has no definition of them; {mend}")
    if ours and annotations.get(SCHEMA_ANNOTATION) != schema_digest():
        return Finding(name, "bad", f"the cluster's definition is of another version of Corral; {mend}")
    return Finding(name, "good", "defined")
