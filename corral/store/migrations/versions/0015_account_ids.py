"""An account has an id that is never given twice, and submissions of an hour are counted where every front sees them."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    """Make the tables of account ids and submissions, and give every account and every deleted one an id.

    An account keeps its name as its id, since its folders go by that. Jobs of deleted accounts of the same name get
    the next free id.
    """
    op.create_table(
        "account_ids",
        sa.Column("id", sa.Text(), primary_key=True),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
    )
    op.create_table(
        "submissions",
        sa.Column("user", sa.Text(), primary_key=True),
        sa.Column("api", sa.Text(), primary_key=True),
        sa.Column("since", sa.Double(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
    )
    op.add_column("users", sa.Column("id", sa.Text(), nullable=False, server_default=""))
    op.add_column("orphaned_jobs", sa.Column("account", sa.Text(), nullable=False, server_default=""))
    connection = op.get_bind()
    connection.execute(sa.text("UPDATE users SET id = name"))
    connection.execute(sa.text("INSERT INTO account_ids (id, name, at) SELECT name, name, created_at FROM users"))
    gone = connection.execute(
        sa.text(
            "SELECT name, MIN(at) FROM (SELECT substr(resource, 6) AS name, at FROM audit "
            "WHERE action = 'user.delete' AND allowed AND resource LIKE 'user:%' "
            'UNION ALL SELECT "user", created_at FROM jobs UNION ALL SELECT "user", removed_at FROM history) AS seen '
            "WHERE name NOT IN (SELECT name FROM users) GROUP BY name"
        )
    ).all()
    for name, at in gone:
        _know(connection, name, name, at)
    orphans = connection.execute(
        sa.text(
            'SELECT jobs."user", MIN(jobs.created_at) FROM orphaned_jobs JOIN jobs ON jobs.id = orphaned_jobs.job '
            'GROUP BY jobs."user"'
        )
    ).all()
    known = set(connection.execute(sa.text("SELECT id FROM account_ids")).scalars())
    there = set(connection.execute(sa.text("SELECT name FROM users")).scalars())
    for name, at in orphans:
        account, number = name, 1
        while name in there and account in known:
            number += 1
            account = f"{name}-{number}"
        if account not in known:
            known.add(account)
            _know(connection, account, name, at)
        connection.execute(
            sa.text(
                'UPDATE orphaned_jobs SET account = :account WHERE job IN (SELECT id FROM jobs WHERE "user" = :name)'
            ),
            {"account": account, "name": name},
        )


def _know(connection: sa.Connection, account: str, name: str, at: float) -> None:
    """Note that an id was given."""
    connection.execute(
        sa.text("INSERT INTO account_ids (id, name, at) VALUES (:id, :name, :at)"),
        {"id": account, "name": name, "at": at},
    )
