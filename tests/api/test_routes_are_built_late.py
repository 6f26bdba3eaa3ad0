"""A route is built when it is called first, answers as FastAPI's own, and costs a start no more than its name."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator
from typing import Annotated, Any

import httpx2
import pytest
from fastapi import APIRouter, FastAPI, Path, Query
from fastapi.routing import APIRoute
from starlette.routing import Match

from corral.api.json_responses import Json
from corral.api.late_routes import LateRoute, late_router, routes_below
from corral.api.routers import router_of

Number = Annotated[int, Path(ge=0, le=9)]


async def shown(number: Number, long: Annotated[bool, Query()] = False) -> Json:
    """Show a thing."""
    return Json({"number": number, "long": long})


async def all_shown() -> Json:
    """Show all things."""
    return Json([])


def things(router: APIRouter) -> APIRouter:
    """The router with two routes."""
    router.get("/things")(all_shown)
    router.get("/things/{number}", responses={404: {"description": "None of that number"}})(shown)
    return router


def late(routes: list[Any]) -> list[LateRoute]:
    assert all(isinstance(each, LateRoute) for each in routes)
    return routes


def is_built(route: LateRoute) -> bool:
    return "dependant" in vars(route)


def call(path: str, method: str = "GET") -> dict[str, Any]:
    return {"type": "http", "path": path, "method": method}


@pytest.fixture
async def client() -> AsyncIterator[httpx2.AsyncClient]:
    app = FastAPI(openapi_url=None, redirect_slashes=False)
    app.router.routes.extend(things(router_of("things")).routes)
    app.router.routes.extend(routes_below("/v1", things(late_router()), include_in_schema=False))
    app.include_router(things(late_router()), prefix="/v2")
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url="http://server") as client:
        yield client


@pytest.mark.parametrize("prefix", ["/api/v3", "/v1", "/v2"])
async def test_a_late_route_answers_as_any_other(client: httpx2.AsyncClient, prefix: str) -> None:
    for _ in range(2):
        found = await client.get(f"{prefix}/things/7", params={"long": "true"})
        assert (found.status_code, found.json()) == (200, {"number": 7, "long": True})
    assert (await client.get(f"{prefix}/things")).json() == []
    assert (await client.get(f"{prefix}/things/10")).status_code == 422
    assert (await client.get(f"{prefix}/thing/7")).status_code == 404
    refused = await client.post(f"{prefix}/things/7")
    assert (refused.status_code, refused.headers["allow"]) == (405, "GET")


def test_only_what_is_called_is_built() -> None:
    every, one = late(things(router_of("things")).routes)
    assert every.matches(call("/api/v3/others"))[0] is Match.NONE and "path_regex" not in vars(every)
    assert one.matches(call("/api/v3/things/7")) == (
        Match.FULL,
        {"endpoint": shown, "path_params": {"number": "7"}, "route": one},
    )
    assert one.matches(call("/api/v3/things/7", "POST"))[0] is Match.PARTIAL
    assert not is_built(every) and not is_built(one)
    assert [each.name for each in one.dependant.path_params] == ["number"]
    assert is_built(one) and not is_built(every)


def test_what_a_built_route_knows_is_what_fastapi_knows() -> None:
    options: dict[str, Any] = {"tags": ["things"], "default_response_class": Json}
    pairs = zip(late(things(late_router(**options)).routes), things(APIRouter(**options)).routes, strict=True)
    for found, plain in pairs:
        assert isinstance(plain, APIRoute)
        for name in ("path", "name", "methods", "path_regex", "unique_id", "tags", "description", "responses"):
            assert getattr(found, name) == getattr(plain, name), name
        assert found.response_class is plain.response_class and found.include_in_schema and is_built(found)
    with pytest.raises(AttributeError, match="wheels"):
        _ = late(things(late_router()).routes)[0].wheels


def test_a_route_below_a_prefix_keeps_the_class_that_it_chose_for_its_answers() -> None:
    class Own(Json):
        pass

    router = late_router()
    router.get("/plain")(all_shown)
    router.get("/own", response_class=Own)(all_shown)
    plain, own = routes_below("/v1", router, response_class=Json, include_in_schema=False)
    assert plain.response_class is Json and own.response_class is Own
    assert plain.path == "/v1/plain" and not plain.include_in_schema and not is_built(late(router.routes)[0])


def test_the_models_of_the_openapi_document_are_built_when_it_is_made() -> None:
    program = (
        "import corral.api\n"
        "from fastapi import FastAPI\n"
        "from fastapi.openapi.models import OpenAPI, Schema\n"
        "from pydantic import BaseModel\n"
        "assert not OpenAPI.__pydantic_complete__ and not Schema.__pydantic_complete__\n"
        "class Own(BaseModel):\n    number: int\n"
        "assert Own.__pydantic_complete__ and Own.model_rebuild(force=True)\n"
        "app = FastAPI(openapi_url=None)\n"
        "app.get('/things', response_model=Own)(lambda: None)\n"
        "assert app.openapi()['paths']['/things']['get'] and OpenAPI.__pydantic_complete__\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
