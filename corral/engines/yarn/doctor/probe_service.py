"""Run one small service: whether YARN starts containers, whether they have Python, and whether they reach the server."""

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
from corral.engines.yarn.settings import YarnSettings
from corral.kernel.errors import CorralError, NotFound

_SECONDS: Final = 90.0
"""Seconds for which the service may take to end."""
_LOOK_SECONDS: Final = 0.5
_FOUND: Final = ("python", "server")
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
    """Run the service on `options.node`, or where YARN likes, and yield findings."""
    name = f"corral-doctor-{secrets.token_hex(4)}"
    folder = f"/webhdfs/v1{quote(settings.folder)}/{name}"
    try:
        script = _SCRIPT.replace("URL", shlex.quote(options.url.rstrip("/")))
        await files.put_file(f"{folder}/probe.sh", script.encode(), permission="644", overwrite="true")
        await yarn.ask("POST", "/app/v1/services", body=_service(name, settings, options))
        try:
            state, diagnostics = await _ended(yarn, name)
        finally:
            with contextlib.suppress(NotFound):
                await yarn.ask("DELETE", f"/app/v1/services/{name}")
            await files.ask("DELETE", folder, op="DELETE", recursive="true")
    except CorralError as error:
        yield Finding("container", "bad", error.message)
        return
    yield _judged(state, diagnostics, options)


def _judged(state: str, diagnostics: str, options: DoctorOptions) -> Finding:
    """The finding for the service's end; `state` is "" when it did not end in time."""
    if state == "SUCCEEDED":
        reached = f", and reaches {options.url}" if options.url else ""
        return Finding("container", "good", f"YARN starts one, which has Python{reached}")
    if not state:
        message = f"YARN gave none in {_SECONDS:.0f} s: is the queue full, or a node attribute wrong?"
        return Finding("container", "bad", f"{message} {diagnostics[:200]}".strip())
    failed = [each for each in _FOUND if f"{each}-0" in diagnostics]
    if failed == ["server"]:
        return Finding(
            "container", "bad", f"a container does not reach {options.url}; --advertise must name a URL it can"
        )
    if "python" in failed:
        return Finding("container", "bad", "a container has no Python 3.8 or later, which Corral needs on the nodes")
    return Finding("container", "bad", f"the service ended as {state}: {diagnostics[:300]}")


def _service(name: str, settings: YarnSettings, options: DoctorOptions) -> dict[str, Any]:
    wanted = ("python", "server") if options.url else ("python",)
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
    return {
        "name": name,
        "version": "1",
        "queue": settings.queue,
        "lifetime": 600,
        "configuration": {"files": [given]},
        "components": [
            {
                "name": each,
                "number_of_containers": 1,
                "restart_policy": "NEVER",
                "launch_command": f"exec sh probe.sh {each}",
                "resource": {"cpus": 1, "memory": "64"},
                **({"placement_policy": place} if options.node else {}),
            }
            for each in wanted
        ],
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
