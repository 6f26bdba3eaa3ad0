"""Names that stand in addresses are those that browsers and clients leave as they are."""

from __future__ import annotations

from urllib.parse import quote, urljoin, urlsplit

import pytest

from corral.kernel.names import is_path_name

LONGEST = 8


@pytest.mark.parametrize("name", ["a", "...", ".a", "a b", "é", "a%2Fb", "x" * LONGEST])
def test_a_printable_name_stays_in_its_address(name: str) -> None:
    assert is_path_name(name, LONGEST)
    assert urlsplit(urljoin("http://host/names/", quote(name, safe=""))).path == f"/names/{quote(name, safe='')}"


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", " a", "a ", "a\nb", "a\0", "x" * (LONGEST + 1)])
def test_a_name_that_addresses_change_is_none(name: str) -> None:
    assert not is_path_name(name, LONGEST)
