"""The delegation tokens that YARN gives a container: which is sent to whom, and what is refused."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from corral.kernel.errors import Unavailable
from corral.storage.kerberos.negotiate import Negotiator
from corral.storage.kerberos.tickets import Identity
from corral.storage.kerberos.token_file import VARIABLE, token_for, tokens_of


def number(value: int) -> bytes:
    """Hadoop's variable length: one byte, or a byte that tells the count of those that follow."""
    if value < 128:
        return bytes([value])
    size = (value.bit_length() + 7) // 8
    return bytes([256 - 112 - size]) + value.to_bytes(size, "big")


def text(value: bytes) -> bytes:
    return number(len(value)) + value


def token(identifier: bytes, kind: bytes, service: bytes) -> bytes:
    return text(identifier) + text(b"password") + text(kind) + text(service)


def written(folder: Path, *tokens: bytes) -> str:
    file = folder / "container_tokens"
    file.write_bytes(b"HDTS\x00" + number(len(tokens)) + b"".join(text(b"alias") + each for each in tokens) + b"\x00")
    return str(file)


HDFS = b"HDFS_DELEGATION_TOKEN"
OURS = token(b"i" * 300, HDFS, b"127.0.0.1:8020")


def test_a_token_goes_to_its_own_name_node_and_to_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = token(b"other", HDFS, b"192.0.2.7:8020")
    application = token(b"am", b"YARN_AM_RM_TOKEN", b"127.0.0.1:8030")
    monkeypatch.setenv(VARIABLE, written(tmp_path, application, other, OURS))
    sent = token_for("localhost")
    assert base64.urlsafe_b64decode(sent + "=" * (-len(sent) % 4)) == OURS
    assert token_for("127.0.0.1") == sent
    assert token_for("192.0.2.8") == ""


def test_without_a_file_there_is_no_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert token_for("localhost") == ""


@pytest.mark.parametrize("content", [b"", b"HDTS\x01\x00", b"HDTS\x00", b"HDTS\x00\x02" + text(b"a"), bytes(2 << 20)])
def test_a_file_of_another_form_is_refused(content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tokens").write_bytes(content)
    monkeypatch.setenv(VARIABLE, str(tmp_path / "tokens"))
    with pytest.raises(Unavailable, match="does not list tokens as Hadoop does"):
        token_for("localhost")
    monkeypatch.setenv(VARIABLE, str(tmp_path / "none"))
    with pytest.raises(Unavailable, match="cannot be read"):
        token_for("localhost")


@pytest.mark.parametrize("damage", [b"\x8f", b"\x80" + bytes(9), b"\x01\x7fa", b"\x01" + b"\x88" + b"\xff" * 8])
def test_sizes_that_are_none_are_refused(damage: bytes) -> None:
    with pytest.raises((ValueError, IndexError)):
        list(tokens_of(damage))


def test_a_daemon_that_asks_gets_the_token_instead_of_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, written(tmp_path, OURS))
    negotiator = Negotiator(Identity(), token_for)
    url, terms = "http://localhost:9870/webhdfs/v1/", {"params": {"user.name": "me", "op": "OPEN"}}
    assert negotiator.terms(url, terms) == terms, "who does not ask is told no secret"
    assert negotiator.is_asked(url, 401, "Negotiate")
    expected = {"params": {"op": "OPEN", "delegation": token_for("localhost")}}
    assert negotiator.signed(url, terms) == expected == negotiator.terms(url, terms)
