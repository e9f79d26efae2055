"""The machine that jobs run on: nodes, partitions, and what a user may request."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tocsin.core.fields import Bytes, Seconds

__all__ = [
    "DEFAULT_PARTITION",
    "PER_USER",
    "Association",
    "JobLimits",
    "Machine",
    "Node",
    "Partition",
    "Qos",
    "Reservation",
]

DEFAULT_PARTITION = "default partition"
"""The key in `Machine.missing` if the source does not report which partition is the default."""
PER_USER = frozenset({"licenses", "reservations", "associations", "qos"})
"""The keys in `Machine.missing` of what is read for the user who asks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    name: str
    cpus: int | None = None
    """For jobs: without the CPUs that Slurm reserves for the system."""
    memory: Bytes | None = None
    """For jobs: without the memory that Slurm reserves for the system."""
    tmp_disk: Bytes | None = None
    sockets: int | None = None
    cores_per_socket: int | None = None
    threads_per_core: int | None = None
    gpus: int = 0
    gres: str | None = None
    features: tuple[str, ...] = ()
    partitions: tuple[str, ...] = ()
    state: str | None = None
    """As Slurm names it, flags joined by plus signs: `IDLE+DRAIN`."""
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """Limits are None if the partition sets none; a time may be UNLIMITED."""

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
    deny_qos: tuple[str, ...] = ()
    qos: str | None = None
    """Its limits apply to every job here."""
    requires_reservation: bool = False
    root_only: bool = False
    whole_nodes: bool | None = None
    """Whether every job gets all CPUs of its nodes; None if unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    name: str
    node_list: str | None = None
    users: tuple[str, ...] = ()
    accounts: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class JobLimits:
    """The most, and the least, that jobs may request; None and absent resources are unlimited.

    Resources have Slurm's names: `cpu`, `node`, `gres/gpu`, and `mem` in bytes.
    """

    max_time: Seconds | None = None
    max_tres: Mapping[str, int] = field(default_factory=dict)
    max_tres_per_node: Mapping[str, int] = field(default_factory=dict)
    max_tres_minutes: Mapping[str, int] = field(default_factory=dict)
    """Resources times the minutes of the time limit."""
    min_tres: Mapping[str, int] = field(default_factory=dict)
    group_tres: Mapping[str, int] = field(default_factory=dict)
    """Of all its jobs together, and in the next two of those of one user and of one account: none alone may exceed it."""
    max_tres_per_user: Mapping[str, int] = field(default_factory=dict)
    max_tres_per_account: Mapping[str, int] = field(default_factory=dict)
    job_counts: Mapping[str, int] = field(default_factory=dict)
    """Limits of the number of jobs, by the name in a QOS: 0 stops all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Qos(JobLimits):
    """A quality of service."""

    limit_factor: float | None = None
    """What the resources that accounts allow are multiplied by for its jobs."""
    over_partition: bool = False
    """Its limits take precedence over those of the partition's QOS."""
    requires_reservation: bool = False
    lifts: frozenset[str] = frozenset()
    """Limits of partitions that do not apply to its jobs: `max_time`, `min_nodes`, `max_nodes`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Association:
    """An account that a user may charge, with the limits that come with it."""

    account: str
    partition: str | None = None
    """Limited to this partition."""
    qos: tuple[str, ...] = ()
    default_qos: str | None = None
    limits: JobLimits = field(default_factory=JobLimits)


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Everything about a cluster that a request is compared with. None means unknown or not enforced."""

    cluster: str
    release: tuple[int, int] | None = None
    """The release of Slurm: (26, 5) for 26.05."""
    nodes: tuple[Node, ...] = ()
    partitions: tuple[Partition, ...] = ()
    max_array_size: int | None = None
    all_partitions: bool = False
    """Whether a job must keep the limits of every partition that it names, not only of one (EnforcePartLimits=ALL)."""
    gres_types: tuple[str, ...] | None = None
    cpu_governors: tuple[str, ...] | None = None
    """Those that jobs may choose."""
    sampling: Seconds | None = None
    """How often the memory of tasks is sampled; jobs may shorten it, but not lengthen it."""
    cpus_by: str | None = None
    """What jobs get CPUs by: `core` (all its threads) or `cpu`; None if unknown, or if a job may get more of them."""
    licenses: Mapping[str, int] | None = None
    reservations: tuple[Reservation, ...] | None = None
    associations: tuple[Association, ...] | None = None
    """Those of the user who asks."""
    default_account: str | None = None
    """Of that user."""
    operator: bool | None = None
    """Whether that user may do what only operators may."""
    qos: Mapping[str, Qos] | None = None
    qos_enforced: bool = True
    """Whether a QOS that does not exist, or that an account may not use, is refused; else Slurm uses none."""
    missing: dict[str, str] = field(default_factory=dict)
    """What this source could not read, and why."""
