"""The demo's machine: node types, partitions with their limits, and the state of each node."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from tocsin.core.machine import Machine, Node, Partition
from tocsin.core.nodelist import fold_nodes
from tocsin.demo.jobs import Record, Request

__all__ = ["CLUSTER", "NODE_TYPES", "QUEUES", "Host", "NodeType", "Queue", "Share", "build", "describe"]

CLUSTER = "demo"
GIB = 1024**3
HOUR = 3600

Share = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class NodeType:
    """A type of node; power in watts of the whole node, and of each GPU on top."""

    prefix: str
    count: int
    cpus: int
    memory: int
    features: tuple[str, ...]
    idle_watts: float
    busy_watts: float
    gpus: int = 0
    gpu_type: str | None = None
    gpu_watts: float = 0.0

    def share(self, request: Request) -> Share:
        """The CPUs, memory and GPUs that a request takes from each node of this type."""
        memory = request.memory or self.memory
        if request.exclusive:
            return self.cpus, memory, self.gpus
        return request.cpus_per_node, memory, request.gpus_per_node


@dataclass(frozen=True, slots=True)
class Queue:
    """A partition; jobs of a higher tier go first, and may preempt those of tier 0."""

    name: str
    node_type: str
    tier: int
    max_time: int
    default_time: int
    max_nodes: int
    memory_per_cpu: int
    default: bool = False


NODE_TYPES = {
    "cpu": NodeType("n", 16, 32, 125 * GIB, ("icelake",), 110, 420),
    "bigmem": NodeType("m", 2, 32, 1000 * GIB, ("icelake", "bigmem"), 160, 480),
    "gpu": NodeType(
        "g", 4, 32, 250 * GIB, ("rome", "a100"), 180, 450, gpus=4, gpu_type="a100", gpu_watts=280
    ),
}

QUEUES = {
    queue.name: queue
    for queue in (
        Queue("main", "cpu", 1, 48 * HOUR, 1 * HOUR, 8, 3 * GIB, default=True),
        Queue("short", "cpu", 2, 2 * HOUR, HOUR // 2, 4, 3 * GIB),
        Queue("spare", "cpu", 0, 24 * HOUR, 4 * HOUR, 2, 3 * GIB),
        Queue("bigmem", "bigmem", 1, 72 * HOUR, 4 * HOUR, 1, 16 * GIB),
        Queue("gpu", "gpu", 1, 48 * HOUR, 2 * HOUR, 2, 6 * GIB),
    )
}


@dataclass(slots=True, eq=False)
class Host:
    """One node: its type, its free resources and its jobs (by raw id, in order of arrival)."""

    name: str
    node_type: NodeType
    free_cpus: int
    free_memory: int
    free_gpus: int
    up: bool = True
    reason: str | None = None
    jobs: dict[int, Record] = field(default_factory=dict)

    def fits(self, share: Share) -> bool:
        cpus, memory, gpus = share
        return self.up and cpus <= self.free_cpus and memory <= self.free_memory and gpus <= self.free_gpus

    def allocate(self, record: Record) -> None:
        cpus, memory, gpus = self.node_type.share(record.request)
        self.free_cpus -= cpus
        self.free_memory -= memory
        self.free_gpus -= gpus
        self.jobs[record.raw_id] = record

    def release(self, record: Record) -> None:
        del self.jobs[record.raw_id]
        cpus, memory, gpus = self.node_type.share(record.request)
        self.free_cpus += cpus
        self.free_memory += memory
        self.free_gpus += gpus

    @property
    def state(self) -> str:
        """As Slurm names it."""
        if not self.up:
            return "DOWN"
        if not self.jobs:
            return "IDLE"
        return "ALLOCATED" if self.free_cpus == 0 else "MIXED"


def build() -> dict[str, list[Host]]:
    """All nodes, empty, by their type."""
    return {
        name: [
            Host(
                f"{node_type.prefix}{number:02d}", node_type, node_type.cpus, node_type.memory, node_type.gpus
            )
            for number in range(1, node_type.count + 1)
        ]
        for name, node_type in NODE_TYPES.items()
    }


def describe(hosts: dict[str, list[Host]], *, open_: bool) -> Machine:
    """The machine as its scheduler reports it now; `open_` is whether partitions start jobs."""
    return Machine(
        cluster=CLUSTER,
        nodes=tuple(_node(name, host) for name, of_type in hosts.items() for host in of_type),
        partitions=tuple(_partition(queue, hosts[queue.node_type], open_) for queue in QUEUES.values()),
        max_array_size=1001,
    )


def _node(node_type: str, host: Host) -> Node:
    gpus = host.node_type.gpus
    return Node(
        name=host.name,
        cpus=host.node_type.cpus,
        memory=host.node_type.memory,
        gpus=gpus,
        gres=f"gpu:{host.node_type.gpu_type}:{gpus}" if gpus else None,
        features=host.node_type.features,
        partitions=tuple(queue.name for queue in QUEUES.values() if queue.node_type == node_type),
        state=host.state,
        reason=host.reason,
    )


def _partition(queue: Queue, hosts: Iterable[Host], open_: bool) -> Partition:
    names = [host.name for host in hosts]
    node_type = NODE_TYPES[queue.node_type]
    return Partition(
        name=queue.name,
        node_list=fold_nodes(names),
        nodes=len(names),
        cpus=len(names) * node_type.cpus,
        state="UP" if open_ else "DOWN",
        default=queue.default,
        max_time=queue.max_time,
        default_time=queue.default_time,
        min_nodes=1,
        max_nodes=queue.max_nodes,
        default_memory_per_cpu=queue.memory_per_cpu,
    )
