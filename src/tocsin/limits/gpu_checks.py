"""Rules about GPU options that contradict each other: amounts per job, node, socket and task."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from tocsin.core.errors import InputError
from tocsin.core.nodelist import count_nodes
from tocsin.limits.breach import plural
from tocsin.scripts.slurm_values import gpu_count, gres_gpus
from tocsin.scripts.submission import Submission

__all__ = [
    "cpus_of_no_gpu",
    "gpus_disagree",
    "gpus_of_a_range",
    "gpus_of_no_sockets",
    "gpus_of_no_tasks",
    "gpus_of_unclear_tasks",
    "per_no_gpu",
    "types_and_none",
    "types_of_no_tasks",
]

_GPU_OPTIONS = ("--gres", "--gpus-per-socket", "--tres-per-task")


class _Gpus(NamedTuple):
    """The untyped GPUs of a request, and the counts that they are compared with; 0 if absent."""

    job: int
    node: int
    socket: int
    task: int
    tasks: int
    nodes: int
    most_nodes: int
    sockets: int
    tasks_per_node: int
    tasks_per_socket: int
    tasks_per_gpu: int


def gpus_disagree(submission: Submission) -> str | None:
    """Slurm wants each amount to be a multiple of the next smaller one, and all of them to agree with tasks and nodes."""
    asked = _amounts(submission)
    found = None if asked is None else next(_disagreements(asked), None)
    return f"requests GPUs that do not add up: {found}" if found else None


def _disagreements(asked: _Gpus) -> Iterator[str]:
    for whole, amount, part, share in (
        ("job", asked.job, "node", asked.node),
        ("job", asked.job, "task", asked.task),
        ("node", asked.node, "socket", asked.socket),
        ("node", asked.node, "task", asked.task),
        ("socket", asked.socket, "task", asked.task),
    ):
        if amount and share and amount % share:
            yield f"{amount} per {whole} is not a multiple of {share} per {part}"
    if asked.job and asked.socket > asked.job:
        yield f"{asked.job} per job are fewer than {asked.socket} per socket"
    for whole, amount, part, share, least, most in (
        ("job", asked.job, "node", asked.node, asked.nodes, asked.most_nodes),
        ("node", asked.node, "socket", asked.socket, asked.sockets, asked.sockets),
    ):
        parts = amount // share if share else 0
        if amount and parts and (parts < least or (most and parts > most)):
            yield f"{amount} per {whole} and {share} per {part} make {plural(parts, part)}"
    for whole, amount, tasks in (
        ("job", asked.job, asked.tasks),
        ("node", asked.node, asked.tasks_per_node),
        ("socket", asked.socket, asked.tasks_per_socket),
    ):
        if amount and asked.task and tasks and amount // asked.task != tasks:
            yield f"{amount} per {whole} and {asked.task} per task do not make {plural(tasks, 'task')}"
    if asked.job and asked.job < asked.nodes:
        yield f"{plural(asked.job, 'GPU')} for {asked.nodes} nodes; request at least one per node"
    if asked.tasks_per_gpu and not (asked.job or asked.node) and asked.tasks % asked.tasks_per_gpu:
        yield f"{asked.tasks} tasks are not a multiple of {asked.tasks_per_gpu} per GPU"


def gpus_of_no_sockets(submission: Submission) -> str | None:
    shape = submission.value("--extra-node-info").split(":")[0]
    try:
        asked = gpu_count(submission.value("--gpus-per-socket"))
    except InputError:
        return None  # reported as a refused option
    if not asked or _whole(submission.value("--sockets-per-node") or shape):
        return None
    return "has --gpus-per-socket, which needs --sockets-per-node; add it"


def types_and_none(submission: Submission) -> str | None:
    """Slurm refuses GPUs of a type next to GPUs of any type."""
    items = [
        f"gpu:{item}"
        for option in ("--gpus", "--gpus-per-node", "--gpus-per-socket", "--gpus-per-task")
        for item in submission.value(option).lower().split(",")
        if item and not (option == "--gpus-per-task" and re.fullmatch("[a-z][^:]*", item))
    ]
    items += re.sub(r"\([^)]*\)", "", submission.value("--gres").lower()).split(",")
    typed: set[bool] = set()
    for item in items:
        name, *rest = re.split("[:=]", re.sub("^gres[:/]", "", item))
        counted = bool(rest) and bool(re.fullmatch(r"\s*\+?\d{1,9}[kmgtp]?", rest[-1], re.ASCII))
        if name == "gpu" and not (counted and not rest[-1].strip(" +0")):
            typed.add(len(rest) > counted)
    if len(typed) < 2:
        return None
    return "requests GPUs with a type and without one, which Slurm refuses; name the type in all options or in none"


def _per_task(submission: Submission) -> bool:
    """Whether --gpus-per-task has a number; 26.05 ignores other values."""
    return bool(
        re.fullmatch(r"(?:[^:,]*:)?\s*\+?0*[1-9]\d{0,8}[a-z]?", submission.value("--gpus-per-task"), re.ASCII)
    )


def gpus_of_no_tasks(submission: Submission) -> str | None:
    counts = ("--ntasks", "--ntasks-per-node", "--ntasks-per-gpu", "--gpus", "--nodes", "--extra-node-info")
    if not _per_task(submission) or any(map(submission.last, counts)):
        return None
    return "has --gpus-per-task but no number of tasks; add --ntasks"


def types_of_no_tasks(submission: Submission) -> str | None:
    """A type without a number is one GPU up to 22.05."""
    counts = ("--ntasks", "--ntasks-per-node", "--gpus", "--nodes", "--extra-node-info")
    given = submission.value("--gpus-per-task").split(",")
    asked = any(item and not re.fullmatch(r"(?:[^:]*:)?0+", item) for item in given)
    if not asked or any(map(submission.last, counts)):
        return None
    return "has --gpus-per-task but no number of tasks; add --ntasks"


def gpus_of_a_range(submission: Submission) -> str | None:
    """Up to 22.05, a range of nodes leaves the number of tasks open, whatever --ntasks-per-node says."""
    found = re.fullmatch(r"\s*\+?(\d*)\s*-\s*\+?(\d+)\s*", submission.value("--nodes"), re.ASCII)
    counted = any(map(submission.last, ("--ntasks", "--ntasks-per-gpu", "--gpus")))
    if counted or not found or int(found[1] or 1) == int(found[2]) or not submission.value("--gpus-per-task"):
        return None
    return "has --gpus-per-task but no fixed number of tasks; add --ntasks"


def gpus_of_unclear_tasks(submission: Submission) -> str | None:
    """--ntasks-per-node and a range of nodes do not determine the number of tasks."""
    if not _per_task(submission) or gpus_of_no_tasks(submission):
        return None
    counts = ("--ntasks", "--ntasks-per-gpu", "--gpus", "--extra-node-info")
    found = re.fullmatch(r"\s*\+?(\d+)\s*-\s*\+?(\d+)\s*", submission.value("--nodes"), re.ASCII)
    if submission.fixed or any(map(submission.last, counts)) or (found and int(found[1]) == int(found[2])):
        return None
    return "has --gpus-per-task but no fixed number of tasks; add --ntasks"


def cpus_of_no_gpu(submission: Submission) -> str | None:
    gpus = bool(_field(submission, "req_gpus")) or any(map(submission.last, _GPU_OPTIONS))
    if gpus or not submission.last("--cpus-per-gpu") or submission.last("--ntasks-per-gpu"):
        return None
    return "has --cpus-per-gpu but requests no GPU; add --gpus"


def per_no_gpu(submission: Submission) -> str | None:
    """Amounts per GPU need a number of GPUs; --ntasks-per-gpu makes one from the number of tasks."""
    gpus = bool(_field(submission, "req_gpus")) or any(map(submission.last, _GPU_OPTIONS))
    for option, enough in (
        ("--mem-per-gpu", gpus or submission.last("--ntasks-per-gpu") is not None),
        ("--ntasks-per-gpu", gpus or submission.fixed or submission.last("--ntasks") is not None),
    ):
        if re.match(r"\s*\+?0*[1-9]\d{0,8}(?!\d)", submission.value(option)) and not enough:
            return f"has {option}={submission.value(option)[:20]} but requests no GPU; add --gpus"
    return None


def _amounts(submission: Submission) -> _Gpus | None:
    """None if a value is wrong, which is reported, or if GPUs are typed: those are counted type by type."""
    given = [
        submission.value(f"--{name}")
        for name in ("gpus", "gpus-per-node", "gpus-per-socket", "gpus-per-task")
    ]
    gres = submission.value("--gres")
    if any(re.search(r"[a-z]{2}", text, re.IGNORECASE) for text in given) or gres.count(":") > 1:
        return None
    try:
        job, node, socket, task = (gpu_count(text) for text in given)
        node = max(node, gres_gpus(gres))
        listed = count_nodes(submission.value("--nodelist"))
    except InputError:
        return None
    nodes = max(_field(submission, "req_nodes") if submission.last("--nodes") else 0, listed)
    tasks = _field(submission, "req_tasks") if submission.last("--ntasks") else 0
    if tasks:
        nodes = min(nodes, tasks)
    shape = submission.value("--extra-node-info").split(":")[0]
    return _Gpus(
        *(job, node, socket, task, tasks, nodes),
        most_nodes=nodes if submission.fixed else 0,
        sockets=_whole(submission.value("--sockets-per-node") or shape),
        tasks_per_node=_field(submission, "tasks_per_node"),
        tasks_per_socket=_whole(submission.value("--ntasks-per-socket")),
        tasks_per_gpu=_whole(submission.value("--ntasks-per-gpu")),
    )


def _field(submission: Submission, name: str) -> int:
    value = submission.script.request.get(name)
    return value if type(value) is int else 0


def _whole(text: str) -> int:
    found = re.match(r"\s*\+?(\d{1,9})", text, re.ASCII)
    return int(found[1]) if found else 0
