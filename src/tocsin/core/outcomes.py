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
"""The outcomes that each target counts as positive; `completed` is the negative, all else is left out."""

STATES: Mapping[str, Outcome | None] = MappingProxyType(
    {
        "PENDING": None,
        "CONFIGURING": None,
        "RUNNING": None,
        "COMPLETING": None,
        "SUSPENDED": None,
        "STOPPED": None,
        "SIGNALING": None,
        "RESIZING": None,
        "STAGE_OUT": None,
        "REQUEUE_FED": None,
        "REQUEUE_HOLD": None,
        "RESV_DEL_HOLD": None,
        "SPECIAL_EXIT": None,
        "POWER_UP_NODE": None,
        "UPDATE_DB": None,
        "EXPEDITING": None,
        "COMPLETED": Outcome.COMPLETED,
        "FAILED": Outcome.FAILED,
        "TIMEOUT": Outcome.TIMEOUT,
        "OUT_OF_MEMORY": Outcome.OUT_OF_MEMORY,
        "NODE_FAIL": Outcome.NODE_FAIL,
        "BOOT_FAIL": Outcome.BOOT_FAIL,
        "LAUNCH_FAILED": Outcome.BOOT_FAIL,
        "RECONFIG_FAIL": Outcome.BOOT_FAIL,
        "DEADLINE": Outcome.DEADLINE,
        "CANCELLED": Outcome.CANCELLED,
        "PREEMPTED": Outcome.PREEMPTED,
        "REQUEUED": Outcome.REQUEUED,
        "REVOKED": Outcome.REVOKED,
    }
)
"""Slurm's job states; None is a job that has not ended."""

SHORT_STATES: Mapping[str, str] = MappingProxyType(
    {
        "BF": "BOOT_FAIL",
        "CA": "CANCELLED",
        "CD": "COMPLETED",
        "CF": "CONFIGURING",
        "CG": "COMPLETING",
        "DL": "DEADLINE",
        "F": "FAILED",
        "NF": "NODE_FAIL",
        "OOM": "OUT_OF_MEMORY",
        "PD": "PENDING",
        "PR": "PREEMPTED",
        "R": "RUNNING",
        "RD": "RESV_DEL_HOLD",
        "RF": "REQUEUE_FED",
        "RH": "REQUEUE_HOLD",
        "RQ": "REQUEUED",
        "RS": "RESIZING",
        "RV": "REVOKED",
        "S": "SUSPENDED",
        "SE": "SPECIAL_EXIT",
        "SI": "SIGNALING",
        "SO": "STAGE_OUT",
        "ST": "STOPPED",
        "TO": "TIMEOUT",
    }
)
"""The short forms that squeue prints and `sacct -s` takes."""

DATABASE_STATES: Mapping[int, str] = MappingProxyType(
    {
        0: "PENDING",
        1: "RUNNING",
        2: "SUSPENDED",
        3: "COMPLETED",
        4: "CANCELLED",
        5: "FAILED",
        6: "TIMEOUT",
        7: "NODE_FAIL",
        8: "PREEMPTED",
        9: "BOOT_FAIL",
        10: "DEADLINE",
        11: "OUT_OF_MEMORY",
    }
)
"""The numbers that slurmdbd keeps in `state` (enum job_states in slurm.h)."""

SWF_STATUSES: Mapping[int, str] = MappingProxyType(
    {0: "FAILED", 1: "COMPLETED", 5: "CANCELLED", -1: "UNKNOWN"}
)
"""Field 11 of the Standard Workload Format; 2 to 4 are pieces of a job, not jobs."""


def outcome_of(state: str | None) -> Outcome | None:
    """The outcome of a state as Slurm prints it (`CANCELLED by 1234`, `COMPLETED+`); None until it ends."""
    if not state or not state.strip():
        return None
    word = state.split()[0].rstrip("+")
    return STATES.get(SHORT_STATES.get(word, word), Outcome.UNKNOWN)
