"""The tables in SQLAlchemy Core; the migrations create exactly these.

Other tables refer to a job by its key as text (`lab:17_4@1794775393`), so that they outlive the job's own row.
Instants are UTC epoch seconds.
"""

from typing import Any

import sqlalchemy as sa

from tocsin.core.fields import FIELDS, KEY, ValueType

__all__ = [
    "METADATA",
    "NO_TASK",
    "actions",
    "allow",
    "audit",
    "cases",
    "causes",
    "challenger_scores",
    "feedback",
    "habit_hints",
    "imports",
    "jobs",
    "key_text",
    "learning_runs",
    "outbox",
    "screenings",
    "sink_states",
    "tokens",
    "verdicts",
]

NO_TASK = -1
"""Marks a job that is not a task of an array: nulls in a unique key are never equal."""

METADATA = sa.MetaData()

_TYPES: dict[ValueType, type[sa.types.TypeEngine[Any]]] = {
    ValueType.TEXT: sa.Text,
    ValueType.COUNT: sa.BigInteger,
    ValueType.NUMBER: sa.Double,
    ValueType.FLAG: sa.Boolean,
    ValueType.INSTANT: sa.BigInteger,
    ValueType.SECONDS: sa.BigInteger,
    ValueType.BYTES: sa.BigInteger,
}

# SQLite autoincrements only columns of the type INTEGER.
_SERIAL = sa.BigInteger().with_variant(sa.Integer, "sqlite")

jobs = sa.Table(
    "jobs",
    METADATA,
    *(sa.Column(f.name, _TYPES[f.type], nullable=f.name not in KEY) for f in FIELDS.values()),
    # By submit first: imports come in that order, so the tree grows at its end, and listings use it.
    sa.PrimaryKeyConstraint("submit", "job_id", "task", "cluster", name="jobs_key"),
    sa.Index("jobs_by_id", "job_id"),
    sa.Index("jobs_by_end", "end"),
    sa.Index("jobs_by_user", "user"),
)

imports = sa.Table(
    "imports",
    METADATA,
    sa.Column("id", _SERIAL, primary_key=True),
    sa.Column("identity", sa.Text, nullable=False, index=True, doc="what was read; see JobSource.identity"),
    sa.Column("started", sa.BigInteger, nullable=False),
    sa.Column("finished", sa.BigInteger, doc="absent while it runs and after it was interrupted"),
    sa.Column("position", sa.BigInteger, nullable=False, doc="all up to here is stored"),
    sa.Column("read", sa.BigInteger, nullable=False),
    sa.Column("new", sa.BigInteger, nullable=False),
    sa.Column("updated", sa.BigInteger, nullable=False),
    sa.Column("unchanged", sa.BigInteger, nullable=False),
    sa.Column("rejected", sa.JSON, nullable=False, doc="{reason: records}"),
)

verdicts = sa.Table(
    "verdicts",
    METADATA,
    sa.Column("id", _SERIAL, primary_key=True),
    sa.Column("job", sa.Text, nullable=False),
    sa.Column("stage", sa.Text, nullable=False),
    sa.Column("seq", sa.BigInteger, nullable=False),
    sa.Column("at", sa.BigInteger, nullable=False, index=True),
    sa.Column("level", sa.Text, nullable=False),
    sa.Column("late", sa.Boolean, nullable=False, doc="scored after its stage, from what was known then"),
    sa.Column("document", sa.JSON, nullable=False, doc="the whole verdict"),
    sa.UniqueConstraint("job", "stage", "seq", name="verdicts_once"),
)

outbox = sa.Table(
    "outbox",
    METADATA,
    sa.Column("id", _SERIAL, primary_key=True),
    sa.Column("sink", sa.Text, nullable=False),
    sa.Column("kind", sa.Text, nullable=False, doc="verdict, case, action, job"),
    sa.Column(
        "reference", sa.Text, nullable=False, doc="the id of the verdict, the number of the case or action"
    ),
    sa.Column("document", sa.JSON, nullable=False, doc="what is sent"),
    sa.UniqueConstraint("sink", "kind", "reference", name="outbox_once"),
    sa.Index("outbox_by_sink", "sink", "id"),
)
"""Messages to be sent; a row is deleted once its sink has taken it. Pruning does not touch them."""

