"""A feature's value as a sentence that the job's user can check."""

from collections.abc import Callable, Mapping
from math import isfinite, isnan
from typing import Any

from tocsin.core.outcomes import Outcome
from tocsin.core.units import format_age, format_duration, format_memory, rounded_memory
from tocsin.failure.features import FEATURES
from tocsin.history import recipe

__all__ = ["no_outcome", "sentence", "shown", "unknown_past"]

_WORDS = {key.name: key.words for key in recipe.KEYS}
_OWN_PASTS = {key.name for key in recipe.OWN_KEYS}
_DURATIONS = ("time_limit", "time_min", "limit_odd", "delay", "wait", "elapsed", "cpu_time", "cpu_seconds")
_MEMORIES = (
    "req_memory",
    "memory_per_cpu",
    "max_memory",
    "first_memory",
    "first_memory_peak",
    "first_read_bytes",
    "first_written_bytes",
)
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_OUTCOMES = tuple(Outcome)
_ASKS = {"limit": "its time limit", "memory": "the requested memory"}
_OF_COMPLETED = {
    "elapsed_last": "run time of the last completed job",
    "elapsed_least": "shortest run time of completed jobs",
    "elapsed_most": "longest run time of completed jobs",
    "memory_most": "largest peak memory of completed jobs",
}

_FLAGS = {
    "interactive": ("it is a batch job", "it is interactive"),
    "exclusive": ("it may share its nodes", "it requests its nodes for itself"),
    "requeue": ("it may not be requeued", "it may be requeued"),
    "all_memory": ("it does not request all memory of its nodes", "it requests all memory of its nodes"),
    "no_time_limit": ("it has a time limit", "it has no time limit"),
    "has_dependency": ("it depends on no other job", "it depends on other jobs"),
    "has_constraints": ("it requires no node features", "it requires node features"),
    "has_licenses": ("it requests no licences", "it requests licences"),
    "has_reservation": ("it uses no reservation", "it uses a reservation"),
    "has_req_node_list": ("it does not choose its nodes by name", "it chooses its nodes by name"),
    "has_exclude_nodes": ("it excludes no nodes", "it excludes nodes"),
    "never_ran": ("it got its nodes", "it never got its nodes"),
}
_COUNTS = {
    "req_nodes": ("requests", "node"),
    "req_cpus": ("requests", "CPU"),
    "req_tasks": ("requests", "task"),
    "req_gpus": ("requests", "GPU"),
    "array_tasks": ("is an array of", "task"),
    "alloc_nodes": ("got", "node"),
    "alloc_cpus": ("got", "CPU"),
}
_OWN = {
    "cpus_per_task": "it requests {} CPUs for each task",
    "tasks_per_node": "it requests {} tasks on each node",
    "task": "it is task {} of its array",
    "req_memory": "it requests {} of memory per node",
    "memory_per_cpu": "it requests {} of memory for each CPU",
    "time_limit": "its time limit is {}",
    "time_min": "its minimum time limit is {}",
    "limit_odd": "its time limit is {} beyond whole hours",
    "cpu_time": "it requests {} of CPU time",
    "delay": "it may start {} after its submission",
    "hour": "it was submitted at {}",
    "weekday": "it was submitted on a {}",
    "wait": "it waited for {}",
    "first_cpu_user": "its CPUs spent {} of the first two minutes in user mode",
    "first_cpu_system": "its CPUs spent {} of the first two minutes in the kernel",
    "first_memory": "it used {} of memory after two minutes",
    "first_memory_peak": "it used up to {} of memory in the first two minutes",
    "first_memory_share": "it used up to {} of its memory in the first two minutes",
    "first_read_bytes": "it read {} in the first two minutes",
    "first_written_bytes": "it wrote {} in the first two minutes",
    "first_page_faults": "it had {} page faults in the first two minutes",
}


def shown(name: str, value: float) -> str | None:
    """A value formatted for people."""
    if isnan(value):
        return None
    if not isfinite(value):
        return "no limit"
    if name.startswith(("limit/", "memory/")) or name in ("granted", "time_used", "cpu_used", "memory_used"):
        return f"{value:.3g}"
    if name in ("first_cpu_user", "first_cpu_system", "first_memory_share"):
        return f"{value:.0%}"
    last = name.rpartition(".")[2]
    if last.startswith("since"):
        return format_age(int(value))
    if last in _DURATIONS or last.startswith("elapsed_"):
        return format_duration(int(value))
    if last in _MEMORIES or last == "memory_most":
        return format_memory(int(value))
    if name == "hour":
        return f"{int(value):02}:{int(value % 1 * 60):02}"
    if name == "weekday":
        return _DAYS[int(value) - 1]
    return f"{value:.0f}" if value == int(value) else f"{value:.3g}"


