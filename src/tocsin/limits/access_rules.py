"""Rules about what a user may request: accounts, QOS and their limits, licences, reservations, generic resources."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from tocsin.core.machine import Association, JobLimits, Machine, Partition, Qos, Reservation
from tocsin.core.units import UNLIMITED, format_duration, format_memory
from tocsin.limits.breach import MEGABYTE, Breach, Change, one_of, plural
from tocsin.limits.capacity import NO_LIMIT, Capacity
from tocsin.limits.demand import Demand
from tocsin.scripts.submission import Submission

__all__ = ["access_breaches", "default_qos", "gres_breaches", "setting_breaches", "without_lifted"]

Problem = tuple[str, str, str, Change | None]
"""Kind, text, remedy, change."""


_WORDS = {"cpu": "CPU", "node": "node", "gres/gpu": "GPU"}
_AFTER_22_05 = (22, 6)
_LISTS_OF_QOS = (26, 5)
"""A release that takes them: a job then starts with any of the list."""


def default_qos(machine: Machine) -> dict[str, str | None]:
    """By account, the QOS of a job that names none: that of its association, else `normal`."""
    return {
        a.account: a.default_qos or ("normal" if "normal" in a.qos else None)
        for a in machine.associations or ()
    }


def without_lifted(row: Demand, capacity: Capacity) -> Demand:
    """The demand without those limits of its partition that a QOS lifts."""
    partition = capacity.partitions[row["partition"]]
    both = (_named(name, capacity.machine) for name in (row["qos"], partition.qos))
    lifts = {limit for qos in both if qos for limit in qos.lifts}
    if "max_time" in lifts:
        row = {**row, "most_time": UNLIMITED}
    if "min_nodes" in lifts:
        row = {**row, "min_nodes": 0}
    if "max_nodes" in lifts:
        there = partition.nodes or len(capacity.nodes[partition.name]) or NO_LIMIT
        row = {**row, "most_nodes": there, "max_nodes": NO_LIMIT, "most_cpus": partition.cpus or NO_LIMIT}
    return row


def _named(name: str | None, machine: Machine) -> Qos | None:
    """The QOS of this name, in whatever case."""
    known = machine.qos or {}
    return next((qos for each, qos in known.items() if name and each.lower() == name.lower()), None)


def access_breaches(demand: Sequence[Demand], capacity: Capacity) -> Iterator[Breach]:
    machine = capacity.machine
    if machine.associations is None and machine.licenses is None and machine.reservations is None:
        return
    for row in demand:
        for problem in _problems(row, capacity):
            yield Breach.here(row, *problem)


def _problems(row: Demand, capacity: Capacity) -> Iterator[Problem]:
    machine = capacity.machine
    yield from _licenses(row["licenses"], machine.licenses)
    yield from _reservation(row, machine)
    if machine.associations is None:
        return
    association = None
    if row["account"] is not None:
        own = [a for a in machine.associations if a.account.lower() == row["account"].lower()]
        here = [a for a in own if a.partition in (None, row["partition"])]
        association = max(here, key=lambda a: a.partition is not None, default=None)
        if association is None:
            accounts = one_of(sorted({a.account for a in machine.associations})[:10])
            text = f"uses account {row['account']}, which user {row['user']} may not use"
            yield "account_not_associated", text, f"use {accounts}", None
    elif row["account"] is None:
        association = _any_account(machine.associations)
    qos = row["qos"]
    if qos and "," in qos and machine.release and machine.release >= _LISTS_OF_QOS:
        yield from filter(None, (_qos(name, association, machine) for name in qos.split(",") if name))
        return
    if qos and (found := _qos(qos, association, machine)):
        yield found
        return
    yield from _needs_reservation(row, machine)
    limits = _limits(row, association, capacity)
    yield from _above(row, limits, capacity)
    yield from _above_per_node(row, limits, capacity)
    yield from _above_minutes(row, limits, capacity)
    yield from _below(row, limits, capacity)


def _needs_reservation(row: Demand, machine: Machine) -> Iterator[Problem]:
    """Slurm asks it of the QOS of the job, not of that of the partition."""
    qos = _named(row["qos"], machine)
    if qos and qos.requires_reservation and not row["reservation"]:
        text = f"uses QOS {row['qos']}, which requires a reservation, but names none"
        yield "reservation_required", text, "add --reservation or use another QOS", None


Owned = Sequence[tuple[str, JobLimits]]
"""Limits with what sets them; the first that limits a resource is the one that Slurm applies."""


def _limits(row: Demand, association: Association | None, capacity: Capacity) -> Owned:
    partition = capacity.partitions[row["partition"]]
    own = _named(row["qos"], capacity.machine) or Qos()
    of_job = (f"QOS {row['qos']}", own)
    of_qos = [of_job]
    if partition.qos:
        found = _named(partition.qos, capacity.machine)
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
    return replace(limits, max_tres=most, max_tres_per_node={}, max_tres_minutes={})


def _any_account(associations: Sequence[Association]) -> Association | None:
    """For a job whose account is unknown: the QOS of all accounts, and no limits."""
    every = tuple(dict.fromkeys(name for a in associations for name in a.qos))
    return Association(account="", qos=every) if all(a.qos for a in associations) else None


def _qos(qos: str, association: Association | None, machine: Machine) -> Problem | None:
    if not machine.qos_enforced:
        return None
    allowed = association.qos if association and association.qos else tuple(machine.qos or ())
    if not allowed or qos.lower() in {name.lower() for name in allowed}:
        return None
    if machine.qos and qos.lower() not in {name.lower() for name in machine.qos}:
        text = f"uses QOS {qos}, which this cluster does not have"
    else:
        account = association.account if association else ""
        who = f"account {account} may not" if account else "no account of this user may"
        text = f"uses QOS {qos}, which {who} use"
    return "qos_not_associated", text, f"use {one_of(allowed[:10])}", None


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


def _least_amounts(row: Demand) -> dict[str, float | None]:
    """What the job gets at least, by Slurm's names."""
    nodes, memory = max(row["nodes"], row["min_nodes"]), None
    if row["memory"] is not None:
        memory = row["memory"] * nodes if row["exact"] else row["task_memory"] * row["tasks"]
        memory = max(memory, row["cpu_memory"] * nodes * _given_cpus(row))
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
            each_cpus = row["each_cpus"] if row["shared"] else row["node_cpus"].given
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


