"""The examples of `docs/scheduling.md` apply unchanged, each by itself, and a second apply changes nothing."""

from __future__ import annotations

import pytest

from corral.service.service import Service
from docs.worlds import examples
from tests.service.conftest import ROOT, FakeControl


@pytest.mark.parametrize("name", examples())
async def test_an_example_is_applied_and_applied_again(name: str, service: Service, fake_control: FakeControl) -> None:
    fake_control.answers["/configuration/check"] = []
    first = await service.configuration.apply(ROOT, examples()[name])
    assert {each.action for each in first.documents} == {"created"}
    again = await service.configuration.apply(ROOT, examples()[name])
    assert {each.action for each in again.documents} == {"unchanged"}
