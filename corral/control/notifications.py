"""Tell people of their jobs from this control: the jobs that wait, the keys of channels, and the notifier's settings."""

from __future__ import annotations

import contextlib
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from corral.kernel.errors import CorralError, InvalidInput, NotFound
from corral.model.notifications.channels import (
    ALERTMANAGER,
    KEY_SUFFIX,
    KINDS_HERE,
    NETWORKS_HERE,
    Channel,
    ChannelKind,
)
from corral.model.notifications.destinations import Network, read_networks
from corral.model.notifications.wishes import wishes_of
from corral.monitor.notifications.http_post import Poster
from corral.monitor.notifications.notifier import Notifier, Waiting
from corral.monitor.notifications.sender import Sender
from corral.monitor.notifications.services import Services, is_installed
from corral.service.secret_box import SecretBox
from corral.store.notification_outbox import CURSOR

if TYPE_CHECKING:
    from corral.control.core.world import World
    from corral.control.loop import Control
    from corral.monitor.mail import Mailer
    from corral.store import Store


def notifier_of(
    control: Control,
    *,
    key: bytes,
    secret_box: SecretBox,
    mailer: Mailer | None = None,
    listed: Sequence[Network] = (),
    url: str = "",
    poster: Poster | None = None,
    receivers: Mapping[str, str] | None = None,
) -> Notifier:
    """The notifier beside a control; `listed` are private networks that may be sent to, `url` is this server's.

    `receivers` are the addresses of receivers of alerts by their names.
    """
    store = control.store

    async def opened(channel: Channel) -> tuple[str, str]:
        if channel.kind == ALERTMANAGER:
            return _receiver(receivers or {}, channel.name), ""
        return await open_channel(store, secret_box, channel)

    sender = Sender(
        clock=control.clock,
        key=key,
        poster=poster or Poster(listed),
        services=Services(listed),
        mailer=mailer,
        open_channel=opened,
        url=url,
    )
    return Notifier(
        store,
        sender,
        control.clock,
        cursor=CURSOR,
        waiting=lambda: waiting_jobs(control.world) if control.world_is_whole else (),
        wishes_of=wishes_of,
    )


def notify(
    control: Control,
    key: bytes,
    mailer: Mailer | None,
    *,
    private: str = "",
    url: str = "",
    receivers: Mapping[str, str] | None = None,
) -> Coroutine[Any, Any, None]:
    """Notify until cancelled; `private` is the setting `notify_private`, `receivers` are those of alerts.

    Raises InvalidInput at once if that is no list of networks.
    """
    try:
        listed = read_networks(private)
    except ValueError as error:
        raise InvalidInput("invalid-setting", f"notify_private cannot be read: {error}.") from None
    notifier = notifier_of(
        control, key=key, secret_box=SecretBox(key), mailer=mailer, listed=listed, url=url, receivers=receivers
    )
    return run_notifier(control, notifier, mail=mailer is not None, listed=listed)


def _receiver(receivers: Mapping[str, str], name: str) -> str:
    if name not in receivers:
        raise InvalidInput("no-such-receiver", f"The file of alert actions has no webhook {name} any more.")
    return receivers[name]


async def run_notifier(control: Control, notifier: Notifier, *, mail: bool, listed: Sequence[Network] = ()) -> None:
    """Store which kinds of channels there are and which networks are `listed`, and notify until cancelled."""
    await control.ready.wait()
    missing = set() if mail else {ChannelKind.MAIL}
    missing |= set() if is_installed() else {ChannelKind.APPRISE}
    kinds = [str(kind) for kind in ChannelKind if kind not in missing]
    with contextlib.suppress(CorralError):  # mail is then refused until the next start
        await control.store.put_setting(KINDS_HERE, kinds)
        await control.store.put_setting(NETWORKS_HERE, list(map(str, listed)))
    await notifier.run(control.ready)


def mailer_of(server: str, sender: str, password_file: Path | None) -> Mailer | None:
    """The client of the mail server; None without one.

    Raises InvalidInput for unusable settings.
    """
    if not server:
        return None
    from corral.monitor.mail import SmtpMailer

    try:
        password = password_file.read_text().strip() if password_file else ""
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput("invalid-setting", f"mail_password_file cannot be read: {error}.") from None
    return SmtpMailer(server, sender, password=password)


async def open_channel(store: Store, secret_box: SecretBox, channel: Channel) -> tuple[str, str]:
    """The address of a channel, and its signing key or "".

    Raises NotFound if the channel was removed, Conflict if it was sealed with another key.
    """
    sealed = await store.secrets(channel.owner)
    names = (channel.id, channel.id + KEY_SUFFIX)
    if channel.id not in sealed:
        raise NotFound("channel-not-found", "The channel was removed.")
    address, key = (secret_box.open(channel.owner, name, sealed[name]) if name in sealed else "" for name in names)
    return address, key


def waiting_jobs(world: World) -> Iterator[Waiting]:
    """The jobs that wait, each with the reason that the scheduler gives."""
    for job in world.jobs.values():
        since = job.run.waits_since
        if since is None:
            continue
        reason = "" if job.reasons is None else world.in_names(job.reasons.binding.message, job.id)
        yield Waiting(job.id, job.summary.name, job.user, job.terms.queue, since, reason, job.text)
