"""The exit table, a contract with OpenPAI's users: its form and its answers."""

from __future__ import annotations

from collections import Counter

import pytest

from corral.kernel.ids import JobId
from corral.model.exits import EXIT_SPECS, NEVER_RETRIED, RESERVED_SPECS, classify, exit_spec, own_phrase, table_phrase
from corral.model.outcome import Completion, ExitClass
from corral.model.phases import Phase, phase
from corral.model.records import exit_view
from corral.model.runs import JobRun
from corral.model.states import JobState


def test_the_table_has_openpais_62_codes_and_its_reactions() -> None:
    assert len(EXIT_SPECS) == 62
    assert Counter(spec.reaction for spec in EXIT_SPECS.values()) == {
        "NEVER_RETRY": 32,
        "ALWAYS_RETRY": 19,
        "RETRY_TO_MAX": 10,
        "ALWAYS_BACKOFF_RETRY": 1,
    }
    assert not EXIT_SPECS.keys() & RESERVED_SPECS.keys()


@pytest.mark.parametrize(
    ("code", "phrase", "kind"),
    [
        (0, "Succeeded", ExitClass.SUCCEEDED),
        (137, "ContainerSigKillReceived", ExitClass.TRANSIENT),
        (139, "ContainerSigSegvReceived", ExitClass.UNKNOWN),
        (220, "UserCommandExitWithError", ExitClass.PERMANENT),
        (251, "JobGangAllocationTimeout", ExitClass.CONFLICT),
        (256, "PAIRuntimeExitAbnormally", ExitClass.UNKNOWN),
        (-210, "StopFrameworkRequested", ExitClass.PERMANENT),
        (-1001, "PodNodeLost", ExitClass.TRANSIENT),
        (200, "ContainerTransientFailed", ExitClass.TRANSIENT),
        (201, "ContainerTransientConflictFailed", ExitClass.CONFLICT),
        (210, "ContainerPermanentFailed", ExitClass.PERMANENT),
        (1, "UserCommandExitWithError", ExitClass.UNKNOWN),
        (-5, "ContainerUndefinedNegativeExitCode", ExitClass.UNKNOWN),
    ],
)
def test_a_code_is_classified_and_kept(code: int, phrase: str, kind: ExitClass) -> None:
    assert classify(code, "why") == Completion(code, phrase, kind, "why")


@pytest.mark.parametrize("code", sorted(NEVER_RETRIED))
def test_requested_ends_are_shown_in_words_that_name_no_framework(code: int) -> None:
    ended = classify(code, "asked for by ada")
    shown = exit_view(ended)
    assert shown is not None and "Framework" not in shown.phrase and shown.phrase != ended.phrase
    assert table_phrase(code, shown.phrase) == ended.phrase, "a Framework's status keeps FrameworkController's word"


def test_other_ends_are_shown_by_the_phrase_that_they_have() -> None:
    for code in EXIT_SPECS.keys() - NEVER_RETRIED:
        shown = exit_view(classify(code))
        assert shown is not None and shown.phrase == table_phrase(code, shown.phrase) == classify(code).phrase
    assert own_phrase(-220, "Migrated") == "Migrated" == table_phrase(-220, "Migrated")


def test_a_code_without_a_row_is_256_or_minus_8000() -> None:
    assert exit_spec(77).code == 256
    assert exit_spec(-77).code == -8000


def test_the_machine_is_to_blame_only_where_the_table_says_so() -> None:
    blamed = {code for code, spec in EXIT_SPECS.items() if spec.node_at_fault}
    assert blamed == {-1000, -1001, -1002, -1003, -1006, -1205, 128, 223}


@pytest.mark.parametrize("state", list(JobState))
def test_every_state_has_a_phase(state: JobState) -> None:
    assert phase(JobRun(JobId("x"), state)) in list(Phase)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (0, Phase.SUCCEEDED),
        (1, Phase.FAILED),
        (-210, Phase.STOPPED),
        (-220, Phase.STOPPED),
        (-1004, Phase.FAILED),
        (-1003, Phase.FAILED),
    ],
)
def test_a_completed_job_has_the_phase_of_its_end(code: int, expected: Phase) -> None:
    assert phase(JobRun(JobId("x"), JobState.COMPLETED, completion=classify(code))) is expected


@pytest.mark.parametrize(("code", "word"), [(126, "executable"), (127, "not found")])
def test_what_a_shell_means_by_its_codes_is_told_where_nothing_better_is(code: int, word: str) -> None:
    assert word in classify(code).diagnostics
    assert classify(code, "the task's own word").diagnostics == "the task's own word"
