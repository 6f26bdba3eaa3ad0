"""The few calls of the system's GSSAPI library (MIT krb5) that a client of SPNEGO makes.

The library is loaded when it is first used: most servers need none. With a keytab it asks for a ticket when there is none,
and for the next one when half of its life is over or 30 seconds are left (MIT's "client keytab"), so nobody runs `kinit`.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

_LIBRARY: Final = "libgssapi_krb5.so.2"
_KRB5: Final = b"\x2a\x86\x48\x86\xf7\x12\x01\x02\x02"
_SPNEGO: Final = b"\x2b\x06\x01\x05\x05\x02"
_PRINCIPAL_NAME: Final = b"\x2a\x86\x48\x86\xf7\x12\x01\x02\x02\x01"
_HOST_SERVICE: Final = b"\x2a\x86\x48\x86\xf7\x12\x01\x02\x01\x04"
_INITIATE: Final = 1
_ERRORS: Final = 0xFFFF0000
_MAJOR, _MINOR = 1, 2
_MOST_MESSAGES: Final = 8
_EMPTY: Final = ("", "Success", "Unknown error")
"""What Kerberos says when only GSSAPI's own status tells something."""

_U32 = ctypes.c_uint32


class GssError(Exception):
    """A refusal of the library, in its own words."""


class NoLibrary(Exception):
    """The system has no GSSAPI library."""


class _Buffer(ctypes.Structure):
    _fields_ = [("length", ctypes.c_size_t), ("value", ctypes.c_void_p)]


class _Oid(ctypes.Structure):
    _fields_ = [("length", _U32), ("elements", ctypes.c_void_p)]


class _OidSet(ctypes.Structure):
    _fields_ = [("count", ctypes.c_size_t), ("elements", ctypes.POINTER(_Oid))]


class _Element(ctypes.Structure):
    _fields_ = [("key", ctypes.c_char_p), ("value", ctypes.c_char_p)]


class _Store(ctypes.Structure):
    _fields_ = [("count", _U32), ("elements", ctypes.POINTER(_Element))]


class Held(NamedTuple):
    """Whose ticket there is."""

    principal: str
    seconds: int
    """Seconds for which it is valid."""


class Credential:
    """A credential of this process. It is valid inside the `with` block of `credential`."""

    def __init__(self, library: Any, handle: ctypes.c_void_p) -> None:
        self._library, self._handle = library, handle

    def held(self) -> Held:
        """The principal and what is left of its ticket. Raises GssError."""
        name, seconds = ctypes.c_void_p(), _U32()
        minor = _U32()
        krb5 = _oid(_KRB5)
        _check(
            self._library,
            self._library.gss_inquire_cred_by_mech(
                ctypes.byref(minor), self._handle, ctypes.byref(krb5), ctypes.byref(name), ctypes.byref(seconds), None,
                None,
            ),
            minor,
        )  # fmt: skip
        try:
            shown = _Buffer()
            major = self._library.gss_display_name(ctypes.byref(minor), name, ctypes.byref(shown), None)
            _check(self._library, major, minor)
            return Held(_taken(self._library, shown).decode(errors="replace"), seconds.value)
        finally:
            self._library.gss_release_name(ctypes.byref(minor), ctypes.byref(name))

    def token(self, service: str, host: str) -> bytes:
        """The token of SPNEGO that a client sends to a service on a host. Raises GssError."""
        minor, context, answer = _U32(), ctypes.c_void_p(), _Buffer()
        spnego = _oid(_SPNEGO)
        with _name(self._library, f"{service}@{host}", _HOST_SERVICE) as target:
            try:
                major = self._library.gss_init_sec_context(
                    ctypes.byref(minor), self._handle, ctypes.byref(context), target, ctypes.byref(spnego), _U32(0),
                    _U32(0), None, None, None, ctypes.byref(answer), None, None,
                )  # fmt: skip
                _check(self._library, major, minor)
                return _taken(self._library, answer)
            finally:
                unused = _U32()
                if context.value:
                    self._library.gss_delete_sec_context(ctypes.byref(unused), ctypes.byref(context), None)


