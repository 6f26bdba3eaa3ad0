"""The route that imports groups, accounts, tokens and jobs of an OpenPAI cluster, in calls of bounded size."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Request

from corral.api.authentication import Caller
from corral.api.json_responses import Json, answers, json_body, read_json
from corral.api.late_routes import late_router
from corral.compat.openpai.records.cluster_import import ImportedPage, OpenPaiImport
from corral.compat.openpai.routes.operations import openpai_of

router = late_router(tags=["openpai"])

DryRun = Annotated[bool, Query(alias="dryRun", description="Store nothing; say what would become of each.")]
Replace = Annotated[bool, Query(description="Replace items that exist here and differ.")]


@router.post("/openpai/import", responses=answers(ImportedPage, also=(413,)), openapi_extra=json_body(OpenPaiImport))
async def import_openpai(request: Request, actor: Caller, dry_run: DryRun = False, replace: Replace = False) -> Json:
    """Import groups, accounts, tokens and jobs of an OpenPAI cluster; a repeated import changes nothing."""
    given: OpenPaiImport = read_json(await request.body(), OpenPaiImport)
    return Json(await openpai_of(request).cluster_import.run(actor, given, dry_run=dry_run, replace=replace))
