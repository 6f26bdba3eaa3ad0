"""People add, verify, change and remove their channels; addresses and keys stay sealed, and nobody is flooded."""

from __future__ import annotations

from typing import Any

import pytest

from corral.kernel.clock import VirtualClock
from corral.kernel.errors import Conflict, Forbidden, InvalidInput, NotFound, TooManyRequests
from corral.model.notifications.channels import KINDS_HERE, NETWORKS_HERE
from corral.model.notifications.signatures import verification_code
from corral.service.actor import Actor
from corral.service.service import Service
from corral.store import Store
from tests.service.conftest import ANN, BOB, KEY

HOOK = "https://hooks.example.org/services/T0/s3cret?token=t0ken"


@pytest.fixture(autouse=True)
async def kinds(store: Store) -> None:
    await store.put_setting(KINDS_HERE, ["mail", "webhook", "slack", "teams", "apprise"])


async def code_of(store: Store, user: str = "ann") -> str:
    (channel, *_) = await store.channels_of([user])
    return verification_code(KEY, channel.id, channel.code_at)


async def test_a_channel_is_verified_by_the_code_that_it_was_sent(service: Service, store: Store) -> None:
    made = await service.notifications.add(ANN, "me", "mail", "ann@example.org", events=["failed"], waiting=3600)
    assert (made.verified, made.address, made.signing_key) == (False, "ann@example.org", "")
    with pytest.raises(Conflict, match="me is not verified"):
        await service.notifications.test(ANN, "me")
    with pytest.raises(InvalidInput, match="not the code; 4 tries are left"):
        await service.notifications.verify(ANN, "me", "AAAA-AAAA")
    found = await service.notifications.verify(ANN, "me", (await code_of(store)).lower())
    assert found.verified and await service.notifications.all(ANN) == [found]
    await service.notifications.test(ANN, "me")
    history = (await service.notifications.history(ANN)).items
    assert [(each.event, each.state) for each in history] == [("test", "queued"), ("code", "queued")]
    assert (await service.notifications.history(BOB)).items == [] and await service.notifications.all(BOB) == []


async def test_the_url_of_a_webhook_is_sealed_and_told_nobody(service: Service, store: Store) -> None:
    made = await service.notifications.add(ANN, "hook", "webhook", HOOK)
    assert made.address == "https://hooks.example.org/…" and made.signing_key.startswith("whsec_")
    await service.notifications.verify(ANN, "hook", await code_of(store))
    await service.notifications.change(ANN, "hook", events=["started"])
    audit = (await store.audit()).items
    assert {line.action for line in audit} == {"notification.change"}
    told = repr(await service.notifications.all(ANN)) + repr(await service.notifications.history(ANN)) + repr(audit)
    (channel,) = await store.channels_of(["ann"])
    stored = await store.secrets("notify:ann")
    assert set(stored) == {channel.id, f"{channel.id}:key"}
    for secret in ("s3cret", "t0ken", made.signing_key):
        assert secret not in told + repr(channel) + repr(stored)
    assert await service.secrets.names(ANN) == []


async def test_the_address_of_a_service_is_sealed_and_only_its_scheme_is_told(service: Service, store: Store) -> None:
    made = await service.notifications.add(ANN, "phone", "apprise", "tgram://123:s3cret/t0ken")
    assert (made.address, made.signing_key, made.verified) == ("tgram://…", "", False)
    audit = (await store.audit()).items
    told = repr(await service.notifications.all(ANN)) + repr(await service.notifications.history(ANN)) + repr(audit)
    (channel,) = await store.channels_of(["ann"])
    stored = await store.secrets("notify:ann")
    assert set(stored) == {channel.id}
    for secret in ("s3cret", "t0ken"):
        assert secret not in told + repr(channel) + repr(stored)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"name": "a b"}, "A channel's name has"),
        ({"kind": "pigeon"}, "not 'pigeon'"),
        ({"kind": "mail", "address": ""}, "needs an address"),
        ({"kind": "mail", "address": "nowhere"}, "nowhere is not a mail address"),
        ({"address": "ftp://x.org/s3cret"}, "must begin with https://"),
        ({"address": "https://u:s3cret@x.org/"}, "must not hold a user or a password"),
        ({"address": "https://10.0.0.1/s3cret"}, "Nothing is sent to 10.0.0.1: 10.0.0.1 is a private or special"),
        ({"address": "https://[::ffff:169.254.169.254]/s3cret"}, "::ffff:a9fe:a9fe is a private or special address"),
        ({"address": "https://localhost/s3cret"}, "Nothing is sent to localhost: 127.0.0.1 is a private"),
        ({"address": "https://127.1/s3cret"}, "no valid host and port"),
        ({"address": "https://0x7f000001/s3cret"}, "no valid host and port"),
        ({"address": "https://10.0.0.1./s3cret"}, "no valid host and port"),
        ({"address": "http://hooks.example.org/s3cret"}, "must begin with https:// outside the networks"),
        ({"kind": "apprise", "address": "json://example.org/s3cret"}, "begin with the scheme of a service"),
        ({"kind": "apprise", "address": "ntfys://10.0.0.1/s3cret"}, "10.0.0.1 is a private or special"),
        ({"kind": "apprise", "address": "ntfy://ntfy.example.org/s3cret"}, "must begin with ntfys://"),
        ({"events": ["exploded"]}, "'exploded' is none of started"),
        ({"waiting": 59}, "after 60 to"),
        ({"jobs": ""}, "1 to 200 characters"),
    ],
)
async def test_a_bad_channel_is_refused_in_one_sentence(service: Service, given: dict[str, Any], said: str) -> None:
    fields: dict[str, Any] = {"name": "hook", "kind": "webhook", "address": HOOK} | given
    name, kind, address = (fields.pop(each) for each in ("name", "kind", "address"))
    with pytest.raises(InvalidInput, match=said) as refused:
        await service.notifications.add(ANN, name, kind, address, **fields)
    assert "s3cret" not in refused.value.message


