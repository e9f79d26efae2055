"""What a script and the command line that submitted it say, where the script was kept."""

import shlex
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache

from tocsin.core.detector import Known
from tocsin.scripts.options import Directive
from tocsin.scripts.script import Script, parse

__all__ = ["Said", "read"]

_LONGEST_LINE = 100_000


@dataclass(frozen=True, slots=True)
class Said:
    """A script with its command line, and what the job's record does not tell of it."""

    script: Script
    fixed: bool
    """The number of nodes is given, and no range of it."""
    memory_per: str | None
    """What the memory asked for is counted by: node, cpu, gpu; None where none is asked for."""

    def last(self, option: str) -> Directive | None:
        """The option as it holds: the last one, and the command line's over all."""
        return next((d for d in reversed(self.script.directives) if d.option == option), None)


def read(past: Known, submitted: Iterable[tuple[str | None, str | None]]) -> list[Said | None]:
    """For each digest of a script and the line that submitted it; None where the script was not kept."""
    texts: dict[str, str | None] = {}
    found: list[Said | None] = []
    for digest, submit_line in submitted:
        if digest is not None and digest not in texts:
            texts[digest] = past.script(digest)
        text = texts[digest] if digest is not None else None
        found.append(None if text is None else _said(text, submit_line))
    return found


@lru_cache(maxsize=1024)
def _said(text: str, submit_line: str | None) -> Said:
    script = parse(text)
    if submit_line and submit_line.strip() and len(submit_line) < _LONGEST_LINE:
        with suppress(ValueError):  # a quote that is never closed: the shell took the line apart, we cannot
            words = shlex.split(submit_line)
            # a job that is not submitted yet has only options, without the command
            script = script.with_options(words, only_options=words[0].startswith("-"))
    if len(script.components) > 1:
        return Said(script=script, fixed=False, memory_per=None)  # which component the job is, is not known
    nodes = [d for d in script.directives if d.field == "req_nodes"]
    memory = [d for d in script.directives if d.field == "req_memory"]
    return Said(
        script=script,
        fixed=bool(nodes) and (nodes[-1].value or "").isdigit(),
        memory_per=memory[-1].per if memory else None,
    )
