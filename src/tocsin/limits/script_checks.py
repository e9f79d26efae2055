"""Rules about the script itself: options that contradict each other, and lines that are not read as intended."""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from tocsin.core.errors import InputError
from tocsin.core.nodelist import expand_nodes
from tocsin.core.units import format_duration, format_memory
from tocsin.core.verdict import Level
from tocsin.limits.breach import Breach, plural
from tocsin.limits.constraints import misplaced_count
from tocsin.limits.deadline_checks import (
    DAY,
    begin_after_deadline,
    deadline_before_end,
    deadline_before_limit,
    deadline_too_soon,
    moment,
)
from tocsin.limits.demand import end_of_range
from tocsin.limits.gpu_checks import (
    cpus_of_no_gpu,
    gpus_disagree,
    gpus_of_a_range,
    gpus_of_no_sockets,
    gpus_of_no_tasks,
    gpus_of_unclear_tasks,
    per_no_gpu,
    types_and_none,
    types_of_no_tasks,
)
from tocsin.limits.release_checks import (
    COUNTS,
    NEWER,
    NEWER_OPTIONS,
    NEWEST_OPTIONS,
    OLDER,
    OLDEST,
    newer_options,
    newer_values,
    newest_options,
    older_values,
    oldest_values,
    too_large,
)
from tocsin.scripts.request import Problem, ProblemKind
from tocsin.scripts.scheduler import Scheduler
from tocsin.scripts.submission import Submission

__all__ = ["contradictions", "misread_lines", "node_of_two_components", "option_breach", "past_deadline"]

_MOST_SHOWN = 10
_LITTLE = 2**30
"""Every node has more memory than this."""
_LARGEST_JOB_ID = 0x03FF0000
"""The maximum of MaxJobId."""
_GPU_COUNTS = ("--gpus", "--gres", "--gpus-per-node", "--gpus-per-socket", "--gpus-per-task", "--nodes")
_TASK_COUNTS = ("--ntasks", "--nodes", "--ntasks-per-node")
_EXCLUDING = (
    ("memory_twice", ("--mem", "--mem-per-cpu", "--mem-per-gpu")),
    ("cpus_twice", ("--cpus-per-gpu", "--cpus-per-task")),
    ("tasks_twice", ("--ntasks-per-gpu", "--gpus-per-task")),
    ("tasks_twice", ("--ntasks-per-gpu", "--gpus-per-socket")),
    ("tasks_twice", ("--ntasks-per-gpu", "--ntasks-per-node")),
    ("cores_twice", ("--core-spec", "--thread-spec")),
    ("buffers_twice", ("--bb", "--bbf")),
    ("quiet_and_verbose", ("--quiet", "--verbose")),
)
"""Options of which sbatch takes one."""


def contradictions(
    submission: Submission, row: int, release: tuple[int, int] | None = None
) -> Iterator[Breach]:
    """Options that sbatch of this release refuses together (critical), or that are seldom intended (warning)."""
    if submission.script.scheduler is not Scheduler.SLURM or len(submission.script.components) > 1:
        return
    for kind, options in _EXCLUDING:
        last = [d for d in map(submission.last, options) if d]
        # Of memory and of reserved cores, written options simply override the environment.
        written = [d.option for d in last if not d.source or kind not in ("memory_twice", "cores_twice")]
        if kind == "memory_twice" and len(written) > 1:
            # A variable takes the place of the directive, and an option of another form overrides it.
            again = submission.set_by_environment
            written = [d.option for d in last if not d.source and not (d.line and d.option in again)]
            last = []
        if kind == "quiet_and_verbose":  # sbatch compares them before it reads the script
            written = [d.option for d in last if not d.line and not d.source]
            last = []
        given = written or [d.option for d in last]
        if len(given) > 1:
            both = f"has both {' and '.join(given)}, which exclude each other; keep one"
            yield option_breach(submission, row, kind, both, *options)
    for check in _CHECKS:
        if check.holds_for(release) and (text := check.find(submission)):
            yield option_breach(submission, row, check.kind, text, *check.options, level=check.level)


