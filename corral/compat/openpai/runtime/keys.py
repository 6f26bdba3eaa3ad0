"""Derive an Ed25519 SSH key pair from a job's secret, so that all tasks have the same one.

The key is Ed25519 (RFC 8032), whose private half may be any 32 bytes. Images may have no program to make keys, so it is
computed here with Python integers, in a few milliseconds. This is not constant-time, which is acceptable: only the task
itself could measure it.
"""

from __future__ import annotations

import base64
import hashlib
import struct
from typing import NamedTuple

_P = 2**255 - 19
_D = -121665 * pow(121666, _P - 2, _P) % _P
_SQRT_OF_MINUS_1 = pow(2, (_P - 1) // 4, _P)
_KIND = b"ssh-ed25519"
_LINE = 70
_Point = tuple[int, int, int, int]
"""A point in extended coordinates: x/z, y/z, 1, xy/z."""


class KeyPair(NamedTuple):
    """Both halves in OpenSSH's file formats."""

    private: str
    public: str
    """`ssh-ed25519 AAAA...`, without a comment."""


def key_pair(seed: bytes, comment: str) -> KeyPair:
    """The key pair with the private half `seed`; raises ValueError unless it has 32 bytes."""
    if len(seed) != 32:
        raise ValueError("the seed of an Ed25519 key has 32 bytes")
    public = public_half(seed)
    blob = _text(_KIND) + _text(public)
    check = hashlib.sha256(seed).digest()[:4] * 2  # a reader only checks that both halves are equal
    private = check + blob + _text(seed + public) + _text(comment.encode())
    private += bytes(range(1, 1 + -len(private) % 8))
    content = (
        b"openssh-key-v1\0" + _text(b"none") * 2 + _text(b"") + struct.pack(">I", 1) + _text(blob) + _text(private)
    )
    encoded = base64.b64encode(content).decode()
    lines = [encoded[at : at + _LINE] for at in range(0, len(encoded), _LINE)]
    whole = "\n".join(["-----BEGIN OPENSSH PRIVATE KEY-----", *lines, "-----END OPENSSH PRIVATE KEY-----", ""])
    return KeyPair(whole, f"ssh-ed25519 {base64.b64encode(blob).decode()}")


def public_half(seed: bytes) -> bytes:
    """The public key for a private one, by RFC 8032."""
    digest = bytearray(hashlib.sha512(seed).digest()[:32])
    digest[0] &= 248
    digest[31] = digest[31] & 127 | 64
    x, y, z, _ = _times(int.from_bytes(digest, "little"), _base())
    inverse = pow(z, _P - 2, _P)
    x, y = x * inverse % _P, y * inverse % _P
    return (y | (x & 1) << 255).to_bytes(32, "little")


def _base() -> _Point:
    y = 4 * pow(5, _P - 2, _P) % _P
    square = (y * y - 1) * pow(_D * y * y + 1, _P - 2, _P) % _P
    x = pow(square, (_P + 3) // 8, _P)
    if (x * x - square) % _P:
        x = x * _SQRT_OF_MINUS_1 % _P
    x = _P - x if x & 1 else x
    return x, y, 1, x * y % _P


def _times(number: int, point: _Point) -> _Point:
    found: _Point = (0, 1, 1, 0)
    while number:
        if number & 1:
            found = _plus(found, point)
        point = _plus(point, point)
        number >>= 1
    return found


def _plus(one: _Point, other: _Point) -> _Point:
    a = (one[1] - one[0]) * (other[1] - other[0]) % _P
    b = (one[1] + one[0]) * (other[1] + other[0]) % _P
    c = 2 * one[3] * other[3] * _D % _P
    d = 2 * one[2] * other[2] % _P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % _P, g * h % _P, f * g % _P, e * h % _P


def _text(value: bytes) -> bytes:
    return struct.pack(">I", len(value)) + value
