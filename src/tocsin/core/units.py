"""Slurm's units, both ways: durations, memory, TRES and instants as integers in seconds and bytes."""

import re
from datetime import UTC, datetime, tzinfo
from typing import Literal

from tocsin.core.errors import UnitError

__all__ = [
    "MAX_INSTANT",
    "UNLIMITED",
    "MemoryRequest",
    "format_age",
    "format_duration",
    "format_instant",
    "format_memory",
    "format_tres",
    "memory_per_node",
    "parse_duration",
    "parse_instant",
    "parse_memory",
    "parse_memory_request",
    "parse_tres",
    "rounded_memory",
]

MAX_INSTANT = 253_402_214_400
"""9999-12-31 in UTC: later times cannot be written in RFC 3339 in every time zone."""
UNLIMITED = 2**63 - 1
"""No limit, as a distinct value: the largest 64-bit integer, so that it sorts above every real limit."""

_ABSENT = frozenset({"", "unknown", "none", "n/a", "partition_limit", "invalid", "not_set", "(null)"})
_NO_LIMIT = frozenset({"unlimited", "infinite"})

_DURATION = re.compile(
    r"""(?: (?P<days>\d{1,9}) - (?P<dh>\d{1,9}) (?: : (?P<dm>\d{1,9}) (?: : (?P<ds>\d{1,9}) )? )?
          | (?P<h>\d{1,9}) : (?P<m>\d{1,9}) : (?P<s>\d{1,9})
          | (?P<mm>\d{1,9}) (?: : (?P<ss>\d{1,9}) )?
        ) (?: \. \d{1,9} )?""",
    re.VERBOSE | re.ASCII,
)


def parse_duration(text: str) -> int | None:
    """Seconds of a duration in any of Slurm's forms; a bare number is minutes, as for `sbatch --time`.

    >>> parse_duration("1-02:03:04"), parse_duration("90"), parse_duration("00:01.143")
    (93784, 5400, 1)
    """
    word = text.strip().lower()
    if word in _ABSENT:
        return None
    if word in _NO_LIMIT:
        return UNLIMITED
    found = _DURATION.fullmatch(word)
    if not found:
        raise UnitError(f'"{text}" is not a duration; write minutes, MM:SS, HH:MM:SS or D-HH:MM:SS')
    part = {name: int(value) for name, value in found.groupdict().items() if value is not None}
    if "days" in part:
        return part["days"] * 86400 + part["dh"] * 3600 + part.get("dm", 0) * 60 + part.get("ds", 0)
    if "h" in part:
        return part["h"] * 3600 + part["m"] * 60 + part["s"]
    return part["mm"] * 60 + part.get("ss", 0)


def format_duration(seconds: int | None) -> str:
    """A duration as sacct prints it: `[D-]HH:MM:SS`, `UNLIMITED`, or nothing.

    >>> format_duration(93784), format_duration(59)
    ('1-02:03:04', '00:00:59')
    """
    if seconds is None:
        return ""
    if seconds == UNLIMITED:
        return "UNLIMITED"
    minutes, second = divmod(abs(seconds), 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    clock = f"{hour:02d}:{minute:02d}:{second:02d}"
    return ("-" if seconds < 0 else "") + (f"{days}-{clock}" if days else clock)


def format_age(seconds: int) -> str:
    """Elapsed time in its largest whole unit.

    >>> format_age(59), format_age(3600), format_age(27213756)
    ('59 seconds', '1 hour', '314 days')
    """
    units = ((86400, "day"), (3600, "hour"), (60, "minute"), (1, "second"))
    size, unit = next((one for one in units if seconds >= one[0]), units[-1])
    number = seconds // size
    return f"{number} {unit}{'' if number == 1 else 's'}"


_BINARY = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6}
_MEMORY = re.compile(
    r"(?P<number>\d{1,19}(?:\.\d{1,9})?)(?P<unit>[KMGTPE]?)(?:i?B)?", re.IGNORECASE | re.ASCII
)


def parse_memory(text: str, *, unit: str = "") -> int | None:
    """Bytes of an amount such as `4652K`, `62.50G` or `1GB`; a bare number is in `unit` ("M" for `sbatch --mem`).

    >>> parse_memory("62.50G"), parse_memory("100", unit="M")
    (67108864000, 104857600)
    """
    word = text.strip()
    if word.lower() in _ABSENT:
        return None
    if word.lower() in _NO_LIMIT:
        return UNLIMITED
    found = _MEMORY.fullmatch(word)
    if not found:
        raise UnitError(
            f'"{text}" is not an amount of memory; write a number with K, M, G or T, such as 4000M'
        )
    factor: int = 1024 ** _BINARY[(found["unit"] or unit).upper()]
    number = found["number"]
    return int(number) * factor if "." not in number else round(float(number) * factor)


