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
    """Give a writer whose records replace the file at the end; after an error the file is what it was before."""
    part = file.with_name(f".{file.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as opened:
            blocks = BlockWriter(opened)
            yield JournalWriter(blocks, rules, version, unexplained=unexplained)
            blocks.close()
        part.replace(file)
    finally:
        part.unlink(missing_ok=True)
