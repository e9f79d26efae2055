"""Adds the table of actions on jobs."""

from alembic import op

from tocsin.store.tables import actions

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    actions.create(op.get_bind(), checkfirst=True)  # a new store has the table from the first step
