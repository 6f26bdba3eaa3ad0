"""The YAML block with which OpenPAI's clients learn a task's error can be parsed back, also by other YAML parsers."""

from __future__ import annotations

from typing import Any

import yaml
from hypothesis import given
from hypothesis import strategies as st

from corral.runtime.error_block import END, START, RuntimeFault, error_block, read_error, sentence

FULL = RuntimeFault(226, "ContainerCudaOOMKilled", 1, "CUDA out of memory: 20 MiB", "said: 'so'", "a\nb\n", "c")


def test_every_field_is_there_under_openpais_names() -> None:
    block = error_block(FULL)
    assert block.startswith(START) and block.endswith(END)
    wanted = {
        "exitCode": 226,
        "trigger": "ContainerCudaOOMKilled",
        "originUserExitCode": 1,
        "matchedUserLogString": "CUDA out of memory: 20 MiB",
        "matchedPlatformLogString": "said: 'so'",
        "errorLogs": {"user": "a\nb\n", "platform": "c"},
    }
    assert yaml.safe_load(block.removeprefix(START).removesuffix(END)) == wanted
    assert read_error(f"it failed\n{block}") == wanted


def test_what_is_not_known_is_left_out() -> None:
    assert read_error(error_block(RuntimeFault(3))) == {"exitCode": 3}


def test_people_are_shown_the_sentence_alone() -> None:
    assert sentence(f"the command ended with 1\n{error_block(FULL)}") == "the command ended with 1"
    assert sentence("no block at all") == "no block at all"


def test_a_block_that_is_cut_off_is_none() -> None:
    block = error_block(FULL)
    assert read_error(block[:-5]) is None
    assert read_error("nothing") is None
    assert sentence(block[:-5]) == ""


@given(st.text(), st.text())
def test_whatever_a_log_holds_it_stays_inside_its_field(line: str, log: str) -> None:
    line, log = (text.encode("utf-8", "replace").decode()[:300] for text in (line, log))
    block = error_block(RuntimeFault(1, user_line=line, user_log=log))
    wanted: dict[str, Any] = {"exitCode": 1}
    wanted |= {"matchedUserLogString": line} if line else {}
    wanted |= {"errorLogs": {"user": log}} if log else {}
    assert read_error(block) == wanted
    assert yaml.safe_load(block.removeprefix(START).removesuffix(END)) == wanted


def test_a_log_that_holds_the_marks_ends_no_block() -> None:
    log = f"{END} {START} {END}"
    assert read_error(error_block(RuntimeFault(1, user_log=log))) == {"exitCode": 1, "errorLogs": {"user": log}}


def test_long_logs_keep_their_end() -> None:
    found = read_error(error_block(RuntimeFault(1, user_log="x" * 5000 + "the end")))
    assert found is not None and found["errorLogs"]["user"].endswith("the end")
    assert len(error_block(RuntimeFault(1, "t" * 999, 1, "l" * 999, "p" * 999, "u" * 9999, "q" * 9999))) < 4000
