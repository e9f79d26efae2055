"""The machine that jobs run on: nodes, partitions and their limits."""

from dataclasses import dataclass, field

from tocsin.core.fields import Bytes, Seconds

__all__ = ["Machine", "Node", "Partition"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    name: str
    cpus: int | None = None
    memory: Bytes | None = None
    gpus: int = 0
    gres: str | None = None
    features: tuple[str, ...] = ()
    partitions: tuple[str, ...] = ()
    state: str | None = None
    """As Slurm names it, flags joined by plus signs: `IDLE+DRAIN`."""
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """Limits are None where Slurm sets none of its own; a time may be UNLIMITED."""

    name: str
    node_list: str | None = None
    nodes: int | None = None
    cpus: int | None = None
    state: str | None = None
    default: bool = False
    max_time: Seconds | None = None
    default_time: Seconds | None = None
    min_nodes: int | None = None
    max_nodes: int | None = None
    max_cpus_per_node: int | None = None
    max_memory_per_node: Bytes | None = None
    max_memory_per_cpu: Bytes | None = None
    default_memory_per_node: Bytes | None = None
    default_memory_per_cpu: Bytes | None = None
    allow_accounts: tuple[str, ...] | None = None
    deny_accounts: tuple[str, ...] = ()
    allow_groups: tuple[str, ...] | None = None
    allow_qos: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """All of a cluster that a request can be held against."""

    cluster: str
    nodes: tuple[Node, ...] = ()
    partitions: tuple[Partition, ...] = ()
    max_array_size: int | None = None
    missing: dict[str, str] = field(default_factory=dict)
    """What this source could not tell, and why."""
