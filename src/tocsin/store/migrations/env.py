"""What Alembic runs to apply the steps, on the connection that is handed to it."""

from alembic import context

from tocsin.store.migrations import VERSION_TABLE
from tocsin.store.tables import METADATA

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=METADATA,
    version_table=VERSION_TABLE,
    # The caller's transaction holds all steps: either the store is new as a whole, or it is as it was.
    transactional_ddl=True,
)
context.run_migrations()
