"""OpenPAI and FrameworkLauncher as a tenant: their job files, REST API, tasks and imports."""

from __future__ import annotations

from typing import Final

PLUG_INS: Final = {
    "corral.commands": {"openpai": "corral.compat.openpai.commands:OPENPAI"},
    "corral.host_lists": {"openpai": "corral.compat.openpai.language.host_list:FORMAT"},
    "corral.notices": {"openpai": "corral.compat.openpai.mail_notices:Notices"},
    "corral.password_hashes": {"openpai-pbkdf2": "corral.compat.openpai.service.password_hash:fits"},
    "corral.service": {"openpai": "corral.compat.openpai.service.tenant:compose"},
    "corral.settings": {"openpai": "corral.compat.openpai.settings:OpenPaiSettings"},
    "corral.tables": {"openpai": "corral.compat.openpai.tables.schema:TABLES"},
    "corral.routes": {"openpai": "corral.compat.openpai.routes.mounting:OpenPaiRoutes"},
    "corral.frameworks": {
        "openpai": "corral.compat.openpai.frameworks.openpai:OpenPai",
        "frameworklauncher": "corral.compat.openpai.frameworks.frameworklauncher:FrameworkLauncher",
    },
    "corral.secrets_of_accounts": {"openpai-tokens": "corral.compat.openpai.service.imported_tokens:texts_owner"},
    "corral.actions": {
        "openpai.logs": "corral.compat.openpai.service.actions:LOGS",
        "openpai.import": "corral.compat.openpai.service.actions:IMPORT",
    },
    "corral.dialects": {"openpai": "corral.compat.openpai.language.dialect:OpenPaiDialect"},
    "corral.trace_readers": {"openpai": "corral.compat.openpai.trace_format:FORMAT"},
    "corral.runtime": {"openpai": "corral.compat.openpai.runtime.task"},
}
"""By entry-point group, the plug-ins of this package (`corral.kernel.plug_ins`)."""
