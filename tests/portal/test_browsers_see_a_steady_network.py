"""The browser of these tests does not see interfaces and addresses that other tests make."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.portal import steady_network


@pytest.mark.parametrize(("family", "answer"), [("AF_NETLINK", "refused"), ("AF_INET", "given"), ("AF_UNIX", "given")])
def test_netlink_sockets_are_refused_and_others_are_given(family: str, answer: str) -> None:
    program = (
        "import errno, socket\n"
        "try:\n"
        f"    socket.socket(socket.{family}, socket.SOCK_DGRAM).close()\n"
        "    print('given')\n"
        "except OSError as error:\n"
        "    print('refused' if error.errno == errno.EAFNOSUPPORT else error)\n"
    )
    environment = {**os.environ, steady_network.PROGRAM: sys.executable}
    done = subprocess.run(
        [steady_network.__file__, "-c", program],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.strip() == answer
