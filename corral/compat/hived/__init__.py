"""HiveD's inspection API and its annotations of pods as a tenant; its algorithm and its configuration are the core's."""

from __future__ import annotations

from typing import Final

PLUG_INS: Final = {
    "corral.pod_annotations": {"hived": "corral.compat.hived.language.annotation:HivedAnnotations"},
    "corral.service": {"hived": "corral.compat.hived.service:compose"},
    "corral.routes": {"hived": "corral.compat.hived.routes:HivedRoutes"},
}
"""By entry-point group, the plug-ins of this package (`corral.kernel.plug_ins`)."""
