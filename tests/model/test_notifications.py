"""What people are told of a job: happenings, receivers, words, signatures and codes."""

from __future__ import annotations

import base64
import hashlib
import hmac

import msgspec
import pytest

from corral.model.notifications.channels import Channel, Wishes, receivers
from corral.model.notifications.happenings import Happening, abbreviated, expanded, happening_of
from corral.model.notifications.messages import (
    about,
    about_code,
    about_wait,
    plain_text,
    slack_json,
    teams_json,
    webhook_json,
    with_code,
)
from corral.model.notifications.signatures import is_code, signature, signing_key, verification_code
from corral.model.notifications.wishes import wishes_of
from corral.spec.errors import SpecError
from corral.spec.job_reader import load_job

AT = 1_700_000_000.0
URL = "https://corral.example.org"


def channel(name: str = "mail", **fields: object) -> Channel:
    given = {"events": ("failed", "preempted"), "waiting": 3600, "verified_at": AT - 10}
    return Channel(f"id-{name}", "ada", name, "mail", "ada@example.org", **given | fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "message", "data", "told"),
    [
        ("job.started", "", {}, "started"),
        ("job.started", "", {"attempt": 0}, "started"),
        ("job.started", "", {"attempt": 1}, None),
        ("job.retried", "", {}, "retried"),
        ("job.preempted", "", {"rule": "priority"}, "preempted"),
        ("job.shrunk", "", {}, "preempted"),
        ("job.hung", "worker-2 is stopped.", {}, "hung"),
        ("job.hang-over", "It shows progress again.", {}, None),
        ("job.completed", "the job succeeded", {"code": 0}, "succeeded"),
        ("job.completed", "the job failed", {"code": 3}, "failed"),
        ("job.completed", "the job failed", {}, "failed"),
        ("job.completed", "the job was stopped", {"code": -1003}, "stopped"),
        ("job.completed", "the job ended", {"code": -210}, "stopped"),
        ("task.exited", "", {"code": 0}, None),
    ],
)
def test_stored_events_mean_what_people_are_told(
    kind: str, message: str, data: dict[str, int], told: str | None
) -> None:
    assert happening_of(kind, message, data) == told


def test_words_are_expanded_in_a_fixed_order_and_shortened_again() -> None:
    found = expanded(["ended", "started", "failed"])
    assert found == ("started", "succeeded", "failed", "stopped")
    assert abbreviated(found) == ("started", "ended")
    assert abbreviated(("failed",)) == ("failed",)
    with pytest.raises(ValueError, match="'waiting' is none of started"):
        expanded(["waiting"])


def test_channels_are_told_what_they_ask_for_once_they_are_verified() -> None:
    quiet = channel("new", verified_at=None)
    later = channel("later", verified_at=AT + 1)
    others = channel("others", jobs="eval-*")
    mail = channel()
    known = (quiet, later, others, mail)
    assert receivers(known, Happening.FAILED, "train-1", None, AT) == [mail]
    assert receivers(known, Happening.FAILED, "eval-1", None, AT) == [others, mail]
    assert receivers(known, Happening.SUCCEEDED, "train-1", None, AT) == []
    assert receivers(known, Happening.WAITING, "train-1", None, AT) == [mail]
    assert receivers((channel(waiting=0),), Happening.WAITING, "train-1", None, AT) == []


def test_a_jobs_own_file_replaces_the_preferences_of_channels() -> None:
    mail, chat = channel(), channel("chat", events=())
    known = (mail, chat)

    def told(happening: Happening, wishes: Wishes) -> list[str]:
        return [each.name for each in receivers(known, happening, "a", wishes, AT)]

    assert told(Happening.SUCCEEDED, Wishes(("succeeded",))) == ["mail", "chat"]
    assert told(Happening.FAILED, Wishes(("succeeded",))) == []
    assert told(Happening.SUCCEEDED, Wishes(("succeeded",), channels=("chat", "gone"))) == ["chat"]
    assert told(Happening.FAILED, Wishes((), channels=("mail", "chat"))) == ["mail"]
    assert told(Happening.FAILED, Wishes(())) == []
    assert told(Happening.WAITING, Wishes((), 60)) == ["mail", "chat"]
    assert Wishes((), 60).wait_of(mail) == 60 and Wishes(()).wait_of(mail) == 3600


JOB = "name: a\nroles: {worker: {command: 'true'}}\n"


