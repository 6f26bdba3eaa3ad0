"""Lines of the audit log are found by account, action, resource, refusal and time, in pages."""

from __future__ import annotations

import pytest

from corral.model.accounts import AuditFilter, AuditWrite
from corral.store import Store

LINES = (
    AuditWrite(10.0, "ada", "job.stop", "job:j1", "owner", True),
    AuditWrite(20.0, "bob", "job.stop", "job:j1", "nobody", False),
    AuditWrite(30.0, "root", "user.change", "user:ada", "admin", True),
    AuditWrite(40.0, "root", "user.change", "user:ada_lovelace", "admin", True),
    AuditWrite(50.0, "ada", "jobs", "user", "nobody", False),
)


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (AuditFilter(), [50, 40, 30, 20, 10]),
        (AuditFilter(actor="ada"), [50, 10]),
        (AuditFilter(action="job.stop"), [20, 10]),
        (AuditFilter(action="job"), [20, 10]),
        (AuditFilter(action="user"), [40, 30]),
        (AuditFilter(resource="user:ada"), [30]),
        (AuditFilter(resource="user"), [50, 40, 30]),
        (AuditFilter(resource="%"), []),
        (AuditFilter(resource="user:ada_"), []),
        (AuditFilter(actor="ada\0", action="job\0", resource="user\0"), []),
        (AuditFilter(refused=True), [50, 20]),
        (AuditFilter(actor="ada", refused=True), [50]),
        (AuditFilter(begin=20.0, end=40.0), [30, 20]),
    ],
)
async def test_only_the_wanted_lines_are_found_in_pages(store: Store, wanted: AuditFilter, found: list[int]) -> None:
    for line in LINES:
        await store.add_audit(line)
    seen, after = [], ""
    while True:
        page = await store.audit(wanted, limit=2, after_cursor=after)
        seen += [page.items]
        after = page.next or ""
        if not after:
            break
    assert [int(each.at[17:19]) for items in seen for each in items] == found
    assert all(len(items) == 2 for items in seen[:-1])
