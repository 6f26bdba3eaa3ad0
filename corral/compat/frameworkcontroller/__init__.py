"""FrameworkController as a tenant: its `Framework` documents, and the variables and files of their tasks."""

from __future__ import annotations

from typing import Final

PLUG_INS: Final = {
    "corral.frameworks": {"frameworkcontroller": "corral.compat.frameworkcontroller.framework:FrameworkController"},
    "corral.dialects": {"frameworkcontroller": "corral.compat.frameworkcontroller.language.dialect:FrameworkDialect"},
}
"""By entry-point group, the plug-ins of this package (`corral.kernel.plug_ins`)."""
