"""Routes for the kept results of benchmark suites. All are for administrators."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query, Request

from corral.api.authentication import Caller, service_of
from corral.api.json_responses import Json, answers, json_body, no_content, read_json
from corral.api.routers import router_of
from corral.model.benchmarks import (
    LONGEST_METRIC,
    LONGEST_NAME,
    MOST_FIGURES,
    BenchmarkComparison,
    BenchmarkHistory,
    BenchmarkOverview,
    BenchmarkResults,
    BenchmarkRunResults,
    BenchmarkRunView,
    BenchmarkStandings,
)

router = router_of("cluster")

_RUN: str = r"^[A-Za-z0-9-]{1,64}$"
_Run = Annotated[str, Path(pattern=_RUN, description="The run's id.")]
_Node = Annotated[str, Query(max_length=LONGEST_NAME, description="Only this node, ENGINE/NODE.")]
_METRIC = Query(max_length=LONGEST_METRIC, description="A metric without its rank, such as `cpu-stream/triad_bw`.")


@router.get("/benchmarks", responses=answers(BenchmarkOverview))
async def benchmark_overview(request: Request, actor: Caller) -> Json:
    """Say how all nodes stand by what was measured last, and list measurements and runs. For administrators."""
    return Json(await service_of(request).benchmarks.overview(actor))


@router.post(
    "/benchmarks",
    status_code=201,
    responses=answers(BenchmarkRunView, 201, also=(413,)),
    openapi_extra=json_body(BenchmarkResults),
)
async def keep_benchmark(request: Request, actor: Caller) -> Json:
    """Keep results of a suite as a new run, or add them to one of the caller's. For administrators."""
    asked: BenchmarkResults = read_json(await request.body(), BenchmarkResults)
    return Json(await service_of(request).benchmarks.keep(actor, asked), 201)


@router.get("/benchmarks/standing", responses=answers(BenchmarkStandings))
async def benchmark_standing(
    request: Request, actor: Caller, node: _Node = "", metric: Annotated[str, _METRIC] = ""
) -> Json:
    """Compare the last values of a node or a metric with the SKU's median and the data sheet. For administrators."""
    return Json(await service_of(request).benchmarks.standing(actor, node=node, metric=metric))


@router.get("/benchmarks/history", responses=answers(BenchmarkHistory))
async def benchmark_history(request: Request, actor: Caller, metric: Annotated[str, _METRIC], node: _Node = "") -> Json:
    """Say what runs measured of a metric, the newest 5,000 values. For administrators."""
    return Json(await service_of(request).benchmarks.history(actor, metric, node=node))


@router.get("/benchmarks/comparison", responses=answers(BenchmarkComparison))
async def compare_benchmarks(
    request: Request,
    actor: Caller,
    before: Annotated[str, Query(pattern=_RUN, description="The run to compare with.")],
    after: Annotated[str, Query(pattern=_RUN, description="The run that is compared.")],
) -> Json:
    """Compare the medians of two runs, the largest loss first. For administrators."""
    return Json(await service_of(request).benchmarks.comparison(actor, before, after))


@router.get("/benchmarks/{run}/results", responses=answers(BenchmarkRunResults))
async def benchmark_results(
    request: Request,
    actor: Caller,
    run: _Run,
    offset: Annotated[int, Query(ge=0, le=MOST_FIGURES, description="The figure at which to begin.")] = 0,
) -> Json:
    """Return what a run measured on each node, 20,000 figures at a time. For administrators."""
    return Json(await service_of(request).benchmarks.results(actor, run, offset=offset))


@router.delete("/benchmarks/{run}", status_code=204, responses=answers(None, 204))
async def remove_benchmark(request: Request, actor: Caller, run: _Run) -> Json:
    """Remove a run with its figures. For administrators."""
    await service_of(request).benchmarks.remove(actor, run)
    return no_content()
