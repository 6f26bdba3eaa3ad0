"""Create the pods of starting attempts and classify the API server's refusals.

A create call may be repeated. An existing pod of the attempt's name with this server's label comes from an earlier try;
with another label it belongs to somebody else. A temporary refusal (a quota, a permission, an unavailable webhook) ends
the attempt as a conflict, which is retried later. A permanent one (an admission rule, a wrong field) is raised and ends
the task. Once there is a pod, only temporary errors are raised, since the pod has to end first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from corral.engines.kubernetes.api.errors import WEBHOOK
from corral.engines.kubernetes.api.resources import PODS, Call
from corral.engines.kubernetes.devices.claim_allocation import ClaimAllocator
from corral.engines.kubernetes.devices.managed_nodes import NO_NAMED_DEVICES, DeviceAccess
from corral.engines.kubernetes.pods.calls import POD, PodCalls, passing
from corral.engines.kubernetes.pods.exit_codes import PodExit
from corral.engines.kubernetes.pods.labels import MANAGED, attempt_of, labels_of, ports_for, resource_of
from corral.engines.kubernetes.pods.manifest import SERVER_LABEL, add_claims, pod_manifest, pod_name
from corral.engines.kubernetes.pods.manifest_inputs import ClaimedDevice, PodParts, PodSettings, Toleration
from corral.engines.kubernetes.pods.owned_objects import OwnedObjects, registries_name, secret_name
from corral.engines.kubernetes.pods.runtime import Runtimes, needs_runtime
from corral.engines.kubernetes.pods.template_policy import check_rights
from corral.engines.kubernetes.pods.variables import task_variables
from corral.engines.kubernetes.settings import KubernetesSettings
from corral.engines.kubernetes.volumes.reachability import claims_of
from corral.engines.kubernetes.volumes.volume_state import VolumeBinder
from corral.engines.kubernetes.watch.pod_structs import Pod
from corral.kernel.errors import (
    Conflict,
    CorralError,
    InvalidInput,
    Unavailable,
)
from corral.kernel.ids import AttemptId, parse_attempt_id
from corral.model.exits import START_FAILED
from corral.model.launch import TaskLaunch

REFUSED_FOR_NOW: Final = 251
"""The exit table's code for a conflict over resources: retried after a growing wait."""
_FOR_NOW: Final = frozenset(
    {WEBHOOK, "kubernetes-quota", "kubernetes-forbidden", "kubernetes-not-found", "device-in-use"}
)


@dataclass(slots=True)
class StartResult:
    """The result of a start: a pod, an end, or both when the pod is useless and has to end."""

    pod: Pod | None = None
    end: PodExit | None = None


