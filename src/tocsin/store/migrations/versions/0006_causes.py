"""Adds the table of causes of failures."""

import sqlalchemy as sa
from alembic import op

from tocsin.store.tables import causes

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    connection = op.get_bind()
    if not sa.inspect(connection).has_table(causes.name):  # a new store has it from the first step
        causes.create(connection)
