"""Rules about what a user may request: accounts, QOS and their limits, licences, reservations, generic resources."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from tocsin.core.machine import Association, Machine, Reservation
from tocsin.core.units import UNLIMITED
from tocsin.limits.account_limits import Problem, limit_problems, named_qos
from tocsin.limits.breach import Breach, one_of
from tocsin.limits.capacity import NO_LIMIT, Capacity
from tocsin.limits.demand import Demand
from tocsin.scripts.submission import Submission

__all__ = [
    "access_breaches",
    "association_breaches",
    "default_qos",
    "gpu_type_breaches",
    "gres_breaches",
    "setting_breaches",
    "without_lifted",
]


_AFTER_22_05 = (22, 6)
_AFTER_24_11 = (24, 12)
_LISTS_OF_QOS = (24, 11)
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
    both = (named_qos(name, capacity.machine) for name in (row["qos"], partition.qos))
    lifts = {limit for qos in both if qos for limit in qos.lifts}
    if "max_time" in lifts:
        row = {**row, "most_time": UNLIMITED}
    if "min_nodes" in lifts:
        row = {**row, "min_nodes": 0}
    if "max_nodes" in lifts:
        there = partition.nodes or len(capacity.nodes[partition.name]) or NO_LIMIT
        row = {**row, "most_nodes": there, "max_nodes": NO_LIMIT, "most_cpus": partition.cpus or NO_LIMIT}
    return row


def access_breaches(demand: Sequence[Demand], capacity: Capacity) -> Iterator[Breach]:
    machine = capacity.machine
    if machine.associations is None and machine.licenses is None and machine.reservations is None:
        return
    for row in demand:
        for problem in _problems(row, capacity):
            yield Breach.here(row, *problem)


def association_breaches(demand: Sequence[Demand], machine: Machine) -> Iterator[Breach]:
    """Slurm takes several partitions only if the user has the same association in all of them (22.05 and 26.05)."""
    partitions: dict[tuple[int, str], set[str]] = {}
    for row in demand:
        if row["account"] is not None and not row["job_id"]:
            partitions.setdefault((row["row"], row["account"].lower()), set()).add(row["partition"])
    for (number, account), named in partitions.items():
        own = {a.partition for a in machine.associations or () if a.account.lower() == account}
        if len({name if name in own else None for name in named}) > 1:
            yield Breach(
                row=number,
                kind="associations_differ",
                text=f"names several partitions, but account {account} has an association for one of them",
                remedy="name one partition",
            )


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
    yield from limit_problems(row, association, capacity)


def _needs_reservation(row: Demand, machine: Machine) -> Iterator[Problem]:
    """Slurm asks it of the QOS of the job, not of that of the partition."""
    qos = named_qos(row["qos"], machine)
    if qos and qos.requires_reservation and not row["reservation"]:
        text = f"uses QOS {row['qos']}, which requires a reservation, but names none"
        yield "reservation_required", text, "add --reservation or use another QOS", None


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


_GPUS = r"(?:^|,)\s*(?:gres[:/])?gpu[:=]"
_TYPE = r"([A-Za-z][^:=,()]*)"
_SOME = r"(?![:=]\s*\+?0+\s*(?:,|$))"
_GPU_OPTIONS = ("--gpus", "--gpus-per-node", "--gpus-per-task", "--gpus-per-socket")


def gpu_type_breaches(submissions: Sequence[Submission | None], machine: Machine) -> Iterator[Breach]:
    """Slurm 22.05 compares types of GPUs by case."""
    if machine.release is None or machine.release >= _AFTER_22_05:
        return
    known = {name for node in machine.nodes for name in re.findall(_GPUS + _TYPE, node.gres or "")}
    as_written = {name.lower(): name for name in sorted(known)}
    for row, submission in enumerate(submissions):
        if submission is None:
            continue
        given = re.findall(_GPUS + _TYPE + r"(?![^:=,()])" + _SOME, submission.value("--gres"))
        for option in _GPU_OPTIONS:
            given += re.findall(rf"(?:^|,)\s*{_TYPE}(?![^:=,()]){_SOME}", submission.value(option))
        for name in given:
            if name not in known and name.lower() in as_written:
                text = f"requests GPUs of type {name}, but this release of Slurm distinguishes case"
                yield Breach(
                    row=row,
                    kind="gpu_type_in_other_case",
                    text=text,
                    remedy=f"write {as_written[name.lower()]}",
                )
                break


def setting_breaches(submissions: Sequence[Submission | None], machine: Machine) -> Iterator[Breach]:
    """Values that the cluster's settings exclude."""
    for row, submission in enumerate(submissions):
        if submission is None:
            continue
        for option in ("--account", "--qos"):
            if machine.associations is not None and submission.last(option) and not submission.value(option):
                yield _empty(row, option)
        older = machine.release is not None and machine.release < _AFTER_24_11
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
