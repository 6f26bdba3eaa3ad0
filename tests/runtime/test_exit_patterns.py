"""The end of a failed command's log is searched for known faults."""

from __future__ import annotations

from pathlib import Path

import pytest

from corral.runtime.patterns import PATTERNS, TAIL_BYTES, recognise, tail_of, tails_of

LOGS = {
    221: (
        1,
        "tensorflow.python.framework.errors_impl.ResourceExhaustedError: OOM when allocating tensor with shape[8]",
    ),
    222: (139, "mpirun noticed that process rank 1 with PID 0 on node x exited on signal 11 (Segmentation fault)."),
    223: (1, "RuntimeError: CUDA error: uncorrectable ECC error encountered"),
    224: (1, "RuntimeError: CUDA driver version is insufficient for CUDA runtime version"),
    225: (1, "Loaded runtime CuDNN library: 7.1.2 but source was compiled with: 7.6.0."),
    226: (1, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB"),
    228: (2, "train.py: error: unrecognized arguments: --epocs"),
    229: (1, "RuntimeError: Error(s) in loading state_dict for Net:"),
    230: (1, "RuntimeError: Parent directory /no/such does not exist."),
    231: (1, "SyntaxError: invalid syntax"),
    232: (1, "ModuleNotFoundError: No module named 'torch'"),
    233: (1, "IndexError: list index out of range"),
    234: (139, "Segmentation fault (core dumped)"),
    235: (134, "Aborted (core dumped)"),
    254: (125, "docker: Error response from daemon: manifest for a/b:c not found: manifest unknown: manifest unknown."),
}


@pytest.mark.parametrize("code", LOGS)
def test_a_known_fault_is_recognised(code: int) -> None:
    exit_code, line = LOGS[code]
    found = recognise(exit_code, f"epoch 1\n{line}\ndone\n".encode())
    assert found is not None and (found.code, found.line) == (code, line)
    assert recognise(0, line.encode()) is None


@pytest.mark.parametrize(
    ("exit_code", "line", "code"),
    [
        (1, "OSError: Unable to synchronously create file (unable to open file: No such file or directory)", 230),
        (1, "tensorflow.python.framework.errors_impl.NotFoundError: Failed to create a directory: /x/y", 230),
        (125, "docker: Error response from daemon: pull access denied for x, repository does not exist.", 254),
        (125, "Error: initializing source docker://x/y:z: reading manifest z in x/y: manifest unknown", 254),
    ],
)
def test_a_fault_is_known_by_each_programs_words(exit_code: int, line: str, code: int) -> None:
    found = recognise(exit_code, line.encode())
    assert found is not None and found.code == code


def test_a_program_that_talks_of_images_and_ends_otherwise_has_its_own_fault() -> None:
    assert recognise(1, b"Error: manifest unknown") is None


def test_the_two_streams_are_both_read_where_they_are_apart(tmp_path: Path) -> None:
    (tmp_path / "log.stdout").write_text("ImportError: one")
    (tmp_path / "log.stderr").write_text("all is well")
    found = recognise(1, tails_of(str(tmp_path / "log.stderr")))
    assert found is not None and found.line == "ImportError: one"
    assert tails_of(str(tmp_path / "log.stdout")) == b"ImportError: one"


def test_every_pattern_has_an_example() -> None:
    assert {pattern.code for pattern in PATTERNS} == set(LOGS)


@pytest.mark.parametrize("log", ["", "all good", "x IndexError: list index out of range in a sentence", "\xff\xfe\x00"])
def test_what_is_not_known_is_not_guessed(log: str) -> None:
    assert recognise(1, log.encode("latin-1")) is None


def test_the_last_line_that_tells_is_shown_and_only_the_tail_is_read(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"ImportError: too long ago\n" + b"x" * TAIL_BYTES + b"\nImportError: one\nImportError: two\n")
    found = recognise(1, tail_of(str(log)))
    assert found is not None and found.line == "ImportError: two"
    assert len(tail_of(str(log))) == TAIL_BYTES and tail_of(str(tmp_path / "none")) == b""