def node_of_two_components(parts: Sequence[Submission]) -> str | None:
    """Slurm also refuses a node that one component requests and another excludes (tried on 22.05 and 26.05)."""
    for index, part in enumerate(parts):
        for name in sorted(_names(part, "--nodelist")):
            for other, against in enumerate(parts):
                if other != index and name in _names(against, "--nodelist") | _names(against, "--exclude"):
                    return f"names node {name} in components {index} and {other}, which cannot share it; name other nodes"
    return None


def _names(submission: Submission, option: str) -> set[str]:
    given = submission.value(option)
    try:
        return set() if "/" in given else set(expand_nodes(given))
    except InputError:
        return set()  # reported as a refused option


_MISREAD = (
    (ProblemKind.SCRIPT, "script_refused", Level.CRITICAL, ""),
    (ProblemKind.REFUSED, "refused_option", Level.CRITICAL, "sbatch refuses the job"),
    (
        ProblemKind.IGNORED,
        "directive_ignored",
        Level.WARNING,
        "move it above the first command, or remove it",
    ),
    (ProblemKind.FOREIGN, "foreign_directive", Level.WARNING, "remove it, or submit with --ignore-pbs"),
    (ProblemKind.UNCLEAR, "directive_wrong", Level.WARNING, "correct it"),
)


def misread_lines(submission: Submission, row: int, *, accepted: bool = False) -> Iterator[Breach]:
    """Problems found by the parser: one breach for each kind, with all lines as evidence.

    If the scheduler accepted the job, nothing was refused: its plugins or its version know the option.
    """
    for problem_kind, kind, level, remedy in _MISREAD:
        problems = [problem for problem in submission.script.problems if problem.kind is problem_kind]
        if problem_kind is ProblemKind.FOREIGN:
            foreign = {problem.line for problem in problems}
            if all(not d.line or d.line in foreign for d in submission.script.directives):
                remedy = "convert them to #SBATCH"  # --ignore-pbs would drop the whole request
        if problems and not (accepted and level is Level.CRITICAL):
            more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
            yield Breach(
                row=row,
                kind=kind,
                level=level,
                text=f"{_with_line(problems[0])}{more}",
                remedy=remedy,
                evidence=tuple(_with_line(problem) for problem in problems[:_MOST_SHOWN]),
                variable="" if problems[0].line else problems[0].source,
            )


def past_deadline(submission: Submission, row: int, submit: int) -> Iterator[Breach]:
    """A deadline that had passed a day before the submission, whatever the time zone."""
    deadline = moment(submission.value("--deadline"))
    if deadline and not deadline[0] and deadline[1] < submit - DAY:
        text = "has a deadline in the past; move --deadline, or remove it"
        yield option_breach(submission, row, "deadline_over", text, "--deadline")


def _with_line(problem: Problem) -> str:
    place = f"line {problem.line}" if problem.line else problem.source or "command line"
    return f"{place}: {problem.text}"


def _tasks_do_not_fit(submission: Submission) -> str | None:
    each, tasks = _number(submission, "tasks_per_node"), _number(submission, "req_tasks")
    nodes = _most_nodes(submission)
    if not nodes or not each or tasks <= nodes * each:
        return None
    return (
        f"requests {tasks} tasks, but {plural(nodes, 'node')} with {plural(each, 'task')} each make {nodes * each}; "
        f"request {-(-tasks // each)} nodes, or leave out one of the three"
    )


def _tasks_do_not_fit_on_several(submission: Submission) -> str | None:
    """26.05 puts all tasks on one node if it is the job's alone, which may depend on the partition."""
    return _tasks_do_not_fit(submission) if _most_nodes(submission) > 1 else None


def _most_nodes(submission: Submission) -> int:
    """0 if unlimited."""
    if submission.fixed:
        return _number(submission, "req_nodes")
    return end_of_range(submission) if submission.last("--ntasks") else 0


def _idle_nodes(submission: Submission) -> str | None:
    nodes, tasks = _number(submission, "req_nodes"), _number(submission, "req_tasks")
    if not submission.fixed or submission.last("--ntasks") is None or not 0 < tasks < nodes:
        return None
    return f"requests {nodes} nodes for {plural(tasks, 'task')}; sbatch allocates {tasks}, so request that"


def _no_nodes(submission: Submission) -> str | None:
    given = submission.last("--ntasks") or submission.last("--nodelist")
    return None if given else _zero_nodes(submission)


