"""HiveD's inspection API as a tenant; its algorithm and its configuration are the core's."""

from __future__ import annotations

from typing import Final

PLUG_INS: Final = {
    "corral.routes": {"hived": "corral.compat.hived.routes:HivedRoutes"},
}
"""By entry-point group, the plug-ins of this package (`corral.kernel.plug_ins`)."""
