"""The values that each option of sbatch takes; each grammar was compared with sbatch 22.05 and 26.05."""

import re
from collections.abc import Callable, Mapping

from tocsin.core.errors import UnitError
from tocsin.core.nodelist import count_nodes
from tocsin.scripts.slurm_moments import moment
from tocsin.scripts.slurm_values import duration, gpu_count, gres_gpus, megabytes, node_list, number

__all__ = ["CHECKS"]

Check = Callable[[str], object]


def _refused(what: str, example: str, allowed: str, *, between: str = "", least: int = 0) -> Check:
    """A check that refuses what does not match `allowed`. Compiled lazily: few scripts need it.

    With separators, every item must match, empty ones are skipped, and there are at least so many.
    """

    def check(text: str) -> None:
        items = [item for item in re.split(f"[{between}]", text) if item] if between else [text]
        good = all(re.fullmatch(allowed, item, re.ASCII | re.IGNORECASE | re.DOTALL) for item in items)
        if len(items) < least or not good:
            raise UnitError(f'"{text[:60]}" is not {what}; write {example}')

    return check


def _list_of(item: str, separator: str = "[,;]") -> str:
    """Items with a separator between any two."""
    return rf"(?:{item})(?:{separator}(?:{item}))*"


def _some(text: str) -> None:
    if number(text) == 0:
        raise UnitError("0 is refused; request 1 or more")


def _nodes(text: str) -> None:
    """A path is a file with node names. Blanks and repeated commas separate, and `n[1-]` is n1."""
    if "/" not in text:
        listed = node_list(text)
        # Without a closing bracket, `[n1` is n1, and `n[1-2[` is n[1-2].
        listed = listed if "]" in listed else re.sub(r"(\[.*)\[$", r"\1]", listed)
        count_nodes(listed if "]" in listed else listed.removeprefix("["))


def _listed_nodes(text: str) -> None:
    _nodes(text)
    if text and not text.strip(" \t,"):
        raise UnitError(f'"{text[:60]}" names no node; write n1,n2')


_MAIL = frozenset(
    (
        *("NONE", "BEGIN", "END", "FAIL", "REQUEUE", "ALL", "STAGE_OUT", "ARRAY_TASKS", "INVALID_DEPEND"),
        *("TIME_LIMIT", "TIME_LIMIT_90", "TIME_LIMIT_80", "TIME_LIMIT_50"),
    )
)


def _mail(text: str) -> None:
    """sbatch ignores unknown events as long as it knows one."""
    if not any(word.upper() in _MAIL for word in text.split(",")):
        raise UnitError(f'"{text[:60]}" is not a mail event; write END,FAIL')


_TYPE = r"(?:after(?:any|corr|notok|ok)?|afterburstb\w*|expand):"
_ID = r"\s*[+-]?0*[1-9]\d*(?:_(?:\*|\d*))?"
_STATE = r"(?:\([^)]*\))?"
_DEPENDENCY = re.compile(
    rf"(?:singleton{_STATE}|{_TYPE}{_ID}(?:\+\s*0*[1-9]\d*)?{_STATE}(?::{_ID}(?:\+\s*0*[1-9]\d*)?{_STATE})*)",
    re.ASCII | re.IGNORECASE,
)
_IDS = re.compile(_list_of(r"0*[1-9]\d*(?:_(?:\*|\d*))?", ","), re.ASCII)


def _dependency(text: str) -> None:
    """Conditions with job ids, separated by commas or question marks; job ids alone may end the list."""
    at = 0
    while text not in ("", "0"):
        if ":" not in text[at:] and _IDS.fullmatch(text, at):
            return
        found = _DEPENDENCY.match(text, at)
        at = found.end() if found else 0
        if found and at == len(text):
            return
        if not found or text[at] not in ",?":
            raise UnitError(f'"{text[:60]}" is not a dependency; write afterok:123 or singleton')
        at += 1


_SIGNAL = re.compile(
    r"r?b?r?:?\s*(?:[+-]?(\d+)|(?:sig)?(?:hup|int|quit|abrt|kill|alrm|term|usr1|usr2|urg|cont|stop|tstp|ttin|ttou|xcpu))"
    r"\s*(?:@\s*\+?(\d*))?",
    re.ASCII | re.IGNORECASE,
)
_LARGEST = 65_535


def _signal(text: str) -> None:
    found = _SIGNAL.fullmatch(text)
    if (
        not found
        or int((found[1] or "1")[:18]) % (_LARGEST + 1) == 0
        or int((found[2] or "0")[:18]) > _LARGEST
    ):
        raise UnitError(f'"{text[:60]}" is not a signal; write B:USR1@60')


