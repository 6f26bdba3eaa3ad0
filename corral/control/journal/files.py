"""Write a journal file whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from corral.control.journal.blocks import BlockWriter
from corral.control.journal.rules import Rules
from corral.control.journal.writer import JournalWriter


@contextmanager
def journal_file(file: Path, rules: Rules, version: str, *, unexplained: bool = False) -> Iterator[JournalWriter]:
    """Give a writer of steps whose records replace the file at the end; after an error the file is as it was before."""
    with written_whole(file) as blocks:
        yield JournalWriter(blocks, rules, version, unexplained=unexplained)


@contextmanager
def written_whole(file: Path) -> Iterator[BlockWriter]:
    """Give a writer of records that replace the file at the end; after an error the file is as it was before."""
    part = file.with_name(f".{file.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as opened:
            blocks = BlockWriter(opened)
            yield blocks
            blocks.close()
        part.replace(file)
    finally:
        part.unlink(missing_ok=True)
