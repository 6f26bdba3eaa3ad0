"""The actions that OpenPAI's API adds to the access rules."""

from __future__ import annotations

from typing import Final

from corral.service.access.tenant_actions import TenantAction

LOGS: Final = TenantAction("everybody", "read this log")
IMPORT: Final = TenantAction("administrators", "import what OpenPAI exported")