_GOVERNOR = r"(?:co|perf|pow|user|onde|sche)[^:-]*"
_FREQUENCY = r"(?:lo|hi|med|\s*\+?0*[1-9])[^:-]*"
_cpu_frequency = _refused(
    "a CPU frequency",
    "low, high or 2400000",
    rf"{_GOVERNOR}|{_FREQUENCY}(?:-{_FREQUENCY}(?::{_GOVERNOR})?)?",
)


def _frequencies(text: str) -> None:
    _cpu_frequency(text)
    least, dash, most = text.lower().partition(":")[0].partition("-")
    if dash and _rank(least) > _rank(most):
        raise UnitError(f'"{text[:60]}" has the larger frequency first; write {most}-{least}')


def _rank(text: str) -> tuple[int, int]:
    """A frequency as sbatch orders it: numbers, low, medium, high, highm1."""
    if found := re.match(r"\s*\+?(\d{1,9})", text, re.ASCII):
        return 0, int(found[1])
    return 1, 3 if text.startswith(("him1", "highm1")) else ("l", "m", "h").index(text[:1])


_LARGEST_NICE = 2_147_483_645


def _nice(text: str) -> None:
    found = re.match(r"\s*[+-]?(\d+)", text, re.ASCII)
    if found and int(found[1][:20]) > _LARGEST_NICE:
        raise UnitError(f'"{text[:60]}" is beyond {_LARGEST_NICE:,}; write a smaller number')


_LARGEST_PRIORITY = 4_294_967_293


def _priority(text: str) -> None:
    found = re.match(r"\s*([+-]?\d+)", text, re.ASCII)
    if found and not 0 <= int(found[1][:20]) <= _LARGEST_PRIORITY:
        raise UnitError(f'"{text[:60]}" is not a priority; write 0 to {_LARGEST_PRIORITY:,}')


_CONSTRAINT = re.compile(r"[&|()\[\],]|[^&|()\[\],\s]+")


def _constraint(text: str) -> None:
    """Refused: an operator without a name before it, a bracket without a partner, a star without a number, a blank.

    A number of nodes follows a name or what is closed: `[(knl&flat)*4&haswell*1]`.
    """
    opened: list[str] = []
    before, wrong = "(", False
    for word in _CONSTRAINT.findall(text[:10_000]):
        if word in ("(", "["):
            opened.append(word)
        wrong = bool(
            (word == ")" and (not opened or opened.pop() != "("))
            or (word == "]" and (not opened or opened.pop() != "["))
            or (word in ("&", "|", ",") and before in ("(", "[", "&", "|", ","))
            or (word.startswith("*") and before not in (")", "]"))
            or re.search(r"\*(?!0*[1-9]\d*$)", word)
        )
        if wrong:
            break
        before = word
    if wrong or opened or re.search(r"\s", text):
        raise UnitError(f'"{text[:60]}" is not a constraint; write features joined by & or |')


def _shape(text: str) -> None:
    """At most three parts count; a part is empty, a star, a number or a range."""
    part = r"|\*.*|\s*\+?\d{1,9}[km]?(?:-\s*\+?0*[1-9]\d{0,8}[km]?(?:-.*)?)?"
    for each in text.split(":")[:3]:
        _refused("sockets:cores:threads", "2:8:1", part)(each)


def _yes_or_no(text: str) -> None:
    """0 or 1, in 16 bits."""
    found = re.fullmatch(r"\s*\+?(\d{0,18})", text, re.ASCII)
    if not found or int(found[1] or "0") % (_LARGEST + 1) > 1:
        raise UnitError(f'"{text[:60]}" is not an answer; write 0 or 1')


_RESOURCE_LIMITS = r"(?-i:ALL|NONE|[,\s]*(?:(?:RLIMIT_)*(?:AS|CORE|CPU|DATA|FSIZE|MEMLOCK|NOFILE|NPROC|RSS|STACK)(?:[,\s]+|$))*)"
_BINDING = (
    r"p|prefer|nosort|sort|q|quiet|v|verbose|no|none|rank|local"
    r"|map_?mem[^:=,;]*[:=]\d+(?:\*0*[1-9]\d*)?(?:,+\d+(?:\*0*[1-9]\d*)?)*"
    r"|mask_?mem[^:=,;]*[:=](?:0x)?[\da-f]+(?:\*0*[1-9]\d*)?(?:,+(?:0x)?[\da-f]+(?:\*0*[1-9]\d*)?)*"
)
_FLAGS = _list_of(
    r"disable-binding|enforce-binding|(?:one-task|multiple-tasks)-per-sharing|allow-task-sharing", ",+"
)
_GPU_SPEED = r"(?-i:low|medium|high|highm1)|\d{1,18}"

