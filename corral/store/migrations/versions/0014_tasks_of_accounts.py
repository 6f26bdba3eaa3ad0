"""What one account may have waiting and running is bounded, so a job's row has its number of tasks."""

import json

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    """Add the number of tasks that wait or run to jobs, from the summaries of those that are not over."""
    op.add_column("jobs", sa.Column("tasks", sa.Integer(), nullable=False, server_default="0"))
    connection = op.get_bind()
    live = connection.execute(
        sa.text(
            "SELECT job_runs.job, job_runs.summary FROM job_runs JOIN jobs ON jobs.id = job_runs.job WHERE jobs.live"
        )
    ).all()
    for job, summary in live:
        counts = json.loads(summary).get("tasks", {})
        tasks = counts.get("waiting", 0) + counts.get("running", 0) or counts.get("total", 0)
        connection.execute(sa.text("UPDATE jobs SET tasks = :tasks WHERE id = :job"), {"tasks": tasks, "job": job})
    op.create_index(
        "jobs_live_of_user",
        "jobs",
        ["user", "tasks"],
        sqlite_where=sa.text("live"),
        postgresql_where=sa.text("live"),
    )
