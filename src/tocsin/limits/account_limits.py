"""Rules about the limits of accounts and QOS: resources, times and numbers of jobs."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tocsin.core.errors import InputError
from tocsin.core.ids import array_size, array_tasks
from tocsin.core.machine import Association, JobLimits, Machine, Partition, Qos
from tocsin.core.units import UNLIMITED, format_duration, format_memory
from tocsin.limits.breach import MEGABYTE, Change, plural
from tocsin.limits.capacity import NO_LIMIT, Capacity
from tocsin.limits.demand import Demand

__all__ = ["Problem", "limit_problems", "named_qos"]

Problem = tuple[str, str, str, Change | None]
"""Kind, text, remedy, change."""

_WORDS = {"cpu": "CPU", "node": "node", "gres/gpu": "GPU"}
_TOGETHER = {
    "group_tres": "all its jobs",
    "max_tres_per_user": "the jobs of a user",
    "max_tres_per_account": "the jobs of an account",
}
_JOB_COUNTS = ("GrpJobs", "GrpSubmit", "MaxJobsPU", "MaxSubmitPU", "MaxJobsPA", "MaxSubmitPA")
_MOST_COUNTED = 1_000_000
"""Tasks of an array."""


def limit_problems(row: Demand, association: Association | None, capacity: Capacity) -> Iterator[Problem]:
    limits = _limits(row, association, capacity)
    yield from _too_many_jobs(row, limits)
    yield from _above(row, limits, capacity)
    yield from _above_together(row, limits)
    yield from _above_per_node(row, limits, capacity)
    yield from _above_minutes(row, limits, capacity)
    yield from _below(row, limits, capacity)


def named_qos(name: str | None, machine: Machine) -> Qos | None:
    """The QOS of this name, in whatever case."""
    known = machine.qos or {}
    return next((qos for each, qos in known.items() if name and each.lower() == name.lower()), None)


Owned = Sequence[tuple[str, JobLimits]]
"""Limits with what sets them; the first that limits a resource is the one that Slurm applies."""


def _limits(row: Demand, association: Association | None, capacity: Capacity) -> Owned:
    partition = capacity.partitions[row["partition"]]
    own = named_qos(row["qos"], capacity.machine) or Qos()
    of_job = (f"QOS {row['qos']}", own)
    of_qos = [of_job]
    if partition.qos:
        found = named_qos(partition.qos, capacity.machine)
        if found is None or row["qos"] is None:
            return ()  # the unknown one may take precedence
        of_partition = (f"QOS {partition.qos} of partition {partition.name}", found)
        of_qos = [of_job, of_partition] if own.over_partition else [of_partition, of_job]
    limits: list[tuple[str, JobLimits]] = [*of_qos]
    if association:
        factor = next((qos.limit_factor for _, qos in of_qos if qos.limit_factor is not None), 1.0)
        limits.append((f"account {association.account}", _multiplied(association.limits, factor)))
    return limits


def _multiplied(limits: JobLimits, factor: float) -> JobLimits:
    """The limits of an account for jobs of a QOS that multiplies them. Only the largest request was compared with Slurm."""
    if factor == 1:
        return limits
    most = {name: int(amount * factor) for name, amount in limits.max_tres.items()}
    return replace(limits, max_tres=most, group_tres={}, max_tres_per_node={}, max_tres_minutes={})


def _above(row: Demand, limits: Owned, capacity: Capacity) -> Iterator[Problem]:
    time = row["given_time"] or capacity.partitions[row["partition"]].default_time
    for owner, limit in limits:
        if limit.max_time is not None:
            if time and time > limit.max_time:
                most = format_duration(limit.max_time)
                text = f"requests a time limit of {format_duration(time)}, but {owner} allows at most {most}"
                yield "time_above_account", text, f"request at most {most}", ("time_limit", limit.max_time)
            break
    for name, amount in _least_amounts(row).items():
        for owner, limit in limits:
            allowed_amount = limit.max_tres.get(name)
            if allowed_amount is None:
                continue
            if amount and amount > allowed_amount:
                asked, allowed = _amount(name, int(amount)), _amount(name, allowed_amount)
                text = f"requests {asked}, but {owner} allows a job at most {allowed}"
                yield "resources_above_account", text, f"request at most {allowed}", None
            break


def _too_many_jobs(row: Demand, limits: Owned) -> Iterator[Problem]:
    """Each task of an array counts as a submitted job. Sites set 0 to stop the jobs of an account or of a QOS."""
    if row["job_id"]:
        return
    tasks = _array_tasks(row["array"])
    for name in _JOB_COUNTS:
        owner, most = _first(limits, "job_counts", name)
        if most == 0:
            yield (
                "no_jobs_allowed",
                f"cannot start, because {owner} allows no jobs now",
                "use another one",
                None,
            )
            return
        if most is not None and "Submit" in name and tasks > most:
            text = (
                f"is an array of {tasks:,} tasks, but {owner} allows at most {plural(most, 'submitted job')}"
            )
            yield "array_above_account", text, "submit smaller arrays", None
            return


def _array_tasks(array: str | None) -> int:
    """Each once, however often it is named."""
    try:
        return len(set(array_tasks(array))) if array and array_size(array) <= _MOST_COUNTED else 1
    except InputError:
        return 1  # reported as a refused option


def _above_together(row: Demand, limits: Owned) -> Iterator[Problem]:
    """What many jobs may have together, one job may not have alone: it waits for ever."""
    for kind, jobs in _TOGETHER.items():
        for name, amount in _least_amounts(row).items():
            owner, most = _first(limits, kind, name)
            if most is None or not amount or amount <= most:
                continue
            asked, allowed = _amount(name, int(amount)), _amount(name, most)
            text = f"requests {asked}, but {owner} allows {jobs} together at most {allowed}"
            yield "resources_above_account", text, f"request at most {allowed}", None
            break


def _least_amounts(row: Demand) -> dict[str, float | None]:
    """What the job gets at least, by Slurm's names."""
    nodes, memory = max(row["nodes"], row["min_nodes"]), None
    if row["memory"] is not None:
        memory = row["memory"] * nodes if row["exact"] else row["task_memory"] * row["tasks"]
        if row["cpu_memory"] <= row["max_memory_per_cpu"]:
            memory = max(memory, row["cpu_memory"] * nodes * row["node_cpus"].with_memory)
    return {
        "cpu": max(row["tasks"] * row["cpus"], nodes * max(_given_cpus(row), 1)),
        "node": nodes,
        "mem": memory,
        "gres/gpu": row["gpus"],
    }


