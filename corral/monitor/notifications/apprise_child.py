"""The process that sends one message through `apprise`, and can reach nothing that the message must not reach.

It reads a request from standard input and writes what came of it. Whatever the library or one of its services does,
Python's audit hooks see each connection, file and program before it is used: only connections to addresses that messages
may go to pass, judged after the name was resolved. The process has little memory and is ended by the one that started it.
"""

from __future__ import annotations

import os
import resource
import ssl
import sys
import sysconfig
from typing import Any, Final

import msgspec

from corral.model.notifications.destinations import Destination, Network, address_of, address_refusal, read_networks

_MEMORY: Final = 1 << 30
"""Bytes of address space."""
_MOST_REQUEST: Final = 1 << 20
_MOST_ANSWER: Final = 256 * 1024
"""Bytes of an answer that are read."""
_REFUSED: Final = frozenset(
    {
        *(
            "subprocess.Popen",
            "os.system",
            "os.exec",
            "os.posix_spawn",
            "os.spawn",
            "os.fork",
            "os.forkpty",
            "pty.spawn",
        ),
        *("socket.bind", "socket.sendto", "socket.sendmsg", "ctypes.dlopen"),
    }
)
"""What a service that is called over HTTP never does."""
_WRITES: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class Request(msgspec.Struct):
    """A message, and where it goes."""

    address: str
    subject: str
    text: str
    listed: list[str]
    """Private networks that an administrator allows."""
    seconds: float
    """Seconds that one request may take."""


class Outcome(msgspec.Struct):
    """What came of it; it holds nothing of the address."""

    sent: bool = False
    known: bool = True
    """Whether the library understands the address."""
    status: int = 0
    """The status of the last answer; 0 without one."""


class Guard:
    """Judges what the process wants to do, from when it is armed."""

    def __init__(self, listed: tuple[Network, ...]) -> None:
        self._listed = listed
        self._readable = tuple({os.path.realpath(path) + os.sep for path in _libraries()})
        self.encrypted = True
        """Whether the present request is."""

    def __call__(self, event: str, given: tuple[Any, ...]) -> None:
        """Raise PermissionError for what is not allowed; the signature is that of an audit hook."""
        if event == "socket.connect":
            self._judge(given[1])
        elif event == "open":
            self._judge_file(*given)
        elif event in _REFUSED:
            raise PermissionError(f"{event} is not allowed here")

    def _judge(self, target: object) -> None:
        host = target[0] if isinstance(target, tuple) and target else None
        address = address_of(host) if isinstance(host, str) else None
        if address is None or address_refusal(Destination(self.encrypted, "", 0, ""), address, self._listed):
            raise PermissionError("nothing is sent to this address")

    def _judge_file(self, path: object, _mode: object, flags: int) -> None:
        if isinstance(path, int):
            return
        name = os.path.realpath(os.fsdecode(path))  # type: ignore[arg-type]
        if flags & _WRITES or not name.startswith(self._readable):
            raise PermissionError("this file is not for messages")


def _libraries() -> list[str]:
    """The folders of Python's own files and of its packages, from which modules may still be loaded."""
    import apprise
    import certifi
    import requests

    paths = sysconfig.get_paths()
    packages = [os.path.dirname(os.path.dirname(str(each.__file__))) for each in (apprise, certifi, requests)]
    return [paths["stdlib"], paths["platstdlib"], paths["purelib"], paths["platlib"], *packages]


def _bundle() -> str:
    """The certificates that the system trusts, which webhooks trust too; else those of the libraries."""
    import certifi

    known = ssl.get_default_verify_paths()
    return known.cafile or known.capath or certifi.where()


def _guard_requests(guard: Guard, outcome: Outcome, seconds: float) -> None:
    """Have every request verify certificates, follow no redirect, use no proxy, and read a bounded answer."""
    import requests

    usual, bundle = requests.Session.send, _bundle()

    def send(session: requests.Session, request: requests.PreparedRequest, **kwargs: Any) -> requests.Response:
        guard.encrypted = (request.url or "").lower().startswith("https://")
        session.trust_env = False
        kwargs |= {"verify": bundle, "proxies": {}, "allow_redirects": False, "stream": True, "timeout": seconds}
        answer = usual(session, request, **kwargs)
        outcome.status = answer.status_code
        content = b""
        for chunk in answer.iter_content(16 * 1024):
            content += chunk
            if len(content) > _MOST_ANSWER:
                answer.close()
                raise requests.exceptions.ContentDecodingError("the answer is too long")
        answer._content = content
        return answer

    requests.Session.send = send  # type: ignore[method-assign, assignment]


def send(request: Request) -> Outcome:
    """Send a message; the process can do nothing else afterwards."""
    import apprise

    asset = apprise.AppriseAsset(
        app_id="Corral", async_mode=False, storage_mode="memory", allow_templates=False, secure_logging=True
    )
    outcome = Outcome()
    guard = Guard(read_networks(",".join(request.listed)))
    _guard_requests(guard, outcome, request.seconds)
    services = apprise.Apprise(asset=asset)
    sys.addaudithook(guard)
    service = apprise.Apprise.instantiate(request.address, asset=asset)
    if service is None:
        outcome.known = False
        return outcome
    services.add(service)
    outcome.sent = bool(services.notify(body=request.text, title=request.subject, body_format="text"))
    return outcome


def main() -> None:
    """Read the request, send the message, and say what came of it."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a dump would hold the address
    request = msgspec.json.decode(sys.stdin.buffer.read(_MOST_REQUEST), type=Request)
    answer, sys.stdout = sys.stdout, sys.stderr  # what libraries print is no answer
    answer.buffer.write(msgspec.json.encode(send(request)))
    answer.flush()


if __name__ == "__main__":
    main()
