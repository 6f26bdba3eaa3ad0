"""The end of `corral deploy up`: the portal's address, its certificate, and a one-time sign-in link."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from corral.cli.output import say
from corral.kernel.errors import CorralError

if TYPE_CHECKING:
    from corral.deploy.checks.report import Survey
    from corral.deploy.hosts.reader import Host, Hosts
    from corral.deploy.remote.ssh import Ssh
    from corral.deploy.steps.outcome import Outcome
    from corral.deploy.steps.step import HostPlan


@dataclass(frozen=True, slots=True)
class ServedPortal:
    """The portal of a cluster in which Corral is installed."""

    url: str
    certificate: str
    """Its chain (PEM)."""
    own: bool
    """Whether `up` made that certificate, so that no browser trusts it yet."""
    head: Host
    namespace: str

    async def link(self, ssh: Ssh) -> str:
        """A one-time sign-in link while no administrator has signed in, or "" after telling why there is none."""
        from corral.deploy.remote.portal import first_link

        try:
            return await first_link(ssh, self.head, self.namespace)
        except CorralError as error:
            say(error.message)
            return ""

    def to_document(self) -> dict[str, Any]:
        """For programs: a sign-in link is shown to people alone."""
        from corral.kernel.certificate import fingerprint

        return {"url": self.url, "certificate": {"sha256": fingerprint(self.certificate), "own": self.own}}

    def show(self, list_path: Path, link: str) -> None:
        """Print its address and the one-time link, if there is one."""
        from corral.kernel.certificate import fingerprint

        click.echo(f"Portal: {self.url}")
        if self.own:
            beside = list_path.with_name(f"{list_path.stem}.portal.pem")
            _write(beside, self.certificate)
            click.echo(f"Its certificate is its own, SHA-256 {fingerprint(self.certificate)}")
            click.echo(f"For the command line: corral login --ca {beside} {self.url}")
        if link:
            click.echo(f"Sign in once, within 15 minutes: {link}")


def with_certificate(hosts: Hosts, path: Path) -> Hosts:
    """The hosts with the portal's chain, if the list gives one that has its key. Raises CorralError."""
    from corral.deploy.remote.portal import chain_at, portal_text
    from corral.deploy.steps.step import Portal

    chosen = hosts.corral
    if chosen is None or not chosen.certificate or not chosen.key:
        return hosts
    folder = path.absolute().parent
    portal_text(Portal("", chosen.certificate, chosen.key), folder)
    return replace(hosts, certificate=chain_at(folder / Path(chosen.certificate).expanduser()))


def portal_of(
    hosts: Hosts, survey: Survey, plans: Mapping[str, HostPlan], outcomes: Mapping[str, Outcome]
) -> ServedPortal | None:
    """The portal, once the first control plane was asked for and has Corral as the list asks for it."""
    from corral.deploy.steps import files
    from corral.deploy.steps.installation import installation_of
    from corral.deploy.steps.plan import first_plane

    facts = {name: seen.facts for name, seen in survey.seen.items()}
    first = first_plane(hosts, facts)
    asked, head = installation_of(hosts, first, facts), hosts.named(first)
    if asked is None or head is None or first not in plans or outcomes[first].state != "prepared":
        return None
    # Another control plane than the first one has no certificate of the portal.
    if plans[first].changes or files.CERTIFICATE_FILE not in facts[first].files:
        return None
    text = facts[first].files[files.CERTIFICATE_FILE].decode(errors="replace")
    certificate = text[text.index("-----BEGIN") :]
    return ServedPortal(asked.url, certificate, not asked.chosen.certificate, head, asked.chosen.namespace)


def _write(path: Path, text: str) -> None:
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        beside.write_text(text, encoding="utf-8")
        beside.replace(path)
    except OSError as error:
        say(f"{path} cannot be written: {error.strerror}.")
    finally:
        beside.unlink(missing_ok=True)
