"""A package of somebody else's declares settings: read like the server's own, and refused by their names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint

import pytest
from pydantic import Field

from corral.kernel.errors import InvalidInput
from corral.service import tenant_settings as seam
from corral.service.tenant_settings import TenantSettings, tenant_options
from corral.settings import Settings


class PressSettings(TenantSettings):
    press_pages: int = Field(default=3, ge=1, description="How many pages a run has.")
    press_title: str = ""


class Greedy(TenantSettings):
    port: int = 1


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[object], None]]:
    def run(declared: object) -> None:
        point = EntryPoint("press", f"{__name__}:UNUSED", seam.GROUP)
        monkeypatch.setattr(seam, "plug_ins", lambda _: {"press": point})
        monkeypatch.setattr(EntryPoint, "load", lambda _: declared)
        seam.tenant_settings.cache_clear()

    yield run
    monkeypatch.undo()
    seam.tenant_settings.cache_clear()


def test_a_tenant_has_its_settings_without_its_name(
    install: Callable[[object], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    install(PressSettings)
    monkeypatch.setenv("CORRAL_PRESS_TITLE", "News")
    server = Settings(press_pages=7, kubeconfig="/x")
    assert tenant_options(server.of_others)("press") == {"pages": 7, "title": "News"}
    assert tenant_options({})("another") == {}


def test_a_wrong_value_is_refused_by_the_name_of_its_setting(
    install: Callable[[object], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    install(PressSettings)
    monkeypatch.setenv("CORRAL_PRESS_PAGES", "0")
    with pytest.raises(InvalidInput, match="The setting press_pages cannot be used: Input should be greater"):
        tenant_options({})


def test_a_setting_of_the_server_cannot_be_declared_again(install: Callable[[object], None]) -> None:
    install(Greedy)
    with pytest.raises(InvalidInput, match="has the setting port, whose name must begin with press_"):
        tenant_options({})
    install("no class")
    with pytest.raises(InvalidInput, match="must be a subclass of TenantSettings"):
        tenant_options({})
