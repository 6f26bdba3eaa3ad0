"""Seal secrets with a key that is never in the database, so that a stolen database reveals none of them.

AES-256-GCM with a random 96-bit nonce. The owner and the name of the secret are authenticated with it, so a sealed
value cannot be moved to another place. A sealed value names its key, so that an interrupted rotation can go on.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import hashlib
import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Final

from corral.kernel.errors import Conflict
from corral.kernel.tokens import derive_key

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    from corral.store import Store

_VERSION: Final = "s1"
_NONCE: Final = 12


class SecretBox:
    """Seals and opens with one key; during a rotation it also opens with others."""

    def __init__(self, key: bytes, *others: bytes) -> None:
        self._keys = {_key_id(each): derive_key(each, "seal") for each in (key, *others)}
        self._id = _key_id(key)

    def seal(self, owner: str, name: str, value: str) -> str:
        """Seal `value` for `owner` (such as `user:NAME` or `job:ID`) under `name`."""
        nonce = secrets.token_bytes(_NONCE)
        sealed = nonce + _cipher(self._keys[self._id]).encrypt(nonce, value.encode(), _place(owner, name))
        return f"{_VERSION}.{self._id}.{base64.urlsafe_b64encode(sealed).decode()}"

    def open(self, owner: str, name: str, sealed: str) -> str:
        """Open a sealed value.

        Raises Conflict when it was sealed with another key, changed or moved.
        """
        version, _, rest = sealed.partition(".")
        key_id, _, body = rest.partition(".")
        key = self._keys.get(key_id)
        if version != _VERSION or key is None:
            raise Conflict(
                "sealed-with-another-key",
                f"The secret {name} was sealed with another key; put the data folder's key back, or store it again.",
            )
        try:
            raw = base64.urlsafe_b64decode(body)
            return _cipher(key).decrypt(raw[:_NONCE], raw[_NONCE:], _place(owner, name)).decode()
        except (_invalid_tag(), ValueError, binascii.Error):
            raise Conflict("secret-damaged", f"The secret {name} is damaged; store it again.") from None


async def rotate_key(store: Store, key_file: Path) -> int:
    """Replace the server's key and seal every secret with the new one; return their number.

    The new key is on disk as `KEY_FILE.new` before anything is sealed with it, and becomes `KEY_FILE` afterwards. If
    the rotation is interrupted, calling this again finishes it. The server must not run meanwhile.
    """
    old, new = await asyncio.to_thread(_two_keys, key_file)
    secret_box = SecretBox(new, old)
    count = await store.reseal(
        lambda owner, name, sealed: secret_box.seal(owner, name, secret_box.open(owner, name, sealed))
    )
    await asyncio.to_thread(_coming(key_file).replace, key_file)
    return count


def _coming(key_file: Path) -> Path:
    return key_file.with_name(key_file.name + ".new")


def _two_keys(key_file: Path) -> tuple[bytes, bytes]:
    """The present key and the next one, which is created and synced to disk if it is missing."""
    with contextlib.suppress(FileExistsError):
        handle = os.open(_coming(key_file), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(base64.b64encode(secrets.token_bytes(32)))
            file.flush()
            os.fsync(file.fileno())
    return base64.b64decode(key_file.read_bytes()), base64.b64decode(_coming(key_file).read_bytes())


def _cipher(key: bytes) -> AESGCM:
    """The cipher of a key.

    The library is imported for the first secret: most servers seal none, and it costs 7 MB.
    """
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    return AESGCM(key)


def _invalid_tag() -> type[Exception]:
    from cryptography.exceptions import InvalidTag

    return InvalidTag


def _key_id(key: bytes) -> str:
    return hashlib.sha256(b"corral-key-id:" + key).hexdigest()[:12]


def _place(owner: str, name: str) -> bytes:
    return f"{owner}\0{name}".encode()
