"""The end of a failed command's log is read for known faults."""

from __future__ import annotations

from pathlib import Path

import pytest

from corral.runtime.patterns import PATTERNS, TAIL_BYTES, recognise, tail_of

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
    231: (1, "SyntaxError: invalid syntax"),
    232: (1, "ModuleNotFoundError: No module named 'torch'"),
    233: (1, "IndexError: list index out of range"),
    234: (139, "Segmentation fault (core dumped)"),
    235: (134, "Aborted (core dumped)"),
}


@pytest.mark.parametrize("code", LOGS)
def test_a_known_fault_is_recognised(code: int) -> None:
    exit_code, line = LOGS[code]
    found = recognise(exit_code, f"epoch 1\n{line}\ndone\n".encode())
    assert found is not None and (found.code, found.line) == (code, line)
    assert recognise(0, line.encode()) is None


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
