"""Alnair as a tenant: its `UnifiedJob` documents."""

from __future__ import annotations

from typing import Final

PLUG_INS: Final = {
    "corral.dialects": {"alnair": "corral.compat.alnair.language.dialect:AlnairDialect"},
}
"""By entry-point group, the plug-ins of this package (`corral.kernel.plug_ins`)."""