def _licenses(requested: str | None, known: Mapping[str, int] | None) -> Iterator[Problem]:
    if not requested or known is None or "|" in requested:  # alternatives: one of them may work
        return
    wanted: Counter[str] = Counter()
    for item in filter(None, re.split("[,;]", requested)):
        name, colon, number = (part.strip() for part in re.split("([:=]|$)", item, maxsplit=1))
        wanted[name] += int(number) if number.isdigit() else int(not colon)
    for name, total in wanted.items():
        if name not in known:
            text = f"requests licence {name}, which this cluster does not have"
            remedy = f"use {one_of(sorted(known)[:10])}" if known else "remove --licenses"
            yield "unknown_license", text, remedy, None
        elif total > known[name]:
            text = f"requests {total} licences of {name}, but this cluster has {known[name]}"
            yield "licenses_above_total", text, f"request at most {known[name]}", None


def _reservation(row: Demand, machine: Machine) -> Iterator[Problem]:
    known = machine.reservations
    if known is None:
        return
    for name in filter(None, (row["reservation"] or "").split(",")):
        yield from _reserved(name, row, known)


def _reserved(name: str, row: Demand, known: Sequence[Reservation]) -> Iterator[Problem]:
    found = next((r for r in known if r.name == name), None)
    if found is None:
        usable = [r.name for r in known if not _only_for_others(r, row)]
        remedy = f"use {one_of(usable[:10])}" if usable else "remove --reservation"
        yield "unknown_reservation", f"uses reservation {name}, which does not exist", remedy, None
    elif listed := _only_for_others(found, row):
        text = f"uses reservation {name}, which is only for {', '.join(listed[:10])}"
        yield "reservation_not_allowed", text, "remove --reservation, or ask its owner", None


def _only_for_others(reservation: Reservation, row: Demand) -> list[str]:
    """The users that it is for, if the user is none of them. An account includes those below it, which are unknown."""
    listed = list(reservation.users)
    if reservation.groups or reservation.accounts or any(entry.startswith("-") for entry in listed):
        return []
    return [] if row["user"] in listed else listed


def gres_breaches(submissions: Sequence[Submission | None], machine: Machine) -> Iterator[Breach]:
    """Slurm refuses a generic resource that GresTypes does not list."""
    if machine.gres_types is None:
        return
    for row, submission in enumerate(submissions):
        given = submission.value("--gres") if submission else ""
        if given.lower() in ("none", "help", "list"):
            continue
        names = re.findall(r"(?:^|,)(?:gres[:/])?([A-Za-z]\w*)", given)
        unknown = [name for name in names if name not in machine.gres_types]
        if unknown:
            have = ", ".join(machine.gres_types) or "none"
            yield Breach(
                row=row,
                kind="unknown_gres",
                text=f"requests the generic resource {unknown[0]}, which this cluster does not have",
                remedy=f"change --gres (available: {have})",
            )


def setting_breaches(submissions: Sequence[Submission | None], machine: Machine) -> Iterator[Breach]:
    """Values that the cluster's settings exclude."""
    for row, submission in enumerate(submissions):
        if submission is None:
            continue
        for option in ("--account", "--qos"):
            if machine.associations is not None and submission.last(option) and not submission.value(option):
                yield _empty(row, option)
        older = machine.release is not None and machine.release < _AFTER_22_05
        if older and submission.last("--partition") and not submission.value("--partition").strip(","):
            yield _empty(row, "--partition")
        given = submission.value("--acctg-freq")
        sampled = re.match(r"(?:.*task=)?\s*\+?(\d{1,9})", given, re.IGNORECASE | re.DOTALL)
        # Memory limits are enforced by sampling, so a job may only ask for more of it.
        limited = not re.fullmatch(r"\s*\+?0+\w*", submission.value("--mem"))
        if machine.sampling and limited and sampled and not 0 < int(sampled[1]) <= machine.sampling:
            yield Breach(
                row=row,
                kind="sampling_too_rare",
                text=f"sets --acctg-freq={given[:60]}, but this cluster samples tasks every {machine.sampling} s",
                remedy=f"set at most task={machine.sampling}, but not 0",
            )
        named = re.search(r"(?:^|:)(co|perf|pow|user|onde|sche)", submission.value("--cpu-freq").lower())
        allowed = machine.cpu_governors
        if named and allowed and not any(name.lower().startswith(named[1]) for name in allowed):
            yield Breach(
                row=row,
                kind="governor_not_allowed",
                text=f"sets --cpu-freq={submission.value('--cpu-freq')[:60]}, a governor that jobs may not choose",
                remedy=f"use {one_of(allowed)}",
            )


def _empty(row: int, option: str) -> Breach:
    return Breach(row=row, kind="empty_name", text=f"has an empty {option}", remedy="remove it")
