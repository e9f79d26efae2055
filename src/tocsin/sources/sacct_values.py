"""Parses single values of sacct: state, exit code, memory, TRES, array."""

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
    "USED",
    "cached_duration",
    "parse_array_size",
    "parse_exit_code",
    "parse_requested_memory",
    "parse_resources",
    "parse_state",
    "parse_used",
]

STATE = pl.Struct({"state": pl.String, "by": pl.Int64})
EXIT = pl.Struct({"code": pl.Int64, "signal": pl.Int64})
MEMORY = pl.Struct({"amount": pl.Int64, "per": pl.String})
TRES = pl.Struct({"cpu": pl.Int64, "mem": pl.Int64, "node": pl.Int64, "gpu": pl.Int64, "text": pl.String})

USED = pl.Struct({"disk": pl.Int64, "mem": pl.Int64})

_EXIT_CODE = re.compile(r"\d{1,9}(:\d{1,9})?", re.ASCII)
_MOST = 2**62  # amounts below it can be added and rounded without overflow

cached_duration = lru_cache(2**16)(parse_duration)  # run times repeat from block to block


def parse_state(text: str) -> dict[str, Any]:
    """A state in any case; one cut by a narrow column (`OUT_OF_ME+`) is completed if that is unambiguous."""
    word, _, rest = text.strip().partition(" ")
    cut = word.endswith("+")
    word = word.rstrip("+").upper()
    if cut and word not in STATES:
        whole = [state for state in STATES if word and state.startswith(word)]
        word = whole[0] if len(whole) == 1 else word
    by = rest.removeprefix("by ").strip()
    number = int(by) if by.isascii() and by.isdigit() and len(by) < 19 else None
    return {"state": SHORT_STATES.get(word, word) or None, "by": number}


def parse_exit_code(text: str) -> dict[str, int]:
    if not _EXIT_CODE.fullmatch(text):
        raise UnitError(f'"{text}" is not an exit code (code:signal)')
    code, _, signal = text.partition(":")
    return {"code": int(code), "signal": int(signal or 0)}


def parse_requested_memory(text: str) -> dict[str, Any] | None:
    found = parse_memory_request(text)
    if found is None:
        return None
    if found[0] >= _MOST:
        raise UnitError(f'"{text}" is more memory than any machine has')
    return {"amount": found[0], "per": found[1]}


def parse_resources(text: str) -> dict[str, Any]:
    """GPUs are `gres/gpu`, else the sum of the typed ones."""
    found = {name: amount for name, amount in parse_tres(text).items() if amount < _MOST}
    typed = sum(amount for name, amount in found.items() if name.startswith("gres/gpu:"))
    return {
        "cpu": found.get("cpu"),
        "mem": found.get("mem"),
        "node": found.get("node"),
        "gpu": found.get("gres/gpu", typed),
        "text": format_tres(dict(sorted(found.items()))),
    }


def parse_used(text: str) -> dict[str, int | None]:
    """Bytes of `fs/disk` and `mem`."""
    parts = dict(item.split("=", 1) for item in text.split(",") if item.startswith(("fs/disk=", "mem=")))
    disk, memory = (parse_memory(parts.get(name, "")) for name in ("fs/disk", "mem"))
    return {"disk": disk if (disk or 0) < _MOST else None, "mem": memory if (memory or 0) < _MOST else None}


def parse_array_size(spec: str) -> int | None:
    try:
        return None if "..." in spec else array_size(spec)
    except UnitError:
        return None
