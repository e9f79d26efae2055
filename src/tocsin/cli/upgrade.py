"""`tocsin upgrade`: migrate the store after an upgrade."""

from dataclasses import asdict

import click

from tocsin.app.app import App
from tocsin.app.upgrade import upgrade_store
from tocsin.cli import options
from tocsin.cli.output import print_json, print_message

__all__ = ["upgrade"]


@click.command()
@options.as_json
@click.pass_obj
def upgrade(app: App, as_json: bool) -> None:
    """Migrate the store to the schema of this version.

    Every command does so when it opens an older store; after an upgrade this shows that it worked, before the service
    starts. A migration that fails changes nothing.
    """
    done = upgrade_store(app)
    if as_json:
        print_json(asdict(done))
    elif done.found is None:
        print_message(f"created the store {done.store} with schema {done.schema}")
    elif done.found == done.schema:
        print_message(f"the store {done.store} already has schema {done.schema}; nothing to migrate")
    else:
        print_message(f"migrated the store {done.store} from schema {done.found} to {done.schema}")
