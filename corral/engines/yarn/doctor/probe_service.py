"""Run small services: whether YARN starts containers, whether they have Python, and whether they reach the server."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import shlex
from collections.abc import AsyncIterator
from typing import Any, Final
from urllib.parse import quote

from corral.engines.kind import DoctorOptions, Finding
from corral.engines.yarn.hadoop_rest import HadoopRest
from corral.engines.yarn.service_spec import kerberos_of
from corral.engines.yarn.settings import YarnSettings
from corral.kernel.errors import CorralError, NotFound

_SECONDS: Final = 90.0
"""Seconds for which the service may take to end."""
_LOOK_SECONDS: Final = 0.5
_SCRIPT: Final = """\
for python in python3 python; do
  command -v "$python" >/dev/null && break
done
command -v "$python" >/dev/null || exit 1
case "$1" in
python) exec "$python" -c 'import sys; sys.exit(sys.version_info < (3, 8))' ;;
server) exec "$python" -c 'import sys, urllib.request; urllib.request.urlopen(sys.argv[1], timeout=10)' URL/healthz ;;
esac
"""


async def probe(
    yarn: HadoopRest, files: HadoopRest, settings: YarnSettings, options: DoctorOptions
) -> AsyncIterator[Finding]:
    """Run the services on `options.node`, or where YARN likes, and yield the finding.

    Each question is a service of its own, because YARN tells no exit code of a service's containers.
    """
    for part in ("python", "server") if options.url else ("python",):
        try:
            state, diagnostics = await _run(part, yarn, files, settings, options)
        except CorralError as error:
            yield Finding("container", "bad", error.message)
            return
        if state != "SUCCEEDED":
            yield Finding("container", "bad", _failed(part, state, diagnostics, options))
            return
    reached = f", and reaches {options.url}" if options.url else ""
    yield Finding("container", "good", f"YARN starts one, which has Python{reached}")


async def _run(
    part: str, yarn: HadoopRest, files: HadoopRest, settings: YarnSettings, options: DoctorOptions
) -> tuple[str, str]:
    """Run one service to its end; its final state and diagnostics, as `_ended`."""
    name = f"corral-doctor-{secrets.token_hex(4)}"
    folder = f"/webhdfs/v1{quote(settings.folder)}/{name}"
    script = _SCRIPT.replace("URL", shlex.quote(options.url.rstrip("/")))
    await files.put_file(f"{folder}/probe.sh", script.encode(), permission="644", overwrite="true")
    await yarn.ask("POST", "/app/v1/services", body=_service(name, part, settings, options))
    try:
        return await _ended(yarn, name)
    finally:
        with contextlib.suppress(NotFound):
            await yarn.ask("DELETE", f"/app/v1/services/{name}")
        await files.ask("DELETE", folder, op="DELETE", recursive="true")


def _failed(part: str, state: str, diagnostics: str, options: DoctorOptions) -> str:
    """The message for a service that did not succeed; `state` is "" when it did not end in time."""
    if not state:
        message = f"YARN gave none in {_SECONDS:.0f} s: is the queue full, or a node attribute wrong?"
    elif part == "server":
        message = f"a container does not reach {options.url}; --advertise must name a URL it can"
    else:
        message = "a container does not start, or has no Python 3.8 or later, which Corral needs on the nodes"
    return f"{message} {diagnostics[:200]}".strip()


def _service(name: str, part: str, settings: YarnSettings, options: DoctorOptions) -> dict[str, Any]:
    place = {
        "constraints": [
            {
                "name": "node",
                "type": "AFFINITY",
                "scope": "NODE",
                "node_attributes": {settings.attribute: [options.node.rpartition("/")[2]]},
            }
        ]
    }
    given = {"type": "STATIC", "src_file": f"{settings.folder}/{name}/probe.sh", "dest_file": "probe.sh"}
    component = {
        "name": part,
        "number_of_containers": 1,
        "restart_policy": "NEVER",
        "launch_command": f"exec sh probe.sh {part}",
        "resource": {"cpus": 1, "memory": "64"},
        **({"placement_policy": place} if options.node else {}),
    }
    return {
        "name": name,
        "version": "1",
        "queue": settings.queue,
        "lifetime": 600,
        **kerberos_of(settings, settings.user),
        "configuration": {"files": [given]},
        "components": [component],
    }


async def _ended(yarn: HadoopRest, name: str) -> tuple[str, str]:
    """The final state of the service's application with its diagnostics; "" when it does not end in time."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _SECONDS
    diagnostics = ""
    while loop.time() < deadline:
        answer = await yarn.ask("GET", "/ws/v1/cluster/apps", applicationTypes="yarn-service")
        apps = (answer.get("apps") or {}).get("app", [])
        for app in apps:
            if app.get("name") == name:
                diagnostics = str(app.get("diagnostics", ""))
                if app.get("finalStatus") != "UNDEFINED":
                    return str(app["finalStatus"]), diagnostics
        await asyncio.sleep(_LOOK_SECONDS)
    return "", diagnostics