sink_states = sa.Table(
    "sink_states",
    METADATA,
    sa.Column("sink", sa.Text, primary_key=True),
    sa.Column("sent", sa.BigInteger, nullable=False, doc="messages that it has taken"),
    sa.Column("refused", sa.BigInteger, nullable=False, doc="messages that it will never take"),
    sa.Column("dropped", sa.BigInteger, nullable=False, doc="messages dropped because too many waited"),
    sa.Column("last", sa.BigInteger, nullable=False, doc="when it last took some; 0: never"),
    sa.Column("problem", sa.Text, nullable=False, doc="why it does not answer; empty: it does"),
    sa.Column("since", sa.BigInteger, nullable=False, doc="when that problem began"),
)
"""Delivery of the messages of each sink."""

cases = sa.Table(
    "cases",
    METADATA,
    sa.Column("id", _SERIAL, primary_key=True),
    sa.Column("cause", sa.Text, nullable=False, unique=True, doc="the same cause never rings twice"),
    sa.Column("job", sa.Text, nullable=False, doc="the job that it was opened for"),
    sa.Column("opened", sa.BigInteger, nullable=False),
    sa.Column("status", sa.Text, nullable=False, doc="open, confirmed, dismissed"),
    sa.Column("document", sa.JSON, nullable=False, doc="what was seen"),
)

feedback = sa.Table(
    "feedback",
    METADATA,
    sa.Column("id", _SERIAL, primary_key=True),
    sa.Column("case", sa.BigInteger, sa.ForeignKey("cases.id"), nullable=False, index=True),
    sa.Column("at", sa.BigInteger, nullable=False),
    sa.Column("who", sa.Text, nullable=False),
    sa.Column("answer", sa.Text, nullable=False, doc="confirmed, dismissed"),
    sa.Column("note", sa.Text, nullable=False),
)
"""Every answer to a case; the last one is the case's status."""

audit = sa.Table(
    "audit",
    METADATA,
    sa.Column("id", _SERIAL, primary_key=True),
    sa.Column("at", sa.BigInteger, nullable=False),
    sa.Column("who", sa.Text, nullable=False),
    sa.Column("what", sa.Text, nullable=False),
    sa.Column("job", sa.Text, index=True),
    sa.Column("detail", sa.JSON, nullable=False),
)
"""Who did what and when; rows are added and never changed."""

actions = sa.Table(
    "actions",
    METADATA,
    sa.Column("id", _SERIAL, primary_key=True),
    sa.Column("cluster", sa.Text, nullable=False),
    sa.Column("job", sa.Text, nullable=False),
    sa.Column("kind", sa.Text, nullable=False, doc="notify, comment, lease, hold, cancel"),
    sa.Column("status", sa.Text, nullable=False, index=True),
    sa.Column("at", sa.BigInteger, nullable=False, index=True, doc="when it was planned"),
    sa.Column("expires", sa.BigInteger, doc="when a lease or hold ends at the latest"),
    sa.Column("done", sa.BigInteger, doc="when it was carried out"),
    sa.Column("ended", sa.BigInteger, doc="when it was released, or over"),
    sa.Column("stage", sa.Text, nullable=False, doc="of the verdict that it rests on"),
    sa.Column("seq", sa.BigInteger, nullable=False),
    sa.Column("detector", sa.Text, nullable=False),
    sa.Column("finding", sa.Text, nullable=False, doc="its kind"),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("user", sa.Text, doc="the owner of the job"),
    sa.Column("cause", sa.Text, doc="of the case that it belongs to"),
    sa.Column("note", sa.Text, nullable=False, doc="why it stands as it does"),
    sa.Column("before", sa.JSON, nullable=False, doc="what it changed, to be restored"),
    sa.UniqueConstraint("job", "kind", name="actions_once"),
)
"""The current state of actions on jobs; every step is also a row of the audit. A job gets one action of each kind."""

allow = sa.Table(
    "allow",
    METADATA,
    sa.Column("id", _SERIAL, primary_key=True),
    sa.Column("operation", sa.Text, nullable=False),
    sa.Column("kind", sa.Text, nullable=False, doc="user, account, group; default: the rule for all others"),
    sa.Column("name", sa.Text, nullable=False, doc="who is listed; of a default: allowed, listed, never"),
    sa.Column("since", sa.BigInteger, doc="counts from then on; absent: always did"),
    sa.Column("until", sa.BigInteger, doc="counts up to then; absent: for ever"),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("granted_by", sa.Text, nullable=False),
    sa.Column("at", sa.BigInteger, nullable=False, doc="when it was written down"),
    sa.Column("removed", sa.BigInteger, doc="when it was taken back"),
    sa.Column("removed_by", sa.Text),
)
"""Who may run which operation; rows are revoked and never deleted."""

