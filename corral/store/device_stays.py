"""Who was on the devices of nodes, from the attempts of tasks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import msgspec
from sqlalchemy import Connection, Select, func, select

from corral.store import tables
from corral.store.database import Database, rows
from corral.store.usage_records import ENDED, ran_between

_jobs, _attempts = tables.jobs, tables.attempts
_DEVICES: Final = msgspec.json.Decoder(tuple[int, ...])


class PastStay(NamedTuple):
    """An attempt that was on devices; times are in seconds since 1970, an end is None while it runs."""

    job: str
    name: str
    user: str
    queue: str
    node: str
    devices: tuple[int, ...]
    begin: float
    end: float | None


class DeviceStays(Database):
    """Attempts of tasks by the nodes that they were on."""

    async def device_stays(
        self, nodes: Sequence[str], begin: float, end: float, *, now: float, most: int
    ) -> tuple[list[PastStay], int]:
        """The attempts with devices on some nodes between two times, the latest first, and how many are left out.

        At most `most` are told. Attempts of removed jobs are not known.
        """
        return await self.read(lambda connection: _stays(connection, nodes, begin, end, now, most))


def _stays(
    connection: Connection, nodes: Sequence[str], begin: float, end: float, now: float, most: int
) -> tuple[list[PastStay], int]:
    wanted = (*ran_between(begin, end, now), _attempts.c.node.in_(nodes), _attempts.c.devices != "[]")
    columns = (
        _jobs.c.id, _jobs.c.name, _jobs.c.user, _jobs.c.queue, _attempts.c.node, _attempts.c.devices,
        _attempts.c.started_at, ENDED.label("ended"),
    )  # fmt: skip
    query = _joined(select(*columns)).where(*wanted)
    query = query.order_by(_attempts.c.started_at.desc(), _attempts.c.id).limit(most + 1)
    found = [
        PastStay(
            row.id, row.name, row.user, row.queue, row.node, _DEVICES.decode(row.devices), row.started_at, row.ended
        )
        for row in rows(connection, query)
    ]
    if len(found) <= most:
        return found, 0
    count: int = connection.execute(_joined(select(func.count())).where(*wanted)).scalar_one()
    return found[:most], count - most


def _joined(query: Select[Any]) -> Select[Any]:
    return query.select_from(_attempts).join(_jobs, _jobs.c.id == _attempts.c.job)
