"""Turns options into a request: converts each value, then combines counts per node, task and CPU."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from tocsin.core.errors import InputError, UnitError
from tocsin.core.fields import FIELDS, ValueType
from tocsin.core.ids import array_size
from tocsin.core.units import UNLIMITED
from tocsin.scripts.options import Directive
from tocsin.scripts.text import readable, shortened

__all__ = [
    "Draft",
    "Problem",
    "ProblemKind",
    "Reader",
    "Request",
    "Value",
    "clock",
    "clock_text",
    "count",
    "in_unit_of",
    "memory_text",
    "queue",
]

Value = int | str | bool
Request = dict[str, Value]
Reader = Callable[[str], Value | None]


class ProblemKind(StrEnum):
    """How the scheduler treats it."""

    SCRIPT = "script"
    """The script is refused, whatever its options."""
    REFUSED = "refused"
    """The submission is refused because of an option or its value."""
    IGNORED = "ignored"
    """The line is not read."""
    FOREIGN = "foreign"
    """The line is for another scheduler, but this one reads it too."""
    UNCLEAR = "unclear"
    """The value cannot be what was meant."""
    NOTE = "note"
    """Not an error, but only the scheduler knows the resulting value."""


class Problem(NamedTuple):
    """A problem with a line of a script; line 0 is the command line or the whole script."""

    line: int
    text: str
    kind: ProblemKind = ProblemKind.UNCLEAR
    source: str = ""
    """The environment variable that it is about."""


def count(text: str) -> int:
    """A plain number."""
    if not (text.isascii() and text.isdigit() and len(text) <= 15):
        raise UnitError(f'"{shortened(text)}" is not a number')
    return int(text)


def clock(text: str, *, last: int = 1, bare: int | None = None) -> int | None:
    """Seconds in `[[[days:]hours:]minutes:]seconds`; `last` is the unit of the last part, `bare` that of a lone number.

    >>> clock("1:30:00"), clock("1:30", last=60), clock("90", bare=60)
    (5400, 5400, 5400)
    """
    if text.lower() in ("unlimited", "infinite", "infinity"):
        return UNLIMITED
    parts = text.split(":")
    if len(parts) > 4 or not all(part.isascii() and part.isdigit() and len(part) <= 9 for part in parts):
        raise UnitError(f'"{shortened(text)}" is not a time; write 1:30:00')
    if len(parts) == 1 and bare is not None:
        return int(parts[0]) * bare
    units = [unit for unit in (1, 60, 3600, 86400) if unit >= last]
    if len(parts) > len(units):
        raise UnitError(f'"{shortened(text)}" has too many parts for a time')
    return sum(int(part) * unit for part, unit in zip(reversed(parts), units, strict=False))


def clock_text(seconds: Value) -> str:
    """`hours:minutes:seconds`, with any number of hours."""
    minutes, second = divmod(int(seconds), 60)
    return f"{minutes // 60:02d}:{minutes % 60:02d}:{second:02d}"


def memory_text(value: Value, units: Sequence[str]) -> str:
    """Memory in the largest unit that divides it, else in the last one, rounded up; `units` begin with the gigabyte."""
    sizes = [(unit, 1024**power) for unit, power in zip(units, (3, 2, 1, 0), strict=False)]
    unit, size = next(((u, size) for u, size in sizes if value and int(value) % size == 0), sizes[-1])
    return f"{-(-int(value) // size)}{unit}"


def queue(text: str) -> str | None:
    """The queue in `queue@server`."""
    return text.partition("@")[0] or None


def _flag(text: str) -> bool:
    return text.lower() not in ("n", "no", "false", "0", "off")


def _text(text: str) -> str | None:
    return readable(text.strip()) or None


def _array(text: str) -> str | None:
    """Tasks without brackets: `1-9%2`."""
    return text.strip().replace("[", "").replace("]", "") or None


_READERS: Mapping[ValueType, Reader] = {ValueType.TEXT: _text, ValueType.COUNT: count, ValueType.FLAG: _flag}


@dataclass(slots=True)
class Draft:
    """A request filled option by option; later options override earlier ones."""

    readers: Mapping[str, Reader]
    one_cpu_per_task: bool = True
    checks: Mapping[str, Callable[[str], object]] = dataclasses.field(default_factory=dict)
    last_wins: bool = False
    """If an option without a field is repeated, only the last one counts."""
    wrong: ProblemKind = ProblemKind.UNCLEAR
    """How the scheduler treats an unreadable value."""
    problems: list[Problem] = dataclasses.field(default_factory=list)
    values: Request = dataclasses.field(default_factory=dict)
    counts: dict[str, dict[str, int]] = dataclasses.field(default_factory=dict)
    """Memory, GPUs and CPUs as given: per job, node, task, cpu, slot or gpu."""
    memory_line: int = 0
    effective: dict[tuple[str, str], int] = dataclasses.field(default_factory=dict)
    """For each field, the index of the option that sets it."""

    def take(self, directive: Directive, at: int = 0) -> None:
        name, text = directive.field, directive.value
        check = self.checks.get(directive.option)
        if check and text is not None and not self._allowed(check, text, directive):
            return
        if name is None:
            self.effective[directive.option, "" if self.last_wins else str(at)] = at
            return
        if text is None:
            self.values[name] = directive.per != "no"
            self.effective[name, ""] = at
            return
        reader = self.readers.get(name) or (_array if name == "array" else _READERS[FIELDS[name].type])
        try:
            value = reader(text)
            if name == "array" and value is not None:
                self.values["array_tasks"] = array_size(str(value))
        except InputError as error:
            self._refuse(directive, error)
            return
        if value is None:
            self.effective[name, str(at)] = at
            return
        if name in ("req_memory", "req_gpus", "req_cpus"):
            given = self.counts.setdefault(name, {})
            if name != "req_gpus" or directive.per == "job":
                for per in given:
                    self.effective.pop((name, per), None)
                given.clear()  # memory and CPUs have one amount; GPUs per node and per task combine
            self.effective[name, directive.per or "job"] = at
            given[directive.per or "job"] = int(value)
            if name == "req_memory":
                self.memory_line = directive.line
        else:
            self.values[name] = value
            self.effective[name, ""] = at

    def _allowed(self, check: Callable[[str], object], text: str, directive: Directive) -> bool:
        try:
            check(text)
        except InputError as error:
            self._refuse(directive, error)
            return False
        return True

    def _refuse(self, directive: Directive, error: InputError) -> None:
        text = f"{directive.option}: {error}"
        self.problems.append(Problem(directive.line, text, self.wrong, directive.source))

    def finish(self) -> Request:
        """The request; the default of every scheduler is one task with one CPU on one node."""
        values, counts = self.values, self.counts
        nodes = _number(values.get("req_nodes"))
        on_each = _number(values.get("tasks_per_node"))
        if "req_tasks" not in values and on_each:
            values["req_tasks"] = (nodes or 1) * on_each
        elif not nodes and on_each and "req_tasks" in values:
            values["req_nodes"] = nodes = -(-_number(values["req_tasks"]) // on_each)
        tasks, width = _number(values.get("req_tasks")), _number(values.get("cpus_per_task"))
        gpus = _total(counts.get("req_gpus", {}), nodes or 1, tasks or 1)
        cpus = _total(counts.get("req_cpus", {}), nodes or 1, tasks or 1)
        if gpus and (of_each := counts.get("req_cpus", {}).get("gpu")):
            cpus = max(of_each * gpus, tasks, nodes)
        if cpus is None and (tasks or width) and self.one_cpu_per_task:
            cpus = max(tasks or nodes or 1, nodes or 1) * (width or 1)
        for name, number in (("req_cpus", cpus), ("req_gpus", gpus)):
            if number is not None:
                values[name] = number
        for per, amount in counts.get("req_memory", {}).items():
            if per != "slot" or nodes or (cpus or 1) == 1:
                values["req_memory"] = _on_a_node(amount, per, values)
            else:
                text = f"{cpus} slots may be on any number of nodes, so the memory per node is unknown"
                self.problems.append(Problem(self.memory_line, text, ProblemKind.NOTE))
        for name in [n for n, v in values.items() if type(v) is int and v > UNLIMITED]:
            del values[name]
            self.problems.append(Problem(0, f"{name} is too large; correct it"))
        return values


def in_unit_of(field: str, per: str, value: Value, request: Mapping[str, Value]) -> Value | None:
    """The option value that sets the field to `value`; None if no whole number does."""
    if field not in ("req_memory", "req_cpus", "req_gpus") or not isinstance(value, int):
        return value
    nodes = _number(request.get("req_nodes")) or 1
    per = per or "job"
    if field == "req_memory":
        whole, share = value * nodes, _holders(per, request)
    else:
        shares = {"node": nodes, "task": request.get("req_tasks"), "gpu": request.get("req_gpus")}
        whole, share = value, _number(shares.get(per)) or 1
    return whole // share if whole % share == 0 else None


def _holders(per: str, request: Mapping[str, Value]) -> int:
    """How many nodes, CPUs, tasks or GPUs share the memory of a job."""
    nodes = _number(request.get("req_nodes")) or 1
    known = {
        "node": "req_nodes",
        "cpu": "req_cpus",
        "slot": "req_cpus",
        "task": "req_tasks",
        "gpu": "req_gpus",
    }
    if per not in known:
        return 1
    return max(_number(request.get(known[per])) or 1, nodes)


def _on_a_node(amount: int, per: str, request: Mapping[str, Value]) -> int:
    nodes = _number(request.get("req_nodes")) or 1
    return amount if per == "node" else -(-amount * _holders(per, request) // nodes)


def _total(given: Mapping[str, int], nodes: int, tasks: int) -> int | None:
    for per, factor in (("job", 1), ("node", nodes), ("task", tasks)):
        if per in given:
            return given[per] * factor
    return None


def _number(value: Value | None) -> int:
    return value if type(value) is int else 0
