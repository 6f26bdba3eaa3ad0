"""Events of jobs become messages once, and messages are sent at least once, on real connections."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from corral.model.alerts.stored import StoredAlert
from corral.model.alerts.told import told_alert
from corral.model.notifications.channels import Outgoing
from corral.model.notifications.messages import about_alert
from corral.model.notifications.signatures import signature, verification_code
from corral.monitor.notifications import notifier as module
from corral.monitor.notifications.notifier import Notifier, Waiting
from corral.service.alerts.webhook import told_alerts
from tests.monitor.notifications.conftest import KEY, SIGNING, URL, World
from tests.reserved import free_port


async def begun(world: World) -> Notifier:
    """A notifier that has seen all that is there."""
    made = world.notifier()
    await world.run(made)
    return made


async def test_what_a_channel_asks_for_is_told_there_once(world: World) -> None:
    await world.add("hook", "webhook", "failed", "preempted")
    notifier = await begun(world)
    job = await world.job("train", queue="lab")
    await world.tell(job, "job.started")
    await world.tell(job, "job.preempted", "big (bea) took its devices", rule="priority")
    await world.tell(job, "job.completed", "the job failed: exit code 3", code=3)
    for _ in range(3):
        await world.run(notifier)
    bodies = [request.json for request in world.receiver.requests]
    assert [body["type"] for body in bodies] == ["job.preempted", "job.failed"]
    assert bodies[1]["subject"] == "Job ann~train failed" and bodies[1]["text"] == "The job failed: exit code 3."
    assert bodies[1]["job"] == {"id": job.id, "name": "train", "user": "ann", "queue": "lab"}
    assert bodies[1]["link"] == f"https://corral.example.org/jobs/{job.id}" and bodies[1]["data"] == {"exitCode": 3}


async def test_a_webhook_is_signed_and_names_each_message(world: World) -> None:
    await world.add("hook", "webhook", "failed")
    notifier = await begun(world)
    await world.tell(await world.job("train"), "job.completed", code=1)
    world.clock.advance(7.0)
    await world.run(notifier)
    (request,) = world.receiver.requests
    name, at = request.headers["webhook-id"], request.headers["webhook-timestamp"]
    assert name.startswith("msg_") and int(at) == int(world.clock.now())
    assert request.headers["webhook-signature"] == signature(SIGNING, name, int(at), request.body)


async def test_the_next_control_goes_on_where_the_last_one_ended(world: World) -> None:
    await world.add("hook", "webhook", "succeeded")
    first = await begun(world)
    one, two = await world.job("one"), await world.job("two")
    await world.tell(one, "job.completed", code=0)
    await world.run(first)
    await world.tell(two, "job.completed", code=0)
    await world.run(world.notifier())
    await world.run(first)
    names = [request.json["job"]["name"] for request in world.receiver.requests]
    assert names == ["one", "two"]


async def test_what_happened_before_a_channel_was_verified_is_not_told(world: World) -> None:
    notifier = await begun(world)
    await world.tell(await world.job("early"), "job.completed", code=1)
    await world.run(notifier)
    world.clock.advance(5.0)
    await world.add("hook", "webhook", "failed")
    await world.add("new", "webhook", "failed", verified_at=None)
    await world.run(notifier)
    world.clock.advance(5.0)
    await world.tell(await world.job("late"), "job.completed", code=1)
    await world.run(notifier)
    told = [request.json for request in world.receiver.requests]
    assert [body["type"] for body in told] == ["channel.code", "job.failed"]


async def test_people_are_told_of_their_own_jobs_alone(world: World) -> None:
    await world.add("hook", "webhook", "failed")
    await world.add("other", "webhook", "failed", user="bea", jobs="eval-*")
    notifier = await begun(world)
    for name, user in (("train", "ann"), ("train", "bea"), ("eval-1", "bea"), ("x", "cem")):
        await world.tell(await world.job(name, user=user), "job.completed", code=1)
    await world.run(notifier)
    told = sorted((body["job"]["user"], body["job"]["name"]) for body in (r.json for r in world.receiver.requests))
    assert told == [("ann", "train"), ("bea", "eval-1")]


async def test_a_jobs_file_decides_about_its_job(world: World) -> None:
    await world.add("hook", "webhook", "failed")
    notifier = await begun(world)
    quiet = '{"spec":{"notifications":{"events":[],"waitingSeconds":0,"channels":[],"quiet":true}}}'
    loud = '{"spec":{"notifications":{"events":["ended"],"waitingSeconds":0,"channels":["hook"],"quiet":false}}}'
    await world.tell(await world.job("quiet", doc=quiet), "job.completed", code=1)
    await world.tell(await world.job("loud", doc=loud), "job.completed", code=0)
    await world.run(notifier)
    assert [request.json["job"]["name"] for request in world.receiver.requests] == ["loud"]


async def test_mail_tells_several_things_together(world: World) -> None:
    await world.add("mail", "mail", "failed", "succeeded")
    notifier = await begun(world)
    for number in range(3):
        await world.tell(await world.job(f"job-{number}"), "job.completed", code=number)
    await world.run(notifier)
    (text,) = world.mail.messages
    assert "To: ann@example.org" in text and "Subject: 3 messages about jobs" in text
    assert [f"Job ann~job-{number}" in text for number in range(3)] == [True] * 3
    assert {state for _, state, _ in await world.states()} == {"sent"}


async def test_a_chat_gets_its_own_json(world: World) -> None:
    await world.add("slack", "slack", "failed")
    await world.add("teams", "teams", "failed")
    notifier = await begun(world)
    await world.tell(await world.job("train"), "job.completed", "the job failed", code=3)
    await world.run(notifier)
    slack, teams = sorted((request.json for request in world.receiver.requests), key=lambda body: "type" in body)
    assert slack["text"].startswith("Job ann~train failed.\nThe job failed.")
    assert teams["attachments"][0]["content"]["type"] == "AdaptiveCard"


async def test_receivers_of_alerts_get_what_an_alertmanager_would_send(world: World) -> None:
    """Corral's own door for an Alertmanager's webhook reads it."""
    now = world.clock.now()
    fires = StoredAlert("rules", "Hot", {"alertname": "Hot", "node_name": "n1"}, {"summary": "hot"}, "firing", now - 9)
    over = msgspec.structs.replace(
        fires, labels={**fires.labels, "node_name": "n2"}, state="resolved", fired_at=now - 5, resolved_at=now - 1
    )
    outgoing = [
        Outgoing(
            each.fingerprint, ":alerts", "alerts:pager", "pager", about_alert(each.labels, "hot", now, now, data=told)
        )
        for each in (fires, over)
        for told in [told_alert(each)]
    ]
    await world.store.queue_messages(outgoing, now)
    await world.run(world.notifier())
    (request,) = world.receiver.requests
    call = request.json
    assert (call["version"], call["receiver"], call["status"]) == ("4", "pager", "firing")
    assert call["commonLabels"] == {"alertname": "Hot"} and call["externalURL"] == URL
    read = told_alerts(request.body, now)
    assert [(each.labels["node_name"], each.state) for each in read] == [("n1", "firing"), ("n2", "resolved")]
    assert [each.since for each in read] == pytest.approx([now - 9, now - 5], abs=0.01)


async def test_a_code_reaches_the_address_that_is_to_be_verified(world: World) -> None:
    made = await world.add("mail", "mail", verified_at=None)
    await world.run(world.notifier())
    code = verification_code(KEY, made.id, made.code_at)
    (text,) = world.mail.messages
    assert f"{code[:4]}-{code[4:]}" in text and "Confirm the channel mail of ann" in text


async def test_a_mail_server_that_is_down_is_tried_again_and_then_given_up(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "TRIES", 3)
    await world.add("mail", "mail", "failed")
    notifier = await begun(world)
    world.mail.answer = "451 later"
    await world.tell(await world.job("train"), "job.completed", code=3)
    for tries in (1, 2):
        await world.run(notifier)
        (row,) = [each for each in (await world.store.messages_of("ann")).items if each.event == "failed"]
        assert (row.state, row.tries, row.error) == ("queued", tries, "The mail server refuses: 451 later")
        await world.run(notifier)
        world.clock.advance(30.0 * 2 ** (tries - 1))
    await world.run(notifier)
    (row,) = [each for each in (await world.store.messages_of("ann")).items if each.event == "failed"]
    assert row.state == "failed" and row.error == "Could not be sent in 3 tries. The mail server refuses: 451 later"


async def test_a_mail_server_that_comes_back_gets_what_was_queued(world: World) -> None:
    await world.add("mail", "mail", "failed")
    notifier = await begun(world)
    world.mail.answer = "451 later"
    for number in range(3):
        await world.tell(await world.job(f"job-{number}"), "job.completed", code=3)
    await world.run(notifier)
    world.mail.answer = "250 ok"
    world.mail.messages.clear()
    world.clock.advance(31.0)
    await world.run(notifier)
    assert len(world.mail.messages) == 1
    assert {state for _, state, _ in await world.states()} == {"sent"}


async def test_without_a_mail_server_the_history_says_so(world: World) -> None:
    await world.add("mail", "mail", "failed")
    notifier = world.notifier(mail=False)
    await world.run(notifier)
    await world.tell(await world.job("train"), "job.completed", code=3)
    await world.run(notifier)
    row = (await world.store.messages_of("ann")).items[0]
    assert row.state == "failed" and row.error == "This server has no mail server (CORRAL_MAIL_SERVER)."


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("https://10.0.0.1/hook", "Nothing is sent to 10.0.0.1: 10.0.0.1 is a private or special address"),
        ("https://[::ffff:169.254.169.254]/latest", "private or special address"),
        ("https://u:p@x.org/", "must not hold a user or a password"),
    ],
)
async def test_a_wrong_address_is_told_in_one_sentence_and_not_tried_again(
    world: World, address: str, said: str
) -> None:
    made = await world.add("hook", "webhook", "failed")
    world.addresses[made.id] = address
    notifier = await begun(world)
    await world.tell(await world.job("train"), "job.completed", code=3)
    await world.run(notifier)
    row = (await world.store.messages_of("ann")).items[0]
    assert (row.state, row.tries) == ("failed", 1) and said in row.error and row.error.endswith(".")


async def test_a_dead_webhook_holds_up_nobody_else_and_its_own_messages_wait(world: World) -> None:
    dead = await world.add("dead", "webhook", "failed")
    await world.add("hook", "webhook", "failed")
    world.addresses[dead.id] = f"http://127.0.0.1:{free_port()}/"
    notifier = await begun(world)
    for number in range(4):
        await world.tell(await world.job(f"job-{number}"), "job.completed", code=3)
    await world.run(notifier)
    assert len(world.receiver.requests) == 4
    rows = [each for each in (await world.store.messages_of("ann")).items if each.channel == "dead"]
    waits = [(each.state, each.tries) for each in rows if each.event == "failed"]
    assert sorted(waits) == [("queued", 0), ("queued", 0), ("queued", 0), ("queued", 1)]


async def test_a_message_that_is_a_day_old_is_given_up(world: World) -> None:
    await world.add("mail", "mail", "failed")
    notifier = await begun(world)
    world.mail.answer = "451 later"
    await world.tell(await world.job("train"), "job.completed", code=3)
    await world.run(notifier)
    world.mail.answer = "250 ok"
    world.clock.advance(86_401.0)
    await world.run(notifier)
    row = (await world.store.messages_of("ann")).items[0]
    assert (row.state, row.error) == ("failed", "Could not be sent within a day.")


async def test_a_kill_between_sending_and_noting_sends_once_more_with_the_same_id(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.add("hook", "webhook", "failed")
    notifier = await begun(world)
    await world.tell(await world.job("train"), "job.completed", code=3)

    async def killed(*_: Any, **__: Any) -> None:
        raise asyncio.CancelledError

    with monkeypatch.context() as dying:
        dying.setattr(world.store, "note_messages", killed)
        await notifier.look()
        with pytest.raises(asyncio.CancelledError):
            await notifier.settle()
    nextone = world.notifier()
    await world.run(nextone)
    assert len(world.receiver.requests) == 1
    world.clock.advance(31.0)
    await world.run(nextone)
    first, second = world.receiver.requests
    assert first.headers["webhook-id"] == second.headers["webhook-id"]
    assert (first.json["try"], second.json["try"]) == (1, 2)
    assert (await world.states())[-1] == ("Job ann~train failed", "sent", 2)


async def test_two_controls_at_once_send_one_message(world: World) -> None:
    await world.add("hook", "webhook", "failed")
    one, two = await begun(world), await begun(world)
    for number in range(5):
        await world.tell(await world.job(f"job-{number}"), "job.completed", code=3)
    await asyncio.gather(world.run(one), world.run(two))
    assert len(world.receiver.requests) == 5


async def test_a_long_wait_is_told_once_for_each_wait(world: World) -> None:
    await world.add("hook", "webhook", waiting=3600)
    await world.add("mail", "mail", "failed")
    notifier = await begun(world)
    since = world.clock.now()
    world.waiting = [Waiting("1a", "train", "ann", "lab", since, "2 devices are missing", "{}")]
    for _ in range(4):
        world.clock.advance(1200.0)
        await world.run(notifier)
        await world.run(world.notifier())
    (request,) = world.receiver.requests
    assert request.json["subject"] == "Job ann~train still waits after 1h"
    assert request.json["text"] == "It has waited 1h in the queue lab. 2 devices are missing."
    world.waiting = [Waiting("1a", "train", "ann", "lab", world.clock.now(), "", "{}")]
    world.clock.advance(3600.0)
    await world.run(notifier)
    assert len(world.receiver.requests) == 2 and world.mail.messages == []


async def test_a_jobs_file_says_how_long_it_may_wait(world: World) -> None:
    await world.add("hook", "webhook")
    notifier = await begun(world)
    doc = '{"spec":{"notifications":{"waitingSeconds":120}}}'
    world.waiting = [Waiting("1a", "train", "ann", "lab", world.clock.now(), "", doc)]
    world.clock.advance(119.0)
    await world.run(notifier)
    assert world.receiver.requests == []
    world.clock.advance(31.0)
    await world.run(notifier)
    assert len(world.receiver.requests) == 1


async def test_nothing_is_stored_where_nobody_is_told(world: World) -> None:
    notifier = await begun(world)
    for number in range(3):
        await world.tell(await world.job(f"job-{number}"), "job.completed", code=3)
    await world.run(notifier)
    assert await world.store.setting("notifications-seq") is None


async def test_a_look_reads_the_store_once_where_nobody_is_told(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    notifier = await begun(world)
    await world.add("code", "webhook", "failed", verified_at=None)  # the message with its code is due
    await world.run(notifier)
    await world.tell(await world.job("before"), "job.completed", code=3)
    reads: list[Any] = []
    read = world.store.read

    async def counted(*given: Any, **named: Any) -> Any:
        reads.append(given)
        return await read(*given, **named)

    with monkeypatch.context() as counting:
        counting.setattr(world.store, "read", counted)
        await world.run(notifier)
    assert len(reads) == 1
    await world.add("hook", "webhook", "failed")
    await world.tell(await world.job("after"), "job.completed", code=3)
    await world.run(notifier)
    subjects = [each for each, _, _ in await world.states()]
    assert subjects == ["Job ann~after failed"]


@pytest.mark.parametrize("broken", ["users_with_channels", "job_events", "due_messages", "last_seq"])
async def test_a_fault_of_the_store_ends_nothing(world: World, monkeypatch: pytest.MonkeyPatch, broken: str) -> None:
    await world.add("hook", "webhook", "failed")
    notifier, ready = world.notifier(), asyncio.Event()
    await world.run(notifier)
    await world.tell(await world.job("train"), "job.completed", code=3)
    monkeypatch.setattr(module, "EVERY_SECONDS", 0.01)
    works: Callable[..., Any] = getattr(world.store, broken)
    failures: list[str] = []

    async def faulty(*given: Any, **named: Any) -> Any:
        if len(failures) < 3:
            failures.append(broken)
            raise RuntimeError("the disk is on fire")
        return await works(*given, **named)

    monkeypatch.setattr(world.store, broken, faulty)
    ready.set()
    running = asyncio.create_task(notifier.run(ready))
    async with asyncio.timeout(60):
        await world.receiver.came.wait()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert len(failures) == 3
