"""OpenPAI and FrameworkLauncher as a tenant: their job files, REST API, tasks and imports."""

from __future__ import annotations

from typing import Final

PLUG_INS: Final = {
    "corral.dialects": {"openpai": "corral.compat.openpai.language.dialect:OpenPaiDialect"},
    "corral.runtime": {"openpai": "corral.compat.openpai.runtime.task"},
}
"""By entry-point group, the plug-ins of this package (`corral.kernel.plug_ins`)."""
