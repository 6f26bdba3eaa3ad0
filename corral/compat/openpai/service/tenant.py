"""OpenPAI's REST API and FrameworkLauncher's, composed over the service and registered with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from corral.compat.openpai.service.accounts import OpenPaiAccounts
from corral.compat.openpai.service.background_removal import BackgroundRemoval
from corral.compat.openpai.service.cluster_import import ClusterImport
from corral.compat.openpai.service.framework_launcher import FrameworkLauncher
from corral.compat.openpai.service.imported_tokens import ImportedTokens
from corral.compat.openpai.service.job_rule import OpenPaiJobRule
from corral.compat.openpai.service.jobs import OpenPaiJobs
from corral.compat.openpai.service.kubernetes_lists import KubernetesLists
from corral.compat.openpai.service.logs import OpenPaiLogs
from corral.compat.openpai.service.quota import CellQuota
from corral.compat.openpai.service.templates import Templates
from corral.compat.openpai.service.token_format import OpenPaiTokenFormat
from corral.compat.openpai.service.tokens import OpenPaiTokens
from corral.compat.openpai.service.v1 import OpenPaiV1
from corral.compat.openpai.service.virtual_clusters import VirtualClusters
from corral.service.service import Service


class OpenPai:
    """OpenPAI's operations, by concept; each component uses the service through its public methods."""

    def __init__(self, service: Service, *, fs_uri: str = "") -> None:
        """Register OpenPAI's job rule and token format with `service`; `fs_uri` is the file system of v1 jobs."""
        context = service.context
        self.service = service
        self.quota = CellQuota(context)
        self.imported_tokens = ImportedTokens(context)
        token_format = OpenPaiTokenFormat(context, self.imported_tokens)
        service.job_rules.add(OpenPaiJobRule(context, service.storages, self.quota, fs_uri=fs_uri))
        service.authentication.add_format(token_format)
        self.removal = BackgroundRemoval(context, service.job_commands)
        context.at_close(self.removal.close)
        self.jobs = OpenPaiJobs(context, service.submission, service.job_commands)
        self.v1 = OpenPaiV1(context, self.jobs, service.storages, self.removal, service.authentication, fs_uri=fs_uri)
        self.logs = OpenPaiLogs(context, self.jobs, service.task_logs)
        self.launcher = FrameworkLauncher(
            context, service.authentication, service.submission, service.job_commands, self.removal, fs_uri=fs_uri
        )
        self.templates = Templates(context)
        self.kubernetes_lists = KubernetesLists(context)
        self.virtual_clusters = VirtualClusters(
            context, service.queues, service.nodes, service.groups, service.configuration
        )
        self.tokens = OpenPaiTokens(
            context,
            service.passwords,
            self.imported_tokens,
            service.tokens,
            service.authentication,
            token_format,
        )
        self.accounts = OpenPaiAccounts(context, service.accounts, service.passwords, service.groups)
        self.cluster_import = ClusterImport(
            context, service.authentication, self.imported_tokens, service.openid_sessions, service.submission
        )


def compose(service: Service, options: Mapping[str, Any]) -> OpenPai:
    """Compose OpenPAI's operations over `service`; `options` are the settings named `openpai_...`."""
    return OpenPai(service, fs_uri=options.get("fs_uri", ""))
