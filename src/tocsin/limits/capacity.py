"""What each partition offers: its limits, and its nodes grouped by type."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tocsin.core.errors import NodeListError
from tocsin.core.machine import Machine, Node, Partition
from tocsin.core.nodelist import expand_nodes
from tocsin.core.units import UNLIMITED, format_memory

__all__ = [
    "NO_LIMIT",
    "Capacity",
    "NodeType",
    "Size",
    "TypeCount",
    "available",
    "count_types",
    "gpu_types",
    "gpus_by_type",
    "other_gres",
]

NO_LIMIT = 2**62
"""Represents a limit that is unknown or not set."""

_COUNT = re.compile(r"\+?\d{1,9}[kmgtp]?$", re.ASCII | re.IGNORECASE)
_AMOUNT = re.compile(r"\+?(\d{1,15})([kmgtp]?)", re.ASCII | re.IGNORECASE)
_TYPED = re.compile(r"(?:gres[:/])?gpu[:=]([^\d:=][^:=]*)(?:[:=]\+?(\d{1,9}))?", re.ASCII)
_OUT = frozenset({"DOWN", "DRAIN", "DRAINED", "DRAINING", "FAIL", "FAILING", "ERROR", "FUTURE"})


class Size(NamedTuple):
    """The most that one job gets on one node of a partition, for each resource; NO_LIMIT if unknown."""

    cpus: int
    memory: int
    gpus: int


class NodeType(NamedTuple):
    """Nodes with the same hardware and features."""

    cpus: int
    memory: int
    gpus: int
    gpu_types: tuple[str, ...] | None
    """Empty if none of its GPUs has a type; Slurm then gives none of them to a job that names one."""
    typed_gpus: tuple[tuple[str, int], ...]
    """How many it has of each type."""
    gres: tuple[tuple[str, int], ...] | None
    """Its other generic resources; None if unknown."""
    features: tuple[str, ...] | None
    tmp: int
    sockets: int
    cores: int
    threads: int


_UNKNOWN = NodeType(
    NO_LIMIT, NO_LIMIT, NO_LIMIT, None, (), None, None, NO_LIMIT, NO_LIMIT, NO_LIMIT, NO_LIMIT
)
TypeCount = tuple[NodeType, int, int]
"""A type, the number of its nodes, and how many of those are available."""


def available(node: Node) -> bool:
    """Whether it takes jobs now or after the current one; a powered-down node is powered up."""
    flags = (re.sub(r"[^A-Z_]", "", flag) for flag in (node.state or "").upper().split("+"))
    return _OUT.isdisjoint(flags)


@dataclass(frozen=True, slots=True)
class Capacity:
    """A machine in the form that the rules need."""

    machine: Machine
    partitions: Mapping[str, Partition]
    default: str | None
    """The partition of jobs that name none."""
    nodes: Mapping[str, tuple[Node, ...]]
    """The nodes of each partition; empty if the source does not report nodes."""
    names: Mapping[str, frozenset[str]]
    """Their names, which may be known even if the nodes are not."""
    largest: Mapping[str, Size]
    described: Mapping[str, tuple[str, ...]]
    """The node types of each partition as text."""
    features: frozenset[str] | None
    """All features of any node; None if unknown."""
    gres: frozenset[str]
    """The generic resources but GPUs that some node has."""
    limits: Mapping[str, Mapping[str, int]]
    """The limits of each partition, by name."""
    types: Mapping[str, Sequence[TypeCount]]
    """The node types of each partition."""

    @classmethod
    def of(cls, machine: Machine) -> "Capacity":
        by_name = {node.name: node for node in machine.nodes}
        names = {partition.name: _names(partition, machine) for partition in machine.partitions}
        nodes = {
            partition: tuple(by_name[name] for name in sorted(of_it) if name in by_name)
            for partition, of_it in names.items()
        }
        reported = machine.nodes and not any("feature" in what for what in machine.missing)
        features = frozenset(feature for node in machine.nodes for feature in node.features)
        types = {
            p.name: count_types(nodes[p.name]) or [(_UNKNOWN, _or_no_limit(p.nodes), _or_no_limit(p.nodes))]
            for p in machine.partitions
        }
        largest = {p.name: _largest(p, nodes[p.name]) for p in machine.partitions}
        return cls(
            machine=machine,
            partitions={partition.name: partition for partition in machine.partitions},
            default=next((partition.name for partition in machine.partitions if partition.default), None),
            nodes=nodes,
            names=names,
            largest=largest,
            described={
                name: tuple(_describe(name, *each) for each in found[:10]) for name, found in types.items()
            },
            features=features if reported else None,
            gres=frozenset(name for node in machine.nodes for name in other_gres(node.gres)),
            limits={p.name: _limits(p, nodes[p.name], largest[p.name]) for p in machine.partitions},
            types=types,
        )

    def unavailable(self, partition: str) -> list[str]:
        """The nodes that take no jobs now, with the recorded reason."""
        out = [node for node in self.nodes[partition] if not available(node)]
        return [
            f"{node.name} is {node.state}" + (f": {node.reason}" if node.reason else "") for node in out[:10]
        ]


def count_types(nodes: Iterable[Node]) -> list[TypeCount]:
    number: Counter[NodeType] = Counter()
    serving: Counter[NodeType] = Counter()
    for node in nodes:
        kind = NodeType(
            _or_no_limit(node.cpus),
            _or_no_limit(node.memory),
            node.gpus,
            gpu_types(node.gres) if node.gres or not node.gpus else None,
            tuple(sorted(gpus_by_type(node.gres).items())),
            tuple(sorted(other_gres(node.gres).items())),
            tuple(sorted(node.features)),
            _or_no_limit(node.tmp_disk),
            _or_no_limit(node.sockets),
            _or_no_limit(node.cores_per_socket),
            _or_no_limit(node.threads_per_core),
        )
        number[kind] += 1
        serving[kind] += available(node)
    return [(kind, count, serving[kind]) for kind, count in number.items()]


def _names(partition: Partition, machine: Machine) -> frozenset[str]:
    if partition.node_list:
        try:
            return frozenset(expand_nodes(partition.node_list))
        except NodeListError:
            pass  # the nodes may name their partitions
    return frozenset(node.name for node in machine.nodes if partition.name in node.partitions)


def _limits(partition: Partition, nodes: tuple[Node, ...], largest: Size) -> dict[str, int]:
    there = len(nodes) if partition.nodes is None and nodes else partition.nodes
    most = [number for number in (there, partition.max_nodes) if number is not None]
    sizes = sorted((node.cpus for node in nodes if node.cpus is not None), reverse=True)
    known = len(sizes) == len(nodes) > 0
    return {
        "most_nodes": min(most, default=NO_LIMIT),
        "max_nodes": _or_no_limit(partition.max_nodes),
        "most_cpus": sum(sizes[: min(most, default=NO_LIMIT)]) if known else _or_no_limit(partition.cpus),
        "largest_cpus": largest.cpus,
        "default_time": _or_no_limit(partition.default_time),
        "most_time": UNLIMITED if partition.max_time is None else partition.max_time,
        "min_nodes": partition.min_nodes or 0,
        "whole_nodes": partition.whole_nodes is True,
        "max_cpus_per_node": _or_no_limit(partition.max_cpus_per_node),
        "max_memory_per_node": _or_no_limit(partition.max_memory_per_node),
        "max_memory_per_cpu": _or_no_limit(partition.max_memory_per_cpu),
    }


def _largest(partition: Partition, nodes: tuple[Node, ...]) -> Size:
    def most(values: list[int | None]) -> int:
        return max((_or_no_limit(value) for value in values), default=NO_LIMIT)

    cpus = min(most([node.cpus for node in nodes]), _or_no_limit(partition.max_cpus_per_node))
    memory = min(most([node.memory for node in nodes]), _or_no_limit(partition.max_memory_per_node))
    if partition.max_memory_per_cpu is not None and cpus < NO_LIMIT:
        memory = min(memory, partition.max_memory_per_cpu * cpus)
    return Size(cpus, memory, most([node.gpus for node in nodes]))


def _describe(partition: str, kind: NodeType, number: int, serving: int) -> str:
    has = (
        f"{kind.cpus} CPUs" if kind.cpus < NO_LIMIT else "",
        format_memory(kind.memory) if kind.memory < NO_LIMIT else "",
        f"{kind.gpus} GPUs {' '.join(kind.gpu_types or ())}".strip() if 0 < kind.gpus < NO_LIMIT else "",
        " ".join(kind.features or ()),
    )
    what = ", ".join(filter(None, has)) or "unknown hardware"
    many = f"{number} nodes" if number < NO_LIMIT else "nodes"
    return f"partition {partition}: {many} with {what}" + (
        f"; {serving} available" if serving < number else ""
    )


def gpu_types(gres: str | None) -> tuple[str, ...]:
    """The GPU types in generic resources: `gpu:a100:4(S:0-1)` has a100, `gpu:4` has none."""
    items = [item.split(":") for item in re.sub(r"\([^)]*\)", "", gres or "").split(",")]
    named = (item[1:] for item in items if item[0] in ("gpu", "gres/gpu") and len(item) > 1)
    return tuple(
        sorted({rest[0].lower() for rest in named if rest[0] and (rest[1:] or not _COUNT.match(rest[0]))})
    )


def gpus_by_type(gres: str | None) -> dict[str, int]:
    """The number of GPUs of each type in generic resources: `gpu:a100:4(S:0-1),gpu:t4:2`; the last item of a type counts."""
    found = (_TYPED.fullmatch(item) for item in re.sub(r"\([^)]*\)", "", gres or "").lower().split(","))
    return {item[1]: int(item[2] or 1) for item in found if item}


def other_gres(gres: str | None) -> dict[str, int]:
    """The amount of each generic resource but GPUs, of whatever type: `nvme:2`, `scratch:no_consume:1K`."""
    found: Counter[str] = Counter()
    for item in re.sub(r"\([^)]*\)", "", gres or "").split(","):
        name, *rest = re.split("[:=]", re.sub("^gres[:/]", "", item.strip()))
        amount = _AMOUNT.fullmatch(rest[-1]) if rest else None
        if name and name not in ("gpu", "none"):
            found[name] += int(amount[1]) * 1024 ** " kmgtp".index(amount[2].lower() or " ") if amount else 1
    return dict(found)


def _or_no_limit(value: int | None) -> int:
    return NO_LIMIT if value is None else value