def sentence(name: str, value: float, history: Mapping[str, Any]) -> str:
    """`history` has the statistics of this job's past, including how many outcomes a share is based on."""
    feature = FEATURES[name]
    if isnan(value):
        kind = _WORDS.get(feature.family)
        return f"no earlier job {kind} is known" if kind else f"{feature.words}: unknown"
    asks, _, of = name.rpartition("/")
    key, _, statistic = of.partition(".")
    if asks:
        return f"{_ASKS[asks]} is {value:.2g} times the {_OF_COMPLETED[statistic]} {_WORDS[key]}"
    ended = int(history.get(recipe.column(key, "ended")) or 0)
    if key in _WORDS and (make := _SENTENCES.get(statistic) or _share(statistic)):
        return make(value, _WORDS[key], ended)
    if name == "activity":
        return (
            "no earlier job of this user is known",
            "this user runs few jobs",
            "this user runs many jobs",
        )[int(value)]
    if name in _FLAGS:
        return _FLAGS[name][value > 0]
    if name in _OWN:
        return _OWN[name].format(shown(name, value))
    if name in _COUNTS:
        verb, noun = _COUNTS[name]
        return f"it {verb} {value:,.0f} {noun}{'s' * (value != 1)}"
    if name.startswith("common_"):
        return f"{value:.0%} of the training's jobs have its {name.removeprefix('common_')}"
    return f"{feature.words}: {shown(name, value)}"


def unknown_past(name: str, value: float, history: Mapping[str, Any]) -> str | None:
    """The widest past without an outcome (`cluster`, `user` or the feature's own), if the value says only that."""
    own = FEATURES[name].family
    if own not in _WORDS or value > 0:  # some are known: they wait, run or were submitted lately
        return None
    pasts = ["cluster", *(["user"] if own in _OWN_PASTS else []), own]
    return next((past for past in pasts if not history.get(recipe.column(past, "ended"))), None)


def no_outcome(past: str) -> str:
    return f"no job {_WORDS[past]} has ended yet"


Sentence = Callable[[float, str, int], str]


_OF_ONE = {"failed": ("did not fail", "failed"), "unsuccessful": ("was successful", "was unsuccessful")}


def _share(statistic: str) -> Sentence | None:
    """Names such as `failed_last10`."""
    what, _, over = statistic.partition("_")
    verb = {"failed": "failed", "unsuccessful": "were unsuccessful"}.get(what)
    if verb is None:
        return None
    if over.startswith("last"):

        def of_last(value: float, kind: str, ended: int) -> str:
            number = max(1, min(int(over[4:]), ended))
            if number == 1:
                return f"the last job {kind} {_OF_ONE[what][value > 0.5]}"
            return f"{round(value * number)} of the last {number} jobs {kind} {verb}"

        return of_last

    def of_all(value: float, kind: str, ended: int) -> str:
        if over == "week":
            return f"{value:.0%} of the jobs {kind} that ended in the last 7 days {verb}"
        return f"{round(value * ended):,} of {ended:,} earlier jobs {kind} {verb}"

    return of_all


def _of_all(what: str) -> Sentence:
    return lambda value, kind, ended: f"{round(value * ended):,} of {ended:,} earlier jobs {kind} {what}"


def _streak(value: float, kind: str, ended: int) -> str:
    del ended
    if value > 0:
        return (
            f"the last {value:.0f} jobs {kind} were all unsuccessful"
            if value > 1
            else f"the last job {kind} was unsuccessful"
        )
    if value < 0:
        return (
            f"the last {-value:.0f} jobs {kind} all completed"
            if value < -1
            else f"the last job {kind} completed"
        )
    return f"no job {kind} has ended yet"


def _ago(what: str) -> Sentence:
    return lambda value, kind, _: f"the last {what} {kind} was {format_age(int(value))} ago"


def _ran(what: str) -> Sentence:
    return lambda value, kind, _: f"the {what} {kind} ran {format_duration(int(value))}"


def _used(what: str) -> Sentence:
    return lambda value, kind, _: f"the latest jobs {kind} used {value:.0%} of their {what}"


def _count(what: str) -> Sentence:
    def counted(value: float, kind: str, ended: int) -> str:
        del ended
        number = f"{value:,.0f}" if value else "no"
        verb = {"are": "is", "were": "was"}.get(what.partition(" ")[0]) if value == 1 else None
        words = f"{verb} {what.partition(' ')[2]}" if verb else what
        return f"{number} job{'s' * (value != 1)} {kind} {words}"

    return counted


_SENTENCES: Mapping[str, Sentence] = {
    "timeout": _of_all("ran out of time"),
    "out_of_memory": _of_all("ran out of memory"),
    "node": _of_all("failed because of a node"),
    "last": lambda value, kind, _: f"the last job {kind} ended as {_OUTCOMES[int(value)].replace('_', ' ')}",
    "streak": _streak,
    "since": _ago("outcome"),
    "since_unsuccessful": _ago("unsuccessful job"),
    "since_completed": _ago("completed job"),
    "since_submitted": _ago("submission"),
    "time_used": _used("time limit"),
    "memory_used": _used("memory"),
    "elapsed_last": _ran("last completed job"),
    "elapsed_least": _ran("shortest completed job"),
    "elapsed_most": _ran("longest completed job"),
    "memory_most": lambda value, kind, _: (
        f"the completed jobs {kind} used at most {rounded_memory(int(value))} of memory"
    ),
    "elapsed_unsuccessful": _ran("last unsuccessful job"),
    "submitted_hour": _count("were submitted in the last hour"),
    "submitted_day": _count("were submitted in the last day"),
    "submitted": lambda value, kind, ended: _count("are known" if value < 50 else "or more are known")(
        value, kind, ended
    ),
    "ended": lambda _, kind, ended: (
        f"{ended:,} job{'s' * (ended != 1)} {kind} {'has' if ended == 1 else 'have'} ended"
        if ended
        else f"no job {kind} has ended yet"
    ),
    "completed": _count("completed"),
    "ended_week": _count("ended in the last 7 days"),
    "running": _count("are running"),
    "pending": _count("are pending"),
}
