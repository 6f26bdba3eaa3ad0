"""Alembic's entry point; `corral.store.schema` always hands in the connection."""

from alembic import context

from corral.store.tables import metadata

connection = context.config.attributes["connection"]
context.configure(connection=connection, target_metadata=metadata, render_as_batch=connection.dialect.name == "sqlite")
with context.begin_transaction():
    context.run_migrations()
