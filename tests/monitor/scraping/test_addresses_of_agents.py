"""Addresses of agents are read, made for each node where they name it, and refused without the password they had."""

from __future__ import annotations

import pytest

from corral.kernel.errors import InvalidInput
from corral.monitor.scraping.addresses import Address, addresses_for, parse_addresses


def test_a_list_has_an_address_for_each_host_and_one_for_each_node() -> None:
    given = parse_addresses("http://gpu-7, https://[::1]:9000/agent/ ,http://{node}.lan:9102")
    assert given[:2] == (Address(False, "gpu-7", 9102), Address(True, "::1", 9000, "/agent"))
    assert [str(each) for each in given[:2]] == ["http://gpu-7:9102", "https://[::1]:9000/agent"]
    found = list(addresses_for(given, ["a1", "b.2", "no host", "x/../y", "-"]))
    assert found[2:] == [
        Address(False, "a1.lan", 9102, node="a1"),
        Address(False, "b.2.lan", 9102, node="b.2"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "gpu-7:9102",
        "ftp://gpu-7",
        "http://",
        "http://gpu-7:port",
        "http://gpu-7:99999",
        "http://ann:s3cret@gpu-7",
        "http://gpu-7/?a=s3cret",
        "http://a b",
        "http://gpu-7/a\u00e9",
    ],
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="The address of an agent is http://HOST:PORT") as refused:
        parse_addresses(f"http://well,{text}")
    assert "ann" not in refused.value.message


def test_too_many_addresses_are_refused() -> None:
    with pytest.raises(InvalidInput, match="At most 1000 addresses"):
        parse_addresses(",".join(f"http://gpu-{number}" for number in range(1001)))
