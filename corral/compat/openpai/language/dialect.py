"""OpenPAI's job files as a dialect."""

from __future__ import annotations

from typing import Any

from corral.compat.openpai.language.names import JOB_TYPE, REGISTRIES_FILE, SECRET_PREFIX, SECRETS_FOLDER
from corral.compat.openpai.language.reader import is_openpai, read_openpai, readable, said_at
from corral.compat.openpai.language.secret_masking import without_secrets
from corral.spec.dialects.dialect import Asked, Dialect, Document, Translated
from corral.spec.own_file import OwnFile
from corral.spec.yaml_source import Source


class OpenPaiDialect(Dialect):
    """Job files of protocol v2 and v1."""

    name = "openpai"
    reads_text = True
    job_types = frozenset({JOB_TYPE})
    secret_prefix = SECRET_PREFIX
    kept_folder = SECRETS_FOLDER
    registries_file = REGISTRIES_FILE

    def readable(self, text: str | bytes) -> str | bytes:
        """The text with its comments blanked out, if it is a file of protocol v1, whose JSON may have comments."""
        return readable(text)

    def recognises(self, data: Any) -> bool:
        """Whether data is meant as a job of OpenPAI, of either version, valid or not."""
        return is_openpai(data)

    def read(self, source: Source, document: Document, asked: Asked) -> Translated:
        """Translate a file; problems name the fields of that file."""
        found, source = read_openpai(document, asked)
        kept = None
        if isinstance(document, str | bytes):
            text = document.decode("utf-8", "replace") if isinstance(document, bytes) else document
            kept = without_secrets(text, source.data, asked.filename)
        file = None if kept is None else OwnFile(*kept)
        return Translated(
            found.document, source, lambda path: said_at(found.document, path), secrets=found.secrets, file=file
        )
