"""Node and partition records of Slurm's JSON, in the shapes of v0.0.36 and, for partitions, of v0.0.40 on."""

import re
from collections.abc import Mapping
from typing import Any

from tocsin.core.machine import Node, Partition
from tocsin.core.units import UNLIMITED
from tocsin.sources.json_values import (
    MEGABYTE,
    amount,
    gpus_in,
    limit,
    member,
    number,
    positive,
    text,
    words,
)

__all__ = ["MachineReader", "MemoryLimits", "nested_partition", "per_node_and_cpu"]

Record = Mapping[str, Any]
MemoryLimits = tuple[tuple[int | None, int | None], tuple[int | None, int | None]]
"""Default and maximum, each per CPU and per node."""

_PER_CPU = 2**63  # MEM_PER_CPU: the top bit of an amount of memory


class MachineReader:
    """Reads nodes and partitions; text in a number field raises ValueError."""

    def node(self, record: Record) -> Node:
        gres = text(record.get("gres"))
        memory = positive(record.get("real_memory"))
        return Node(
            name=text(record.get("name")) or "",
            cpus=_effective_cpus(record),
            memory=memory and (memory - (positive(record.get("specialized_memory")) or 0)) * MEGABYTE,
            tmp_disk=_megabytes(record.get("temporary_disk")) or 0,
            sockets=positive(record.get("sockets")),
            cores_per_socket=positive(record.get("cores")),
            threads_per_core=positive(record.get("threads")),
            gpus=gpus_in(gres),
            gres=gres,
            features=tuple(words(record.get("features"))),
            partitions=tuple(words(record.get("partitions"))),
            state="+".join(word.upper() for word in self._node_state(record)) or None,
            reason=text(record.get("reason")),
        )

    def _node_state(self, record: Record) -> list[str]:
        return words(record.get("state"))

    def partition(self, record: Record) -> Partition:
        least, most = self._memory(record)
        longest = amount(record.get("max_time_limit"))
        return Partition(
            name=text(record.get("name")) or "",
            node_list=text(record.get("nodes")),
            nodes=number(record.get("total_nodes")),
            cpus=number(record.get("total_cpus")),
            state=text(record.get("state")),
            default="default" in words(record.get("flags")),
            max_time=UNLIMITED if longest == -1 else limit(record.get("max_time_limit")),
            default_time=limit(record.get("default_time_limit")) or None,
            min_nodes=positive(record.get("min_nodes_per_job")),
            max_nodes=positive(record.get("maximum_nodes_per_job")),
            max_cpus_per_node=positive(record.get("maximum_cpus_per_node")),
            default_memory_per_cpu=least[0],
            default_memory_per_node=least[1],
            max_memory_per_cpu=most[0],
            max_memory_per_node=most[1],
            allow_accounts=_allowed(record.get("allowed_accounts")),
            deny_accounts=tuple(words(record.get("denied_accounts"))),
            allow_groups=_allowed(record.get("allowed_groups")),
            allow_qos=_allowed(record.get("allowed_qos")),
            deny_qos=tuple(words(record.get("denied_qos"))),
            root_only="root_only" in words(record.get("flags")),
            qos=text(record.get("qos")),
            requires_reservation="reservation_required" in words(record.get("flags")),
        )

    def _memory(self, record: Record) -> MemoryLimits:
        return _flagged(record.get("default_memory_per_cpu")), _flagged(record.get("maximum_memory_per_node"))


def _effective_cpus(record: Record) -> int | None:
    """Without the CPUs that Slurm reserves for the system; before v0.0.40, only `tres` excludes them."""
    listed = re.match(r"cpu=(\d{1,9})(?:,|$)", text(record.get("tres")) or "")
    return positive(record.get("effective_cpus")) or (
        int(listed[1]) if listed else positive(record.get("cpus"))
    )


def nested_partition(record: Record) -> Partition:
    """A partition in the nested form of v0.0.40 and later."""
    nodes, accounts, most, default = (
        member(record, name) for name in ("nodes", "accounts", "maximums", "defaults")
    )
    return Partition(
        name=text(record.get("name")) or "",
        node_list=text(nodes.get("configured")),
        nodes=number(nodes.get("total")),
        cpus=number(member(record, "cpus").get("total")),
        state="+".join(words(member(record, "partition").get("state"))) or None,
        default="DEFAULT" in words(record.get("flags")),
        max_time=limit(most.get("time")),
        default_time=limit(default.get("time")) or None,
        min_nodes=positive(member(record, "minimums").get("nodes")),
        max_nodes=positive(most.get("nodes")),
        max_cpus_per_node=positive(most.get("cpus_per_node")),
        default_memory_per_cpu=_megabytes(default.get("partition_memory_per_cpu")),
        default_memory_per_node=_megabytes(default.get("partition_memory_per_node")),
        max_memory_per_cpu=_megabytes(most.get("partition_memory_per_cpu")),
        max_memory_per_node=_megabytes(most.get("partition_memory_per_node")),
        allow_accounts=_allowed(accounts.get("allowed")),
        deny_accounts=tuple(words(accounts.get("deny"))),
        allow_groups=_allowed(member(record, "groups").get("allowed")),
        allow_qos=_allowed(member(record, "qos").get("allowed")),
        deny_qos=tuple(words(member(record, "qos").get("deny"))),
        root_only="ROOT_ONLY" in words(record.get("flags")),
        qos=text(member(record, "qos").get("assigned")),
        requires_reservation="REQ_RESV" in words(record.get("flags")),
    )


def per_node_and_cpu(record: Record) -> MemoryLimits:
    """Memory limits with a field each (v0.0.38)."""
    return (
        (_megabytes(record.get("default_memory_per_cpu")), _megabytes(record.get("default_memory_per_node"))),
        (_megabytes(record.get("maximum_memory_per_cpu")), _megabytes(record.get("maximum_memory_per_node"))),
    )


def _megabytes(value: Any) -> int | None:
    found = positive(value)
    return found and found * MEGABYTE


def _flagged(value: Any) -> tuple[int | None, int | None]:
    """Split an amount into (per CPU, per node): negative is per CPU, 0 is none."""
    found = amount(value) or 0
    return (_megabytes(found + _PER_CPU), None) if found < 0 else (None, _megabytes(found))


def _allowed(value: Any) -> tuple[str, ...] | None:
    """None if all are allowed."""
    found = tuple(words(value))
    return None if not found or found == ("ALL",) else found
