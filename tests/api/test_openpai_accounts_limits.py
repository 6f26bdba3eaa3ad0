"""Rate limits of OpenPAI's API per user, as OpenPAI's services have them; Corral's own API has none by default."""

from __future__ import annotations

from pathlib import Path

import pytest

from corral.api.rate_limits import ApiCallLimits, CallLimit, Calls
from corral.compat.openpai.routes.mounting import DEFAULT_CALLS
from corral.compat.openpai.settings import OpenPaiSettings
from corral.kernel.errors import TooManyRequests
from corral.model.store_writes import SubmitLimit
from corral.settings import Settings
from tests.api.harness import Server, serving
from tests.api.openpai_caller import Pai, signed_in

AT = 1000.0


class Steady:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now = AT

    def __call__(self) -> float:
        return self.now


def refused(counting: ApiCallLimits, user: str, method: str, path: str) -> bool:
    try:
        counting.take(user, method, path)
    except TooManyRequests as error:
        assert error.code == "too-many-calls" and error.message.endswith("try again.")
        return True
    return False


def test_a_user_has_so_many_calls_in_a_window_and_others_have_theirs() -> None:
    clock = Steady()
    limit = CallLimit(2, 60.0, clock)
    limit.take("ann", "calls")
    clock.now += 59
    limit.take("ann", "calls")
    with pytest.raises(TooManyRequests) as too_many:
        limit.take("ann", "calls")
    assert too_many.value.details["retryAfter"] == 1
    limit.take("bob", "calls")
    clock.now += 1
    limit.take("ann", "calls")


def test_no_limit_is_no_limit() -> None:
    counting = ApiCallLimits(Calls(), Steady())
    assert not any(refused(counting, "ann", "GET", "/api/v3/jobs") for _ in range(2000))


@pytest.mark.parametrize(
    ("method", "path", "most", "seconds"),
    [
        ("GET", "/api/v2/users", 600, 60),
        ("GET", "/api/v2/jobs", 120, 60),
        ("GET", "/api/v1/jobs", 120, 60),
        ("GET", "/api/v1/user/ann/jobs", 120, 60),
        ("GET", "/api/v2/jobs/ann~x", 600, 60),
        ("PUT", "/api/v2/jobs/ann~x/executionType", 600, 60),
    ],
)
def test_openpais_calls_have_the_values_of_its_services(method: str, path: str, most: int, seconds: float) -> None:
    clock = Steady()
    counting = ApiCallLimits(DEFAULT_CALLS, clock)
    assert [refused(counting, "ann", method, path) for _ in range(most + 1)] == [False] * most + [True]
    assert not refused(counting, "bob", method, path)
    clock.now += seconds
    assert not refused(counting, "ann", method, path)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/api/v2/jobs"),
        ("POST", "/api/v1/jobs"),
        ("PUT", "/api/v1/jobs/x"),
        ("POST", "/api/v1/user/ann/jobs"),
        ("PUT", "/api/v1/user/ann/jobs/x"),
    ],
)
def test_submissions_are_told_from_other_calls_and_left_to_the_store_to_count(method: str, path: str) -> None:
    counting = ApiCallLimits(Calls(0, 0, 3), api="openpai")
    assert [counting.take("ann", method, path) for _ in range(5)] == [SubmitLimit("openpai", 3)] * 5
    assert counting.take("ann", "GET", path) is counting.take("ann", "PUT", "/api/v2/jobs/ann~x/executionType") is None
    assert ApiCallLimits(Calls(5, 0, 0)).take("ann", method, path) is None


def test_the_settings_say_what_openpai_had_and_leave_our_own_api_alone() -> None:
    settings, theirs = Settings(), OpenPaiSettings()
    assert (theirs.openpai_calls_per_minute, theirs.openpai_lists_per_minute) == (600, 120)
    assert theirs.openpai_submits_per_hour == 3600
    assert (settings.calls_per_minute, settings.lists_per_minute, settings.submits_per_hour) == (0, 0, 10_000)


def test_too_many_calls_are_refused_by_the_server(tmp_path: Path) -> None:
    def limited(server: Server) -> None:
        server.app.state.openpai_calls = ApiCallLimits(Calls(5), Steady())
        server.app.state.calls = ApiCallLimits(Calls(7, 2, 0), Steady())

    with serving(tmp_path, limited) as server:
        ann, bob = signed_in(server, "ann"), signed_in(server, "bob")
        assert [ann.call("GET", "/api/v2/users").status_code for _ in range(6)] == [200] * 5 + [429]
        answer = ann.call("GET", "/rest-server/api/v2/groups")
        assert answer.json()["code"] == "TooManyRequestsError" and int(answer.headers["retry-after"]) == 60
        assert bob.get("/api/v2/users")
        assert Pai(server.url).refused("GET", "/api/v2/users")[0] == 401
        assert [ann.call("GET", "/api/v3/jobs").status_code for _ in range(3)] == [200, 200, 429]
        assert ann.call("GET", "/api/v3/jobs").json()["code"] == "too-many-calls"
