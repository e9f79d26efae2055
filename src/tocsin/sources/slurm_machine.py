"""Nodes, partitions and limits from scontrol's text or from slurmrestd."""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from tocsin.core.errors import ClusterError, UnitError
from tocsin.core.machine import DEFAULT_PARTITION, Machine, Node, Partition
from tocsin.core.units import parse_duration
from tocsin.sources.json_values import ABSENT, MEGABYTE, gpus_in, read_release
from tocsin.sources.slurm_access import with_access

if TYPE_CHECKING:
    from tocsin.sources.rest import SlurmRest

__all__ = ["machine_from_rest", "machine_from_scontrol", "read_config", "read_nodes", "read_partitions"]

_PAIR = re.compile(r"(?:^|(?<=\s))([A-Z][A-Za-z0-9_:/]*)=")
_CONFIG = re.compile(r"([A-Za-z][\w/.]*(?:\[\d+\])?)\s+=\s?(.*)")
_REASON = re.compile(r"\sReason=(.*?)\s*\[[^\s\]]*@[^\]]*\]")  # followed by who set it and when
_NONE = ABSENT | {"UNLIMITED", "INFINITE"}


def machine_from_scontrol(
    cluster: str, run: Callable[[list[str]], bytes], *, user: str | None = None
) -> Machine:
    """`run` takes a command and returns its output; with a user, what that user may request is read, too."""
    nodes = run(["scontrol", "-a", "-o", "show", "node"]).decode("utf-8", "replace")
    partitions = run(["scontrol", "-a", "-o", "show", "partition"]).decode("utf-8", "replace")
    config = read_config(run(["scontrol", "show", "config"]).decode("utf-8", "replace"))
    machine = Machine(
        cluster=cluster,
        release=read_release(config.get("SLURM_VERSION")),
        nodes=read_nodes(nodes),
        partitions=read_partitions(partitions),
    )
    machine = _with_settings(machine, config)
    return machine if user is None else with_access(machine, run, user, config)


def machine_from_rest(
    cluster: str,
    rest: "SlurmRest",
    *,
    run: Callable[[list[str]], bytes] | None = None,
    user: str | None = None,
) -> Machine:
    """With `run`, settings that slurmrestd does not report come from scontrol, if that is for the same cluster."""
    nodes, partitions = rest.nodes(), rest.partitions()
    missing = dict(rest.served("slurm").adapter.missing)
    machine = Machine(
        cluster=cluster, release=rest.release, nodes=nodes, partitions=partitions, missing=missing
    )
    reason = "slurmrestd does not report it; scontrol show config does"
    if run is not None:
        try:
            config = read_config(run(["scontrol", "show", "config"]).decode("utf-8", "replace"))
        except ClusterError as error:
            reason = f"slurmrestd does not report it, and scontrol failed: {error}"
        else:
            if config.get("ClusterName") == cluster:
                machine = _with_settings(_with_default_partition(machine, run), config)
                return machine if user is None else with_access(machine, run, user, config)
            reason = "slurmrestd does not report it, and scontrol here is of another cluster"
    return replace(machine, missing={**missing, "max_array_size": reason})


def read_config(text: str) -> dict[str, str]:
    """The settings of `scontrol show config`, as it prints them."""
    found = (_CONFIG.fullmatch(line.rstrip()) for line in text.splitlines())
    return {match[1]: match[2].strip() for match in found if match}


def _with_settings(machine: Machine, config: dict[str, str]) -> Machine:
    sampled = re.match(r"(?:.*task=)?(\d{1,9})", config.get("JobAcctGatherFrequency", ""), re.IGNORECASE)
    return replace(
        machine,
        max_array_size=_count(config.get("MaxArraySize")),
        all_partitions=config.get("EnforcePartLimits") == "ALL",
        gres_types=_list(config.get("GresTypes")),
        cpu_governors=_list(config.get("CpuFreqGovernors")) or None,
        sampling=int(sampled[1]) if sampled else None,
        cpus_by=_cpus_by(config),
    )


def _with_default_partition(machine: Machine, run: Callable[[list[str]], bytes]) -> Machine:
    """Most versions of slurmrestd do not report it, and most jobs name no partition."""
    if DEFAULT_PARTITION not in machine.missing:
        return machine
    try:
        listed = read_partitions(
            run(["scontrol", "-a", "-o", "show", "partition"]).decode("utf-8", "replace")
        )
    except ClusterError:
        return machine
    marked = {partition.name for partition in listed if partition.default}
    return replace(
        machine,
        partitions=tuple(replace(each, default=each.name in marked) for each in machine.partitions),
        missing={part: why for part, why in machine.missing.items() if part != DEFAULT_PARTITION},
    )


def _cpus_by(config: dict[str, str]) -> str | None:
    if config.get("SelectType") not in ("select/cons_tres", "select/cons_res"):
        return None  # such as whole nodes
    if _count(config.get("MaxMemPerCPU")):
        return None  # more memory means more CPUs
    given = re.match(r"(?:.*,)?CR_(CORE|CPU)(?:_|,|$)", config.get("SelectTypeParameters", "").upper())
    return given[1].lower() if given else None


