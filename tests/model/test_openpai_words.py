"""OpenPAI's names of states and exits match its table, because programs depend on them."""

from __future__ import annotations

import hashlib

import pytest

from corral.compat.openpai.records.exit_words import EXIT_WORDS
from corral.compat.openpai.records.terms import (
    attempt_word,
    exit_spec_view,
    framework_name,
    milliseconds,
    openpai_code,
    ports_view,
    state_word,
    sub_state,
)
from corral.model.exits import EXIT_SPECS, RESERVED_SPECS, classify
from corral.model.outcome import Completion, ExitClass
from corral.model.states import JobState, TaskState
from corral.runtime.error_block import RuntimeFault, container_code, error_block


def test_every_code_has_words_and_every_row_its_fields() -> None:
    assert EXIT_WORDS.keys() == EXIT_SPECS.keys() | RESERVED_SPECS.keys()
    assert len(EXIT_SPECS) == 62
    for code, row in EXIT_SPECS.items():
        told = exit_spec_view(code)
        assert told is not None
        assert (told.code, told.phrase, told.issuer, told.causer, told.type) == (
            code, row.phrase, row.issuer, row.causer, row.type,
        )  # fmt: skip
        assert (told.stage, told.behavior, told.reaction) == (row.stage, row.behavior, row.reaction)
        assert told.reason and (told.solution or code == 0)


@pytest.mark.parametrize(
    ("code", "told_as", "phrase"),
    [(42, 255, "PAIRuntimeUnknownFailed"), (-42, -42, "ContainerUndefinedNegativeExitCode")],
)
def test_a_code_without_a_row_gets_the_row_of_its_kind(code: int, told_as: int, phrase: str) -> None:
    told = exit_spec_view(code)
    assert told is not None and (told.code, told.phrase) == (told_as, phrase)


@pytest.mark.parametrize(
    ("code", "log", "told_as"),
    [
        *((code, "", 255) for code in (1, 3, 42, 126, 127, 199, 227, 248)),
        *((code, "bash: line 1: foo: command not found", code) for code in (*EXIT_SPECS, *RESERVED_SPECS)),
        (3, "bash: line 1: foo: command not found", 255),
        (127, "bash: line 1: foo: command not found", 220),
    ],
)
def test_openpai_is_told_what_its_runtime_would_end_a_container_with(code: int, log: str, told_as: int) -> None:
    assert container_code(code, log) == told_as
    assert openpai_code(Completion(code, "", ExitClass.UNKNOWN, log)) == told_as


def test_what_the_runtime_read_in_the_log_decides_where_there_is_its_block() -> None:
    block = error_block(RuntimeFault(220, user_exit_code=127))
    assert openpai_code(classify(127, f"the command ended with 127\n{block}")) == 220
    assert openpai_code(classify(3, f"the command ended with 3\n{block}")) == 255
    older = error_block(RuntimeFault(3, user_exit_code=3))
    assert openpai_code(classify(3, f"the command ended with 3\n{older}")) == 255
    assert openpai_code(None) is None


def test_what_has_not_ended_has_no_exit() -> None:
    assert exit_spec_view(None) is None


@pytest.mark.parametrize(
    ("state", "code", "job", "attempt"),
    [
        ("creation-pending", None, "WAITING", "WAITING"),
        ("creation-requested", None, "WAITING", "WAITING"),
        ("preparing", None, "WAITING", "WAITING"),
        ("running", None, "RUNNING", "RUNNING"),
        ("deletion-pending", -210, "STOPPING", "STOPPING"),
        ("deletion-pending", -220, "STOPPING", "STOPPING"),
        ("deleting", 3, "RUNNING", "RUNNING"),
        ("attempt-completed", 3, "RUNNING", "FAILED"),
        ("attempt-completed", -210, "STOPPING", "STOPPED"),
        ("completed", 0, "SUCCEEDED", "SUCCEEDED"),
        ("completed", -220, "STOPPED", "STOPPED"),
        ("completed", 1, "FAILED", "FAILED"),
    ],
)
def test_a_state_has_the_word_of_the_contract(state: str, code: int | None, job: str, attempt: str) -> None:
    assert (state_word(state, code), attempt_word(state, code)) == (job, attempt)


def test_every_state_has_frameworkcontrollers_word() -> None:
    for state in (*JobState, *TaskState):
        assert sub_state(str(state)) == "".join(
            word.capitalize() for word in ("" if state.endswith("completed") else "attempt-").split("-") if word
        ) + "".join(word.capitalize() for word in str(state).split("-"))


def test_a_framework_is_called_by_the_digest_of_user_and_name() -> None:
    assert framework_name("ann", "My_Job") == hashlib.md5(b"ann~My_Job").hexdigest()


def test_times_are_milliseconds_and_ports_are_numbers_or_lists() -> None:
    assert (milliseconds(1.2345), milliseconds(None)) == (1234, None)
    assert ports_view({"ssh": (22,), "http": (80, 81), "none": ()}) == {"ssh": "22", "http": "80,81", "none": ""}
