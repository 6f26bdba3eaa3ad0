"""Forms are parsed as OpenPAI's server does; every accepted field is used, and oversized forms are refused."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.compat.openpai.routes.form_bodies import MOST_BYTES, MOST_FIELDS, read_form
from corral.compat.openpai.service.errors import OpenPaiRefusal


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", {}),
        ("a=1&b=x%20y&c=", {"a": "1", "b": "x y", "c": ""}),
        ("a=1&a=2", {"a": ["1", "2"]}),
        ("a[]=1", {"a": ["1"]}),
        ("a[1]=y&a[0]=x&a[]=z", {"a": ["x", "y", "z"]}),
        ("a[b][c]=1&a[b][d]=2", {"a": {"b": {"c": "1", "d": "2"}}}),
        ("a[0][b]=1&a[1][b]=2", {"a": [{"b": "1"}, {"b": "2"}]}),
        ("a[21]=x", {"a": {"21": "x"}}),
        ("a[b=1", {"a[b": "1"}),
        ("a[b][c][d][e][f]=1", {"a": {"b": {"c": {"d": {"e": {"f": "1"}}}}}}),
    ],
)
def test_a_form_has_nested_keys(text: str, told: dict[str, Any]) -> None:
    assert read_form(text.encode()) == told


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("a=1&a[b]=2", 400),
        ("a[b]=1&a[]=2", 400),
        ("a[][b]=1", 400),
        ("a[b][c][d][e][f][g]=1", 400),
        ("a=%ff", 400),
        ("&".join(["a=1"] * (MOST_FIELDS + 1)), 413),
        ("a=" + "x" * MOST_BYTES, 413),
    ],
)
def test_what_cannot_be_kept_whole_is_refused(text: str, status: int) -> None:
    with pytest.raises(OpenPaiRefusal) as refusal:
        read_form(text.encode())
    assert (refusal.value.code, refusal.value.status) == ("InvalidParametersError", status)


@given(st.text(alphabet="ab[]=&0123%.", max_size=200))
def test_whatever_comes_is_read_or_refused(text: str) -> None:
    try:
        assert isinstance(read_form(text.encode()), dict)
    except OpenPaiRefusal:
        pass
