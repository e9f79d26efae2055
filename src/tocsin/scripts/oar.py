"""OAR: the options of oarsub -S, one per line, and its resource hierarchy."""

from collections.abc import Iterator

from tocsin.core.errors import UnitError
from tocsin.scripts.dialect import Dialect, Extension, NewOption, list_item
from tocsin.scripts.options import Directive, Locate, option_table
from tocsin.scripts.request import clock_text
from tocsin.scripts.scheduler import Scheduler
from tocsin.scripts.words import Word

__all__ = ["OAR"]

# oarsub(1) of OAR 2.5
OPTIONS = option_table(
    """
-a --anterior         = dependency
   --array            = array
-d --directory        = work_dir
-I --interactive      interactive
-n --name             = name
-p --property         = constraints
   --project          = account
-q --queue            = partition
--array-param-file, -B, --checkpoint, -C --connect, -e --export-job-key-to-file, -E --stderr =
-i --import-job-key-from-file, -K --import-job-key-inline, -l --resource, --notify, -O --stdout =
-r --reservation, --resubmit, -s --stagein, --signal, -t --type, -w =
-D --dumper, -h --help, --hold, -J --json, -k --use-job-key, -S --scanscript, -v --verbose, -V --version
-X --xml, -Y --yaml
"""
)

_NODES = frozenset({"nodes", "node", "host", "network_address", "nodes_count"})
_GPUS = frozenset({"gpu", "gpunum", "gpudevice", "gpu_device", "gpu_id"})
_CPUS = frozenset({"core", "thread", "cpucore"})


def _words(line: str, start: int) -> tuple[list[Word], str | None]:
    """scan_script in OAR::Sub takes one option and then the rest of the line, quotes and all.

    A comment at the end is cut off here, as its writer intended; quotes around the value are removed.
    """
    at = len(line) - len(line[start:].lstrip())
    end = len(line.rstrip())
    gap = next((i for i in range(at, end) if line[i].isspace() or line[i] == "="), end)
    option = Word(line[at:gap], range(at, gap))
    while gap < end and (line[gap].isspace() or line[gap] == "="):
        gap += 1
    comment = line.find(" #", gap, end)
    end = len(line[:comment].rstrip()) if comment >= 0 else end
    if end - gap > 1 and line[gap] == line[end - 1] and line[gap] in "\"'":
        gap, end = gap + 1, end - 1
    words = [option] if option.text else []
    return ([*words, Word(line[gap:end], range(gap, end))] if end > gap else words), None


def _type(directive: Directive, word: Word, _locate: Locate) -> Iterator[Directive]:
    yield directive._replace(value="yes", field="requeue") if word.text == "idempotent" else directive


def _resources(directive: Directive, word: Word, locate: Locate) -> Iterator[Directive]:
    """-l {property}/nodes=2/core=4+...,walltime=1:0:0; counts multiply down the hierarchy."""
    for item in word.pieces(","):
        name, value = item.partition("=")
        if value is not None and name.text.strip() == "walltime":
            yield list_item(directive, locate, "walltime", value, "time_limit", around=item)
            continue
        groups = [list(_group(directive, locate, group)) for group in item.pieces("+")]
        yield from groups[0] if len(groups) == 1 else _sum(directive, groups)


def _group(directive: Directive, locate: Locate, group: Word) -> Iterator[Directive]:
    above: dict[str, str] = {}
    for level in group.pieces("/"):
        rest = level.trim()
        if rest.text.startswith("{") and "}" in rest.text:
            closing = rest.text.rindex("}")
            yield Directive(directive.line, "--resource {}", rest.text[1:closing], "constraints")
            rest = rest.part(closing + 1).trim()
        name, value = rest.partition("=")
        if value is not None:
            yield _level(directive, locate, name.text.strip(), value.trim(), rest, above)


def _sum(directive: Directive, groups: list[list[Directive]]) -> Iterator[Directive]:
    """Groups joined by plus are allocated together; a constraint of one does not apply to the job."""
    for target in ("req_nodes", "req_cpus", "req_gpus"):
        numbers = [_of_group(group, target) for group in groups]
        known = [number for number in numbers if number is not None]
        # without a CPU count a group has all CPUs of its nodes; without a GPU count it has none
        if known and (target == "req_gpus" or len(known) == len(numbers)):
            yield Directive(directive.line, "--resource +", str(sum(known)), target, "job")


def _of_group(group: list[Directive], target: str) -> int | None:
    counts = {d.field: d for d in group if d.field and (d.value or "").isdigit() and len(d.value or "") < 10}
    found = counts.get(target)
    if found is None:
        return None
    nodes = counts.get("req_nodes")
    return int(found.value or 0) * (int(nodes.value or 1) if nodes and found.per == "node" else 1)


def _level(
    directive: Directive, locate: Locate, key: str, value: Word, level: Word, above: dict[str, str]
) -> Directive:
    """One level of the hierarchy; counts below nodes are per node."""
    per = "node" if "nodes" in above else "job"
    if key in _NODES:
        above["nodes"] = value.text
        return list_item(directive, locate, key, value, "req_nodes", around=level)
    target = "req_gpus" if key in _GPUS else "req_cpus" if key in _CPUS else None
    counted = list_item(directive, locate, key, value, target, per, around=level)
    for factor in ("cpu", "gpu"):
        # /cpu=2/core=4 is eight cores: no single number in the text says that
        if target == "req_cpus" and above.get(factor, "1").isdigit() and value.text.isdigit():
            times = int(above.get(factor, "1")[:9])
            if times != 1:
                counted = counted._replace(value=str(int(counted.value or 1) * times), place=None, whole=None)
    above["gpu" if key in _GPUS else key] = value.text
    return counted


def _time(text: str) -> int | None:
    """hours[:minutes[:seconds]]"""
    parts = text.split(":")
    if len(parts) > 3 or not all(part.isascii() and part.isdigit() and len(part) < 9 for part in parts):
        raise UnitError(f'"{text[:60]}" is not an OAR walltime; write 1:30:00')
    return sum(int(part) * unit for part, unit in zip(parts, (3600, 60, 1), strict=False))


def _number(text: str) -> int | None:
    """A count; only the scheduler knows ALL and BEST."""
    if text.strip().upper() in ("ALL", "BEST"):
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise UnitError(f'"{text[:60]}" is not a number')
    return int(text)


OAR = Dialect(
    scheduler=Scheduler.OAR,
    prefix="#OAR ",
    commands=("oarsub",),
    table=OPTIONS,
    words=_words,
    readers={
        "time_limit": _time,
        "req_nodes": _number,
        "req_cpus": _number,
        "req_gpus": _number,
        "array": lambda text: f"1-{_number(text)}",  # --array N numbers its tasks from 1
    },
    writers={"time_limit": clock_text, "array": lambda value: str(value).removeprefix("1-")},
    new_options={
        "time_limit": NewOption("-l walltime={}", unless=("--resource",)),
        "req_nodes": NewOption("-l /nodes={}", unless=("--resource",)),
        "partition": NewOption("-q {}"),
        "array": NewOption("--array {}"),
        "name": NewOption("-n {}"),
        "account": NewOption("--project {}"),
    },
    # a second -l would be an alternative, not an addition
    extensions={"time_limit": Extension("--resource", ",walltime={}")},
    parts={"--resource": _resources, "--type": _type},
)
