"""`tocsin classify`: classify the job scripts in files and folders."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from tocsin.app.app import App
from tocsin.app.classify import classify as classify_scripts
from tocsin.app.text import count
from tocsin.cli import options
from tocsin.cli.output import Column, Listing, print_json, print_message, text_of
from tocsin.core.verdict import SEEN_FROM

__all__ = ["classify"]

_MOST_ERRORS = 5


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILES|FOLDERS")
@click.option("--jsonl", is_flag=True, help="Print one line of JSON for each script as it is classified.")
@click.option("--follow", is_flag=True, help="Also read files that the scripts call and you may read.")
@click.option("--domain", metavar="NAME",
              help="Only scripts of this domain, such as chemistry, interactive or idle.")  # fmt: skip
@click.option("--strict", is_flag=True, help="Exit with 1 if a file could not be read.")
@options.listing
@click.pass_obj
def classify(
    app: App,
    files: tuple[str, ...],
    jsonl: bool,
    follow: bool,
    domain: str | None,
    strict: bool,
    listing: Listing,
) -> None:
    """Classify job scripts.

    Reads FILES and every file below FOLDERS; - is standard input. Nothing in them is run. Operations are shown with
    their probability; from 50 % on an operation counts as seen.
    """
    errors: list[str] = []
    classified = shown = 0

    def rows() -> Iterator[dict[str, Any]]:
        nonlocal classified, shown
        for row in classify_scripts(app, files, follow=follow):
            if "error" in row:
                errors.append(row["error"])
            else:
                classified += 1
                if domain and row["domain"] != domain:
                    continue
                shown += 1
            yield row

    if jsonl:
        for row in rows():
            print_json(row)
    elif listing.as_json:
        print_json({"scripts": list(rows())})
    else:
        listing.print_table((row for row in rows() if "error" not in row), _COLUMNS)
    if classified and not shown:
        print_message(f'none of {count(classified, "script")} has the domain "{domain}"')
    for error in errors[:_MOST_ERRORS]:
        print_message(f"tocsin: {error}")
    if len(errors) > _MOST_ERRORS:
        print_message(f"tocsin: {count(len(errors) - _MOST_ERRORS, 'more file')} could not be read")
    if errors and (strict or not classified):
        raise SystemExit(1)


def _operations(row: dict[str, Any]) -> str:
    found = sorted(((p, name) for name, p in row["operations"].items() if p >= SEEN_FROM), reverse=True)
    return ", ".join(f"{name} {p:.0%}" for p, name in found) or "none"


def _lines(row: dict[str, Any]) -> str:
    """Lines of the script, and of called files with their names."""
    return ",".join(dict.fromkeys(_line(entry) for entry in row["evidence"][:8]))


def _line(entry: dict[str, Any]) -> str:
    if "file" not in entry:
        return str(entry["line"])
    name = Path(entry["file"]).name
    return name if entry["file_line"] is None else f"{name}:{entry['file_line']}"


_COLUMNS = [
    Column("File", text_of("file"), -44),
    Column("Operations", _operations, -22),
    Column("Application", text_of("application"), -14),
    Column("Domain", text_of("domain"), -18),
    Column("Language", text_of("language"), -10),
    Column("Lines", _lines, -16),
]
