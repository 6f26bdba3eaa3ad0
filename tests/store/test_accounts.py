"""Some administrator can always sign in, in both databases."""

from __future__ import annotations

from typing import Any

import pytest

from corral.kernel.errors import Conflict
from corral.model.accounts import User
from corral.store import Store

AT = 1_700_000_000.0


@pytest.mark.parametrize("change", [{"role": "user"}, {"disabled": True}, {}], ids=["demoted", "disabled", "removed"])
async def test_an_administrator_stays_while_all_others_are_disabled(store: Store, change: dict[str, Any]) -> None:
    root = User("root", "admin", created_at=AT, id="root")
    await store.add_user(root)
    await store.add_user(User("away", "admin", created_at=AT, disabled=True))

    async def lose_root() -> None:
        if change:
            await store.change_user("root", **change)
        else:
            await store.remove_user("root")

    with pytest.raises(Conflict) as refused:
        await lose_root()
    assert refused.value.code == "last-admin"
    assert await store.user("root") == root
    await store.change_user("away", disabled=False)
    await lose_root()
    assert await store.user("root") != root
