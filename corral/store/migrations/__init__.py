"""The steps from every earlier schema to the newest, run by alembic."""