screenings = sa.Table(
    "screenings",
    METADATA,
    sa.Column("job", sa.Text, primary_key=True),
    sa.Column("cluster", sa.Text, nullable=False),
    sa.Column("user", sa.Text, nullable=False),
    sa.Column("submit", sa.BigInteger, nullable=False),
    sa.Column("operations", sa.JSON, nullable=False, doc="{operation: probability} by the script"),
    sa.Index("screenings_by_user", "user", "submit"),
)
"""The operations of each screened job by its script; users' habits are read from here."""

habit_hints = sa.Table(
    "habit_hints",
    METADATA,
    sa.Column("job", sa.Text, primary_key=True),
    sa.Column("cluster", sa.Text, nullable=False),
    sa.Column("user", sa.Text, nullable=False),
    sa.Column("operation", sa.Text, primary_key=True),
    sa.Column("submit", sa.BigInteger, nullable=False),
    sa.Index("habit_hints_by_user", "user", "submit"),
)
"""Hints of stolen credentials that were reported."""

tokens = sa.Table(
    "tokens",
    METADATA,
    sa.Column("id", _SERIAL, primary_key=True),
    sa.Column("hash", sa.Text, nullable=False, unique=True, doc="SHA-256 of the secret, which is not stored"),
    sa.Column("kind", sa.Text, nullable=False, doc="api, relay, session, login"),
    sa.Column("label", sa.Text, nullable=False, doc="what it is for"),
    sa.Column("user", sa.Text, nullable=False, doc="who its bearer is; of a relay: nobody"),
    sa.Column("role", sa.Text, nullable=False, doc="the highest role it gives: user, operator, admin"),
    sa.Column("read_only", sa.Boolean, nullable=False),
    sa.Column("created", sa.BigInteger, nullable=False),
    sa.Column("created_by", sa.Text, nullable=False),
    sa.Column("expires", sa.BigInteger, nullable=False),
    sa.Column("ended", sa.BigInteger, doc="when it was revoked or used up"),
    sa.Column("ended_by", sa.Text),
)
"""Credentials issued by the service: API and relay tokens, browser sessions, one-time links."""

causes = sa.Table(
    "causes",
    METADATA,
    sa.Column("job", sa.Text, primary_key=True),
    sa.Column("at", sa.BigInteger, nullable=False, doc="when it was found"),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("document", sa.JSON, nullable=False, doc="the cause with its line"),
)
"""Why jobs failed, if it was looked for."""

learning_runs = sa.Table(
    "learning_runs",
    METADATA,
    sa.Column("id", _SERIAL, primary_key=True),
    sa.Column("started", sa.BigInteger, nullable=False, index=True),
    sa.Column("ended", sa.BigInteger, doc="absent while it runs"),
    sa.Column("who", sa.Text, nullable=False, doc="who started it; `service`: nobody, it was due"),
    sa.Column("state", sa.Text, nullable=False, doc="running, done, failed, interrupted"),
    sa.Column("outcomes", sa.JSON, nullable=False, doc="what became of each model in use"),
    sa.Column("error", sa.Text, nullable=False),
)
"""Nightly runs: who started them, and their results."""

challenger_scores = sa.Table(
    "challenger_scores",
    METADATA,
    sa.Column("job", sa.Text, primary_key=True),
    sa.Column("stage", sa.Text, primary_key=True),
    sa.Column("detector", sa.Text, primary_key=True),
    sa.Column("version", sa.Text, primary_key=True),
    sa.Column("at", sa.BigInteger, nullable=False, index=True),
    sa.Column("probability", sa.Double, nullable=False),
    sa.Column("threshold", sa.Double, nullable=False),
)
"""Scores of live jobs by models that run beside the one in use. Nothing acts on them."""


def key_text(table: sa.FromClause = jobs) -> sa.ColumnElement[str]:
    """`core.frames.key_text` in SQL."""

    def text(column: str) -> sa.ColumnElement[str]:
        return sa.cast(table.c[column], sa.Text)

    task = sa.case((table.c.task == NO_TASK, ""), else_=sa.literal("_").concat(text("task")))
    return table.c.cluster.concat(":").concat(text("job_id")).concat(task).concat("@").concat(text("submit"))
