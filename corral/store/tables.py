"""The tables as the newest migration leaves them; a test compares both.

JSON is stored as text, so that it is passed through without decoding and reads the same on SQLite and PostgreSQL. Times
are seconds since 1970. The conditions of partial indexes are declared for SQLite only, because naming PostgreSQL
would load its dialect, which costs 3 MB; the migrations declare them for both. A job is three rows (list columns,
document, run), so that scanning a list does not read documents. Tenants declare tables of their own
(`corral.store.tenant_tables`).
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Double, Index, Integer, MetaData, Table, Text, text

from corral.store.benchmark_tables import benchmark_tables
from corral.store.cache_tables import cache_tables
from corral.store.filter_tables import filter_tables
from corral.store.profile_tables import profile_table
from corral.store.usage_tables import usage_tables

metadata = MetaData()

jobs = Table(
    "jobs",
    metadata,
    Column("id", Text, primary_key=True),
    Column("user", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("queue", Text, nullable=False),
    Column("priority", Integer, nullable=False),
    Column("job_type", Text, nullable=False),
    Column("phase", Text, nullable=False),
    Column("live", Boolean, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("started_at", Double),
    Column("ended_at", Double),
    Column("revision", Integer, nullable=False),
    Column("array_parent", Text, nullable=False),
    Column("tasks", Integer, nullable=False, server_default="0"),
    Column("device_millis", BigInteger, nullable=False, server_default="0"),
    Column("longest_seconds", BigInteger, nullable=False, server_default="0"),
    Index("jobs_by_name", "user", "name"),
    Index("jobs_by_queue", "queue", "id"),
    Index("jobs_by_phase", "phase", "id"),
    Index("jobs_by_id_and_title", "id", "name"),
    Index("jobs_by_standing", "queue", "phase"),
    Index("jobs_by_end", "ended_at", "id"),
    Index("jobs_by_title", "name", "id"),
    Index("jobs_by_priority", "priority", "id"),
    Index("jobs_live", "id", sqlite_where=text("live")),
    Index("jobs_live_of_user", "user", "tasks", sqlite_where=text("live")),
    Index("jobs_live_of_queue", "queue", sqlite_where=text("live")),
    Index("jobs_by_parent", "array_parent", sqlite_where=text("array_parent != ''")),
)

job_documents = Table(
    "job_documents",
    metadata,
    Column("job", Text, primary_key=True),
    Column("doc", Text, nullable=False),
)

job_files = Table(
    "job_files",
    metadata,
    Column("job", Text, primary_key=True),
    Column("text", Text, nullable=False),
    Column("parameters", Text, nullable=False),
)

job_runs = Table(
    "job_runs",
    metadata,
    Column("job", Text, primary_key=True),
    Column("run", Text, nullable=False),
    Column("summary", Text, nullable=False),
)

orphaned_jobs = Table(
    "orphaned_jobs",
    metadata,
    Column("job", Text, primary_key=True),
    Column("account", Text, nullable=False, server_default=""),
)

job_tags = Table(
    "job_tags",
    metadata,
    Column("tag", Text, primary_key=True),
    Column("job", Text, primary_key=True),
    Index("job_tags_by_job", "job"),
)

job_dependencies = Table(
    "job_dependencies",
    metadata,
    Column("job", Text, primary_key=True),
    Column("needs", Text, primary_key=True),
    Index("job_dependencies_by_need", "needs"),
)

history = Table(
    "history",
    metadata,
    Column("job", Text, primary_key=True),
    Column("user", Text, nullable=False),
    Column("queue", Text, nullable=False),
    Column("ended_at", Double),
    Column("removed_at", Double, nullable=False),
    Column("summary", Text, nullable=False),
)

tasks = Table(
    "tasks",
    metadata,
    Column("job", Text, primary_key=True),
    Column("role", Text, primary_key=True),
    Column("index", Integer, primary_key=True),
    Column("state", Text, nullable=False),
    Column("node", Text, nullable=False),
    Column("run", Text, nullable=False),
    Index("tasks_by_node", "node", sqlite_where=text("node != ''")),
)

attempts = Table(
    "attempts",
    metadata,
    Column("id", Text, primary_key=True),
    Column("job", Text, nullable=False),
    Column("job_attempt", Integer, nullable=False),
    Column("role", Text, nullable=False),
    Column("index", Integer, nullable=False),
    Column("task_attempt", Integer, nullable=False),
    Column("user", Text, nullable=False),
    Column("node", Text, nullable=False),
    Column("devices", Text, nullable=False),
    Column("host", Text, nullable=False),
    Column("ports", Text, nullable=False),
    Column("started_at", Double),
    Column("ended_at", Double),
    Column("code", Integer),
    Column("phrase", Text, nullable=False),
    Column("exit_class", Text, nullable=False),
    Column("diagnostics", Text, nullable=False),
    Column("millis", Integer, nullable=False, server_default="0"),
    Column("model", Text, nullable=False, server_default=""),
    Column("cpu_millis", BigInteger, nullable=False, server_default="0"),
    Column("memory_bytes", BigInteger, nullable=False, server_default="0"),
    Index("attempts_by_task", "job", "role", "index", "job_attempt", "task_attempt"),
)

events = Table(
    "events",
    metadata,
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("job", Text, nullable=False),
    Column("at", Double, nullable=False),
    Column("kind", Text, nullable=False),
    Column("intent", Boolean, nullable=False),
    Column("actor", Text, nullable=False),
    Column("message", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("index", Integer, nullable=False),
    Column("attempt", Text, nullable=False),
    Column("data", Text, nullable=False),
    Index("events_by_job", "job", "seq"),
    Index("events_intents", "seq", sqlite_where=text("intent")),
)

outbox = Table(
    "outbox",
    metadata,
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("job", Text, nullable=False),
    Column("command", Text, nullable=False),
)

receipts = Table(
    "receipts",
    metadata,
    Column("job", Text, primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("queue", Text, nullable=False),
    Column("by_queue", Text, nullable=False),
    Column("at", Double, nullable=False),
    Column("closed", Boolean, nullable=False),
    Column("doc", Text, nullable=False),
    Index("receipts_by_time", "at", "job", "number"),
    Index("receipts_by_queue", "queue", "at"),
    Index("receipts_open", "job", sqlite_where=text("NOT closed")),
)

ledger = Table(
    "ledger",
    metadata,
    Column("lender", Text, primary_key=True),
    Column("borrower", Text, primary_key=True),
    Column("device_seconds", Double, nullable=False),
    Column("device_millis", Integer, nullable=False),
    Column("since", Double, nullable=False),
    Column("at", Double, nullable=False),
)

queue_usage = Table(
    "queue_usage",
    metadata,
    Column("queue", Text, primary_key=True),
    Column("doc", Text, nullable=False),
)

user_usage = Table(
    "user_usage",
    metadata,
    Column("queue", Text, primary_key=True),
    Column("user", Text, primary_key=True),
    Column("doc", Text, nullable=False),
)

objects = Table(
    "objects",
    metadata,
    Column("uid", Text, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("namespace", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("job", Text, nullable=False),
    Column("fingerprint", Text, nullable=False),
    Column("at", Double, nullable=False),
    Index("objects_by_job", "job"),
)

cordons = Table(
    "cordons",
    metadata,
    Column("node", Text, primary_key=True),
    Column("doc", Text, nullable=False),
)

counters = Table(
    "counters",
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", BigInteger, nullable=False),
)

leadership = Table(
    "leadership",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("epoch", BigInteger, nullable=False),
    Column("renewals", BigInteger, nullable=False),
    Column("cursor", BigInteger, nullable=False),
    Column("holder", Text),
    Column("address", Text, nullable=False),
    Column("expires_at", Double, nullable=False),
)

idle_jobs = Table(
    "idle_jobs",
    metadata,
    Column("job", Text, primary_key=True),
    Column("open", Boolean, nullable=False),
    Column("at", Double, nullable=False),
    Column("doc", Text, nullable=False),
    Index("idle_jobs_by_time", "at"),
)

nodes = Table(
    "nodes",
    metadata,
    Column("name", Text, primary_key=True),
    Column("engine", Text, nullable=False),
    Column("doc", Text, nullable=False),
    Column("ready", Boolean, nullable=False),
    Column("seen_at", Double, nullable=False),
    Index("nodes_by_engine", "engine"),
)

queues = Table(
    "queues",
    metadata,
    Column("name", Text, primary_key=True),
    Column("doc", Text, nullable=False),
)

document_revisions = Table(
    "document_revisions",
    metadata,
    Column("kind", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("revision", Integer, primary_key=True, autoincrement=False),
    Column("doc", Text, nullable=False),
    Column("at", Double, nullable=False),
    Column("actor", Text, nullable=False),
    Column("note", Text, nullable=False),
    Column("deleted", Boolean, nullable=False),
)

documents = Table(
    "documents",
    metadata,
    Column("kind", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("revision", Integer, nullable=False),
)

users = Table(
    "users",
    metadata,
    Column("name", Text, primary_key=True),
    Column("role", Text, nullable=False),
    Column("groups", Text, nullable=False),
    Column("password_hash", Text, nullable=False),
    Column("uid", Integer),
    Column("created_at", Double, nullable=False),
    Column("disabled", Boolean, nullable=False),
    Column("email", Text, nullable=False, server_default=""),
    Column("extension", Text, nullable=False, server_default="{}"),
    Column("id", Text, nullable=False, server_default=""),
    Column("max_priority", Integer),
)

account_ids = Table(
    "account_ids",
    metadata,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("at", Double, nullable=False),
)

submissions = Table(
    "submissions",
    metadata,
    Column("user", Text, primary_key=True),
    Column("api", Text, primary_key=True),
    Column("since", Double, nullable=False),
    Column("number", Integer, nullable=False),
)

estimates = Table(
    "estimates",
    metadata,
    Column("job", Text, primary_key=True),
    Column("at", Double, primary_key=True),
    Column("queue", Text, nullable=False),
    Column("given", Text, nullable=False),
    Column("started", Double),
    Column("ended", Double),
    Index("estimates_by_time", "at"),
    Index("estimates_open", "job", sqlite_where=text("started IS NULL AND ended IS NULL")),
)

attempt_use, usage_days = usage_tables(metadata)
compile_caches, compile_cache_uses, compile_cache_garbage = cache_tables(metadata)
profiles = profile_table(metadata)
saved_filters = filter_tables(metadata)
benchmark_runs, benchmark_figures = benchmark_tables(metadata)

budgets = Table(
    "budgets",
    metadata,
    Column("kind", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("window", Text, primary_key=True),
    Column("device_hours", Double, nullable=False),
    Column("warn_at", Double, nullable=False),
    Column("at", Double, nullable=False),
    Column("actor", Text, nullable=False),
    Column("when_used_up", Text, nullable=False, server_default="warn"),
)

budget_top_ups = Table(
    "budget_top_ups",
    metadata,
    Column("kind", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("window", Text, primary_key=True),
    Column("since", Double, primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("device_hours", Double, nullable=False),
    Column("at", Double, nullable=False),
    Column("actor", Text, nullable=False),
    Column("reason", Text, nullable=False),
)

node_health = Table(
    "node_health",
    metadata,
    Column("node", Text, primary_key=True),
    Column("doc", Text, nullable=False),
)

health_history = Table(
    "health_history",
    metadata,
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("node", Text, nullable=False),
    Column("at", Double, nullable=False),
    Column("doc", Text, nullable=False),
    Index("health_history_by_node", "node", "seq"),
)

health_figures = Table(
    "health_figures",
    metadata,
    Column("node", Text, primary_key=True),
    Column("alike", Text, nullable=False),
    Column("at", Double, nullable=False),
    Column("figures", Text, nullable=False),
    Index("health_figures_by_alike", "alike"),
)

alerts = Table(
    "alerts",
    metadata,
    Column("source", Text, primary_key=True),
    Column("fingerprint", Text, primary_key=True),
    Column("doc", Text, nullable=False),
)

alert_history = Table(
    "alert_history",
    metadata,
    Column("source", Text, primary_key=True),
    Column("fingerprint", Text, primary_key=True),
    Column("fired_at", Double, primary_key=True),
    Column("ended_at", Double, nullable=False),
    Column("about", Text, nullable=False),
    Column("doc", Text, nullable=False),
    Index("alert_history_by_time", "fired_at"),
)

silences = Table(
    "silences",
    metadata,
    Column("id", Text, primary_key=True),
    Column("ends_at", Double, nullable=False),
    Column("doc", Text, nullable=False),
)

groups = Table(
    "groups",
    metadata,
    Column("name", Text, primary_key=True),
    Column("queues", Text, nullable=False),
    Column("storages", Text, nullable=False),
    Column("description", Text, nullable=False, server_default=""),
    Column("external_name", Text, nullable=False, server_default=""),
    Column("extension", Text, nullable=False, server_default="{}"),
    Column("admin", Boolean, nullable=False, server_default=text("0")),
    Column("manages", Text, nullable=False, server_default="[]"),
    Column("max_priority", Integer),
)

tokens = Table(
    "tokens",
    metadata,
    Column("id", Text, primary_key=True),
    Column("hash", Text, nullable=False, unique=True),
    Column("user", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("expires_at", Double),
    Column("last_used_at", Double),
    Column("revoked_at", Double),
    Index("tokens_by_user", "user"),
)

openid_identities = Table(
    "openid_identities",
    metadata,
    Column("issuer", Text, primary_key=True),
    Column("subject", Text, primary_key=True),
    Column("user", Text, nullable=False),
    Column("at", Double, nullable=False),
    Index("openid_identities_by_user", "user"),
)

openid_sessions = Table(
    "openid_sessions",
    metadata,
    Column("token", Text, primary_key=True),
    Column("issuer", Text, nullable=False),
    Column("session", Text, nullable=False),
    Column("at", Double, nullable=False),
    Index("openid_sessions_by_session", "issuer", "session"),
)

login_links = Table(
    "login_links",
    metadata,
    Column("hash", Text, primary_key=True),
    Column("user", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("expires_at", Double, nullable=False),
    Column("used_at", Double),
)

secrets = Table(
    "secrets",
    metadata,
    Column("owner", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("sealed", Text, nullable=False),
    Column("created_at", Double, nullable=False),
)

idempotency = Table(
    "idempotency",
    metadata,
    Column("user", Text, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("job", Text, nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("request_hash", Text, nullable=False),
    Column("at", Double, nullable=False),
    Index("idempotency_by_time", "at"),
)

audit = Table(
    "audit",
    metadata,
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("at", Double, nullable=False),
    Column("actor", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("resource", Text, nullable=False),
    Column("rule", Text, nullable=False),
    Column("allowed", Boolean, nullable=False),
    Column("detail", Text, nullable=False),
    Index("audit_by_actor", "actor", "seq"),
)

blobs = Table(
    "blobs",
    metadata,
    Column("digest", Text, primary_key=True),
    Column("user", Text, primary_key=True),
    Column("size", BigInteger, nullable=False),
    Column("at", Double, nullable=False),
)

questions = Table(
    "questions",
    metadata,
    Column("number", Text, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("user", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("running", Boolean, nullable=False),
    Column("cancelled", Boolean, nullable=False),
    Column("at", Double, nullable=False),
    Column("doc", Text, nullable=False),
    Column("answer", Text, nullable=False),
    Index("questions_by_user", "user", "kind"),
)

settings = Table(
    "settings",
    metadata,
    Column("key", Text, primary_key=True),
    Column("value", Text, nullable=False),
)

notify_channels = Table(
    "notify_channels",
    metadata,
    Column("id", Text, primary_key=True),
    Column("user", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("shown", Text, nullable=False),
    Column("events", Text, nullable=False),
    Column("waiting", Integer, nullable=False),
    Column("jobs", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("verified_at", Double),
    Column("code_at", Double, nullable=False),
    Column("codes", Integer, nullable=False),
    Column("wrong", Integer, nullable=False),
    Index("notify_channels_by_user", "user", "name", unique=True),
)

notify_outbox = Table(
    "notify_outbox",
    metadata,
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    Column("key", Text, nullable=False, unique=True),
    Column("user", Text, nullable=False),
    Column("channel", Text, nullable=False),
    Column("channel_name", Text, nullable=False),
    Column("message", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("tries", Integer, nullable=False),
    Column("made_at", Double, nullable=False),
    Column("next_at", Double, nullable=False),
    Column("error", Text, nullable=False),
    Index("notify_outbox_by_user", "user", "id"),
    Index("notify_outbox_queued", "next_at", sqlite_where=text("state = 'queued'")),
)
