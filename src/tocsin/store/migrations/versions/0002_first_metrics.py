"""Adds the metrics of the first two minutes to jobs."""

import sqlalchemy as sa
from alembic import op

from tocsin.core.fields import Part, fields_of
from tocsin.store.tables import jobs

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    present = {column["name"] for column in sa.inspect(op.get_bind()).get_columns(jobs.name)}
    for name in fields_of(Part.FIRST_METRICS):
        if name not in present:  # a new store has them from the first step
            op.add_column(jobs.name, sa.Column(name, jobs.c[name].type))