@contextmanager
def credential(principal: str, store: Mapping[str, str]) -> Iterator[Credential]:
    """The credential of a principal, "" for whichever one there is.

    `store` names its parts as MIT does (`client_keytab`, `ccache`); those that it does not name are the environment's.
    Raises GssError, NoLibrary.
    """
    library = _library()
    with _name(library, principal, _PRINCIPAL_NAME) as name:
        handle = _acquire(library, name, store)
    try:
        yield Credential(library, handle)
    finally:
        minor = _U32()
        library.gss_release_cred(ctypes.byref(minor), ctypes.byref(handle))


def _acquire(library: Any, name: ctypes.c_void_p, store: Mapping[str, str]) -> ctypes.c_void_p:
    elements = (_Element * len(store))(*(_Element(key.encode(), value.encode()) for key, value in store.items()))
    kept = _Store(len(store), elements)
    # Kerberos first: of several mechanisms the first one's error is told
    both = (_Oid * 2)(_oid(_KRB5), _oid(_SPNEGO))
    mechanisms = _OidSet(2, both)
    handle, minor = ctypes.c_void_p(), _U32()
    major = library.gss_acquire_cred_from(
        ctypes.byref(minor), name, _U32(0), ctypes.byref(mechanisms), ctypes.c_int(_INITIATE),
        ctypes.byref(kept) if store else None, ctypes.byref(handle), None, None,
    )  # fmt: skip
    _check(library, major, minor)
    return handle


@contextmanager
def _name(library: Any, text: str, kind: bytes) -> Iterator[ctypes.c_void_p]:
    """The library's own form of a name; "" is none."""
    name, minor = ctypes.c_void_p(), _U32()
    if text:
        data = text.encode()
        given = _Buffer(len(data), ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p))
        kind_oid = _oid(kind)
        major = library.gss_import_name(
            ctypes.byref(minor), ctypes.byref(given), ctypes.byref(kind_oid), ctypes.byref(name)
        )
        _check(library, major, minor)
    try:
        yield name
    finally:
        if name.value:
            library.gss_release_name(ctypes.byref(minor), ctypes.byref(name))


def _oid(elements: bytes) -> _Oid:
    """An object identifier; its bytes are constants of this module, so they outlive it."""
    return _Oid(len(elements), ctypes.cast(ctypes.c_char_p(elements), ctypes.c_void_p))


def _taken(library: Any, buffer: _Buffer) -> bytes:
    """The content of a buffer that the library made, which is released."""
    found = ctypes.string_at(buffer.value, buffer.length) if buffer.value else b""
    minor = _U32()
    library.gss_release_buffer(ctypes.byref(minor), ctypes.byref(buffer))
    return found


def _check(library: Any, major: int, minor: _U32) -> None:
    """Raise the GssError of a status that is one."""
    if not major & _ERRORS:
        return
    said = _words(library, minor.value, _MINOR) if minor.value else ""
    raise GssError(said if said not in _EMPTY else _words(library, major, _MAJOR) or f"GSSAPI status {major:#x}")


def _words(library: Any, status: int, kind: int) -> str:
    """The library's message for a status."""
    found: list[str] = []
    more, minor = _U32(0), _U32()
    for _ in range(_MOST_MESSAGES):
        text = _Buffer()
        if library.gss_display_status(
            ctypes.byref(minor), _U32(status), ctypes.c_int(kind), None, ctypes.byref(more), ctypes.byref(text)
        ):
            break
        found.append(_taken(library, text).decode(errors="replace").strip().rstrip("."))
        if not more.value:
            break
    return "; ".join(each for each in found if each)


@functools.cache
def _library() -> Any:
    """The system's library. Raises NoLibrary."""
    try:
        library = ctypes.CDLL(_LIBRARY)
        calls = [
            getattr(library, f"gss_{each}")
            for each in (
                "acquire_cred_from", "delete_sec_context", "display_name", "display_status", "import_name",
                "init_sec_context", "inquire_cred_by_mech", "release_buffer", "release_cred", "release_name",
            )
        ]  # fmt: skip
    except (OSError, AttributeError) as error:
        raise NoLibrary(str(error)) from None
    for call in calls:
        call.restype = _U32
    return library
