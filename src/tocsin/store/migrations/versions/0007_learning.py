"""Adds the tables of nightly runs and of the scores of challengers."""

import sqlalchemy as sa
from alembic import op

from tocsin.store.tables import challenger_scores, learning_runs

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    connection = op.get_bind()
    for table in (learning_runs, challenger_scores):
        if not sa.inspect(connection).has_table(table.name):  # a new store has them from the first step
            table.create(connection)
