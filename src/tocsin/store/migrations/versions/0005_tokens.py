"""Adds the table of tokens and sessions."""

import sqlalchemy as sa
from alembic import op

from tocsin.store.tables import tokens

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    if not sa.inspect(op.get_bind()).has_table(tokens.name):  # a new store has it from the first step
        tokens.create(op.get_bind())
