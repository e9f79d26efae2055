"""`tocsin tokens`: tokens for programs and relays."""

import click

from tocsin.app.app import App
from tocsin.app.roles import ROLES
from tocsin.app.service_address import note_own_data
from tocsin.app.tokens import TokenRequest, create_token, list_tokens, revoke_token, token_json
from tocsin.cli import options
from tocsin.cli.output import Column, Listing, print_json, print_line, print_message, text_of

__all__ = ["tokens"]


@click.group(cls=options.ListedByDefault)
@click.pass_obj
def tokens(app: App) -> None:
    """Manage tokens for programs and relays that use the service.

    Only for administrators, on the service's host.
    """
    note_own_data(app)


@tokens.command()
@click.argument("label", metavar="NAME")
@click.option("-u", "--user", metavar="USER", help="User that the token authenticates as [default: NAME].")
@click.option(
    "--role",
    type=click.Choice(ROLES),
    default="user",
    show_default=True,
    help="Highest role that the token grants.",
)
@click.option("--read-only", is_flag=True, help="Allow only requests that change nothing.")
@click.option(
    "--relay", is_flag=True, help="For `tocsin relay`, which forwards requests of the users of a login node."
)
@click.option(
    "--days", type=int, default=90, show_default=True, metavar="N", help="Days until the token expires."
)
@click.option("--out", metavar="FILE", help="New file for the token, which only its owner may read.")
@options.as_json
@options.gathered(TokenRequest, "request")
@click.pass_obj
def create(app: App, request: TokenRequest, as_json: bool) -> None:
    """Create a token.

    The token is written to a file, or shown once: it is stored as a hash only.
    """
    if request.relay and (request.user or request.read_only):
        raise click.UsageError(
            "--user and --read-only do not apply to a relay: it forwards requests of the users of its host"
        )
    token, secret = create_token(app, request)
    if as_json:
        print_json({**token_json(token), "file": request.out, "token": None if request.out else secret})
        return
    if not request.out:
        print_line(secret)
    place = f"in {request.out}" if request.out else "shown only now"
    print_message(
        f"created token {token.number} ({token.label}, {token.role}), valid for {request.days} days, {place}"
    )


@tokens.command("list")
@click.option("-a", "--all", "everything", is_flag=True, help="Include revoked and expired tokens.")
@options.listing
@click.pass_obj
def list_(app: App, everything: bool, listing: Listing) -> None:
    """List tokens and sessions."""
    rows = [token_json(token) for token in list_tokens(app, everything=everything)]
    if listing.as_json:
        print_json(rows)
        return
    listing.print_table(rows, _COLUMNS)
    if not rows:
        print_message("no token is valid; create one with: tocsin tokens create NAME")


@tokens.command()
@click.argument("number", type=int)
@options.as_json
@click.pass_obj
def revoke(app: App, number: int, as_json: bool) -> None:
    """Revoke a token or a session by its number, at once."""
    token = revoke_token(app, number)
    if as_json:
        print_json({"number": number, "name": token.label, "user": token.user or None})
    else:
        print_line(f"revoked {token.kind} token {number}: {token.label}")


_COLUMNS = [
    Column("Number", lambda row: str(row["number"]), 6),
    Column("Kind", text_of("kind"), -7),
    Column("Name", text_of("name"), -16),
    Column("User", text_of("user"), -12),
    Column("Role", text_of("role"), -8),
    Column("Rights", lambda row: "read" if row["read_only"] else "all", -6),
    Column("Expires", text_of("expires"), 20),
    Column("CreatedBy", text_of("created_by"), -10),
    Column("Revoked", text_of("revoked"), 20),
]
