"""Jobs outlive their account, and a uid its user: neither goes to an account that is made later under the same name."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    """Note which jobs have no account any more, and up to which number uids were given.

    Of deleted accounts no uid is known: each may have had one above the highest that is there.
    """
    op.create_table("orphaned_jobs", sa.Column("job", sa.Text(), primary_key=True))
    op.execute(
        "INSERT INTO orphaned_jobs SELECT id FROM jobs WHERE NOT live AND NOT EXISTS (SELECT 1 FROM users "
        'WHERE users.name = jobs."user" AND users.created_at <= jobs.created_at)'
    )
    op.execute(
        "INSERT INTO counters (name, value) SELECT 'uid', "
        "CASE WHEN (SELECT COALESCE(MAX(uid), 0) FROM users) < 100000 THEN 99999 ELSE (SELECT MAX(uid) FROM users) END"
        " + (SELECT COUNT(*) FROM audit WHERE action = 'user.delete' AND allowed)"
    )
