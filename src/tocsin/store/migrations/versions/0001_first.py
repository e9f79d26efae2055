"""The first form of the store: the tables as they are now.

Until 1.0 a store is made anew when the tables change. The first release freezes this step, and later ones add theirs.
"""

from alembic import op

from tocsin.store.tables import METADATA

revision = "0001"
down_revision = None


def upgrade() -> None:
    METADATA.create_all(op.get_bind())