def read_nodes(text: str) -> tuple[Node, ...]:
    """The nodes of `scontrol -o show node`."""
    return tuple(_node(pairs) for pairs in map(_pairs, text.splitlines()) if pairs.get("NodeName"))


def read_partitions(text: str) -> tuple[Partition, ...]:
    """The partitions of `scontrol -o show partition`."""
    return tuple(_partition(pairs) for pairs in map(_pairs, text.splitlines()) if pairs.get("PartitionName"))


def _pairs(line: str) -> dict[str, str]:
    """`Name=value` pairs of one line. Values may have blanks; text written by people (Reason, Comment) comes last, so
    the first of a repeated name is Slurm's own."""
    names = list(_PAIR.finditer(line))
    ends = [name.start() for name in names[1:]] + [len(line)]
    found: dict[str, str] = {}
    for name, end in zip(names, ends, strict=False):
        found.setdefault(name[1], line[name.end() : end].strip())
    if reason := _REASON.search(line):
        found["Reason"] = reason[1].strip()
    return found


def _node(pairs: dict[str, str]) -> Node:
    gres = _text(pairs.get("Gres"))
    return Node(
        name=pairs["NodeName"],
        cpus=_count(pairs.get("CPUEfctv")) or _count(pairs.get("CPUTot")),
        memory=_without(_megabytes(pairs.get("RealMemory")), _megabytes(pairs.get("MemSpecLimit"))),
        tmp_disk=_megabytes(pairs.get("TmpDisk"), least=0),
        sockets=_count(pairs.get("Sockets")),
        cores_per_socket=_count(pairs.get("CoresPerSocket")),
        threads_per_core=_count(pairs.get("ThreadsPerCore")),
        gpus=gpus_in(gres),
        gres=gres,
        features=_list(pairs.get("AvailableFeatures")),
        partitions=_list(pairs.get("Partitions")),
        state=_text(pairs.get("State")),
        reason=_text(pairs.get("Reason")),
    )


def _partition(pairs: dict[str, str]) -> Partition:
    return Partition(
        name=pairs["PartitionName"],
        node_list=_text(pairs.get("Nodes")),
        nodes=_count(pairs.get("TotalNodes"), least=0),
        cpus=_count(pairs.get("TotalCPUs"), least=0),
        state=_text(pairs.get("State")),
        default=pairs.get("Default") == "YES",
        max_time=_duration(pairs.get("MaxTime")),
        default_time=_duration(pairs.get("DefaultTime")),
        min_nodes=_count(pairs.get("MinNodes")),
        max_nodes=_count(pairs.get("MaxNodes")),
        max_cpus_per_node=_count(pairs.get("MaxCPUsPerNode")),
        max_memory_per_node=_megabytes(pairs.get("MaxMemPerNode")),
        max_memory_per_cpu=_megabytes(pairs.get("MaxMemPerCPU")),
        default_memory_per_node=_megabytes(pairs.get("DefMemPerNode")),
        default_memory_per_cpu=_megabytes(pairs.get("DefMemPerCPU")),
        allow_accounts=_allowed(pairs.get("AllowAccounts")),
        deny_accounts=_list(pairs.get("DenyAccounts")),
        allow_groups=_allowed(pairs.get("AllowGroups")),
        allow_qos=_allowed(pairs.get("AllowQos")),
        deny_qos=_list(pairs.get("DenyQos")),
        root_only=pairs.get("RootOnly") == "YES",
        qos=_text(pairs.get("QoS")),
        requires_reservation=pairs.get("ReqResv") == "YES",
        whole_nodes=_whole_nodes(pairs),
    )


def _whole_nodes(pairs: dict[str, str]) -> bool | None:
    if "OverSubscribe" not in pairs:
        return None
    return pairs["OverSubscribe"] == "EXCLUSIVE" or pairs.get("Exclusive", "NO") != "NO"


def _text(value: str | None) -> str | None:
    return None if value is None or value in _NONE else value


def _count(value: str | None, *, least: int = 1) -> int | None:
    found = int(value) if value and re.fullmatch(r"\d{1,15}", value, re.ASCII) else None
    return None if found is None or found < least else found


def _megabytes(value: str | None, *, least: int = 1) -> int | None:
    found = _count(value, least=least)
    return found and found * MEGABYTE


def _without(amount: int | None, reserved: int | None) -> int | None:
    return amount if amount is None or not reserved else max(amount - reserved, 0)


def _duration(value: str | None) -> int | None:
    try:
        return parse_duration(value or "")
    except UnitError:
        return None


def _list(value: str | None) -> tuple[str, ...]:
    return tuple(word for word in (_text(value) or "").split(",") if word)


def _allowed(value: str | None) -> tuple[str, ...] | None:
    """None if all are allowed."""
    found = _list(value)
    return None if not found or found == ("ALL",) else found
