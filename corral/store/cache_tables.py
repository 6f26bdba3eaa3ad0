"""The tables of bundles of compiled code, of what tasks made of them, and of bundles that are to be deleted."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Double, Index, Integer, MetaData, Table, Text


def cache_tables(metadata: MetaData) -> tuple[Table, Table, Table]:
    """Declare the tables. The third names bundles that no row needs any more, until their files are deleted."""
    compile_caches = Table(
        "compile_caches",
        metadata,
        Column("id", Text, primary_key=True),
        Column("scope", Text, nullable=False),
        Column("key", Text, nullable=False),
        Column("facts", Text, nullable=False),
        Column("digest", Text, nullable=False),
        Column("size", BigInteger, nullable=False),
        Column("files", Integer, nullable=False),
        Column("user", Text, nullable=False),
        Column("job", Text, nullable=False),
        Column("at", Double, nullable=False),
        Column("used_at", Double, nullable=False),
        Column("uses", Integer, nullable=False),
        Index("compile_caches_by_scope", "scope"),
        Index("compile_caches_by_user", "user", "used_at"),
        Index("compile_caches_by_digest", "digest"),
    )
    compile_cache_uses = Table(
        "compile_cache_uses",
        metadata,
        Column("attempt", Text, primary_key=True),
        Column("job", Text, nullable=False),
        Column("user", Text, nullable=False),
        Column("at", Double, nullable=False),
        Column("cache", Text, nullable=False),
        Column("program", Text, nullable=False),
        Column("cold", Boolean, nullable=False),
        Column("first_step", Double),
        Column("doc", Text, nullable=False),
        Index("compile_cache_uses_by_job", "job"),
        Index("compile_cache_uses_by_program", "program", "cache", "at"),
    )
    compile_cache_garbage = Table(
        "compile_cache_garbage",
        metadata,
        Column("digest", Text, primary_key=True),
        Column("size", BigInteger, nullable=False),
    )
    return compile_caches, compile_cache_uses, compile_cache_garbage
