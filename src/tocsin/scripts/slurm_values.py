"""Option values that sbatch accepts or refuses; each rule was compared with sbatch 22.05."""

import re
from collections.abc import Callable, Mapping

from tocsin.core.errors import UnitError
from tocsin.core.nodelist import count_nodes
from tocsin.core.units import UNLIMITED, parse_duration
from tocsin.scripts.request import count

__all__ = [
    "CHECKS",
    "duration",
    "gpu_count",
    "gres_gpus",
    "least_nodes",
    "megabytes",
    "number",
    "tres_per_task",
]

_MEMORY = re.compile(r"\s*\+?(\d{1,15})(?:([KMGT])B?)?", re.ASCII | re.IGNORECASE)
_DURATION = re.compile(r"\d{1,9}(:\d{1,9}){0,2}|\d{1,9}-(\d{1,9}(:\d{1,9}){0,2})?", re.ASCII)
_NODES = re.compile(r"(\d{1,15})([KM]?)(-\d{1,15}[KM]?(:\d{1,9})?)?", re.ASCII | re.IGNORECASE)
_COUNT = re.compile(r"(\d{1,9})([KMGTP]?)", re.ASCII | re.IGNORECASE)
_POWERS = {"": 1, "k": 1024, "m": 1024**2}

_CLOCK = r"(?:[01]?\d|2[0-3]):[0-5]\d(?::[0-5]\d)?(?:\s*[ap]m)?"
_MONTH, _DAY = r"(?:0?[1-9]|1[0-2])", r"(?:0?[1-9]|[12]\d|3[01])"
_DATE = (
    rf"\d{{4}}-{_MONTH}-{_DAY}|{_MONTH}/{_DAY}(?:/(?:\d\d){{1,2}})?|{_MONTH}\.{_DAY}(?:\.(?:\d\d){{1,2}})?"
    r"|(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])\d\d"
)
_NAMED = r"today|tomorrow|midnight|noon|elevenses|fika|teatime"
_NOW = r"now(?:\s*[+-]\s*\d{1,9}\s*(?:(?:second|minute|hour|day|week)s?)?)?"
_MOMENT = re.compile(
    rf"(?:uts\d{{1,12}}|(?:{_NOW}|{_NAMED}|(?:{_DATE})T{_CLOCK}|{_DATE}|{_CLOCK})"
    rf"(?:\s+(?:{_NOW}|{_NAMED}|{_DATE}|{_CLOCK}))?)",
    re.ASCII | re.IGNORECASE,
)
_MAIL = frozenset(
    (
        *("NONE", "BEGIN", "END", "FAIL", "REQUEUE", "ALL", "STAGE_OUT", "ARRAY_TASKS", "INVALID_DEPEND"),
        *("TIME_LIMIT", "TIME_LIMIT_90", "TIME_LIMIT_80", "TIME_LIMIT_50"),
    )
)


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
    word = text.strip()
    if word == "-1" or word.lower() in ("unlimited", "infinite"):
        return UNLIMITED
    if not _DURATION.fullmatch(word):
        raise UnitError(f'"{text[:60]}" is not a time; write minutes, MM:SS, HH:MM:SS or D-HH:MM:SS')
    seconds = parse_duration(word + "0" if word.endswith("-") else word) or 0
    return -(-seconds // 60) * 60 or UNLIMITED


def least_nodes(text: str) -> int:
    """The minimum of `2`, `2-4`, `1k` or (since 23.11) `2,4,8`."""
    found = [_NODES.fullmatch(item.strip()) for item in text.split(",")]
    if not found[0] or not all(found):
        raise UnitError(f'"{text[:60]}" is not a number of nodes; write 2 or 2-4')
    return int(found[0][1]) * _POWERS[found[0][2].lower()]


def gpu_count(text: str) -> int:
    """The total of `2`, `a100:2` or `a100:1,v100:1`; a type alone counts as one."""
    total = 0
    for item in text.split(","):
        kind, colon, amount = item.partition(":")
        if colon:
            if not kind:
                raise _no_gpus(text)
            amount = amount.partition("(")[0]
        else:
            amount = kind if kind[:1].isdigit() else "1"  # a type alone
        total += _resources(amount, text)
    return total


def gres_gpus(text: str) -> int:
    """GPUs per node in a list of `name[:type][:number]`."""
    total = 0
    for item in filter(None, text.split(",")):
        name, *rest = re.split("[:=]", item.removeprefix("gres:").removeprefix("gres/").partition("(")[0])
        if not name or name.isdigit() or len(rest) > 2 or "" in rest:
            raise UnitError(f'"{text[:60]}" is not a generic resource; write name:number or name:type:number')
        counted = len(rest) == 2 or (len(rest) == 1 and _COUNT.fullmatch(rest[0]))
        amount = _resources(rest[-1], text) if counted else 1  # gpu:v100 and gpu:2x are one GPU of that type
        total += amount if name == "gpu" else 0
    return total


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
    return count(text.strip().removeprefix("+"))


def _some(text: str) -> None:
    if number(text) == 0:
        raise UnitError("0 is refused; request 1 or more")


def _moment(text: str) -> None:
    if not _MOMENT.fullmatch(text.strip()):
        raise UnitError(f'"{text[:60]}" is not a time; write 2027-01-31T16:00, 16:00 or now+1hour')


def _nodes(text: str) -> None:
    if "/" not in text:  # a path is a file with node names
        count_nodes(re.sub(r"[\s,]+", ",", text).strip(","))  # extra blanks and commas are separators too


def _mail(text: str) -> None:
    """sbatch ignores unknown events as long as it knows one."""
    if not any(word.strip().upper() in _MAIL for word in text.split(",")):
        raise UnitError(f'"{text[:60]}" is not a mail event; write END,FAIL')


def _mode(text: str) -> None:
    if text[:1].lower() not in ("a", "t"):
        raise UnitError(f'"{text[:60]}" is not a mode; write append or truncate')


_DEPENDENCY = re.compile(
    r"singleton|(?:after(?:any|burstbuffer|corr|notok|ok)?|expand)(?::\d{1,10}(?:_(?:\d{1,10}|\*))?(?:\+\d{1,9})?)+",
    re.ASCII | re.IGNORECASE,
)


def _dependency(text: str) -> None:
    if not all(_DEPENDENCY.fullmatch(item) for item in re.split("[,?]", text)):
        raise UnitError(f'"{text[:60]}" is not a dependency; write afterok:123 or singleton')


CHECKS: Mapping[str, Callable[[str], object]] = {
    **dict.fromkeys(
        (
            *("--ntasks", "--cpus-per-task", "--cpus-per-gpu", "--mincpus", "--sockets-per-node"),
            *("--cores-per-socket", "--threads-per-core", "--ntasks-per-node", "--ntasks-per-core"),
            *("--ntasks-per-socket", "--ntasks-per-gpu"),
        ),
        _some,
    ),
    "--begin": _moment,
    "--deadline": _moment,
    "--dependency": _dependency,
    "--exclude": _nodes,
    "--gpus-per-socket": gpu_count,
    "--gres": gres_gpus,
    "--mail-type": _mail,
    "--nodelist": _nodes,
    "--open-mode": _mode,
    "--tmp": megabytes,
    "--tres-per-task": tres_per_task,
}
"""Options whose value sbatch or slurmctld checks, though it may set no field."""