CHECKS: Mapping[str, Check] = {
    **dict.fromkeys(
        (
            *("--ntasks", "--cpus-per-task", "--cpus-per-gpu", "--mincpus", "--sockets-per-node"),
            *("--cores-per-socket", "--threads-per-core", "--ntasks-per-node", "--ntasks-per-core"),
            *("--ntasks-per-socket", "--ntasks-per-gpu", "--thread-spec"),
        ),
        _some,
    ),
    "--acctg-freq": _refused(
        "a sampling interval",
        "task=30",
        r"\s*\+?\d.*|.*(?:task|energy|network|filesystem)=\s*\+?\d.*",
        between=",",
    ),
    "--bbf": _refused("a file", "its name", r".+"),
    "--begin": moment,
    "--constraint": _constraint,
    "--core-spec": _refused("a number", "1", r"\s*(?:\+?\d{1,18}|-0+)?"),
    "--cpu-freq": _frequencies,
    "--deadline": moment,
    "--delay-boot": lambda text: re.fullmatch(r"-\d+", text) or duration(text),
    "--dependency": _dependency,
    "--distribution": _refused(
        "a distribution",
        "block:cyclic",
        r"plane[^=]*=\s*\+?0*[1-9]\d{0,9}"
        r"|:*(?:arbitrary|hostfile|(?:no)?pack|(?:\*|block|cyclic)(?::+(?:\*|block|f?cyclic)){0,2}):*(?:,(?:(?:no)?pack)?)?",
    ),
    "--exclude": _nodes,
    "--exclusive": _refused(
        "an exclusive mode", "--exclusive or --exclusive=user", r"user|mcs|topo|exclusive|oversubscribe"
    ),
    "--export-file": _refused("a file", "its name", r".+"),
    "--extra-node-info": _shape,
    "--get-user-env": _refused("a time and a mode", "--get-user-env", r"\s*(?:[+-]?\d+)?(?:[sl].*)?"),
    "--gpu-bind": _refused(
        "a binding",
        "closest",
        r"(?:verbose,)?(?:[cn].*|map_gpu:[\d*,]*|mask_gpu:(?:0x|[\da-f*,])*|(?:per_task|single):(?!\s*-).*)",
    ),
    "--gpu-freq": _refused(
        "a GPU frequency",
        "high",
        rf"{_GPU_SPEED}|(?-i:verbose)|(?-i:memory)=(?:{_GPU_SPEED})",
        between=",",
        least=1,
    ),
    "--gpus-per-socket": gpu_count,
    "--gres": gres_gpus,
    "--gres-flags": _refused(
        "a flag", "enforce-binding", rf"(?!.*disable.*enforce|.*enforce.*disable),*{_FLAGS},*"
    ),
    "--hint": _refused("a hint", "nomultithread", _list_of(r"compute_bound|memory_bound|(?:no)?multithread")),
    "--kill-on-invalid-dep": _refused("an answer", "yes or no", r"yes|no"),
    "--licenses": _refused("a licence with a number", "name:2", r"[^:=\s]*(?:[:=]\s*\+?\d*)?", between=",;|"),
    "--mail-type": _mail,
    "--mem-bind": _refused("a binding", "local", _list_of(_BINDING)),
    "--nice": _nice,
    "--no-kill": _refused("an answer", "--no-kill or --no-kill=off", r"set|off|no"),
    "--nodefile": _refused("a file", "its name", r".+"),
    "--nodelist": _listed_nodes,
    "--open-mode": _refused("a mode", "append or truncate", r"[at].*"),
    "--prefer": _constraint,
    "--priority": _priority,
    "--profile": _refused("a kind of profile", "all", r".*(?:none|all|energy|task|lustre|network).*"),
    "--propagate": _refused("a resource limit", "STACK", _RESOURCE_LIMITS),
    "--signal": _signal,
    "--switches": _refused("a number of switches", "1 or 1@60", r"\s*\+?0*[1-9]\d{0,9}(?:@.*)?"),
    "--tmp": megabytes,
    "--wait-all-nodes": _yes_or_no,
}
"""Options whose value sbatch or slurmctld checks, though it may set no field."""
