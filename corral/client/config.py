"""The stored sign-ins of a user, in one private file; environment variables override it."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from corral.kernel.errors import InvalidInput, Unauthenticated

DEFAULT_URL = "http://127.0.0.1:8470"


class Context(NamedTuple):
    """A server, and the token and user for it; `ca` is a file of certificates to trust besides the system's."""

    url: str
    token: str = ""
    user: str = ""
    ca: str = ""


def config_path() -> Path:
    """Return the file's path: `$CORRAL_CONFIG`, else `corral/config.json` in the user's configuration folder."""
    named = os.environ.get("CORRAL_CONFIG")
    if named:
        return Path(named)
    base = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return Path(base, "corral", "config.json")


def load() -> dict[str, Any]:
    """Return the content of the file; empty if it does not exist.

    Raises InvalidInput when it cannot be read.
    """
    path = config_path()
    try:
        data = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {"current": "", "contexts": {}}
    except (OSError, ValueError) as error:
        raise InvalidInput("unreadable-config", f"{path} cannot be read ({error}); repair or remove it.") from None
    if not isinstance(data, dict) or not isinstance(data.get("contexts", {}), dict):
        raise InvalidInput("unreadable-config", f"{path} is not a Corral configuration; repair or remove it.")
    data.setdefault("current", "")
    data.setdefault("contexts", {})
    return data


def current() -> Context:
    """Return the current server and token; CORRAL_URL and CORRAL_TOKEN take precedence over the file."""
    url = os.environ.get("CORRAL_URL", "")
    data = load()
    contexts = data["contexts"]
    stored = contexts.get(data["current"], {})
    if url:
        stored = next((each for each in contexts.values() if same_server(each.get("url", ""), url)), {})
    return Context(
        url=(url or stored.get("url", "") or DEFAULT_URL).rstrip("/"),
        token=os.environ.get("CORRAL_TOKEN", "") or stored.get("token", ""),
        user=stored.get("user", ""),
        ca=os.environ.get("CORRAL_CA", "") or stored.get("ca", ""),
    )


def remember(context: Context, name: str = "") -> str:
    """Store a context and make it the current one; it is named `name`, or else by the server's address."""
    with _changed() as data:
        name = name or context.url.partition("://")[2]
        data["contexts"][name] = {field: value for field, value in context._asdict().items() if value}
        data["current"] = name
    return name


def forget(url: str) -> None:
    """Remove the token of the server at `url`."""
    with _changed() as data:
        for stored in data["contexts"].values():
            if same_server(stored.get("url", ""), url):
                stored.pop("token", None)


def require_token(context: Context) -> str:
    """Return the token of a context.

    Raises Unauthenticated without one.
    """
    if not context.token:
        message = f"You are not signed in to {context.url}; run: corral login LINK (corral up prints one)."
        raise Unauthenticated("not-signed-in", message)
    return context.token


def same_server(one: str, other: str) -> bool:
    """Return whether two URLs are those of the same server."""
    return one.rstrip("/").lower() == other.rstrip("/").lower()


@contextlib.contextmanager
def _changed() -> Iterator[dict[str, Any]]:
    """Yield the file's data, then write it back atomically with mode 0600."""
    data = load()
    yield data
    path = config_path()
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".config-")
    try:
        with os.fdopen(handle, "w") as file:
            json.dump(data, file, indent=2)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
