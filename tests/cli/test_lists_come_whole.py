"""CLI lists fetch all pages, not only the first."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from corral.cli.paging import items, one_page
from corral.client.types import Page


class Server:
    """A client stand-in that returns a list in pages and records the requests."""

    def __init__(self, length: int) -> None:
        self.length = length
        self.asked: list[dict[str, Any]] = []

    def page(self, *, kind: str, limit: int, after: str) -> Page[int]:
        self.asked.append({"kind": kind, "limit": limit, "after": after})
        begin = int(after or 0)
        end = min(begin + limit, self.length)
        return {"items": list(range(begin, end)), "next": str(end) if end < self.length else None}


@given(length=st.integers(0, 3500), limit=st.none() | st.integers(0, 4000))
def test_every_item_is_read_once_in_order_up_to_the_limit(length: int, limit: int | None) -> None:
    server = Server(length)
    found = items(server.page, limit, kind="Queue")
    assert found == list(range(length if limit is None else min(length, limit)))
    assert (one_page(server.page, limit, kind="Queue")["next"] is None) == (limit is None or limit >= max(1, length))
    assert all(each["kind"] == "Queue" and 0 < each["limit"] <= 1000 for each in server.asked)
    assert len(server.asked) <= 2 * -(-max(1, length) // 1000)
