"""What one user may request: licences, reservations, and the limits of accounts and QOS, from Slurm's commands."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tocsin.core.errors import ClusterError, InputError
from tocsin.core.machine import Association, JobLimits, Machine, Qos, Reservation
from tocsin.core.units import parse_duration, parse_tres

__all__ = ["with_access"]

Run = Callable[[list[str]], bytes]
_PAIR = re.compile(r"(\w+)=(\S*)")
_ASSOCIATION = (
    "Account,Partition,QOS,DefaultQOS,MaxWall,MaxTRES,AdminLevel,DefaultAccount,MaxTRESPerNode,MaxTRESMins,"
    "GrpTRES,GrpJobs,GrpSubmit,MaxJobs,MaxSubmit"
)
_ACCOUNT = "Account,ParentName,GrpTRES,GrpJobs,GrpSubmit"
_QOS = (
    "Name,MaxWall,MaxTRES,MaxTRESPerNode,MaxTRESMins,MinTRES,Flags,LimitFactor,"
    "GrpTRES,MaxTRESPU,MaxTRESPA,GrpJobs,GrpSubmit,MaxJobsPU,MaxSubmitPU,MaxJobsPA,MaxSubmitPA"
)
_TRES = {
    "max_tres": "MaxTRES",
    "max_tres_per_node": "MaxTRESPerNode",
    "max_tres_minutes": "MaxTRESMins",
    "min_tres": "MinTRES",
    "group_tres": "GrpTRES",
    "max_tres_per_user": "MaxTRESPU",
    "max_tres_per_account": "MaxTRESPA",
}
"""Limits of resources, and their columns."""
_JOB_COUNTS = {
    **{
        name: name
        for name in ("GrpJobs", "GrpSubmit", "MaxJobsPU", "MaxSubmitPU", "MaxJobsPA", "MaxSubmitPA")
    },
    **{"MaxJobs": "MaxJobsPU", "MaxSubmit": "MaxSubmitPU"},
}
"""Columns with numbers of jobs, and the limit of a QOS that takes precedence over that of an account."""
_LIFTS = {
    "PartitionTimeLimit": "max_time",
    "PartitionMinNodes": "min_nodes",
    "PartitionMaxNodes": "max_nodes",
}
"""Flags of a QOS, and the limits of partitions that they lift."""


def with_access(machine: Machine, run: Run, user: str, config: Mapping[str, str]) -> Machine:
    """The machine with what this user may request there; what cannot be read is in its `missing`."""
    missing = dict(machine.missing)
    enforced = config.get("AccountingStorageEnforce", "").lower().split(",")
    limited = not {"limits", "safe"}.isdisjoint(enforced)

    def lines(what: str, argv: list[str]) -> list[str] | None:
        try:
            return run(argv).decode("utf-8", "replace").splitlines()
        except ClusterError as error:
            missing[what] = f"{' '.join(argv[:3])} failed: {error}"
            return None

    licenses = lines("licenses", ["scontrol", "-o", "show", "license"])
    reservations = lines("reservations", ["scontrol", "-o", "show", "reservation"])
    associations = qos = None
    if "associations" in enforced:
        show = ["sacctmgr", "-n", "-P", "show"]
        where = [user, "withassoc", f"cluster={machine.cluster}", f"format={_ASSOCIATION}"]
        associations = lines("associations", [*show, "user", *where])
        if associations is None:  # slurmdbd would also keep the next command waiting
            missing["qos"] = missing["associations"]
        else:
            qos = lines("qos", [*show, "qos", f"format={_QOS}"])
    if associations == []:
        missing["associations"] = f"sacctmgr shows no association of user {user}"
    rows = [_columns(line, _ASSOCIATION) for line in associations or ()]
    accounts: dict[str, Mapping[str, str]] = {}
    if limited and rows and qos is not None:
        where = ["where", "user=", f"cluster={machine.cluster}", f"format={_ACCOUNT}"]
        shown = lines("accounts", ["sacctmgr", "-n", "-P", "show", "association", *where])
        accounts = {row["Account"]: row for row in (_columns(line, _ACCOUNT) for line in shown or ())}
    return replace(
        machine,
        licenses=None if licenses is None else _licenses(licenses),
        reservations=None if reservations is None else _reservations(reservations),
        operator=any(row.get("AdminLevel") not in ("None", "", None) for row in rows) if rows else None,
        associations=tuple(
            _association(row, _above(row["Account"], accounts), limited, "qos" in enforced) for row in rows
        )
        or None,
        default_account=_default_account(rows),
        qos=None
        if not qos
        else {
            row["Name"]: _qos(row, limited, "qos" in enforced)
            for row in (_columns(line, _QOS) for line in qos)
        },
        qos_enforced="qos" in enforced,
        missing=missing,
    )


def _columns(line: str, names: str) -> dict[str, str]:
    return dict(zip(names.split(","), line.split("|"), strict=False))


def _licenses(lines: list[str]) -> dict[str, int]:
    found = (dict(_PAIR.findall(line)) for line in lines)
    return {pairs["LicenseName"]: int(pairs["Total"]) for pairs in found if pairs.get("Total", "").isdigit()}


def _reservations(lines: list[str]) -> tuple[Reservation, ...]:
    return tuple(
        Reservation(
            name=pairs["ReservationName"],
            node_list=next(iter(_list(pairs.get("Nodes"), separator=None)), None),
            users=_list(pairs.get("Users")),
            accounts=_list(pairs.get("Accounts")),
            groups=_list(pairs.get("Groups")),
        )
        for pairs in (dict(_PAIR.findall(line)) for line in lines)
        if pairs.get("ReservationName")
    )


def _above(account: str, accounts: Mapping[str, Mapping[str, str]]) -> list[Mapping[str, str]]:
    """The account and those that it is part of."""
    found: list[Mapping[str, str]] = []
    while (row := accounts.get(account)) and row not in found:
        found.append(row)
        account = row.get("ParentName") or ""
    return found


def _association(
    row: Mapping[str, str], above: Sequence[Mapping[str, str]], limited: bool, by_qos: bool
) -> Association:
    limits = _limits(row, limited)
    for shared in (_limits(account, limited) for account in above):
        limits = replace(
            limits,
            group_tres=_least(limits.group_tres, shared.group_tres),
            job_counts=_least(limits.job_counts, shared.job_counts),
        )
    return Association(
        account=row["Account"],
        partition=row.get("Partition") or None,
        qos=_list(row.get("QOS")) if by_qos else (),
        default_qos=row.get("DefaultQOS") or None,
        limits=limits,
    )


def _default_account(rows: Sequence[Mapping[str, str]]) -> str | None:
    """That of another cluster is none here."""
    return next((row["Account"] for row in rows if row["Account"] == row.get("DefaultAccount")), None)


def _qos(row: Mapping[str, str], limited: bool, by_qos: bool) -> Qos:
    flags = _list(row.get("Flags"))
    return Qos(
        **_limit_values(row, limited),
        limit_factor=_factor(row.get("LimitFactor")),
        over_partition="OverPartQOS" in flags,
        requires_reservation=by_qos and "RequiresReservation" in flags,
        lifts=frozenset(limit for flag, limit in _LIFTS.items() if flag in flags),
    )


def _least(first: Mapping[str, int], second: Mapping[str, int]) -> dict[str, int]:
    """The lower limit of each resource that has one."""
    names = [*first, *(name for name in second if name not in first)]
    return {name: min(limits[name] for limits in (first, second) if name in limits) for name in names}


def _factor(text: str | None) -> float | None:
    found = re.fullmatch(r"\d{1,9}(?:\.\d{1,9})?", text or "", re.ASCII)
    return float(found[0]) if found else None


def _limits(row: Mapping[str, str], limited: bool) -> JobLimits:
    return JobLimits(**_limit_values(row, limited))


def _limit_values(row: Mapping[str, str], limited: bool) -> dict[str, Any]:
    if not limited:
        return {}
    try:
        return {
            "max_time": parse_duration(row["MaxWall"]) if row.get("MaxWall") else None,
            **{name: parse_tres(row.get(column) or "") for name, column in _TRES.items()},
            "job_counts": {
                name: int(row[column])
                for column, name in _JOB_COUNTS.items()
                if row.get(column, "").isdigit()
            },
        }
    except InputError:
        return {}


def _list(value: str | None, *, separator: str | None = ",") -> tuple[str, ...]:
    if not value or value == "(null)":
        return ()
    return tuple(word for word in value.split(separator) if word)
