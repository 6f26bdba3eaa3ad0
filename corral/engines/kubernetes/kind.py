"""The Kubernetes kind of engine: tasks are pods of one cluster."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from corral.engines.kind import (
    BuiltEngine,
    DoctorOptions,
    EngineContext,
    EngineKind,
    EngineSettings,
    Finding,
    JobObjects,
)
from corral.kernel.errors import CorralError

if TYPE_CHECKING:
    from corral.engines.kubernetes.api.transport import Transport
    from corral.engines.kubernetes.settings import KubernetesSettings


class KubernetesOptions(EngineSettings):
    """Tasks as pods of a Kubernetes cluster (`--engine kubernetes`)."""

    kubeconfig: str = Field(
        default="",
        description="The kubeconfig file of the cluster; empty: `$KUBECONFIG`, else the service account of the pod that "
        "the server is in, else `~/.kube/config`.",
    )
    kube_context: str = Field(default="", description="Its context; empty: the current one.")
    namespace: str = Field(
        default="corral",
        pattern=r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$",
        description="The namespace of the pods; it must exist.",
    )
    default_image: str = Field(
        default="", description="On Kubernetes the image of jobs that name none; empty: such a job is refused."
    )
    image_pull_secrets: str = Field(
        default="", description="Names of Secrets of the namespace for private registries, separated by commas."
    )
    pod_service_account: str = Field(
        default="", description="The service account of the pods; empty: the namespace's default, without its token."
    )
    runtime_image: str = Field(
        default="",
        description="On Kubernetes Corral's own image, for the containers that work beside tasks: they move data, unpack "
        "code and find peers, so that jobs' images need no more than `sh`. Empty: code and peers need Python 3 in jobs' "
        "images, and jobs with inputs or outputs are refused.",
    )
    storage_places: str = Field(
        default="pvc://*",
        description="What inputs and outputs may be mounted from on Kubernetes, separated by commas: `file:///FOLDER` of "
        "every node, `nfs://HOST/EXPORT`, `pvc://CLAIM`; `pvc://*` is every volume claim of the namespace. NFS exports and "
        'claims of podTemplates are held to it, too. A claim labelled `corral.dev/reserved: "true"` is for no job.',
    )
    log_copying: Literal["follow", "end", "off"] = Field(
        default="follow",
        description="On Kubernetes when pods' logs are copied to where people read all logs: follow (as they grow), end "
        "(once, when the task has ended), off (never: the cluster collects logs itself).",
    )
    pod_templates: str = Field(
        default="",
        description="What `roles[].kubernetes.podTemplate` may take of a node or the namespace, separated by commas: "
        "privileged, capabilities, hostPath, hostNetwork, hostPID, hostIPC, serviceAccount, secrets, networkVolumes. "
        "Empty: nothing.",
    )
    reserved_secrets: str = Field(
        default="",
        description="Secrets of the namespace that no podTemplate may use, separated by commas, beside those whose names "
        "begin with `corral-`. The chart names its own.",
    )
    topology_labels: str = Field(
        default="",
        description="Levels above the node and the node labels that name their cells, outermost first: "
        "`block=example.com/block,rack=example.com/rack`. Empty: region, zone, block and rack of "
        "`topology.kubernetes.io/`.",
    )
    device_resources: str = Field(
        default="",
        description="Device-plugin resources that are devices, with their kinds: `example.com/fpga*=fpga`; they come "
        "before those that Corral knows (NVIDIA, AMD, Intel, Ascend, Cambricon, Gaudi, TPU, Neuron).",
    )
    object_accounts: str = Field(
        default="",
        description="Jobs as objects of the Kubernetes cluster: as which account those of a namespace are submitted, "
        "`NAMESPACE=ACCOUNT`, separated by commas; NAMESPACE may have `*`. Empty: no objects are taken.",
    )
    object_kinds: str = Field(
        default="unifiedjobs.corral.dev",
        description="Which sorts of objects are taken as jobs, separated by commas.",
    )
    cluster_registry: str = Field(
        default="",
        description="On Kubernetes HOST:PORT of the registry of the cluster's own, whose certificate's end is told as that "
        "of the API (`corral deploy` sets it). Empty: none is watched.",
    )
    pod_storage_limit_bytes: int = Field(
        default=256 * 1024**3,
        ge=0,
        description="How much a pod may write to its node, its containers' layers, logs and emptyDirs together: one with "
        "more is evicted, and its task has failed. A role that reserves more `disk` may write that. 0 sets no limit, and "
        "leaves it to the namespace's LimitRange: needed where that, or a quota, does not allow so much.",
    )


class KubernetesKind(EngineKind[KubernetesOptions]):
    """Pods of one cluster."""

    name = "kubernetes"
    page = "kubernetes.md"
    settings = KubernetesOptions

    def disk_limit(self, settings: KubernetesOptions) -> int:
        """Return the limit of what a pod writes to its node."""
        return settings.pod_storage_limit_bytes

    async def build(self, context: EngineContext, settings: KubernetesOptions) -> BuiltEngine:
        """Construct the engine of a cluster; a UID from the store labels its pods.

        Raises InvalidInput for unreadable settings.
        """
        from corral.engines.kubernetes.engine import KubernetesEngine

        server = await context.server()
        transport, cluster = cluster_of(settings, server, context.log_limit_bytes)
        engine = KubernetesEngine(
            transport,
            cluster,
            logs=context.logs,
            blobs=context.code,
            archiver=context.archiver,
            seed=server,
            lease_left=context.lease_left,
        )
        objects = JobObjects(settings.object_accounts, settings.object_kinds, engine.documents)
        return BuiltEngine(engine, objects=objects)

    async def doctor(self, settings: KubernetesOptions, options: DoctorOptions) -> list[Finding]:
        """Check the cluster, its nodes, the objects that are submitted as jobs, and the registry by a pod."""
        from corral.engines.kubernetes.doctor.cluster_check import examine
        from corral.engines.kubernetes.doctor.object_check import objects
        from corral.engines.kubernetes.doctor.probe_pod import probe
        from corral.model.kubernetes_objects import ObjectAddress
        from corral.spec.object_kinds import chosen_kinds

        try:
            transport, cluster = cluster_of(settings, "doctor")
        except CorralError as error:
            return [Finding("cluster", "bad", error.message)]
        found: list[Finding] = []
        try:
            found += await examine(transport, cluster, time.time)
            if settings.object_accounts and not _is_away(found):
                kinds = [ObjectAddress.of(kind) for kind in chosen_kinds(settings.object_kinds)]
                found += [each async for each in objects(transport, cluster, kinds)]
            if options.probe and not _is_away(found):
                found += [each async for each in probe(transport, cluster, url=options.url, node=options.node)]
        except CorralError as error:
            found.append(Finding("cluster", "bad", error.message))
        finally:
            await transport.close()
        return found


def cluster_of(
    settings: KubernetesOptions, server: str, log_limit_bytes: int = 0
) -> tuple[Transport, KubernetesSettings]:
    """Return the transport to the cluster of the settings, and the engine's settings for the server with this UID.

    Raises InvalidInput for unreadable settings.
    """
    from corral.engines.kubernetes.api.access import kubeconfig_access, service_account_access
    from corral.engines.kubernetes.api.transport import Transport
    from corral.engines.kubernetes.settings import settings_of

    file = settings.kubeconfig or os.environ.get("KUBECONFIG", "")
    if not file and "KUBERNETES_SERVICE_HOST" not in os.environ:
        file = str(Path.home() / ".kube" / "config")
    access = kubeconfig_access(file, settings.kube_context) if file else service_account_access()
    cluster = settings_of(
        server,
        namespace=settings.namespace,
        default_image=settings.default_image,
        image_pull_secrets=settings.image_pull_secrets,
        service_account=settings.pod_service_account,
        runtime_image=settings.runtime_image,
        storage_places=settings.storage_places,
        log_copying=settings.log_copying,
        log_limit_bytes=log_limit_bytes,
        storage_limit_bytes=settings.pod_storage_limit_bytes,
        pod_templates=settings.pod_templates,
        reserved_secrets=settings.reserved_secrets,
        topology=settings.topology_labels,
        devices=settings.device_resources,
        registry=settings.cluster_registry,
    )
    return Transport(access, seed=server), cluster


def _is_away(found: list[Finding]) -> bool:
    """Whether the cluster could not be asked."""
    return any(finding.name == "cluster" for finding in found)
