"""The first schema: creates the tables as they are now.

Until 1.0, this step creates the current tables, and later steps add what an older store lacks. The first release
freezes it.
"""

from alembic import op

from tocsin.store.tables import METADATA

revision = "0001"
down_revision = None


def upgrade() -> None:
    METADATA.create_all(op.get_bind())
