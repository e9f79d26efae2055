"""The first form of the store."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

SERIAL = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "actions",
        sa.Column("id", SERIAL, nullable=False),
        sa.Column("job", sa.Text(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("mode", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("expires", sa.BigInteger()),
        sa.Column("undone", sa.BigInteger()),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(op.f("ix_actions_job"), "actions", ["job"], unique=False)
    op.create_table(
        "audit",
        sa.Column("id", SERIAL, nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("who", sa.Text(), nullable=False),
        sa.Column("what", sa.Text(), nullable=False),
        sa.Column("job", sa.Text()),
        sa.Column("detail", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(op.f("ix_audit_job"), "audit", ["job"], unique=False)
    op.create_table(
        "cases",
        sa.Column("id", SERIAL, nullable=False),
        sa.Column("cause", sa.Text(), nullable=False),
        sa.Column("job", sa.Text(), nullable=False),
        sa.Column("opened", sa.BigInteger(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("document", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("cause"),
    )
    op.create_table(
        "imports",
        sa.Column("id", SERIAL, nullable=False),
        sa.Column("identity", sa.Text(), nullable=False),
        sa.Column("started", sa.BigInteger(), nullable=False),
        sa.Column("finished", sa.BigInteger()),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("read", sa.BigInteger(), nullable=False),
        sa.Column("new", sa.BigInteger(), nullable=False),
        sa.Column("updated", sa.BigInteger(), nullable=False),
        sa.Column("unchanged", sa.BigInteger(), nullable=False),
        sa.Column("rejected", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(op.f("ix_imports_identity"), "imports", ["identity"], unique=False)
    op.create_table(
        "jobs",
        sa.Column("cluster", sa.Text(), nullable=False),
        sa.Column("job_id", sa.BigInteger(), nullable=False),
        sa.Column("task", sa.BigInteger(), nullable=False),
        sa.Column("submit", sa.BigInteger(), nullable=False),
        sa.Column("raw_id", sa.BigInteger()),
        sa.Column("array", sa.Text()),
        sa.Column("array_tasks", sa.BigInteger()),
        sa.Column("het_id", sa.BigInteger()),
        sa.Column("het_offset", sa.BigInteger()),
        sa.Column("name", sa.Text()),
        sa.Column("user", sa.Text()),
        sa.Column("uid", sa.BigInteger()),
        sa.Column("group", sa.Text()),
        sa.Column("gid", sa.BigInteger()),
        sa.Column("account", sa.Text()),
        sa.Column("partition", sa.Text()),
        sa.Column("qos", sa.Text()),
        sa.Column("reservation", sa.Text()),
        sa.Column("executable", sa.Text()),
        sa.Column("command", sa.Text()),
        sa.Column("submit_line", sa.Text()),
        sa.Column("work_dir", sa.Text()),
        sa.Column("script", sa.Text()),
        sa.Column("interactive", sa.Boolean()),
        sa.Column("req_nodes", sa.BigInteger()),
        sa.Column("req_cpus", sa.BigInteger()),
        sa.Column("req_tasks", sa.BigInteger()),
        sa.Column("cpus_per_task", sa.BigInteger()),
        sa.Column("tasks_per_node", sa.BigInteger()),
        sa.Column("req_memory", sa.BigInteger()),
        sa.Column("req_gpus", sa.BigInteger()),
        sa.Column("req_gres", sa.Text()),
        sa.Column("req_tres", sa.Text()),
        sa.Column("time_limit", sa.BigInteger()),
        sa.Column("time_min", sa.BigInteger()),
        sa.Column("begin", sa.BigInteger()),
        sa.Column("dependency", sa.Text()),
        sa.Column("constraints", sa.Text()),
        sa.Column("licenses", sa.Text()),
        sa.Column("req_node_list", sa.Text()),
        sa.Column("exclude_nodes", sa.Text()),
        sa.Column("exclusive", sa.Boolean()),
        sa.Column("requeue", sa.Boolean()),
        sa.Column("priority", sa.BigInteger()),
        sa.Column("eligible", sa.BigInteger()),
        sa.Column("start", sa.BigInteger()),
        sa.Column("node_list", sa.Text()),
        sa.Column("alloc_nodes", sa.BigInteger()),
        sa.Column("alloc_cpus", sa.BigInteger()),
        sa.Column("alloc_memory", sa.BigInteger()),
        sa.Column("alloc_gpus", sa.BigInteger()),
        sa.Column("alloc_tres", sa.Text()),
        sa.Column("segment", sa.Text()),
        sa.Column("state", sa.Text()),
        sa.Column("outcome", sa.Text()),
        sa.Column("end", sa.BigInteger()),
        sa.Column("exit_code", sa.BigInteger()),
        sa.Column("exit_signal", sa.BigInteger()),
        sa.Column("cancelled_by", sa.BigInteger()),
        sa.Column("elapsed", sa.BigInteger()),
        sa.Column("cpu_seconds", sa.BigInteger()),
        sa.Column("user_cpu_seconds", sa.BigInteger()),
        sa.Column("system_cpu_seconds", sa.BigInteger()),
        sa.Column("max_memory", sa.BigInteger()),
        sa.Column("read_bytes", sa.BigInteger()),
        sa.Column("written_bytes", sa.BigInteger()),
        sa.Column("energy", sa.Double()),
        sa.Column("power", sa.Double()),
        sa.Column("idle_seconds", sa.Double()),
        sa.Column("memory_bandwidth", sa.Double()),
        sa.Column("flops", sa.Double()),
        sa.Column("steps", sa.BigInteger()),
        sa.Column("source", sa.Text()),
        sa.Column("known_at", sa.BigInteger()),
        sa.Column("request_final", sa.Boolean()),
        sa.Column("intervened", sa.Boolean()),
        sa.PrimaryKeyConstraint("submit", "job_id", "task", "cluster", name="jobs_key"),
    )
    op.create_index("jobs_by_end", "jobs", ["end"], unique=False)
    op.create_index("jobs_by_id", "jobs", ["job_id"], unique=False)
    op.create_index("jobs_by_user", "jobs", ["user"], unique=False)
    op.create_table(
        "verdicts",
        sa.Column("id", SERIAL, nullable=False),
        sa.Column("job", sa.Text(), nullable=False),
        sa.Column("stage", sa.Text(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("level", sa.Text(), nullable=False),
        sa.Column("late", sa.Boolean(), nullable=False),
        sa.Column("document", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("job", "stage", "seq", name="verdicts_once"),
    )
    op.create_index(op.f("ix_verdicts_at"), "verdicts", ["at"], unique=False)
    op.create_table(
        "feedback",
        sa.Column("id", SERIAL, nullable=False),
        sa.Column("case", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("who", sa.Text(), nullable=False),
        sa.Column("answer", sa.Text(), nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["case"],
            ["cases.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(op.f("ix_feedback_case"), "feedback", ["case"], unique=False)
    op.create_table(
        "outbox",
        sa.Column("id", SERIAL, nullable=False),
        sa.Column("sink", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("reference", sa.Text(), nullable=False),
        sa.Column("document", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("sink", "kind", "reference", name="outbox_once"),
    )
    op.create_index("outbox_by_sink", "outbox", ["sink", "id"], unique=False)
    op.create_table(
        "allow",
        sa.Column("id", SERIAL, nullable=False),
        sa.Column("operation", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("since", sa.BigInteger()),
        sa.Column("until", sa.BigInteger()),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("granted_by", sa.Text(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("removed", sa.BigInteger()),
        sa.Column("removed_by", sa.Text()),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "screenings",
        sa.Column("job", sa.Text(), nullable=False),
        sa.Column("cluster", sa.Text(), nullable=False),
        sa.Column("user", sa.Text(), nullable=False),
        sa.Column("submit", sa.BigInteger(), nullable=False),
        sa.Column("operations", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("job"),
    )
    op.create_index("screenings_by_user", "screenings", ["user", "submit"], unique=False)
    op.create_table(
        "habit_hints",
        sa.Column("job", sa.Text(), nullable=False),
        sa.Column("cluster", sa.Text(), nullable=False),
        sa.Column("user", sa.Text(), nullable=False),
        sa.Column("operation", sa.Text(), nullable=False),
        sa.Column("submit", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("job", "operation"),
    )
    op.create_index("habit_hints_by_user", "habit_hints", ["user", "submit"], unique=False)
