"""A change of a request as advice says it: the option in the scheduler's words, and the line of the script."""

from tocsin.core.errors import ScriptError
from tocsin.core.units import format_duration, format_memory
from tocsin.core.verdict import Edit
from tocsin.scripts import edits
from tocsin.scripts.request import Value
from tocsin.scripts.said import Said
from tocsin.scripts.slurm import SLURM

__all__ = ["change_edit", "change_text"]


def change_text(said: Said | None, field: str, value: Value) -> str:
    """`--mem=8G`, or the script's own line where that says it otherwise (by CPU, by slot).

    Without a script in Slurm's words, as that is where jobs are followed.
    """
    dialect = said.script.dialect if said else SLURM
    option = dialect.fresh.get(field)
    if option is None:
        return _plain(field, value)
    amount = dialect.write(field, value)
    text = option.text.format(amount)
    if _on_command_line(field, said):
        return f"{text} on the command line"
    edit = change_edit(said, field, value)
    return text if edit is None or amount in edit.new else edit.new.removeprefix(dialect.prefix).strip()


def _plain(field: str, value: Value) -> str:
    """For a scheduler that has no such option."""
    if field == "req_memory" and isinstance(value, int):
        return f"{format_memory(value)} of memory on each node"
    if field == "time_limit" and isinstance(value, int):
        return f"a time limit of {format_duration(value)}"
    return f"{field.replace('_', ' ')} {value}"


def change_edit(said: Said | None, field: str, value: Value) -> Edit | None:
    """The line to change; none where there is no script, or where its lines cannot say it."""
    if said is None or _on_command_line(field, said):
        return None
    try:
        line, old, new = edits.edit(said.script, field, value)
    except ScriptError:
        return None
    # here a new line is put in as that line; a verdict says after which one
    return Edit(line=line, old=old, new=new) if old is not None else Edit(line=line - 1, old=None, new=new)


def _on_command_line(field: str, said: Said | None) -> bool:
    """What the command line says cannot be mended in the script."""
    return said is not None and any(d.line == 0 and d.field == field for d in said.script.directives)
