"""A Framework's exit codes follow FrameworkController's own table: its 22 predefined codes, and no others."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.model.exits import classify
from corral.model.framework_exits import classify_by, classify_framework
from corral.model.outcome import ExitClass

T, P, U, C = ExitClass.TRANSIENT, ExitClass.PERMANENT, ExitClass.UNKNOWN, ExitClass.CONFLICT
TABLE = {
    -1000: T, -1001: T, -1002: T, -1003: T, -1004: P, -1005: P, -1006: T,
    -1200: P, -1201: U, -1202: P, -1203: P, -1204: U,
    130: T, 131: T, 132: P, 134: U, 135: P, 136: P, 137: T, 139: P, 141: P, 143: T,
    200: T, 201: C, 210: P, -100: T, -101: T, -110: T, -111: T, -120: T, -200: P, -210: P, -220: P, -230: P,
    -300: U, -310: U,
}  # fmt: skip


@pytest.mark.parametrize(("code", "kind"), TABLE.items())
def test_every_row_has_its_class(code: int, kind: ExitClass) -> None:
    found = classify_framework(code, "seen")
    assert (found.code, found.exit_class, found.diagnostics) == (code, kind, "seen")


@pytest.mark.parametrize(("code", "told"), [(125, -1201), (126, -1202), (127, -1203), (128, -1204)])
def test_what_a_container_runtime_ends_with_has_a_code_of_its_own(code: int, told: int) -> None:
    assert classify_framework(code).code == told


@given(st.integers(1, 249).filter(lambda code: code not in TABLE and code not in range(125, 129)))
def test_any_other_code_of_a_program_is_a_failure_of_which_nothing_is_known(code: int) -> None:
    found = classify_framework(code)
    assert (found.code, found.phrase, found.exit_class) == (code, "ContainerUnrecognizedFailed", U)


def test_where_the_tables_differ_each_job_has_its_own() -> None:
    assert classify_by("standard", 139) == classify(139)
    assert classify_by("standard", 139).exit_class is U
    assert classify_by("frameworkcontroller", 139).exit_class is P
    assert classify_by("frameworkcontroller", 0).succeeded