def _no_nodes_for_tasks(submission: Submission) -> str | None:
    given = submission.last("--ntasks") and not submission.last("--nodelist")
    return _zero_nodes(submission) if given else None


def _no_nodes_of_list(submission: Submission) -> str | None:
    given = submission.last("--nodelist") and not submission.last("--ntasks")
    return _zero_nodes(submission) if given else None


def _zero_nodes(submission: Submission) -> str | None:
    """Only the last value counts: `-N 0 -N 4` is taken."""
    if not re.fullmatch(r"\s*\+?0+\s*(?:-\s*\+?0+\s*)?", submission.value("--nodes")):
        return None
    return "requests 0 nodes; request 1 or more"


def _few_tasks_for_planes(submission: Submission) -> str | None:
    return _planes(submission, _number(submission, "req_tasks"))


def _few_nodes_for_planes(submission: Submission) -> str | None:
    """Newer releases do not count --ntasks-per-node here."""
    given = submission.last("--ntasks")
    return _planes(submission, _number(submission, "req_tasks") if given else 0)


def _planes(submission: Submission, tasks: int) -> str | None:
    """Each node but the last gets as many tasks as the plane has."""
    plane = re.fullmatch(r"plane[^=]*=\s*\+?(\d{1,9})", submission.value("--distribution"), re.IGNORECASE)
    nodes = _number(submission, "req_nodes") if submission.last("--nodes") else 0
    tasks = tasks or nodes
    if not plane or (nodes - 1) * int(plane[1]) < tasks:
        return None
    return f"distributes {plural(tasks, 'task')} in planes of {plane[1]}, which leaves some of {nodes} nodes empty; request fewer nodes"


def _cpus_of_task_twice(submission: Submission) -> str | None:
    cpus = re.search(r"(?:^|,)cpu[:=]", submission.value("--tres-per-task"))
    if not cpus or not submission.last("--cpus-per-task"):
        return None
    return "has both --cpus-per-task and --tres-per-task=cpu, which exclude each other; keep one"


def _nodes_backwards(submission: Submission) -> str | None:
    """sbatch reads every value, even if a later one overrides it."""
    for value in submission.values("--nodes"):
        found = re.fullmatch(r"\s*\+?(\d{1,9})\s*-\s*\+?(\d{1,9})\s*", value, re.ASCII)
        if found and 0 < int(found[2]) < int(found[1]):  # at most 0 means no limit
            return f"requests at least {found[1]} and at most {found[2]} nodes; swap them"
    return None


def _time_min_above(submission: Submission) -> str | None:
    least, limit = _number(submission, "time_min"), _number(submission, "time_limit")
    if not limit or least <= limit:
        return None
    return (
        f"has a minimum time of {format_duration(least)}, but a time limit of {format_duration(limit)}; "
        "--time-min must not exceed --time"
    )


def _more_nodes_listed(submission: Submission) -> str | None:
    listed, nodes = _listed(submission), _number(submission, "req_nodes")
    if not submission.fixed or listed is None or listed <= nodes:
        return None
    return f"lists {listed} nodes, but requests {nodes}; request {listed}, or list fewer"


def _more_nodes_listed_than_range(submission: Submission) -> str | None:
    """Whatever --ntasks says."""
    listed, most = _listed(submission), end_of_range(submission)
    if not most or listed is None or listed <= most:
        return None
    return f"lists {listed} nodes, but requests at most {most}; request up to {listed}, or list fewer"


def _little_memory_of_whole_nodes(submission: Submission) -> str | None:
    memory = _number(submission, "req_memory")
    exclusive = submission.script.request.get("exclusive") is True and submission.memory_per == "node"
    if not exclusive or not 0 < memory < _LITTLE:
        return None
    return (
        f"takes whole nodes but only {format_memory(memory)} of memory on each; "
        "--mem=0 requests all memory of these nodes"
    )


def _several_counts(submission: Submission) -> str | None:
    lists = [nodes for nodes in submission.values("--nodes") if set(",:") & set(nodes)]
    return (
        f'has the list of node counts "{lists[0][:60]}", which Slurm takes from 23.11 on' if lists else None
    )


