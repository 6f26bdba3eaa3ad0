"""The words of messages, and the JSON of webhooks, Slack and Teams."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from corral.kernel.units import format_duration
from corral.model.messages import sentence
from corral.model.notifications.happenings import Happening
from corral.model.records import rfc3339

CODE: Final = "code"
"""The event of a message with a verification code."""
TEST: Final = "test"
"""The event of a message that its receiver asked for."""
REPORT: Final = "report"
"""The event of a weekly report."""
ALERT: Final = "alert"
"""The event of a message about an alert that fires."""
MOST_TOGETHER: Final = 50
"""Messages to one person that are sent as one text."""
_LONGEST: Final = 1000
"""Characters of a reason."""
_SUBJECT: Final = 200
_NAMED: Final = frozenset({"alertname", "severity"})
"""The labels that the subject has already."""
_SUBJECTS: Final = {
    Happening.STARTED: "started",
    Happening.SUCCEEDED: "succeeded",
    Happening.FAILED: "failed",
    Happening.STOPPED: "was stopped",
    Happening.RETRIED: "is tried again",
    Happening.PREEMPTED: "was preempted",
    Happening.IDLE: "leaves devices idle",
    Happening.HUNG: "shows no progress",
    Happening.WAITING: "still waits",
}


class Message(msgspec.Struct, frozen=True):
    """One message about a job; `at` is seconds since 1970. It is stored until it is sent."""

    event: str
    """A `Happening`, `CODE`, `TEST`, `REPORT` or `ALERT`."""
    at: float
    subject: str
    text: str = ""
    """What happened and why, as one or two sentences."""
    job: str = ""
    """The job's id; "" if it is about none."""
    name: str = ""
    user: str = ""
    queue: str = ""
    data: dict[str, Any] = {}
    """Numbers that a program may want, such as the exit code."""


def about(
    happening: Happening, at: float, reason: str, *, job: str, name: str, user: str, queue: str, code: object = None
) -> Message:
    """The message that tells what happened to a job."""
    data = {"exitCode": code} if isinstance(code, int) else {}
    subject = f"Job {user}~{name} {_SUBJECTS[happening]}"
    return Message(happening, at, subject, sentence(reason[:_LONGEST]), job, name, user, queue, data)


def about_wait(since: float, now: float, reason: str, *, job: str, name: str, user: str, queue: str) -> Message:
    """The message that tells that a job has waited long."""
    waited = max(0, int(now - since))
    lasted = format_duration(waited - waited % 60 if waited >= 60 else waited)
    text = f"It has waited {lasted} in the queue {queue}. {sentence(reason[:_LONGEST])}".strip()
    subject = f"Job {user}~{name} {_SUBJECTS[Happening.WAITING]} after {lasted}"
    return Message(Happening.WAITING, now, subject, text, job, name, user, queue, {"waitedSeconds": waited})


def about_alert(
    labels: Mapping[str, str], summary: str, fired_at: float, now: float, *, job: str = "", data: Mapping[str, Any]
) -> Message:
    """The message that tells of an alert; `summary` is its rule's own text, `data` what a program is told."""
    told = ", ".join(f"{name} {value}" for name, value in sorted(labels.items()) if name not in _NAMED)
    severity = f" ({labels['severity']})" if "severity" in labels else ""
    labelled = f" Labels: {told[:_LONGEST]}." if told else ""
    text = f"{sentence(summary[:_LONGEST])} It fires since {rfc3339(fired_at)}.{labelled}".strip()
    return Message(ALERT, now, f"Alert {labels.get('alertname', '')}{severity}"[:_SUBJECT], text, job, data=dict(data))


def about_code(user: str, channel: str, at: float) -> Message:
    """The message that carries a verification code; the code itself is added when it is sent."""
    text = f"{user} wants to be told of jobs here. If you are not {user}, ignore this message: nothing more will come."
    return Message(CODE, at, f"Confirm the channel {channel} of {user}", text, user=user)


def about_test(user: str, channel: str, at: float) -> Message:
    """The message that a person asked for to try a channel."""
    return Message(TEST, at, f"Test of the channel {channel}", f"{user} asked for this message.", user=user)


def with_code(message: Message, code: str) -> Message:
    """The message with its verification code."""
    shown = f"{code[:4]}-{code[4:]}"
    text = f"{message.text} The code is {shown}; it is valid for an hour."
    return msgspec.structs.replace(message, text=text, data={"code": shown})


def link_to(message: Message, url: str) -> str:
    """The address of the job's page; "" if the message is about no job, or the server has no address."""
    return f"{url.rstrip('/')}/jobs/{message.job}" if url and message.job else ""


def plain_text(messages: Sequence[Message], url: str) -> tuple[str, str]:
    """Subject and text of a mail or chat message that tells one or several things."""
    parts = []
    for each in messages:
        lines = [f"{each.subject}.", each.text, link_to(each, url), f"({rfc3339(each.at)})"]
        parts.append("\n".join(filter(None, lines)))
    about = "alerts" if all(each.event == ALERT for each in messages) else "jobs"
    subject = messages[0].subject if len(messages) == 1 else f"{len(messages)} messages about {about}"
    return subject, "\n\n".join(parts) + "\n"


def webhook_json(message: Message, url: str, *, number: int) -> dict[str, Any]:
    """The JSON of a webhook; `number` counts the tries, so that a receiver knows of repetitions."""
    found: dict[str, Any] = {
        "type": f"job.{message.event}" if message.job else f"channel.{message.event}",
        "timestamp": rfc3339(message.at),
        "try": number,
        "subject": message.subject,
        "text": message.text,
    }
    if message.job:
        found["job"] = {"id": message.job, "name": message.name, "user": message.user, "queue": message.queue}
        found["link"] = link_to(message, url)
    return found | ({"data": message.data} if message.data else {})


def slack_json(messages: Sequence[Message], url: str) -> Mapping[str, Any]:
    """The JSON of Slack's incoming webhooks. &, < and > are escaped, so that a job's name can notify nobody."""
    _, text = plain_text(messages, url)
    return {"text": text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")}


def teams_json(messages: Sequence[Message], url: str) -> Mapping[str, Any]:
    """The JSON of a Teams workflow: an adaptive card of plain text runs, in which nothing is Markdown."""
    body = []
    for each in messages:
        body.append(_block([each.subject], weight="Bolder"))
        body.append(_block([each.text, link_to(each, url), f"({rfc3339(each.at)})"]))
    card = {"type": "AdaptiveCard", "version": "1.4", "body": body}
    return {
        "type": "message",
        "attachments": [{"contentType": "application/vnd.microsoft.card.adaptive", "content": card}],
    }


def _block(lines: Sequence[str], **style: str) -> dict[str, Any]:
    runs = [{"type": "TextRun", "text": line + "\n", **style} for line in lines if line]
    return {"type": "RichTextBlock", "inlines": runs}