@pytest.mark.parametrize(
    ("written", "wishes"),
    [
        ("", None),
        ("notifications: failed", Wishes(("failed",))),
        ("notifications: [ended, started]", Wishes(("started", "succeeded", "failed", "stopped"))),
        ("notifications: {waiting: 2h}", Wishes((), 7200)),
        ("notifications: {events: [retried], channels: [chat]}", Wishes(("retried",), 0, ("chat",))),
        ("notifications: {quiet: true, events: [failed]}", Wishes(())),
    ],
)
def test_a_job_file_says_what_its_owner_is_told(written: str, wishes: Wishes | None) -> None:
    assert wishes_of(load_job(JOB + written + "\n").to_json()) == wishes


@pytest.mark.parametrize(
    "text", ["", "{", '{"spec":{"notifications":7}}', '{"spec":{"notifications":{"events":["x"]}}}']
)
def test_a_document_that_cannot_be_read_asks_for_nothing(text: str) -> None:
    assert wishes_of(text) is None


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("notifications: {events: [waiting]}", "waiting"),
        ("notifications: {waiting: 2h, waitingSeconds: 7200}", "one of the two"),
        ("notifications: {waiting: soon}", "soon"),
    ],
)
def test_a_job_file_that_asks_for_nonsense_is_refused(written: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        load_job(JOB + written + "\n")


def failed(name: str = "train", reason: str = "the job failed: exit code 3") -> object:
    return about(Happening.FAILED, AT, reason, job="1abc", name=name, user="ada", queue="lab", code=3)


def test_a_message_names_the_job_what_happened_why_and_where_to_look() -> None:
    subject, text = plain_text([failed()], URL + "/")  # type: ignore[list-item]
    assert subject == "Job ada~train failed"
    assert text == (
        "Job ada~train failed.\nThe job failed: exit code 3.\nhttps://corral.example.org/jobs/1abc\n"
        "(2023-11-14T22:13:20.000Z)\n"
    )
    waits = about_wait(AT - 7261, AT, "2 devices are missing", job="1abc", name="t", user="ada", queue="lab")
    assert waits.subject == "Job ada~t still waits after 2h1m"
    assert waits.text == "It has waited 2h1m in the queue lab. 2 devices are missing."
    assert plain_text([failed(), waits], "")[0] == "2 messages about jobs"  # type: ignore[list-item]


def test_a_webhook_gets_the_facts_as_json() -> None:
    assert webhook_json(failed(), URL, number=2) == {  # type: ignore[arg-type]
        "type": "job.failed",
        "timestamp": "2023-11-14T22:13:20.000Z",
        "try": 2,
        "subject": "Job ada~train failed",
        "text": "The job failed: exit code 3.",
        "job": {"id": "1abc", "name": "train", "user": "ada", "queue": "lab"},
        "link": "https://corral.example.org/jobs/1abc",
        "data": {"exitCode": 3},
    }


def test_a_chat_shows_a_reason_as_it_is_and_notifies_nobody() -> None:
    odd = failed(reason="see <!channel> & **this** [link](http://x)")
    assert "&lt;!channel&gt; &amp;" in str(slack_json([odd], URL)["text"])  # type: ignore[list-item]
    (card,) = teams_json([odd], URL)["attachments"]  # type: ignore[list-item]
    assert {each["type"] for each in card["content"]["body"]} == {"RichTextBlock"}
    assert msgspec.json.encode(card)


def test_a_signature_is_that_of_standard_webhooks() -> None:
    key = signing_key(bytes(range(24)))
    given = signature(key, "msg_1", 1_700_000_000, b"{}")
    digest = hmac.new(bytes(range(24)), b"msg_1.1700000000.{}", hashlib.sha256).digest()
    assert given == "v1," + base64.b64encode(digest).decode()
    published = signature("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330,
                          b'{"test": 2432232314}')  # fmt: skip
    assert published == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    with pytest.raises(ValueError, match="no signing key"):
        signature("secret", "msg_1", 0, b"")


def test_a_code_belongs_to_one_channel_and_time() -> None:
    code = verification_code(b"k" * 32, "id-1", AT)
    assert len(code) == 8
    others = {verification_code(b"k" * 32, "id-2", AT), verification_code(b"k" * 32, "id-1", AT + 1),
              verification_code(b"j" * 32, "id-1", AT)}  # fmt: skip
    assert len(others | {code}) == 4
    assert is_code(f"{code[:4]}-{code[4:].lower()} ", code)
    assert not is_code(code[:7], code) and not is_code("", code) and not is_code("é" * 8, code)
    told = with_code(about_code("ada", "chat", AT), code)
    assert f"{code[:4]}-{code[4:]}" in told.text
