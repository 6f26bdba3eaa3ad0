"""A task that serves a page, VS Code and TensorBoard, and a browser that opens each of them by its button."""

from __future__ import annotations

import base64
import shlex
import time
from typing import Final

from tests.endtoend import opened_services
from tests.endtoend.platform import Job, Platform
from tests.portal.service_pages import (
    opened,
    place,
    runs,
    shows_a_folder_to_edit,
    shows_a_page_whose_socket_echoes,
    signed_in,
)
from tests.runtime.event_files.encoder import NAME, scalars
from tests.testbeds.vscode import packages

PORTS: Final = [{"name": "web"}, {"name": "editor"}, {"name": "board"}]
"""The ports of the task: TensorBoard listens at the last one."""
RUN: Final = "nightly"
"""The run of which TensorBoard has a curve."""
_FILE: Final = "train.py"


def command(python: str, *, folder: str, written: str, node: str = "") -> list[str]:
    """The command of such a task: it works in `folder` and writes events below `written`.

    `node` is where the task finds Node, if not where it is here.
    """
    now = time.time()
    events = base64.b64encode(scalars((now - 40, "loss", 0.5), (now - 1, "loss", 0.25))).decode()
    script = f"""set -e
written={written}
mkdir -p {folder}/work $written/{RUN}
echo {events} | base64 -d > $written/{RUN}/{NAME}
cd {folder}
echo 'loss = 1.0' > work/{_FILE}
{packages.served("$PWD/work", "editor", node=node)} &
tensorboard --logdir $written --host 127.0.0.1 --port $CORRAL_PORT_BOARD &
exec {shlex.quote(python)} -c "$1"
"""
    return ["sh", "-c", script, "sh", opened_services.PROGRAM]


def are_opened_by_their_buttons(server: Platform, document: Job, *, keeps: bool) -> None:
    """Open the services of the task `main-0`, which runs `command`.

    If its job `keeps` the events where other jobs find them, TensorBoard is opened for the job by its own button, in a task
    beside it.
    """
    job = server.submit(document)
    name, ref = document["name"], job["id"]
    server.printed_running(job, "main-0", "serving")
    try:
        with signed_in(server) as window:
            page = window.new_page()
            web, editor, board = (opened(page, ref, port["name"]) for port in PORTS)
            shows_a_page_whose_socket_echoes(web, place(server, ref, "main-0", "web"))
            shows_a_folder_to_edit(editor, place(server, ref, "main-0", "editor"), _FILE)
            assert runs(board, 1) == [RUN]
            if keeps:
                page.get_by_role("button", name="TensorBoard").press("Enter")
                assert runs(page, 1) == [f"{name}-main/{RUN}"]
                server.client.stop(page.url.partition("/proxy/")[2].partition("/")[0])
    finally:
        print(server.log(job, "main-0"))
    server.client.stop(ref)
    assert server.ended(job)["state"] == "stopped"
