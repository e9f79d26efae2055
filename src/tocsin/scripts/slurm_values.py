"""Option values that set fields of the request: amounts, times and resources as sbatch reads them."""

import re

from tocsin.core.errors import UnitError
from tocsin.core.units import UNLIMITED, parse_duration
from tocsin.scripts.request import count

__all__ = [
    "duration",
    "gpu_count",
    "gres_gpus",
    "least_nodes",
    "megabytes",
    "node_list",
    "number",
    "tres_per_task",
]

_MEMORY = re.compile(r"\s*\+?(\d{1,15})(?:([KMGT])B?)?", re.ASCII | re.IGNORECASE)
_DURATION = re.compile(r"\d{1,9}(:\d{1,9}){0,2}|\d{1,9}-(\d{1,9}(:\d{1,9}){0,2})?", re.ASCII)
_NODES = re.compile(
    r"\s*\+?(\d{1,15})([KM]?)\s*(-\s*\+?\d{1,15}[KM]?\s*(:\d{1,9})?)?", re.ASCII | re.IGNORECASE
)
_COUNT = re.compile(r"\+?(\d{1,9})([KMGTP]?)", re.ASCII | re.IGNORECASE)
_POWERS = {"": 1, "k": 1024, "m": 1024**2}


def megabytes(text: str) -> int:
    """Bytes in `4000` (megabytes), `4G` or `4GB`; no fractions, no other units."""
    found = _MEMORY.fullmatch(text)
    if not found:
        raise UnitError(
            f'"{text[:60]}" is not an amount of memory; write a whole number with K, M, G or T, such as 1536M'
        )
    return int(found[1]) * int(1024 ** " KMGT".index((found[2] or "M").upper()))


def duration(text: str) -> int | None:
    """Seconds, rounded up to minutes; zero means no limit."""
    word = text
    if word == "-1" or word.lower() in ("unlimited", "infinite"):
        return UNLIMITED
    if not _DURATION.fullmatch(word):
        raise UnitError(f'"{text[:60]}" is not a time; write minutes, MM:SS, HH:MM:SS or D-HH:MM:SS')
    seconds = parse_duration(word + "0" if word.endswith("-") else word) or 0
    return -(-seconds // 60) * 60 or UNLIMITED


def least_nodes(text: str) -> int:
    """The minimum of `2`, `2-4`, `-4`, `1k` or (since 23.11) `2,4,8`."""
    if re.fullmatch(r"\s*-\s*\d{1,9}\s*", text, re.ASCII):
        return 1
    found = [_NODES.fullmatch(item) for item in text.split(",")]
    if not found[0] or not all(found):
        raise UnitError(f'"{text[:60]}" is not a number of nodes; write 2 or 2-4')
    return int(found[0][1]) * _POWERS[found[0][2].lower()]


def node_list(text: str) -> str:
    """Names with one comma between any two: blanks separate, too, and `n[1-]` is n1."""
    parts = re.split(r"(\[[^\[\]]*\])", text)
    parts[::2] = [re.sub(r"[\s,]+", ",", part) for part in parts[::2]]
    parts[1::2] = [re.sub(r"(?<=\d)-(?=[,\]])", "", part) for part in parts[1::2]]
    return "".join(parts).strip(",")


def gpu_count(text: str) -> int:
    """The total of `2`, `a100:2` or `a100:1,v100:1`; a type alone counts as one. Of several plain numbers, one counts."""
    total, plain = 0, list[int]()
    for item in filter(None, text.split(",")):
        kind, colon, amount = item.lstrip(" \t+").partition(":")
        if colon:
            if not kind:
                raise _no_gpus(text)
            amount = amount.partition("(")[0]
        elif kind[:1].isdigit():
            plain.append(_resources(kind, text))
            continue
        else:
            amount = "1"  # a type alone
        total += _resources(amount, text)
    return total + min(plain, default=0)


def gres_gpus(text: str) -> int:
    """GPUs per node in a list of `name[:type][:number]`; the last item of a name and type counts."""
    gpus: dict[str, int] = {}
    for item in filter(None, text.split(",")):
        name, *rest = re.split("[:=]", item.removeprefix("gres:").removeprefix("gres/").partition("(")[0])
        if not name or name.isdigit() or len(rest) > 2 or "" in rest:
            raise UnitError(f'"{text[:60]}" is not a generic resource; write name:number or name:type:number')
        counted = len(rest) == 2 or (len(rest) == 1 and bool(_COUNT.fullmatch(rest[0])))
        amount = _resources(rest[-1], text) if counted else 1  # gpu:v100 and gpu:2x are one GPU of that type
        if name == "gpu":
            gpus[":".join(rest[: len(rest) - counted])] = amount
    return sum(gpus.values())


def tres_per_task(text: str) -> dict[str, int]:
    """Resources per task in `cpu:4,gres/gpu:a100:1`; since 24.05 also with `=`."""
    found: dict[str, int] = {}
    for item in filter(None, text.split(",")):
        name, *rest = re.split("[:=]", item)
        kind = "gpu" if name in ("gres/gpu", "gpu") else name
        if not rest or not rest[-1].isdigit():
            raise UnitError(f'"{item[:60]}" is not a resource with a number; write cpu=4,gres/gpu=1')
        found[kind] = found.get(kind, 0) + count(rest[-1])
    return found


def _resources(amount: str, text: str) -> int:
    found = _COUNT.fullmatch(amount)
    if not found:
        raise _no_gpus(text)
    return int(found[1]) * int(1024 ** " kmgtp".index(found[2].lower() or " "))


def _no_gpus(text: str) -> UnitError:
    return UnitError(f'"{text[:60]}" is not a number of GPUs; write 2 or type:2')


def number(text: str) -> int:
    """A plain number, optionally with a plus sign."""
    return count(text.lstrip().removeprefix("+"))
