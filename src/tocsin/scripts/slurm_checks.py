"""Option values that sbatch or slurmctld refuses; each rule was compared with sbatch 22.05."""

import re
import signal
from collections.abc import Callable, Mapping

from tocsin.core.errors import UnitError
from tocsin.core.nodelist import count_nodes
from tocsin.scripts.slurm_values import gpu_count, gres_gpus, megabytes, number, tres_per_task

__all__ = ["CHECKS"]

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


def _refused(what: str, example: str, allowed: str) -> Callable[[str], None]:
    """A check that refuses what does not match `allowed`, in lower case. Compiled lazily: few scripts need it."""

    def check(text: str) -> None:
        if not re.fullmatch(allowed, text.strip().lower(), re.ASCII):
            raise UnitError(f'"{text[:60]}" is not {what}; write {example}')

    return check


def _list_of(item: str) -> str:
    """Comma-separated items; each comma is required, or matching could take exponential time."""
    return rf"{item}(?:,{item})*,?"


_FREQUENCY = r"(?:low|medium|high|highm1|\d{1,9})"
_GOVERNORS = r"(?:conservative|ondemand|performance|powersave|schedutil|userspace)"
_ORDER = r"(?:\*|block|cyclic|fcyclic|plane(?:=\d{1,9})?|arbitrary|default)"
_cpu_frequency = _refused(
    "a CPU frequency",
    "low, high or 2400000",
    rf"{_FREQUENCY}(?:-{_FREQUENCY})?(?::{_GOVERNORS})?|{_GOVERNORS}",
)
_SIGNALS = frozenset(name.removeprefix("SIG") for name in signal.Signals.__members__)
_LATEST_SIGNAL = 65_535
_CONSTRAINT = re.compile(r"[&|()\[\]]|[^&|()\[\]\s]+")
_LARGEST_NICE = 2_147_483_645


def _signal(text: str) -> None:
    name, _, before = text.strip().rpartition(":")[2].partition("@")
    known = name.isdigit() or name.upper().removeprefix("SIG") in _SIGNALS
    if not known or (before and not (before.isdigit() and int(before[:9]) <= _LATEST_SIGNAL)):
        raise UnitError(f'"{text[:60]}" is not a signal; write B:USR1@60')


def _frequencies(text: str) -> None:
    _cpu_frequency(text)
    least, _, most = text.partition(":")[0].partition("-")
    if least.isdigit() and most.isdigit() and int(least) > int(most):
        raise UnitError(f'"{text[:60]}" has the larger frequency first; write {most}-{least}')


def _nice(text: str) -> None:
    found = re.match(r"\s*[+-]?(\d+)", text, re.ASCII)
    if found and int(found[1][:20]) > _LARGEST_NICE:
        raise UnitError(f'"{text[:60]}" is beyond {_LARGEST_NICE:,}; write a smaller number')


def _constraint(text: str) -> None:
    """Refused: an operator without a name before it, a bracket without a partner, a star without a number."""
    opened: list[str] = []
    before, wrong = "(", False
    for word in _CONSTRAINT.findall(text[:10_000]):
        if word in ("(", "["):
            opened.append(word)
        wrong = bool(
            (word == ")" and (not opened or opened.pop() != "("))
            or (word == "]" and (not opened or opened.pop() != "["))
            or (word in ("&", "|") and before in ("(", "[", "&", "|"))
            or re.search(r"\*(?!0*[1-9]\d*$)", word)
        )
        if wrong:
            break
        before = word
    if wrong or opened:
        raise UnitError(f'"{text[:60]}" is not a constraint; write features joined by & or |')


def _some_nodes(text: str) -> None:
    if text.strip() == "0":
        raise UnitError("0 is refused; request 1 or more")


CHECKS: Mapping[str, Callable[[str], object]] = {
    **dict.fromkeys(
        (
            *("--ntasks", "--cpus-per-task", "--cpus-per-gpu", "--mincpus", "--sockets-per-node"),
            *("--cores-per-socket", "--threads-per-core", "--ntasks-per-node", "--ntasks-per-core"),
            *("--ntasks-per-socket", "--ntasks-per-gpu"),
        ),
        _some,
    ),
    "--acctg-freq": _refused(
        "a sampling interval",
        "task=30",
        r"\d{1,9}|" + _list_of(r"(?:task|energy|network|filesystem)=\d{1,9}"),
    ),
    "--begin": _moment,
    "--constraint": _constraint,
    "--cpu-freq": _frequencies,
    "--deadline": _moment,
    "--delay-boot": _refused("a time", "minutes", r"[\d:-]+"),
    "--dependency": _dependency,
    "--distribution": _refused(
        "a distribution", "block:cyclic", rf"{_ORDER}(?::{_ORDER}){{0,2}}(?:,(?:no)?pack)?|(?:no)?pack"
    ),
    "--exclude": _nodes,
    "--exclusive": _refused(
        "an exclusive mode", "--exclusive or --exclusive=user", r"|user|mcs|topo|exclusive|no"
    ),
    "--extra-node-info": _refused("sockets:cores:threads", "2:8:1", r"[\d*-]+(?::[\d*-]+){0,2}"),
    "--get-user-env": _refused("a time and a mode", "--get-user-env", r"\d*[sl]?"),
    "--gpu-freq": _refused("a GPU frequency", "high", _list_of(rf"(?:(?:[a-z]+=)?{_FREQUENCY}|verbose)")),
    "--gpus-per-socket": gpu_count,
    "--gres": gres_gpus,
    "--gres-flags": _refused("a flag", "enforce-binding", _list_of(r"[a-z]+-[a-z-]+")),
    "--hint": _refused(
        "a hint", "nomultithread", _list_of(r"(?:compute_bound|memory_bound|(?:no)?multithread|help)")
    ),
    "--kill-on-invalid-dep": _refused("an answer", "yes or no", r"yes|no|y|n"),
    "--licenses": _refused(
        "a licence with a number",
        "name:2",
        r"[^:=,;|\s]+(?:[:=]\d{1,9})?(?:[,;|]\s*[^:=,;|\s]+(?:[:=]\d{1,9})?)*[,;]?",
    ),
    "--mail-type": _mail,
    "--nice": _nice,
    "--nodes": _some_nodes,
    "--nodelist": _nodes,
    "--open-mode": _mode,
    "--profile": _refused(
        "a kind of profile", "all", _list_of(r"(?:all|none|energy|task|lustre|filesystem|network)")
    ),
    "--signal": _signal,
    "--switches": _refused("a number of switches", "1 or 1@60", r"0*[1-9]\d{0,9}(?:@.*)?"),
    "--tmp": megabytes,
    "--tres-per-task": tres_per_task,
}
"""Options whose value sbatch or slurmctld checks, though it may set no field."""
