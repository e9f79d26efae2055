"""Adds the delivery counts of each sink."""

from alembic import op

from tocsin.store.tables import sink_states

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    sink_states.create(op.get_bind(), checkfirst=True)  # a new store has it from the first step