class PodCreator:
    """Creates the pods of one server and the objects that they mount."""

    def __init__(
        self,
        calls: PodCalls,
        settings: KubernetesSettings,
        claim_allocator: ClaimAllocator,
        runtimes: Runtimes,
        owned_objects: OwnedObjects,
    ) -> None:
        """`claim_allocator` creates the claims of named devices, `owned_objects` the objects that pods mount."""
        self._calls, self._claim_allocator = calls, claim_allocator
        self._volume_binder = VolumeBinder(calls, settings.namespace)
        self._runtimes, self._owned_objects = runtimes, owned_objects
        self._settings = settings
        self._pod_settings = PodSettings(
            server=settings.server,
            namespace=settings.namespace,
            default_image=settings.default_image,
            image_pull_secrets=settings.image_pull_secrets,
            service_account=settings.service_account,
            storage_limit_bytes=settings.storage_limit_bytes,
            tolerations=(Toleration(MANAGED, effect="NoSchedule"), Toleration("", effect="NoExecute")),
        )

    async def create(
        self, launch: TaskLaunch, node: str, access: DeviceAccess = NO_NAMED_DEVICES, rdma: tuple[str, ...] = ()
    ) -> StartResult:
        """Return the attempt's new or existing pod; the attempt's end if the cluster refuses it for now; or both.

        `access` says how the node's named devices are given, `rdma` names the resources of its RDMA network.
        Raises Unavailable when it is unknown whether the pod exists; InvalidInput, Forbidden and Conflict when it never
        will.
        """
        manifest = self._manifest(launch, node, access, rdma)
        gone = [each.id for each in launch.devices if not (resource_of(each.id) or access.has(each.id))]
        if gone:
            return _refused(f"device {gone[0]} of node {node} is not to be had by its name any more")
        result = StartResult()
        try:
            if (mounted := claims_of(manifest)) and (why := await self._volume_binder.prepare(mounted, node)):
                return _refused(why)
            if launch.given_secrets:
                await self._owned_objects.put_secrets(launch)
            if launch.registries:
                await self._owned_objects.put_registries(launch)
            if needs_runtime(launch):
                ports = ports_for(launch.ports, self._settings.first_port)
                await self._owned_objects.give_runtime(launch, task_variables(launch, ports))
            await self._begin(result, launch, node, access, manifest)
            if needs_runtime(launch) and result.pod is not None:
                await self._owned_objects.own(result.pod, launch.attempt)
        except CorralError as error:
            for_now, passes = error.code in _FOR_NOW, passing(error)
            if not for_now and isinstance(passes, Unavailable):
                raise passes from None
            if needs_runtime(launch):
                await self._owned_objects.drop(launch.attempt)
            if not for_now and result.pod is None:
                raise passes from None
            result.end = PodExit(REFUSED_FOR_NOW if for_now else START_FAILED, error.message)
        return result

    async def _begin(
        self, result: StartResult, launch: TaskLaunch, node: str, access: DeviceAccess, manifest: dict[str, Any]
    ) -> None:
        async def post(claims: Sequence[ClaimedDevice]) -> Pod:
            add_claims(manifest, claims)
            result.pod = await self._post(launch.attempt, manifest, strict=bool(launch.pod_template))
            return result.pod

        named = [access.named[device.id] for device in launch.devices if device.id in access.named]
        if named:
            await self._claim_allocator.start(launch, node, named, post)
        else:
            await post(())

    async def _post(self, attempt: AttemptId, manifest: Mapping[str, Any], *, strict: bool) -> Pod:
        namespace = self._settings.namespace
        create = Call("create", PODS, namespace)
        try:
            return POD.decode(await self._calls.ask(create, manifest, repeatable=True, strict=strict))
        except Conflict as error:
            if error.code != "kubernetes-exists":
                raise
        pod = POD.decode(await self._calls.ask(Call("get", PODS, namespace, pod_name(attempt))))
        if attempt_of(pod, self._settings.server) != attempt:
            owner = pod.metadata.labels.get(SERVER_LABEL)
            whose = f"another Corral server ({owner})" if owner else "another program"
            message = f"There is a pod {pod_name(attempt)} in namespace {namespace} already; it belongs to {whose}."
            raise Conflict("pod-name-taken", message)
        return pod

    def _manifest(self, launch: TaskLaunch, node: str, access: DeviceAccess, rdma: tuple[str, ...]) -> dict[str, Any]:
        _check(launch)
        allowed, places = self._settings.pod_templates, self._settings.storage_places
        check_rights(launch.pod_template, allowed, places, reserved=self._settings.reserved_secrets)
        if needs_runtime(launch):
            self._runtimes.check(launch)
        ports = ports_for(launch.ports, self._settings.first_port)
        resources = {resource_of(device.id) for device in launch.devices} - {""}
        if len(resources) > 1:
            named = " and ".join(sorted(resources))
            raise InvalidInput("devices-mixed", f"One task cannot have devices of {named} together on a shared node.")
        parts = PodParts(
            node=node,
            secret=secret_name(parse_attempt_id(launch.attempt).job) if launch.given_secrets else "",
            env=task_variables(launch, ports) | access.variables(launch.devices),
            ports=ports,
            device_resource=next(iter(resources), ""),
            rdma=rdma if launch.rdma else (),
            template=launch.pod_template,
        )
        if launch.registries:
            opened = (registries_name(parse_attempt_id(launch.attempt).job), *launch.image_pull_secrets)
            launch = msgspec.structs.replace(launch, image_pull_secrets=opened)
        manifest = pod_manifest(launch, self._pod_settings, parts)
        metadata = manifest["metadata"]
        metadata["labels"] = {**launch.labels, **metadata["labels"], **labels_of(launch, ports)}
        metadata["annotations"] = {**launch.annotations, **metadata["annotations"]}
        manifest["spec"]["shareProcessNamespace"] = True  # otherwise a program with PID 1 ignores TERM
        if needs_runtime(launch):
            self._runtimes.wrap(manifest, launch)
        return manifest


def _refused(why: str) -> StartResult:
    return StartResult(end=PodExit(REFUSED_FOR_NOW, why))


def _check(launch: TaskLaunch) -> None:
    """Raise InvalidInput if this engine cannot fulfil the task's request, before anything is written."""
    if launch.share is not None and any(resource_of(device.id) for device in launch.devices):
        message = "A part of a device cannot be had on a shared node: its device plugin gives whole ones."
        raise InvalidInput("share-on-shared-node", message)
