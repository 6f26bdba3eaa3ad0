"""Templates on the server of the portal's tests."""

from __future__ import annotations

from tests.portal.harness import Portal


def share_template(portal: Portal, name: str) -> None:
    """Share a template of a job with everybody."""
    item = {"type": "job", "name": name, "description": f"about {name}", "file": f"command: echo {name}\n"}
    portal.client.share_template(item)


def remove_templates(portal: Portal) -> None:
    """Remove all templates."""
    while items := portal.client.templates()["items"]:
        for each in items:
            portal.client.delete_template(each["type"], each["name"])
