"""Computed SSH keys equal OpenSSH's."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_ssh_private_key
from hypothesis import given
from hypothesis import strategies as st

from corral.compat.openpai.runtime.keys import key_pair, public_half
from corral.compat.openpai.runtime.task import job_key

SEED = bytes.fromhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60")
"""The first test vector of RFC 8032."""


def test_the_public_half_is_that_of_rfc_8032() -> None:
    assert public_half(SEED).hex() == "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"


@given(st.binary(min_size=32, max_size=32))
def test_any_seed_has_the_public_half_that_another_library_finds(seed: bytes) -> None:
    known = Ed25519PrivateKey.from_private_bytes(seed).public_key()
    assert public_half(seed) == known.public_bytes(Encoding.Raw, PublicFormat.Raw)


@pytest.mark.parametrize("comment", ["", "a", "corral-job", "with a space"])
def test_the_private_file_is_read_by_others(comment: str) -> None:
    pair = key_pair(SEED, comment)
    read = load_ssh_private_key(pair.private.encode(), None)
    assert read.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode() == pair.public


def test_openssh_reads_it(tmp_path: Path) -> None:
    if shutil.which("ssh-keygen") is None:
        pytest.skip("OpenSSH is not here: apt-get install openssh-client")
    file = tmp_path / "key"
    file.write_text(key_pair(SEED, "corral-job").private)
    file.chmod(0o600)
    told = subprocess.run(["ssh-keygen", "-y", "-f", file], capture_output=True, text=True, check=True).stdout
    assert told.split()[:2] == key_pair(SEED, "").public.split()


def test_a_job_has_a_key_for_each_purpose_and_no_other_job_has_it() -> None:
    keys = {job_key(secret, purpose) for secret in ("job one", "job two") for purpose in ("openpai-ssh", "host")}
    assert len(keys) == 4 and {len(key) for key in keys} == {32}


def test_a_seed_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        key_pair(b"short", "")
