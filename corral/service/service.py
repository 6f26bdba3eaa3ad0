"""Why: one door to everything that a caller may do; every version of the API, and control's bridge, come through it."""

from __future__ import annotations

from corral.kernel.errors import CorralError
from corral.model.views import Readiness
from corral.service.documents import Configuring
from corral.service.inside import Inside
from corral.service.machines import Machines
from corral.service.openpai_accounts import OpenPaiAccounts
from corral.service.openpai_cluster_lists import OpenPaiClusterLists
from corral.service.openpai_clusters import OpenPaiClusters
from corral.service.openpai_importing import OpenPaiImporting
from corral.service.openpai_launcher import OpenPaiLauncher
from corral.service.openpai_logs import OpenPaiLogs
from corral.service.openpai_templates import OpenPaiTemplates
from corral.service.openpai_v1 import OpenPaiV1
from corral.service.overview import Overview
from corral.service.yielding import Yielding


class Service(
    OpenPaiV1,
    OpenPaiLogs,
    OpenPaiLauncher,
    OpenPaiTemplates,
    OpenPaiClusterLists,
    OpenPaiClusters,
    OpenPaiImporting,
    Yielding,
    Machines,
    Overview,
    Configuring,
    Inside,
    OpenPaiAccounts,
):
    """Everything that a caller may do."""

    async def ready(self) -> Readiness:
        """Whether calls can be answered now."""
        try:
            await self.store.ping()
        except CorralError as error:
            return Readiness(False, (error.message,))
        return Readiness(True)
