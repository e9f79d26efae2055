"""Single words of sacct: a state, an exit code, an amount of memory, trackable resources, an array."""

import re
from functools import lru_cache
from typing import Any

import polars as pl

from tocsin.core.errors import UnitError
from tocsin.core.ids import array_size
from tocsin.core.outcomes import SHORT_STATES, STATES
from tocsin.core.units import format_tres, parse_duration, parse_memory, parse_memory_request, parse_tres

__all__ = [
    "EXIT",
    "MEMORY",
    "STATE",
    "TRES",
    "array_word",
    "disk_word",
    "duration_word",
    "exit_word",
    "memory_word",
    "state_word",
    "tres_word",
]

STATE = pl.Struct({"state": pl.String, "by": pl.Int64})
EXIT = pl.Struct({"code": pl.Int64, "signal": pl.Int64})
MEMORY = pl.Struct({"amount": pl.Int64, "per": pl.String})
TRES = pl.Struct({"cpu": pl.Int64, "mem": pl.Int64, "node": pl.Int64, "gpu": pl.Int64, "text": pl.String})

_EXIT_CODE = re.compile(r"\d{1,9}(:\d{1,9})?", re.ASCII)
_MOST = 2**62  # amounts below it can be added and rounded without overflow

duration_word = lru_cache(2**16)(parse_duration)  # run times repeat from block to block


def state_word(text: str) -> dict[str, Any]:
    """A state in any case; one that a narrow column cut (`OUT_OF_ME+`) is completed where only one begins so."""
    word, _, rest = text.strip().partition(" ")
    cut = word.endswith("+")
    word = word.rstrip("+").upper()
    if cut and word not in STATES:
        whole = [state for state in STATES if word and state.startswith(word)]
        word = whole[0] if len(whole) == 1 else word
    by = rest.removeprefix("by ").strip()
    number = int(by) if by.isascii() and by.isdigit() and len(by) < 19 else None
    return {"state": SHORT_STATES.get(word, word) or None, "by": number}


def exit_word(text: str) -> dict[str, int]:
    if not _EXIT_CODE.fullmatch(text):
        raise UnitError(f'"{text}" is no exit code; sacct writes code:signal')
    code, _, signal = text.partition(":")
    return {"code": int(code), "signal": int(signal or 0)}


def memory_word(text: str) -> dict[str, Any] | None:
    found = parse_memory_request(text)
    if found is None:
        return None
    if found[0] >= _MOST:
        raise UnitError(f'"{text}" is more memory than any machine has')
    return {"amount": found[0], "per": found[1]}


def tres_word(text: str) -> dict[str, Any]:
    """GPUs are `gres/gpu`, or the sum of the typed ones where only those are written."""
    found = {name: amount for name, amount in parse_tres(text).items() if amount < _MOST}
    typed = sum(amount for name, amount in found.items() if name.startswith("gres/gpu:"))
    return {
        "cpu": found.get("cpu"),
        "mem": found.get("mem"),
        "node": found.get("node"),
        "gpu": found.get("gres/gpu", typed),
        "text": format_tres(dict(sorted(found.items()))),
    }


def disk_word(text: str) -> int | None:
    """Bytes of `fs/disk`; the other parts hold clock times and are of no use here."""
    part = next((item for item in text.split(",") if item.startswith("fs/disk=")), None)
    return None if part is None else parse_memory(part.removeprefix("fs/disk="))


def array_word(spec: str) -> int | None:
    try:
        return None if "..." in spec else array_size(spec)
    except UnitError:
        return None
