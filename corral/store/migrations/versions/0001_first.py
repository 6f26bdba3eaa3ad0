"""Create the first schema."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make every table, the counters at 0 and the leadership's one row, which nobody holds."""
    _attempts()
    _audit()
    _blobs()
    _counters()
    _events()
    _groups()
    _history()
    _idempotency()
    _job_dependencies()
    _job_documents()
    _job_runs()
    _job_tags()
    _jobs()
    _leadership()
    _login_links()
    _nodes()
    _outbox()
    _queues()
    _secrets()
    _settings()
    _tasks()
    _tokens()
    _users()
    op.execute("INSERT INTO counters (name, value) VALUES ('event', 0), ('outbox', 0), ('audit', 0)")
    op.execute("INSERT INTO leadership (id, epoch, renewals, cursor, address, expires_at) VALUES (1, 0, 0, 0, '', 0)")


def _attempts() -> None:
    op.create_table(
        "attempts",
        sa.Column("id", sa.Text(), primary_key=True),
        sa.Column("job", sa.Text(), nullable=False),
        sa.Column("job_attempt", sa.Integer(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("index", sa.Integer(), nullable=False),
        sa.Column("task_attempt", sa.Integer(), nullable=False),
        sa.Column("user", sa.Text(), nullable=False),
        sa.Column("node", sa.Text(), nullable=False),
        sa.Column("devices", sa.Text(), nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("ports", sa.Text(), nullable=False),
        sa.Column("started_at", sa.Double()),
        sa.Column("ended_at", sa.Double()),
        sa.Column("code", sa.Integer()),
        sa.Column("phrase", sa.Text(), nullable=False),
        sa.Column("exit_class", sa.Text(), nullable=False),
        sa.Column("diagnostics", sa.Text(), nullable=False),
    )
    op.create_index("attempts_by_task", "attempts", ["job", "role", "index", "job_attempt", "task_attempt"])


def _audit() -> None:
    op.create_table(
        "audit",
        sa.Column("seq", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("resource", sa.Text(), nullable=False),
        sa.Column("rule", sa.Text(), nullable=False),
        sa.Column("allowed", sa.Boolean(), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
    )
    op.create_index("audit_by_actor", "audit", ["actor", "seq"])


def _blobs() -> None:
    op.create_table(
        "blobs",
        sa.Column("digest", sa.Text(), primary_key=True),
        sa.Column("user", sa.Text(), primary_key=True),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
    )


def _counters() -> None:
    op.create_table(
        "counters",
        sa.Column("name", sa.Text(), primary_key=True),
        sa.Column("value", sa.BigInteger(), nullable=False),
    )


def _events() -> None:
    op.create_table(
        "events",
        sa.Column("seq", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("job", sa.Text(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("intent", sa.Boolean(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("index", sa.Integer(), nullable=False),
        sa.Column("attempt", sa.Text(), nullable=False),
        sa.Column("data", sa.Text(), nullable=False),
    )
    op.create_index("events_by_job", "events", ["job", "seq"])
    op.create_index(
        "events_intents",
        "events",
        ["seq"],
        sqlite_where=sa.text("intent"),
        postgresql_where=sa.text("intent"),
    )


def _groups() -> None:
    op.create_table(
        "groups",
        sa.Column("name", sa.Text(), primary_key=True),
        sa.Column("queues", sa.Text(), nullable=False),
        sa.Column("storages", sa.Text(), nullable=False),
    )


def _history() -> None:
    op.create_table(
        "history",
        sa.Column("job", sa.Text(), primary_key=True),
        sa.Column("user", sa.Text(), nullable=False),
        sa.Column("queue", sa.Text(), nullable=False),
        sa.Column("ended_at", sa.Double()),
        sa.Column("removed_at", sa.Double(), nullable=False),
        sa.Column("summary", sa.Text(), nullable=False),
    )


def _idempotency() -> None:
    op.create_table(
        "idempotency",
        sa.Column("user", sa.Text(), primary_key=True),
        sa.Column("key", sa.Text(), primary_key=True),
        sa.Column("job", sa.Text(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("request_hash", sa.Text(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
    )
    op.create_index("idempotency_by_time", "idempotency", ["at"])


def _job_dependencies() -> None:
    op.create_table(
        "job_dependencies",
        sa.Column("job", sa.Text(), primary_key=True),
        sa.Column("needs", sa.Text(), primary_key=True),
    )
    op.create_index("job_dependencies_by_need", "job_dependencies", ["needs"])


def _job_documents() -> None:
    op.create_table(
        "job_documents",
        sa.Column("job", sa.Text(), primary_key=True),
        sa.Column("doc", sa.Text(), nullable=False),
    )


def _job_runs() -> None:
    op.create_table(
        "job_runs",
        sa.Column("job", sa.Text(), primary_key=True),
        sa.Column("run", sa.Text(), nullable=False),
        sa.Column("summary", sa.Text(), nullable=False),
    )


def _job_tags() -> None:
    op.create_table(
        "job_tags",
        sa.Column("tag", sa.Text(), primary_key=True),
        sa.Column("job", sa.Text(), primary_key=True),
    )
    op.create_index("job_tags_by_job", "job_tags", ["job"])


def _jobs() -> None:
    op.create_table(
        "jobs",
        sa.Column("id", sa.Text(), primary_key=True),
        sa.Column("user", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("queue", sa.Text(), nullable=False),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("job_type", sa.Text(), nullable=False),
        sa.Column("phase", sa.Text(), nullable=False),
        sa.Column("live", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("started_at", sa.Double()),
        sa.Column("ended_at", sa.Double()),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("array_parent", sa.Text(), nullable=False),
    )
    op.create_index("jobs_by_end", "jobs", ["ended_at", "id"])
    op.create_index("jobs_by_name", "jobs", ["user", "name"])
    op.create_index(
        "jobs_by_parent",
        "jobs",
        ["array_parent"],
        sqlite_where=sa.text("array_parent != ''"),
        postgresql_where=sa.text("array_parent != ''"),
    )
    op.create_index("jobs_by_phase", "jobs", ["phase", "id"])
    op.create_index("jobs_by_priority", "jobs", ["priority", "id"])
    op.create_index("jobs_by_queue", "jobs", ["queue", "id"])
    op.create_index("jobs_by_title", "jobs", ["name", "id"])
    op.create_index("jobs_live", "jobs", ["id"], sqlite_where=sa.text("live"), postgresql_where=sa.text("live"))


def _leadership() -> None:
    op.create_table(
        "leadership",
        sa.Column("id", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("renewals", sa.BigInteger(), nullable=False),
        sa.Column("cursor", sa.BigInteger(), nullable=False),
        sa.Column("holder", sa.Text()),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("expires_at", sa.Double(), nullable=False),
    )


def _login_links() -> None:
    op.create_table(
        "login_links",
        sa.Column("hash", sa.Text(), primary_key=True),
        sa.Column("user", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("expires_at", sa.Double(), nullable=False),
        sa.Column("used_at", sa.Double()),
    )


def _nodes() -> None:
    op.create_table(
        "nodes",
        sa.Column("name", sa.Text(), primary_key=True),
        sa.Column("engine", sa.Text(), nullable=False),
        sa.Column("doc", sa.Text(), nullable=False),
        sa.Column("ready", sa.Boolean(), nullable=False),
        sa.Column("seen_at", sa.Double(), nullable=False),
    )
    op.create_index("nodes_by_engine", "nodes", ["engine"])


def _outbox() -> None:
    op.create_table(
        "outbox",
        sa.Column("seq", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("job", sa.Text(), nullable=False),
        sa.Column("command", sa.Text(), nullable=False),
    )


def _queues() -> None:
    op.create_table(
        "queues",
        sa.Column("name", sa.Text(), primary_key=True),
        sa.Column("doc", sa.Text(), nullable=False),
    )


def _secrets() -> None:
    op.create_table(
        "secrets",
        sa.Column("owner", sa.Text(), primary_key=True),
        sa.Column("name", sa.Text(), primary_key=True),
        sa.Column("sealed", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
    )


def _settings() -> None:
    op.create_table(
        "settings",
        sa.Column("key", sa.Text(), primary_key=True),
        sa.Column("value", sa.Text(), nullable=False),
    )


def _tasks() -> None:
    op.create_table(
        "tasks",
        sa.Column("job", sa.Text(), primary_key=True),
        sa.Column("role", sa.Text(), primary_key=True),
        sa.Column("index", sa.Integer(), primary_key=True),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("node", sa.Text(), nullable=False),
        sa.Column("run", sa.Text(), nullable=False),
    )
    op.create_index(
        "tasks_by_node",
        "tasks",
        ["node"],
        sqlite_where=sa.text("node != ''"),
        postgresql_where=sa.text("node != ''"),
    )


def _tokens() -> None:
    op.create_table(
        "tokens",
        sa.Column("id", sa.Text(), primary_key=True),
        sa.Column("hash", sa.Text(), nullable=False, unique=True),
        sa.Column("user", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("expires_at", sa.Double()),
        sa.Column("last_used_at", sa.Double()),
        sa.Column("revoked_at", sa.Double()),
    )
    op.create_index("tokens_by_user", "tokens", ["user"])


def _users() -> None:
    op.create_table(
        "users",
        sa.Column("name", sa.Text(), primary_key=True),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("groups", sa.Text(), nullable=False),
        sa.Column("password_hash", sa.Text(), nullable=False),
        sa.Column("uid", sa.Integer()),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("disabled", sa.Boolean(), nullable=False),
    )
