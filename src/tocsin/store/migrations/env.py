"""Run by Alembic to apply the migrations, on the connection passed to it."""

from alembic import context

from tocsin.store.migrations import VERSION_TABLE
from tocsin.store.tables import METADATA

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=METADATA,
    version_table=VERSION_TABLE,
    # The caller's transaction holds all steps: the store is migrated completely, or not at all.
    transactional_ddl=True,
)
context.run_migrations()
