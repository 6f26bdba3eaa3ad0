"""Files of several documents: the one job is read at its own lines, cluster objects are named, the rest is refused."""

from __future__ import annotations

import json

import pytest

from corral.spec.configuration_file import load_document
from corral.spec.document_splitter import Sort, joined, left_out, parts_of
from corral.spec.errors import SpecError
from corral.spec.job_reader import TEXT_UNDER, read_job
from tests.spec.test_framework_documents import framework

FRAMEWORK = json.dumps(framework(), indent=1) + "\n"
SERVICE = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\n"
CLASS = "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: fast}\nvalue: 1000\n"
QUEUE = "kind: Queue\nname: vision\n"
SHORT = "name: short\nroles: {a: {command: 'true'}}\n"


def stream(*documents: str) -> str:
    return "---\n".join(documents)


@pytest.mark.parametrize(
    ("text", "others"),
    [
        (FRAMEWORK, ()),
        ("---\n" + FRAMEWORK + "---\n", ()),
        (stream(SERVICE, CLASS, FRAMEWORK), ("Service/web (line 1)", "PriorityClass/fast (line 5)")),
        (stream(FRAMEWORK, "# nothing\n", SERVICE), ("Service/web (line 52)",)),
        ("\ufeff" + stream(SERVICE, FRAMEWORK), ("Service/web (line 1)",)),
    ],
)
def test_the_one_job_of_a_file_is_read_and_what_is_beside_it_is_named(text: str, others: tuple[str, ...]) -> None:
    for given in (text, text.encode()):
        read = read_job(given)
        assert read.job == read_job(FRAMEWORK).job
        assert len(read.others) == len(others)
        assert [each.partition(" (")[0] for each in read.others] == [each.partition(" (")[0] for each in others]


def test_a_problem_is_told_at_its_line_of_the_whole_file() -> None:
    with pytest.raises(SpecError) as caught:
        read_job(stream(SERVICE, FRAMEWORK.replace("taskNumber", "taskNumbers")), filename="all.yaml")
    first = caught.value.problems[0]
    line = stream(SERVICE, FRAMEWORK).splitlines()[first.line - 1]
    assert first.line > 5 and line.strip()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            stream(SERVICE, CLASS),
            "the file holds 2 documents, and none is a job: Service/web (line 1), PriorityClass/fast",
        ),
        (stream(FRAMEWORK, SHORT), "2 of them jobs (Framework/sample (line 1), job/short (line"),
        (stream(QUEUE, SHORT), "configuration stands beside the job (Queue/vision (line 1)), so nothing was taken"),
        (
            stream(SERVICE, "apiVersion: frameworkcontroller.microsoft.com/v2\nkind: Framework\n"),
            "kind: expected UnifiedJob",
        ),
        (stream(SERVICE, "kind: Quue\nname: a\n", SHORT), "configuration stands beside the job (Quue/a (line 5))"),
        (stream(SERVICE, "- a list\n"), "expected a job"),
    ],
)
def test_any_other_stream_is_refused_whole_and_says_how(text: str, said: str) -> None:
    with pytest.raises(SpecError) as caught:
        read_job(text)
    assert said in str(caught.value)
    assert caught.value.code == "invalid-document"


def test_a_file_is_taken_apart_by_what_its_documents_are() -> None:
    foreign = "apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: theirs}\n"
    parts = parts_of(stream(QUEUE, SERVICE, SHORT, foreign, "kind: Policy\npreset: hived\n"), "f.yaml", TEXT_UNDER)
    assert [str(part.sort) for part in parts] == ["configuration", "other", "job", "other", "configuration"]
    both = joined([part for part in parts if part.sort is Sort.CONFIGURATION])
    assert [document.kind for document in load_document(both)] == ["Queue", "Policy"]
    assert both.splitlines().index("kind: Policy") == parts[-1].line - 1
    assert left_out([part for part in parts if part.sort is Sort.OTHER]) == (
        "Service/web (line 4), Queue/theirs (line 11) are no documents of Corral's and left out; kubectl apply takes them."
    )


def test_dashes_in_text_part_nothing() -> None:
    text = "name: a\nroles:\n  a:\n    command: |\n      cat <<END\n      ---\n      END\n"
    assert parts_of(text, "f.yaml") == []
    assert read_job(text).job.name == "a"
