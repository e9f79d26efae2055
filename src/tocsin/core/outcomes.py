"""How a job ended, by its state (never by its exit code), and which outcomes count as failure."""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

__all__ = [
    "DATABASE_STATES",
    "SHORT_STATES",
    "STATES",
    "SWF_STATUSES",
    "TARGETS",
    "Outcome",
    "Target",
    "outcome_of",
]


class Outcome(StrEnum):
    COMPLETED = "completed"
    FAILED = "failed"
    TIMEOUT = "timeout"
    OUT_OF_MEMORY = "out_of_memory"
    NODE_FAIL = "node_fail"
    BOOT_FAIL = "boot_fail"
    DEADLINE = "deadline"
    CANCELLED = "cancelled"
    PREEMPTED = "preempted"
    REQUEUED = "requeued"
    REVOKED = "revoked"
    UNKNOWN = "unknown"


class Target(StrEnum):
    """What a model predicts."""

    FAILED = "failed"
    UNSUCCESSFUL = "unsuccessful"


_FAILED = frozenset(
    {
        Outcome.FAILED,
        Outcome.TIMEOUT,
        Outcome.OUT_OF_MEMORY,
        Outcome.NODE_FAIL,
        Outcome.BOOT_FAIL,
        Outcome.DEADLINE,
    }
)

TARGETS: Mapping[Target, frozenset[Outcome]] = MappingProxyType(
    {Target.FAILED: _FAILED, Target.UNSUCCESSFUL: _FAILED | {Outcome.CANCELLED}}
)
"""The outcomes that each target counts as positive; `completed` is negative, all others are left out."""

_SLURM: tuple[tuple[str, str | None, int | None, Outcome | None], ...] = (
    ("PENDING", "PD", 0, None),
    ("CONFIGURING", "CF", None, None),
    ("RUNNING", "R", 1, None),
    ("COMPLETING", "CG", None, None),
    ("SUSPENDED", "S", 2, None),
    ("STOPPED", "ST", None, None),
    ("SIGNALING", "SI", None, None),
    ("RESIZING", "RS", None, None),
    ("STAGE_OUT", "SO", None, None),
    ("REQUEUE_FED", "RF", None, None),
    ("REQUEUE_HOLD", "RH", None, None),
    ("RESV_DEL_HOLD", "RD", None, None),
    ("SPECIAL_EXIT", "SE", None, None),
    ("POWER_UP_NODE", None, None, None),
    ("UPDATE_DB", None, None, None),
    ("EXPEDITING", None, None, None),
    ("COMPLETED", "CD", 3, Outcome.COMPLETED),
    ("FAILED", "F", 5, Outcome.FAILED),
    ("TIMEOUT", "TO", 6, Outcome.TIMEOUT),
    ("OUT_OF_MEMORY", "OOM", 11, Outcome.OUT_OF_MEMORY),
    ("NODE_FAIL", "NF", 7, Outcome.NODE_FAIL),
    ("BOOT_FAIL", "BF", 9, Outcome.BOOT_FAIL),
    ("LAUNCH_FAILED", None, None, Outcome.BOOT_FAIL),
    ("RECONFIG_FAIL", None, None, Outcome.BOOT_FAIL),
    ("DEADLINE", "DL", 10, Outcome.DEADLINE),
    ("CANCELLED", "CA", 4, Outcome.CANCELLED),
    ("PREEMPTED", "PR", 8, Outcome.PREEMPTED),
    ("REQUEUED", "RQ", None, Outcome.REQUEUED),
    ("REVOKED", "RV", None, Outcome.REVOKED),
)
"""State, short form, number in slurmdbd, and outcome."""

STATES: Mapping[str, Outcome | None] = MappingProxyType({name: outcome for name, _, _, outcome in _SLURM})
"""Slurm's job states; None for a job that has not ended."""

SHORT_STATES: Mapping[str, str] = MappingProxyType({short: name for name, short, _, _ in _SLURM if short})
"""The short forms that squeue prints and `sacct -s` takes."""

DATABASE_STATES: Mapping[int, str] = MappingProxyType(
    {number: name for name, _, number, _ in _SLURM if number is not None}
)
"""The numbers that slurmdbd keeps in `state` (enum job_states in slurm.h)."""

SWF_STATUSES: Mapping[int, str] = MappingProxyType(
    {0: "FAILED", 1: "COMPLETED", 5: "CANCELLED", -1: "UNKNOWN"}
)
"""Field 11 of the Standard Workload Format; 2 to 4 are pieces of a job, not jobs."""


def outcome_of(state: str | None) -> Outcome | None:
    """The outcome of a state as Slurm prints it (`CANCELLED by 1234`, `COMPLETED+`); None before the end."""
    if not state or not state.strip():
        return None
    word = state.split()[0].rstrip("+")
    return STATES.get(SHORT_STATES.get(word, word), Outcome.UNKNOWN)
