"""The list of messages shows each text with its code, and the texts keep the rules of the house."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docs.messages import Message, collect, of_the_code

MOST_CHARACTERS = 290
MOST_WORDS = 26
NAMED = re.compile(r"\{[^{}]*\}")
RIDDLES = re.compile(
    r"\b([Nn]obody|[Ss]omebody|[Ee]verybody|anew|so many|whom|[Ww]hoever|meanwhile|as good as|its like"
    r"|(?<![Tt]here )is no (?!longer))\b"
)
"""Words of sentences that a reader has to turn round."""
ENDED = re.compile(r"([.?…)}\]]|: \S+|: .*corral .*)$")
TABLES = re.compile(r"kubernetes/(api/errors|doctor/)|scheduler/queues/queue_tree|spec/(document_splitter|dialects/)")
"""Modules whose texts are cells of a table or parts of a sentence that ends elsewhere."""
IDS = re.compile(r"\{(job|task|gang|record)(\.|_)id\}")
NAMELESS = {"stale-revision"}
"""Codes of control's guarded writes, which hold no name."""

SOURCE = '''
"""A module's docstring. It is no message."""

KEPT = "kept-job"


def check(job, nodes, log):
    """Nor is this one."""
    log.warning("Nor what is logged is one, %s.", job)
    more = f" and {len(nodes) - 1} more" if len(nodes) > 1 else ""
    if job.over:
        raise Conflict("job-over", f"Job {job.name} is over on {nodes[0].name}{more}.")
    message = f"{counted(len(nodes), 'node')} {'are' if nodes else 'is'} left for " + "the job."
    tell(Fact(KEPT, message))
    return job["state"] or "It waits for the queue."
'''


def found(tmp_path: Path, source: str) -> list[Message]:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "jobs.py").write_text(source)
    return collect(tmp_path)


def test_a_message_is_listed_with_its_code_and_named_placeholders(tmp_path: Path) -> None:
    assert found(tmp_path, SOURCE) == [
        Message("package/jobs.py", "job-over", "Job {job.name} is over on {nodes.name}[ and {nodes} more]."),
        Message("package/jobs.py", "kept-job", "{nodes} nodes (are / is) left for the job."),
        Message("package/jobs.py", "", "It waits for the queue."),
    ]


def test_texts_of_other_programs_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "openpai").mkdir()
    (tmp_path / "openpai" / "jobs.py").write_text(SOURCE)
    assert collect(tmp_path) == []


@pytest.mark.parametrize("code", ["job-over", "job.retried", "not-enough-devices", "store-locked", "too-many-calls"])
def test_refusals_events_and_reasons_are_listed(code: str) -> None:
    assert any(each.code == code for each in of_the_code())


def test_messages_are_short() -> None:
    long = [each for each in of_the_code() if len(each.text) > MOST_CHARACTERS]
    assert not long, f"say it in at most {MOST_CHARACTERS} characters"


def test_messages_name_jobs_instead_of_their_ids() -> None:
    ids = [
        each
        for each in of_the_code()
        if IDS.search(each.text) and ".name}" not in each.text and each.code not in NAMELESS
    ]
    assert not ids, "the message knows the name: say that"


def test_messages_are_direct() -> None:
    riddles = [each for each in of_the_code() if RIDDLES.search(NAMED.sub("", each.text))]
    assert not riddles, "name the thing or the person instead"


def test_refusals_end_with_a_full_stop_or_with_what_to_type() -> None:
    refusals = [each for each in of_the_code() if each.code and re.match(r"[A-Z][a-z]+ .* ", each.text)]
    cut = [each for each in refusals if not ENDED.search(each.text) and not TABLES.search(each.module)]
    assert not cut, "a sentence ends with a full stop"


def test_sentences_are_short() -> None:
    long = [
        each
        for each in of_the_code()
        if any(len(part.split()) > MOST_WORDS for part in re.split(r"[.;:?] ", NAMED.sub("X", each.text)))
    ]
    assert not long, f"a sentence has at most {MOST_WORDS} words"