def _no_list_of_hosts(submission: Submission) -> str | None:
    lists = ("--nodelist", "--nodefile")
    if submission.value("--distribution").lower() != "arbitrary" or any(map(submission.last, lists)):
        return None
    return "has the distribution arbitrary, which needs a list of nodes; add --nodelist"


def _after_impossible_job(submission: Submission) -> str | None:
    wanted = re.findall(r"(?<!\w)afterok((?::\d+)+)", submission.value("--dependency")[:10_000], re.ASCII)
    ids = [number for numbers in wanted for number in numbers.split(":") if number]
    beyond = [number for number in ids if len(number) > 9 or int(number) > _LARGEST_JOB_ID]
    return f"depends on job {beyond[0][:20]}, but no job has such an id; correct it" if beyond else None


def _batch_features(submission: Submission) -> str | None:
    """The features of the first node are among those of all nodes."""
    wanted = [name for name in re.split("[&|]", submission.value("--batch")) if name]
    given = submission.value("--constraint") or submission.value("--prefer")
    others = [name for name in wanted if name not in re.split(r"[&|,()\[\]]|\*\d*", given)]
    if submission.last("--batch") and not given:
        others = wanted or [""]
    return f"has --batch={others[0][:60]}, which is not in --constraint; add it there" if others else None


def _misplaced_count(submission: Submission) -> str | None:
    found = misplaced_count(submission.value("--constraint")[:10_000])
    return f"has a constraint that Slurm does not accept: {found}" if found else None


def _gpus_twice(submission: Submission) -> str | None:
    gres = re.search(r"(?:^|,)(?:gres[:/])?gpu\b", submission.value("--gres"))
    if not gres or not submission.last("--gpus-per-node"):
        return None
    return "has both --gres=gpu and --gpus-per-node, which exclude each other; keep one"


def _shared_and_not(submission: Submission) -> str | None:
    both = submission.last("--exclusive") and submission.last("--oversubscribe")
    return "has both --exclusive and --oversubscribe, which exclude each other; keep one" if both else None


def _no_tasks(submission: Submission) -> str | None:
    shape = submission.value("--extra-node-info").split(":")[:3]
    counted = any(map(submission.last, ("--ntasks", "--nodes", "--nodelist", "--nodefile")))
    if counted or not any(re.fullmatch(r"\s*\+?0+", part) for part in shape):
        return None
    return f"has --extra-node-info={':'.join(shape)[:60]}, which makes 0 tasks; write 1 or more"


class _Check(NamedTuple):
    kind: str
    find: Callable[[Submission], str | None]
    """What is wrong and what to do about it, if anything."""
    options: tuple[str, ...]
    level: Level = Level.CRITICAL
    since: tuple[int, int] | None = None
    """The first release that refuses it; no unknown one does."""
    until: tuple[int, int] | None = None
    """The first release that accepts it; unknown ones count as older."""

    def holds_for(self, release: tuple[int, int] | None) -> bool:
        if self.since:
            return release is not None and self.since <= release < (self.until or (99, 0))
        return not (self.until and release and release >= self.until)


