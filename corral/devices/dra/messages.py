"""The messages of the kubelet's three gRPC services, built at run time from tables.

So no protobuf compiler and no generated code is needed. Sources: k8s.io/kubelet, `pkg/apis/pluginregistration/v1` and
`pkg/apis/dra/v1`; gRPC's health checking protocol.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

SERVICE: Final = "v1.DRAPlugin"
"""The service version that the plugin reports to the kubelet."""
REGISTRATION: Final = "pluginregistration.Registration"
DRIVER: Final = "k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin"
HEALTH: Final = "grpc.health.v1.Health"
PLUGIN_TYPE: Final = "DRAPlugin"

_F: Final = descriptor_pb2.FieldDescriptorProto
_SCALARS: Final = {"string": _F.TYPE_STRING, "bool": _F.TYPE_BOOL, "enum": _F.TYPE_INT32}
# Field numbers and types. An enum is encoded like an int32 of the same number.
_MESSAGES: Final[dict[str, dict[str, dict[str, tuple[int, str]]]]] = {
    "pluginregistration": {
        "InfoRequest": {},
        "PluginInfo": {
            "type": (1, "string"),
            "name": (2, "string"),
            "endpoint": (3, "string"),
            "supported_versions": (4, "repeated string"),
        },
        "RegistrationStatus": {"plugin_registered": (1, "bool"), "error": (2, "string")},
        "RegistrationStatusResponse": {},
    },
    "k8s.io.kubelet.pkg.apis.dra.v1": {
        "Claim": {"namespace": (1, "string"), "uid": (2, "string"), "name": (3, "string")},
        "Device": {
            "request_names": (1, "repeated string"),
            "pool_name": (2, "string"),
            "device_name": (3, "string"),
            "cdi_device_ids": (4, "repeated string"),
        },
        "NodePrepareResourcesRequest": {"claims": (1, "repeated Claim")},
        "NodePrepareResourceResponse": {"devices": (1, "repeated Device"), "error": (2, "string")},
        "NodePrepareResourcesResponse": {"claims": (1, "map NodePrepareResourceResponse")},
        "NodeUnprepareResourcesRequest": {"claims": (1, "repeated Claim")},
        "NodeUnprepareResourceResponse": {"error": (1, "string")},
        "NodeUnprepareResourcesResponse": {"claims": (1, "map NodeUnprepareResourceResponse")},
    },
    "grpc.health.v1": {
        "HealthCheckRequest": {"service": (1, "string")},
        "HealthCheckResponse": {"status": (1, "enum")},
    },
}
SERVING: Final = 1
NOT_SERVING: Final = 2


class Messages:
    """The protobuf message classes of one package, by name."""

    def __init__(self, package: str) -> None:
        pool = descriptor_pool.DescriptorPool()
        pool.Add(_file(package, _MESSAGES[package]))
        self._classes: dict[str, Any] = {
            name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{package}.{name}"))
            for name in _MESSAGES[package]
        }

    def __getitem__(self, name: str) -> Any:
        return self._classes[name]


def _file(package: str, messages: Mapping[str, Mapping[str, tuple[int, str]]]) -> descriptor_pb2.FileDescriptorProto:
    found = descriptor_pb2.FileDescriptorProto(name=f"{package}.proto", package=package, syntax="proto3")
    for name, fields in messages.items():
        message = found.message_type.add(name=name)
        for field, (number, kind) in fields.items():
            _add(message, package, field, number, kind)
    return found


def _add(message: Any, package: str, name: str, number: int, kind: str) -> None:
    label, _, inner = kind.rpartition(" ")
    if label == "map":
        entry = message.nested_type.add(name=f"{name.capitalize()}Entry")
        entry.options.map_entry = True
        _add(entry, package, "key", 1, "string")
        _add(entry, package, "value", 2, inner)
        inner = f"{message.name}.{entry.name}"
    field = message.field.add(name=name, number=number)
    field.label = _F.LABEL_REPEATED if label else _F.LABEL_OPTIONAL
    if inner in _SCALARS:
        field.type = _SCALARS[inner]
    else:
        field.type, field.type_name = _F.TYPE_MESSAGE, f".{package}.{inner}"


registration: Final = Messages("pluginregistration")
dra: Final = Messages("k8s.io.kubelet.pkg.apis.dra.v1")
health: Final = Messages("grpc.health.v1")
