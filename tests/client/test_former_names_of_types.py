"""Types that programs import by a former name are still there, and say their present one."""

from __future__ import annotations

import pytest

from corral.client import schema, types


@pytest.mark.parametrize(
    ("former", "present"),
    [
        ("Job", "JobDetail"),
        ("Event", "EventRecord"),
        ("Exit", "ExitView"),
        ("Waiting", "WaitingView"),
        ("TaskCounts",) * 2,
    ],
)
def test_a_former_name_is_the_present_type(former: str, present: str) -> None:
    with pytest.warns(DeprecationWarning, match=f"use corral.client.schema.{present}"):
        assert getattr(types, former) is getattr(schema, present)


def test_a_name_that_never_was_is_refused() -> None:
    with pytest.raises(AttributeError):
        types.Nothing  # type: ignore[attr-defined]  # noqa: B018