async def test_addresses_in_listed_networks_are_stored_and_names_are_not_resolved(
    service: Service, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.put_setting(NETWORKS_HERE, ["10.20.0.0/16"])
    monkeypatch.setattr("socket.getaddrinfo", lambda *_: pytest.fail("a name was resolved"))
    for name, url in (("listed", "http://10.20.0.1/x"), ("plain", "http://inner.example/x"), ("name", HOOK)):
        await service.notifications.add(ANN, name, "webhook", url)
    with pytest.raises(InvalidInput, match=r"10\.21\.0\.1 is a private or special address"):
        await service.notifications.add(ANN, "other", "webhook", "https://10.21.0.1/x")


async def test_a_server_without_mail_or_a_library_says_so(service: Service, store: Store) -> None:
    await store.put_setting(KINDS_HERE, ["webhook"])
    with pytest.raises(Conflict, match=r"pip install 'corral\[notify\]'"):
        await service.notifications.add(ANN, "phone", "apprise", "tgram://1:x/y")
    with pytest.raises(Conflict, match=r"no mail server \(CORRAL_MAIL_SERVER\)"):
        await service.notifications.add(ANN, "me", "mail", "ann@example.org")


async def test_nobody_touches_the_channels_of_another(service: Service) -> None:
    await service.notifications.add(ANN, "me", "mail", "ann@example.org")
    for call in (
        service.notifications.remove(BOB, "me"),
        service.notifications.test(BOB, "me"),
        service.notifications.verify(BOB, "me", "A"),
        service.notifications.send_code(BOB, "me"),
        service.notifications.change(BOB, "me", events=[]),
    ):
        with pytest.raises(NotFound, match="no channel me of yours"):
            await call
    for actor in (Actor("ann", kind="application", token_id="t"), Actor("ann", "job", kind="job", job="1a")):
        with pytest.raises(Forbidden):
            await service.notifications.add(actor, "other", "mail", "x@example.org")
        with pytest.raises(Forbidden):
            await service.notifications.all(actor)


async def test_codes_and_tests_are_bounded_whatever_is_removed(
    service: Service, store: Store, clock: VirtualClock
) -> None:
    for number in range(20):
        await service.notifications.add(ANN, f"n{number}", "mail", "victim@example.org")
        await service.notifications.remove(ANN, f"n{number}")
    with pytest.raises(TooManyRequests, match="20 codes in a day were sent already"):
        await service.notifications.add(ANN, "more", "mail", "victim@example.org")
    clock.advance(86_401)
    await service.notifications.add(ANN, "me", "mail", "ann@example.org")
    clock.advance(1)
    await service.notifications.send_code(ANN, "me")
    await service.notifications.verify(ANN, "me", await code_of(store))
    for _ in range(20):
        await service.notifications.test(ANN, "me")
    with pytest.raises(TooManyRequests, match="20 test messages in an hour"):
        await service.notifications.test(ANN, "me")


async def test_preferences_are_changed_field_by_field(service: Service) -> None:
    await service.notifications.add(ANN, "me", "mail", "ann@example.org", jobs="train-*")
    found = await service.notifications.change(ANN, "me", waiting=600)
    assert (found.events, found.waiting_seconds, found.jobs) == (("preempted", "idle", "hung", "ended"), 600, "train-*")
    found = await service.notifications.change(ANN, "me", events=(), jobs="*")
    assert (found.events, found.waiting_seconds, found.jobs) == ((), 600, "*")