def _given_cpus(row: Demand) -> int:
    """The least CPUs on each node. Instead of too much memory per CPU, Slurm gives other numbers of CPUs."""
    return int(row["node_cpus"].given) if row["cpu_memory"] <= row["max_memory_per_cpu"] else 0


def _most_amounts(row: Demand, partition: Partition, capacity: Capacity) -> dict[str, float]:
    """What the job gets at most, if that is certain. Slurm rounds up: to whole cores, or to the nodes of the partition."""
    most = {}
    nodes = max(row["highest_nodes"], row["min_nodes"])
    shaped = row["sockets"] or row["cores"] or row["core_tasks"] or row["socket_tasks"] or row["threads"]
    if not row["gpus"] and not row["each_gpus"]:
        most["gres/gpu"] = 0.0
    if nodes < NO_LIMIT:
        most["node"] = nodes
        threads = max((kind.threads for kind, *_ in capacity.types[partition.name]), default=NO_LIMIT)
        parts = capacity.machine.cpus_by is not None and partition.whole_nodes is False and not row["whole"]
        more = partition.max_memory_per_cpu is not None and row["memory"] is not None
        if threads < NO_LIMIT and parts and not shaped and not more and "gres/gpu" in most:
            each_cpus = row["each_cpus"] if row["shared"] else row["node_cpus"].most
            most["cpu"] = threads * max(row["tasks"] * row["cpus"], nodes * max(each_cpus, 1))
    return most


def _above_per_node(row: Demand, limits: Owned, capacity: Capacity) -> Iterator[Problem]:
    """On average over the nodes, rounded down as Slurm does it."""
    partition = capacity.partitions[row["partition"]]
    nodes = max(row["highest_nodes"], partition.min_nodes or 0)
    for name, amount in _least_amounts(row).items():
        owner, allowed = _first(limits, "max_tres_per_node", name)
        unit = MEGABYTE if name == "mem" else 1
        each = (amount or 0) // unit // nodes
        if name == "cpu":
            each = max(each, _given_cpus(row))
        if allowed is not None and amount and each > allowed // unit:
            text = f"requests {_amount(name, int(amount))}, but {owner} allows at most {_amount(name, allowed)} on each node"
            yield (
                "resources_above_node_limit",
                text,
                f"request at most {_amount(name, allowed)} per node",
                None,
            )


def _above_minutes(row: Demand, limits: Owned, capacity: Capacity) -> Iterator[Problem]:
    """With --time-min Slurm may shorten the job."""
    if row["time_min"] is not None:
        return
    partition = capacity.partitions[row["partition"]]
    longest = next((limit.max_time for _, limit in limits if limit.max_time is not None), UNLIMITED)
    time = row["given_time"] or partition.default_time or min(longest, row["most_time"])
    for name, amount in _least_amounts(row).items():
        owner, allowed = _first(limits, "max_tres_minutes", name)
        if name == "mem" or allowed is None or not amount or amount * (time // 60) <= allowed:
            continue
        asked, unit, most = _amount(name, int(amount)), _WORDS[name], int(allowed // amount) * 60
        text = f"requests {asked} for {format_duration(time)}, but {owner} allows a job at most {allowed:,} {unit} minutes"
        remedy = f"request at most {format_duration(most)} for {asked}" if most else f"request fewer {unit}s"
        yield "minutes_above_account", text, remedy, None


def _below(row: Demand, limits: Owned, capacity: Capacity) -> Iterator[Problem]:
    if row["job_id"]:
        return
    for name, amount in _most_amounts(row, capacity.partitions[row["partition"]], capacity).items():
        owner, required = _first(limits, "min_tres", name)
        if required is not None and amount < required:
            least = _amount(name, required)
            text = f"requests too few {_WORDS[name]}s: {owner} requires at least {least}"
            yield "resources_below_account", text, f"request at least {least}", None


def _first(limits: Owned, kind: str, name: str) -> tuple[str, int | None]:
    """The limit that applies to a resource, and what sets it."""
    for owner, limit in limits:
        if (value := getattr(limit, kind).get(name)) is not None:
            return owner, value
    return "", None


def _amount(name: str, value: int) -> str:
    return f"{format_memory(value)} of memory" if name == "mem" else plural(value, _WORDS[name])
