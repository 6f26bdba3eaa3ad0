"""Each of OpenPAI's 62 exit codes, from the task of a real OpenPAI job, causes the reaction of OpenPAI's table."""

from __future__ import annotations

import pytest
import yaml

from corral.compat.openpai.language.protocol import read_protocol
from corral.compat.openpai.language.translation import to_job
from corral.launcher import view_of
from corral.model.exits import EXIT_SPECS, START_FAILED_TRANSIENTLY, exit_spec
from corral.model.states import JobState
from corral.runtime.error_block import RuntimeFault, error_block
from corral.spec.job import UnifiedJob
from tests.launcher.driver import Driver

ALWAYS_RETRY = (
    *(-100, -101, -110, -111, -120, -1000, -1001, -1002, -1003, -1006, -1300, -1205),
    *(130, 131, 137, 143, 223, 250, 253),
)
ALWAYS_BACKOFF_RETRY = (251,)
RETRY_TO_MAX = (-300, -310, -1201, -1204, 128, 134, 139, 255, -8000, 256)
NEVER_RETRY = (
    *(0, -200, -210, -220, -230, -1004, -1005, -1100, -1200, -1202, -1203),
    *(132, 135, 136, 141, *range(220, 223), *range(224, 227), *range(228, 236), 249, 252, 254),
)
REACTIONS = {
    **dict.fromkeys(ALWAYS_RETRY, "ALWAYS_RETRY"),
    **dict.fromkeys(ALWAYS_BACKOFF_RETRY, "ALWAYS_BACKOFF_RETRY"),
    **dict.fromkeys(RETRY_TO_MAX, "RETRY_TO_MAX"),
    **dict.fromkeys(NEVER_RETRY, "NEVER_RETRY"),
}
"""Copied from Appendix A of the contract, not from the table under test."""


def test_the_contract_lists_the_codes_that_there_are() -> None:
    assert len(REACTIONS) == 62
    assert REACTIONS.keys() == EXIT_SPECS.keys()


@pytest.mark.parametrize("code", REACTIONS)
def test_a_code_is_reacted_to_as_openpai_does(code: int) -> None:
    job = started(job_retries=1)
    assert exit_spec(code).reaction == REACTIONS[code]
    job.exited("worker-0", code)
    match REACTIONS[code]:
        case "NEVER_RETRY":
            assert job.run.state is JobState.COMPLETED and job.run.attempt == 0
        case "ALWAYS_RETRY" if code == START_FAILED_TRANSIENTLY:  # FrameworkController retries the task, not the job
            assert (job.run.attempt, job.task("worker-0").attempt) == (0, 1)
            assert job.task("worker-0").retries.accountable == 0
        case "ALWAYS_RETRY":
            assert_goes_on(job, attempt=1, counted=0)
        case "ALWAYS_BACKOFF_RETRY":
            assert job.run.state is JobState.ATTEMPT_COMPLETED
            wait = (job.run.wake_at or 0) - job.now
            assert 60 <= wait <= 900
            job.advance(wait)
            assert_goes_on(job, attempt=1, counted=0)
        case "RETRY_TO_MAX":
            assert_goes_on(job, attempt=1, counted=1)
            job.start_all()
            job.exited("worker-0", code)
            assert job.run.state is JobState.COMPLETED and job.run.attempt == 1


@pytest.mark.parametrize("code", [code for code, reaction in REACTIONS.items() if reaction == "RETRY_TO_MAX"])
def test_without_retries_an_unknown_end_is_the_last(code: int) -> None:
    job = started(job_retries=0)
    job.exited("worker-0", code)
    assert job.run.state is JobState.COMPLETED and job.run.attempt == 0


@pytest.mark.parametrize(("code", "stands_for"), [(1, 256), (255 - 3, 252), (77, 256), (-5, -8000), (-9999, -8000)])
def test_a_code_without_a_row_is_reacted_to_as_256_or_minus_8000(code: int, stands_for: int) -> None:
    assert exit_spec(code).code == stands_for


@pytest.mark.parametrize(("code", "attempts"), [(200, 1), (210, 0)])
def test_a_program_may_say_itself_what_its_end_means(code: int, attempts: int) -> None:
    job = started(job_retries=0)
    job.exited("worker-0", code)
    assert job.run.attempt == attempts


def test_a_command_that_does_not_exist_is_not_tried_again_where_openpais_runtime_saw_it() -> None:
    block = error_block(RuntimeFault(220, user_exit_code=127))
    for said, attempts in ((block, 0), (error_block(RuntimeFault(255, user_exit_code=127)), 1), ("", 1)):
        job = started(job_retries=1)
        job.exited("worker-0", 127, said)
        assert job.run.attempt == attempts
        assert job.task("worker-0").completion is None or job.task("worker-0").completion.code == 127


def started(*, job_retries: int) -> Driver:
    """A running job of one task."""
    protocol = {
        "protocolVersion": 2,
        "name": "j1",
        "type": "job",
        "jobRetryCount": job_retries,
        "prerequisites": [{"type": "dockerimage", "name": "d", "uri": "ubuntu:22.04"}],
        "taskRoles": {
            "worker": {
                "dockerImage": "d",
                "resourcePerInstance": {"cpu": 1, "memoryMB": 512, "gpu": 0},
                "commands": ["true"],
            }
        },
    }
    document = to_job(read_protocol(yaml.safe_dump(protocol)), user="bob").document
    driver = Driver(view_of(UnifiedJob.from_document(document)))
    driver.start_all()
    return driver


def assert_goes_on(job: Driver, *, attempt: int, counted: int) -> None:
    assert job.run.attempt == attempt
    assert job.run.retries.accountable == counted
    assert job.run.state is not JobState.COMPLETED
