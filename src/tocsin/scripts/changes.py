"""A change to a request as advice shows it: the option in the scheduler's syntax, and the line to edit."""

from tocsin.core.errors import ScriptError
from tocsin.core.units import format_duration, format_memory
from tocsin.core.verdict import Edit
from tocsin.scripts import edits
from tocsin.scripts.request import Value
from tocsin.scripts.slurm import SLURM
from tocsin.scripts.submission import Submission

__all__ = ["change_edit", "change_text"]


def change_text(submission: Submission | None, field: str, value: Value) -> str:
    """`--mem=8G`, or the script's own form if it differs (per CPU, per slot); Slurm syntax without a script."""
    dialect = submission.script.dialect if submission else SLURM
    option = dialect.new_options.get(field)
    if option is None:
        return _plain(field, value)
    amount = dialect.write(field, value)
    text = option.text.format(amount)
    if _on_command_line(field, submission):
        return f"{text} on the command line"
    edit = change_edit(submission, field, value)
    return text if edit is None or amount in edit.new else edit.new.removeprefix(dialect.prefix).strip()


def _plain(field: str, value: Value) -> str:
    """For a scheduler without such an option."""
    if field == "req_memory" and isinstance(value, int):
        return f"{format_memory(value)} of memory on each node"
    if field == "time_limit" and isinstance(value, int):
        return f"a time limit of {format_duration(value)}"
    return f"{field.replace('_', ' ')} {value}"


def change_edit(submission: Submission | None, field: str, value: Value) -> Edit | None:
    """The line to change; None without a script, or if no directive can express the change."""
    if submission is None or _on_command_line(field, submission):
        return None
    try:
        line, old, new = edits.edit(submission.script, field, value)
    except ScriptError:
        return None
    # edits insert a new line at `line`; a verdict names the line before it
    return Edit(line=line, old=old, new=new) if old is not None else Edit(line=line - 1, old=None, new=new)


def _on_command_line(field: str, submission: Submission | None) -> bool:
    """A value given on the command line cannot be changed in the script."""
    return submission is not None and any(
        d.line == 0 and d.field == field for d in submission.script.directives
    )
