"""What each partition can give, as frames: its limits, and its nodes counted by kind."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import polars as pl

from tocsin.core.errors import NodeListError
from tocsin.core.machine import Machine, Node, Partition
from tocsin.core.nodelist import expand_nodes
from tocsin.core.units import UNLIMITED, format_memory

__all__ = ["PLENTY", "Capacity", "Kind", "Size", "gpu_types", "in_service"]

PLENTY = 2**62
"""What is not told limits nothing."""

_OUT = frozenset({"DOWN", "DRAIN", "DRAINED", "DRAINING", "FAIL", "FAILING", "ERROR", "FUTURE"})

_LIMITS: dict[str, type[pl.DataType]] = {
    "partition": pl.String,
    "most_nodes": pl.Int64,
    "most_cpus": pl.Int64,
    "most_time": pl.Int64,
    "min_nodes": pl.Int64,
    "max_cpus_per_node": pl.Int64,
    "max_memory_per_node": pl.Int64,
    "max_memory_per_cpu": pl.Int64,
}
_KINDS: dict[str, type[pl.DataType] | pl.DataType] = {
    "partition": pl.String,
    "node_cpus": pl.Int64,
    "node_memory": pl.Int64,
    "node_gpus": pl.Int64,
    "gpu_types": pl.List(pl.String),
    "features": pl.List(pl.String),
    "number": pl.Int64,
    "serving": pl.Int64,
}


class Size(NamedTuple):
    """The most that one job gets on one node of a partition, each by itself; PLENTY where it is not told."""

    cpus: int
    memory: int
    gpus: int


def in_service(node: Node) -> bool:
    """Whether it would take a job now or after the next one ends; a node that sleeps is woken."""
    flags = (re.sub(r"[^A-Z_]", "", flag) for flag in (node.state or "").upper().split("+"))
    return _OUT.isdisjoint(flags)


@dataclass(frozen=True, slots=True)
class Capacity:
    """A machine in the form that rules ask."""

    machine: Machine
    partitions: Mapping[str, Partition]
    default: str | None
    """The partition of a job that names none."""
    nodes: Mapping[str, tuple[Node, ...]]
    """The nodes of each partition; none where the source does not tell them."""
    names: Mapping[str, frozenset[str]]
    """Their names, which may be known where the nodes are not."""
    largest: Mapping[str, "Size"]
    described: Mapping[str, tuple[str, ...]]
    """The kinds of nodes of each partition, in words."""
    features: frozenset[str] | None
    """All that any node has; None where the source does not tell."""
    limits: pl.DataFrame
    """One row a partition."""
    kinds: pl.DataFrame
    """One row for each kind of node of each partition, with how many there are and how many are in service."""
    serving: Mapping[str, tuple["Kind", ...]]
    """The kinds of each partition that have a node in service."""

    @classmethod
    def of(cls, machine: Machine) -> "Capacity":
        by_name = {node.name: node for node in machine.nodes}
        names = {partition.name: _names(partition, machine) for partition in machine.partitions}
        nodes = {
            partition: tuple(by_name[name] for name in sorted(of_it) if name in by_name)
            for partition, of_it in names.items()
        }
        told = machine.nodes and not any("feature" in what for what in machine.missing)
        features = frozenset(feature for node in machine.nodes for feature in node.features) if told else None
        kinds = {p.name: _kinds(p, nodes[p.name]) for p in machine.partitions}
        return cls(
            machine=machine,
            partitions={partition.name: partition for partition in machine.partitions},
            default=next((partition.name for partition in machine.partitions if partition.default), None),
            nodes=nodes,
            names=names,
            largest={p.name: _largest(p, nodes[p.name]) for p in machine.partitions},
            described={
                name: tuple(_words(name, *kind) for kind in found[:10]) for name, found in kinds.items()
            },
            features=features,
            limits=pl.DataFrame(
                [_limits(partition, nodes[partition.name]) for partition in machine.partitions],
                schema=_LIMITS,
                orient="row",
            ),
            kinds=pl.DataFrame(
                [(name, *kind, *counts) for name, found in kinds.items() for kind, *counts in found],
                schema=_KINDS,
                orient="row",
            ),
            serving={
                name: tuple(kind for kind, _, serving in found if serving) for name, found in kinds.items()
            },
        )

    def out_of_service(self, partition: str) -> list[str]:
        """The nodes that take no jobs now, with the reason that was given."""
        out = [node for node in self.nodes[partition] if not in_service(node)]
        return [
            f"{node.name} is {node.state}" + (f": {node.reason}" if node.reason else "") for node in out[:10]
        ]


def _names(partition: Partition, machine: Machine) -> frozenset[str]:
    if partition.node_list:
        try:
            return frozenset(expand_nodes(partition.node_list))
        except NodeListError:
            pass  # the nodes may tell by themselves
    return frozenset(node.name for node in machine.nodes if partition.name in node.partitions)


def _limits(partition: Partition, nodes: tuple[Node, ...]) -> tuple[str | int | None, ...]:
    there = len(nodes) if partition.nodes is None and nodes else partition.nodes
    most = [number for number in (there, partition.max_nodes) if number is not None]
    sizes = sorted((node.cpus for node in nodes if node.cpus is not None), reverse=True)
    told = len(sizes) == len(nodes) > 0
    return (
        partition.name,
        min(most, default=PLENTY),
        sum(sizes[: min(most, default=PLENTY)]) if told else _or_plenty(partition.cpus),
        UNLIMITED if partition.max_time is None else partition.max_time,
        partition.min_nodes or 0,
        _or_plenty(partition.max_cpus_per_node),
        _or_plenty(partition.max_memory_per_node),
        _or_plenty(partition.max_memory_per_cpu),
    )


def _largest(partition: Partition, nodes: tuple[Node, ...]) -> Size:
    def most(values: list[int | None]) -> int:
        return max((_or_plenty(value) for value in values), default=PLENTY)

    cpus = min(most([node.cpus for node in nodes]), _or_plenty(partition.max_cpus_per_node))
    memory = min(most([node.memory for node in nodes]), _or_plenty(partition.max_memory_per_node))
    if partition.max_memory_per_cpu is not None and cpus < PLENTY:
        memory = min(memory, partition.max_memory_per_cpu * cpus)
    return Size(cpus, memory, most([node.gpus for node in nodes]))


class Kind(NamedTuple):
    """Nodes that are alike."""

    cpus: int
    memory: int
    gpus: int
    gpu_types: tuple[str, ...] | None
    features: tuple[str, ...] | None


def _kinds(partition: Partition, nodes: tuple[Node, ...]) -> list[tuple[Kind, int, int]]:
    """Each with how many there are and how many are in service."""
    if not nodes:
        number = _or_plenty(partition.nodes)
        return [(Kind(PLENTY, PLENTY, PLENTY, None, None), number, number)]
    kinds: Counter[Kind] = Counter()
    serving: Counter[Kind] = Counter()
    for node in nodes:
        kind = Kind(
            _or_plenty(node.cpus),
            _or_plenty(node.memory),
            node.gpus,
            gpu_types(node.gres),
            tuple(sorted(node.features)),
        )
        kinds[kind] += 1
        serving[kind] += in_service(node)
    return [(kind, number, serving[kind]) for kind, number in kinds.items()]


def _words(partition: str, kind: Kind, number: int, serving: int) -> str:
    has = (
        f"{kind.cpus} CPUs" if kind.cpus < PLENTY else "",
        format_memory(kind.memory) if kind.memory < PLENTY else "",
        f"{kind.gpus} GPUs {' '.join(kind.gpu_types or ())}".strip() if 0 < kind.gpus < PLENTY else "",
        " ".join(kind.features or ()),
    )
    what = ", ".join(filter(None, has)) or "sizes that are not told"
    many = f"{number} nodes" if number < PLENTY else "nodes"
    return f"partition {partition}: {many} with {what}" + (
        f"; {serving} in service" if serving < number else ""
    )


def gpu_types(gres: str | None) -> tuple[str, ...]:
    """The types of GPU in generic resources: `gpu:a100:4(S:0-1)` has a100, `gpu:4` none that is named."""
    items = [item.split(":") for item in re.sub(r"\([^)]*\)", "", gres or "").split(",")]
    named = (item[1] for item in items if item[0] in ("gpu", "gres/gpu") and len(item) > 1)
    return tuple(sorted({name.lower() for name in named if name and not name.isdigit()}))


def _or_plenty(value: int | None) -> int:
    return PLENTY if value is None else value