_CHECKS = (
    _Check("tasks_do_not_fit", _tasks_do_not_fit, _TASK_COUNTS, until=(26, 5)),
    _Check("tasks_do_not_fit", _tasks_do_not_fit_on_several, _TASK_COUNTS, since=(26, 5)),
    _Check("more_nodes_than_tasks", _idle_nodes, ("--nodes", "--ntasks"), Level.WARNING),
    _Check("nodes_backwards", _nodes_backwards, ("--nodes",)),
    _Check("no_nodes", _no_nodes, ("--nodes",)),
    _Check("no_nodes", _no_nodes_for_tasks, ("--nodes",), since=(0, 0), until=(22, 6)),
    _Check("no_nodes", _zero_nodes, ("--nodes",), since=(24, 11), until=(24, 12)),
    _Check("no_nodes", _no_nodes_of_list, ("--nodes",), since=(26, 5)),
    _Check("nodes_left_empty", _few_tasks_for_planes, ("--distribution", "--nodes")),
    _Check("nodes_left_empty", _few_nodes_for_planes, ("--distribution", "--nodes"), since=(24, 11)),
    _Check("cpus_twice", _cpus_of_task_twice, ("--cpus-per-task", "--tres-per-task"), since=(24, 11)),
    _Check("gpus_of_no_sockets", gpus_of_no_sockets, ("--gpus-per-socket",)),
    _Check("types_and_none", types_and_none, _GPU_COUNTS),
    _Check("not_in_this_release", newer_options, NEWER_OPTIONS, since=(0, 0), until=(22, 6)),
    _Check("not_in_this_release", newest_options, NEWEST_OPTIONS, since=(0, 0), until=(24, 12)),
    _Check("time_min_above_limit", _time_min_above, ("--time-min", "--time")),
    _Check("begin_after_deadline", begin_after_deadline, ("--begin", "--deadline")),
    # Newer releases give a job as many of the listed nodes as it requests.
    _Check("more_nodes_listed", _more_nodes_listed, ("--nodelist", "--nodes"), until=(22, 6)),
    _Check(
        "more_nodes_listed",
        _more_nodes_listed_than_range,
        ("--nodelist", "--nodes"),
        since=(0, 0),
        until=(22, 6),
    ),
    _Check(
        "exclusive_with_little_memory", _little_memory_of_whole_nodes, ("--exclusive", "--mem"), Level.WARNING
    ),
    _Check("amount_per_no_gpu", per_no_gpu, ("--mem-per-gpu", "--ntasks-per-gpu")),
    _Check("amount_per_no_gpu", cpus_of_no_gpu, ("--cpus-per-gpu",), since=(24, 11)),
    _Check("several_node_counts", _several_counts, ("--nodes",), until=(23, 11)),
    _Check("no_list_of_hosts", _no_list_of_hosts, ("--distribution",)),
    _Check("gpus_per_unknown_task", gpus_of_no_tasks, ("--gpus-per-task",)),
    _Check("gpus_per_unknown_task", types_of_no_tasks, ("--gpus-per-task",), since=(0, 0), until=(22, 6)),
    _Check("gpus_per_unknown_task", gpus_of_a_range, ("--gpus-per-task",), since=(0, 0), until=(22, 6)),
    _Check("gpus_per_unknown_task", gpus_of_unclear_tasks, ("--gpus-per-task",), since=(24, 11)),
    _Check("after_impossible_job", _after_impossible_job, ("--dependency",), since=(24, 11)),
    _Check("gpus_disagree", gpus_disagree, _GPU_COUNTS),
    _Check("batch_outside_constraint", _batch_features, ("--batch", "--constraint")),
    _Check("deadline_too_soon", deadline_too_soon, ("--deadline", "--time-min")),
    _Check("deadline_too_soon", deadline_before_limit, ("--deadline", "--time"), until=(24, 11)),
    _Check("deadline_too_soon", deadline_before_end, ("--deadline", "--time"), since=(24, 11)),
    _Check("not_in_this_release", newer_values, tuple(NEWER), since=(0, 0), until=(22, 6)),
    _Check("not_in_this_release", older_values, tuple(OLDER), since=(26, 5)),
    _Check("not_in_this_release", oldest_values, tuple(OLDEST), since=(24, 11)),
    _Check("not_in_this_release", too_large, COUNTS, since=(24, 11)),
    _Check("count_misplaced", _misplaced_count, ("--constraint",)),
    _Check("gpus_twice", _gpus_twice, ("--gres", "--gpus-per-node"), since=(26, 5)),
    _Check("shared_and_not", _shared_and_not, ("--exclusive", "--oversubscribe"), since=(24, 11)),
    _Check("no_tasks", _no_tasks, ("--extra-node-info",)),
)


def _listed(submission: Submission) -> int | None:
    """The number of different nodes in --nodelist; None for a list that sbatch refuses."""
    try:
        return len(set(expand_nodes(submission.value("--nodelist"))))
    except InputError:
        return None


def _number(submission: Submission, name: str) -> int:
    """A number of the request; 0 if absent."""
    value = submission.script.request.get(name)
    return value if type(value) is int else 0


def option_breach(
    submission: Submission, row: int, kind: str, text: str, *options: str, level: Level = Level.CRITICAL
) -> Breach:
    given = [d for d in map(submission.last, options) if d is not None]
    evidence = [f"{d.origin}: {d.option}" + (f"={d.value[:200]}" if d.value else "") for d in given]
    return Breach(row=row, kind=kind, level=level, text=text, evidence=tuple(evidence))
