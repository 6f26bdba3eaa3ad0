#!/usr/bin/env python3
"""Run the program that `CORRAL_STEADY` names, so that it cannot see the network of its machine change.

Chromium ends its requests that wait for a connection (`net::ERR_NETWORK_CHANGED`) when an address comes or goes, and other
tests make and remove interfaces of hosts all the time. It learns of that by a netlink socket, which the kernel refuses
to it here.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
import sys

PROGRAM = "CORRAL_STEADY"
"""The variable with the path of the program."""
_SOCKET_CALLS = {"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198)}
"""The kernel's number of each architecture, and of its call `socket` (linux/audit.h, the tables of system calls)."""
_NETLINK = 16
_NO_NEW_PRIVILEGES, _SET_FILTER, _FILTER_MODE = 38, 22, 2
_LOAD, _EQUALS, _RETURN = 0x20, 0x15, 0x06
_CALL_AT, _ARCHITECTURE_AT, _FAMILY_AT = 0, 4, 16
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000 | errno.EAFNOSUPPORT


class _Filter(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("rules", ctypes.c_char_p)]


def refuse_netlink(architecture: int, call: int) -> None:
    """Have the kernel refuse netlink sockets to this process and those that it starts.

    Raises OSError when the kernel takes no filter.
    """
    rules = [
        (_LOAD, 0, 0, _ARCHITECTURE_AT),
        (_EQUALS, 0, 5, architecture),
        (_LOAD, 0, 0, _CALL_AT),
        (_EQUALS, 0, 3, call),
        (_LOAD, 0, 0, _FAMILY_AT),
        (_EQUALS, 0, 1, _NETLINK),
        (_RETURN, 0, 0, _REFUSE),
        (_RETURN, 0, 0, _ALLOW),
    ]
    packed = b"".join(struct.pack("HBBI", *rule) for rule in rules)
    program = _Filter(len(rules), packed)
    kernel = ctypes.CDLL(None, use_errno=True)
    if kernel.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) or kernel.prctl(
        _SET_FILTER, _FILTER_MODE, ctypes.byref(program), 0, 0
    ):
        raise OSError(ctypes.get_errno(), "the kernel takes no filter of system calls")


if __name__ == "__main__":
    if platform.machine() in _SOCKET_CALLS:
        refuse_netlink(*_SOCKET_CALLS[platform.machine()])
    os.execv(os.environ[PROGRAM], [os.environ[PROGRAM], *sys.argv[1:]])