def format_memory(amount: int | None) -> str:
    """The shortest exact form with a binary unit: `4000M`, `62.5G` is `64000M`.

    >>> format_memory(67108864000), format_memory(4096), format_memory(1000)
    ('64000M', '4K', '1000')
    """
    if amount is None:
        return ""
    if amount == UNLIMITED:
        return "UNLIMITED"
    for unit in ("T", "G", "M", "K"):
        size = 1024 ** _BINARY[unit]
        if amount and amount % size == 0:
            return f"{amount // size}{unit}"
    return str(amount)


def rounded_memory(amount: int) -> str:
    """An estimate: whole megabytes, or gigabytes and more with one decimal, rounded up.

    >>> rounded_memory(4 * 2**30), rounded_memory(9360 * 2**20), rounded_memory(700_000_000)
    ('4G', '9.2G', '668M')
    """
    for unit, size in (("T", 2**40), ("G", 2**30)):
        if amount >= size:
            return f"{-(-10 * amount // size) / 10:g}{unit}"
    return f"{-(-amount // 2**20)}M"


Per = Literal["node", "cpu", "job"]
MemoryRequest = tuple[int, Per]

_PER_CPU_32 = (
    2**31
)  # MEM_PER_CPU of Slurm before 17.02 in megabytes; sacct printed the flag as part of the number
_PER_CPU_64 = 2**63


def parse_memory_request(text: str) -> MemoryRequest | None:
    """sacct's ReqMem: `31000Mn` is per node, `4Gc` per CPU, and without a letter (since 21.08) for the whole job.

    >>> parse_memory_request("4Gc"), parse_memory_request("2147486648Mn")
    ((4294967296, 'cpu'), (3145728000, 'cpu'))
    """
    word = text.strip()
    per: Per = "job"
    if word[-1:] in ("n", "c") and word.lower() not in _ABSENT:
        per = "node" if word[-1] == "n" else "cpu"
        word = word[:-1]
    amount = parse_memory(word, unit="M")
    if amount is None or amount == UNLIMITED:
        return None
    megabytes = amount // 1024**2
    for flag in (_PER_CPU_64, _PER_CPU_32):
        if per == "node" and megabytes >= flag:
            return (megabytes - flag) * 1024**2, "cpu"
    return amount, per


def memory_per_node(request: MemoryRequest | None, *, cpus: int | None, nodes: int | None) -> int | None:
    """Bytes on each node; None if the counts that a per-CPU or per-job amount needs are missing."""
    if request is None:
        return None
    amount, per = request
    if per == "node":
        return amount
    if not nodes or (per == "cpu" and not cpus):
        return None
    whole = amount * (cpus or 1) if per == "cpu" else amount
    return -(-whole // nodes)


def parse_tres(text: str) -> dict[str, int]:
    """Trackable resources, memory in bytes: `cpu=8,mem=24000M,gres/gpu:a100=2`.

    >>> parse_tres("cpu=8,mem=1G,gres/gpu=2")
    {'cpu': 8, 'mem': 1073741824, 'gres/gpu': 2}
    """
    found: dict[str, int] = {}
    for item in filter(None, text.strip().split(",")):
        name, separator, value = item.partition("=")
        if not separator or not name:
            raise UnitError(f'"{item}" in "{text[:80]}" is not a resource; write name=number')
        sized = name in ("mem", "vmem") or name.startswith(("bb/", "fs/"))
        try:
            amount = parse_memory(value, unit="M" if name == "mem" else "") if sized else _count(value)
        except ValueError:
            raise UnitError(f'"{value}" of {name} in "{text[:80]}" is not a number') from None
        if amount is not None:
            found[name] = amount
    return found


def _count(value: str) -> int:
    """A plain number, or one that Slurm shortened (`1.5K`: thousands by 1024, as Slurm prints them)."""
    return int(value) if value.isascii() and value.isdigit() else (parse_memory(value) or 0)


def format_tres(resources: dict[str, int]) -> str:
    return ",".join(
        f"{name}={format_memory(amount) if name == 'mem' else amount}" for name, amount in resources.items()
    )


def parse_instant(text: str, zone: tzinfo) -> int | None:
    """Epoch seconds of `2026-11-15T19:45:52` in `zone`, of RFC 3339 text, or of epoch seconds as text.

    >>> parse_instant("2026-11-15T19:45:52", UTC), parse_instant("1794771952", UTC), parse_instant("Unknown", UTC)
    (1794771952, 1794771952, None)
    """
    word = text.strip()
    if word.lower() in _ABSENT:
        return None
    if word.isascii() and word.isdigit() and len(word) != 8:  # eight digits would be a date without dashes
        return int(word) or None
    try:
        moment = datetime.fromisoformat(word)
    except ValueError:
        raise UnitError(f'"{text}" is not a time; write YYYY-MM-DD[THH:MM[:SS]]') from None
    return int((moment if moment.tzinfo else moment.replace(tzinfo=zone)).timestamp())


def format_instant(epoch: int | float | None) -> str | None:
    """RFC 3339 in UTC with a `Z`.

    >>> format_instant(1794771952)
    '2026-11-15T19:45:52Z'
    """
    if epoch is None:
        return None
    return datetime.fromtimestamp(int(epoch), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
