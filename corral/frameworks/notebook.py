"""The framework `notebook`: gives a server such as JupyterLab its address, path and token."""

from __future__ import annotations

from typing import Final

from corral.frameworks.base import Framework, Gang
from corral.frameworks.references import port_of, secret
from corral.model.placement import TaskPlacement

PORT: Final = "notebook"
PURPOSE: Final = "notebook"
"""The purpose of the secret that is the token; the server derives the same one for users who may open the job."""


def base_url(job_id: str, task: str) -> str:
    """The URL path of a task's notebook; a proxy can pass requests on unchanged."""
    return f"/proxy/{job_id}/{task}/{PORT}/"


class Notebook(Framework):
    """`jobType: notebook`: JupyterLab, or the role's own command with the same address, path and token available."""

    job_type = "notebook"

    def ports(self, gang: Gang, task: TaskPlacement) -> tuple[str, ...]:
        """The notebook's port."""
        return (PORT,)

    def env(self, gang: Gang, task: TaskPlacement) -> dict[str, str]:
        """The token, which Jupyter reads from its environment, and the path."""
        return {
            "JUPYTER_TOKEN": secret(PURPOSE),
            "CORRAL_NOTEBOOK_URL": base_url(gang.job_id, str(task.key)),
        }

    def notebook(self, gang: Gang, task: TaskPlacement) -> str:
        """The path of its server."""
        return base_url(gang.job_id, str(task.key))

    def command(self, gang: Gang, task: TaskPlacement) -> tuple[str, ...]:
        """The role's own command, or JupyterLab on loopback, to which every engine connects browsers."""
        return super().command(gang, task) or (
            "jupyter",
            "lab",
            "--no-browser",
            "--allow-root",
            "--ServerApp.ip=127.0.0.1",
            f"--ServerApp.port={port_of(task.key, PORT)}",
            "--ServerApp.port_retries=0",
            f"--ServerApp.base_url={base_url(gang.job_id, str(task.key))}",
            "--ServerApp.root_dir=.",
        )
