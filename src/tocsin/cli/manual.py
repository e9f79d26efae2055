"""`tocsin completion` and `tocsin manual`: shell completion and man pages, from the same source as --help."""

from collections.abc import Iterator
from pathlib import Path

import click

from tocsin import __version__
from tocsin.cli.output import print_line, print_message

__all__ = ["completion", "man_pages", "manual"]


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion script for a shell.

    For bash: tocsin completion bash > /etc/bash_completion.d/tocsin
    """
    from click.shell_completion import get_completion_class

    maker = get_completion_class(shell)
    if maker is None:  # ruled out by Choice
        raise click.UsageError(f'no completion for "{shell}"')
    source = maker(context.find_root().command, {}, "tocsin", "_TOCSIN_COMPLETE").source()
    for line in source.split("\n"):
        print_line(line)


@click.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.pass_context
def manual(context: click.Context, folder: Path) -> None:
    """Write the man pages to a folder.

    For all users: tocsin manual /usr/local/share/man/man1
    """
    folder.mkdir(parents=True, exist_ok=True)
    pages = dict(man_pages(context.find_root().command))
    for name, page in pages.items():
        (folder / f"{name}.1").write_text(page, encoding="utf-8")
    print_message(f"wrote {len(pages)} man pages to {folder}")


def man_pages(root: click.Command) -> Iterator[tuple[str, str]]:
    """Every command's page as (name, roff)."""
    yield from _pages(root, click.Context(root, info_name="tocsin", **root.context_settings))


def _pages(command: click.Command, context: click.Context) -> Iterator[tuple[str, str]]:
    name = context.command_path.replace(" ", "-")
    yield name, _page(command, context, name)
    if isinstance(command, click.Group):
        for child in command.commands.values():
            yield from _pages(child, click.Context(child, info_name=child.name, parent=context))


def _page(command: click.Command, context: click.Context, name: str) -> str:
    lines = [f'.TH "{name.upper()}" "1" "" "tocsin {__version__}" "tocsin"', ".SH NAME"]
    lines += [
        f"{_roff(name)} \\- {_roff(command.get_short_help_str(200))}",
        ".SH SYNOPSIS",
        f".B {_roff(context.command_path)}",
    ]
    lines += [
        _roff(" ".join(command.collect_usage_pieces(context))),
        ".SH DESCRIPTION",
        *_paragraphs(command.help or ""),
    ]
    records = (parameter.get_help_record(context) for parameter in command.get_params(context))
    options = [record for record in records if record and record[1]]  # arguments are explained in the text
    if options:
        lines.append(".SH OPTIONS")
        for flags, text in options:
            lines += [".TP", f".B {_roff(flags)}", _roff(text)]
    if isinstance(command, click.Group):
        lines.append(".SH COMMANDS")
        for child in command.commands.values():
            lines += [".TP", f".B {_roff(f'{name}-{child.name}')}(1)", _roff(child.get_short_help_str(200))]
    return "\n".join(lines) + "\n"


def _paragraphs(text: str) -> Iterator[str]:
    for number, paragraph in enumerate(text.strip().split("\n\n")):
        if number:
            yield ".PP"
        yield _roff(" ".join(paragraph.replace("\b", "").split()))


def _roff(text: str) -> str:
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{escaped}" if escaped[:1] in ".'" else escaped
