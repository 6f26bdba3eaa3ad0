"""The token of monitoring is that of its file, and is good for metrics and alerts alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from corral.kernel.clock import VirtualClock
from corral.kernel.errors import Forbidden, Unauthenticated
from corral.service.people.monitoring_token import MonitoringToken
from corral.service.service import Service

TOKEN = "corral-monitoring-0123456789"


@pytest.fixture
def file(tmp_path: Path, service: Service, clock: VirtualClock) -> Path:
    path = tmp_path / "token"
    path.write_text(f"{TOKEN}\n")
    service.authentication.accept_monitoring(MonitoringToken(path, clock, service.authentication.has_form))
    return path


async def test_it_reads_the_whole_page_and_tells_alerts_and_does_nothing_else(service: Service, file: Path) -> None:
    actor = await service.authentication.authenticate(TOKEN)
    assert not actor.is_admin
    assert b"corral_scheduler_up 0" in await service.metrics.page(actor)
    told = {"labels": {"alertname": "Hot"}, "status": "firing", "startsAt": "2023-11-14T22:13:20Z"}
    taken = await service.alerts.take(actor, json.dumps({"version": "4", "alerts": [told]}).encode())
    assert taken.firing == 1
    with pytest.raises(Forbidden, match=r"Monitoring may not silence alerts: .* \(rule monitoring-token-only\)"):
        await service.alerts.silences(actor)
    with pytest.raises(Forbidden, match="monitoring-token-only"):
        await service.alerts.list(actor)


@pytest.mark.parametrize("given", ["", "x", f"{TOKEN}0", TOKEN[:-1], "Größe-und-mehr-als-genug"])
async def test_another_token_is_refused(service: Service, file: Path, given: str) -> None:
    with pytest.raises(Unauthenticated, match="not one of this server's"):
        await service.authentication.authenticate(given)


async def test_a_new_token_of_the_file_takes_the_place_of_the_old_one(
    service: Service, file: Path, clock: VirtualClock
) -> None:
    await service.authentication.authenticate(TOKEN)
    file.write_text(TOKEN[::-1])
    clock.advance(6)
    assert (await service.authentication.authenticate(TOKEN[::-1])).kind == "monitoring"
    with pytest.raises(Unauthenticated):
        await service.authentication.authenticate(TOKEN)


@pytest.mark.parametrize("content", [b"", b"short", b"two words of a file", b"\xff" * 40, b"x" * 1001])
async def test_a_file_without_a_token_admits_nobody(
    service: Service, file: Path, clock: VirtualClock, content: bytes
) -> None:
    file.write_bytes(content)
    clock.advance(6)
    for given in (content.decode(errors="replace"), "", TOKEN):
        with pytest.raises(Unauthenticated):
            await service.authentication.authenticate(given)
    file.unlink()
    clock.advance(6)
    with pytest.raises(Unauthenticated):
        await service.authentication.authenticate(TOKEN)


@pytest.mark.parametrize("other", [f"crl_{'x' * 43}", "cjt_0mabcdefgh123_1700000000_abc", "other.of.a.tenant.1"])
async def test_a_token_of_the_form_of_others_is_refused_with_a_warning(
    service: Service, file: Path, clock: VirtualClock, other: str
) -> None:
    class Form:
        sign_in_kind = "other"

        def has_form(self, token: str) -> bool:
            return token.startswith("other.")

        async def accepts(self, token: str) -> bool:
            return True

    service.authentication.add_format(Form())
    file.write_text(other)
    with capture_logs() as logs:
        service.authentication.accept_monitoring(MonitoringToken(file, clock, service.authentication.has_form))
    assert [each["error"] for each in logs] == ["it has the form of a token of a user or a job"]
    assert other not in str(logs)
    with pytest.raises(Unauthenticated):
        await service.authentication.authenticate(other)
