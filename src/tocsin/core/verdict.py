"""The Verdict: what tocsin says of one job at one stage, the same in CLI, log and store."""

import uuid
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from tocsin.core.errors import InputError
from tocsin.core.fields import Bytes, Instant, Seconds
from tocsin.core.ids import JobKey
from tocsin.core.json_form import from_json, to_json
from tocsin.core.outcomes import Outcome, Target
from tocsin.core.stages import Stage

__all__ = [
    "ALARMS",
    "SCHEMA_VERSION",
    "SEEN_FROM",
    "UNKNOWN_CAUSE",
    "Advice",
    "Anomaly",
    "Avoid",
    "CaseReference",
    "CaseStatus",
    "Cause",
    "Contribution",
    "Edit",
    "Evidence",
    "Failure",
    "Finding",
    "Level",
    "MemoryRange",
    "Nodes",
    "Resources",
    "Rogue",
    "RuntimeRange",
    "Screening",
    "Similar",
    "Verdict",
    "Workload",
    "severity",
    "verdict_id",
    "worst",
]

SCHEMA_VERSION = 1
SEEN_FROM = 0.5
"""The probability from which an operation counts as detected; detectors are calibrated to it."""

_NAMESPACE = uuid.UUID("6f1f2f3c-52c8-5f0e-9d43-7b1d0e8a5c11")


class Level(StrEnum):
    OK = "ok"
    WARNING = "warning"
    CRITICAL = "critical"
    UNKNOWN = "unknown"


ALARMS = (Level.WARNING, Level.CRITICAL)
_SEVERITY = (Level.OK, Level.UNKNOWN, Level.WARNING, Level.CRITICAL)


def severity(level: Level) -> int:
    """A number that orders levels by severity."""
    return _SEVERITY.index(level)


def worst(levels: "list[Level]") -> Level:
    """The level of a verdict with these findings; ok without any."""
    return max(levels, key=severity, default=Level.OK)


class CaseStatus(StrEnum):
    OPEN = "open"
    CONFIRMED = "confirmed"
    DISMISSED = "dismissed"


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseReference:
    """The case that a finding belongs to, as it stood when the verdict was given."""

    cause: str
    number: int | None = None
    """Assigned by the store when the case is written."""
    status: CaseStatus = CaseStatus.OPEN
    by: str | None = None
    """Who answered it."""
    note: str = ""

    @property
    def text(self) -> str:
        if self.status is CaseStatus.OPEN:
            return f"case {self.number} is open"
        note = f": {self.note}" if self.note else ""
        return f"case {self.number} was {self.status} by {self.by}{note}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that a detector noticed: what policy, sinks and exit codes read."""

    detector: str
    kind: str
    level: Level
    text: str
    score: float | None = None
    threshold: float | None = None
    evidence: list[str] = field(default_factory=list)
    operation: str | None = None
    """The operation that it concerns."""
    group: str | None = None
    """Shared by findings on several jobs with one cause."""
    case: CaseReference | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Contribution:
    """How much one feature changed the probability, with a sentence."""

    feature: str
    value: str | None
    effect: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Similar:
    """An earlier job similar to this one."""

    job: str
    outcome: Outcome
    distance: float
    user: str | None = None
    """Its owner: the service shows users only their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """The predicted probability of failure, and its reasons."""

    probability: float
    threshold: float
    will_fail: bool
    target: Target
    causes: dict[str, float] = field(default_factory=dict)
    contributions: list[Contribution] = field(default_factory=list)
    similar: list[Similar] = field(default_factory=list)
    profile: str | None = None
    basis: str | None = None
    """What the probability is based on, if not on this cluster's own jobs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """A line of the script that indicates an operation."""

    line: int
    operation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Screening:
    """How the job was classified, by its script or by what it did."""

    operations: dict[str, float]
    application: str | None = None
    domain: str | None = None
    language: str | None = None
    evidence: list[Evidence] = field(default_factory=list)
    open: list[str] = field(default_factory=list)
    """What people should see but proves nothing, each with its line: what is fetched and run, or packed too deep."""
    runs_unread: bool = False
    """It runs what it decodes or fetches, so the script does not show everything that it does."""
    own_programs: list[str] = field(default_factory=list)
    """Programs that it runs and that no catalogue knows: only what the job does shows what they are."""
    signs: list[str] = field(default_factory=list)
    """Operations established by a sign in the script, such as a mining pool's address, not by a model alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """How the job was classified: by its script at submission, and by what it did when it ran."""

    submission: Screening | None = None
    execution: Screening | None = None

    @property
    def operations(self) -> dict[str, float]:
        """From both answers: execution corrects what a model said of the script, but not a sign in it."""
        script, execution = self.submission, self.execution
        found = dict(script.operations) if script else {}
        signs = script.signs if script else ()
        return found | (
            {name: p for name, p in execution.operations.items() if name not in signs} if execution else {}
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Rogue:
    """Whether the allow-list forbids the job, and the rule that decided."""

    rogue: bool
    operations: list[str]
    rule: str
    action: str
    case: CaseReference | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeRange:
    p50: Seconds
    p95: Seconds
    requested: Seconds | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRange:
    p50: Bytes
    p95: Bytes
    requested: Bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """The expected run time and memory, next to the request."""

    runtime_seconds: RuntimeRange | None = None
    memory_bytes: MemoryRange | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Avoid:
    node: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Nodes:
    avoid: list[Avoid] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """A line of the script to change; `old` is None where a line is to be added after `line`."""

    line: int
    old: str | None
    new: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    change: str
    why: str
    edit: Edit | None = None
    field: str | None = None
    """The field of the request that it changes."""
    risk_before: float | None = None
    risk_after: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Anomaly:
    """Something unusual about a job: a part of its request, or a trace."""

    detector: str
    kind: str
    text: str
    score: float | None = None
    part: str | None = None
    """The field of the request, or the metric, that is unusual."""


UNKNOWN_CAUSE = "unknown"
"""The kind of a cause that neither the output nor the record of a job names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """Why a job failed, by a line of its output or by Slurm's record. It is known only after its end."""

    kind: str
    title: str
    text: str
    """The line; without a file, what the record says."""
    file: str | None = None
    line: int | None = None
    advice: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One per (job, stage, seq). Parts that could not be computed are in `missing`, with the reason."""

    job: str
    stage: Stage
    at: Instant
    known_until: Instant
    level: Level
    seq: int = 0
    late: bool = False
    user: str | None = None
    account: str | None = None
    name: str | None = None
    """Of the job."""
    findings: list[Finding] = field(default_factory=list)
    failure: Failure | None = None
    workload: Workload | None = None
    rogue: Rogue | None = None
    resources: Resources | None = None
    nodes: Nodes | None = None
    anomalies: list[Anomaly] = field(default_factory=list)
    advice: list[Advice] = field(default_factory=list)
    cause: Cause | None = None
    models: dict[str, str] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        document: dict[str, Any] = to_json(self)
        return {"schema": SCHEMA_VERSION, "id": verdict_id(self.job, self.stage, self.seq), **document}

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> "Verdict":
        """The verdict that `to_json` wrote."""
        if document.get("schema") != SCHEMA_VERSION:
            raise InputError(
                f"this verdict has schema {document.get('schema')!r}; this version of tocsin reads {SCHEMA_VERSION}"
            )
        body = {name: value for name, value in document.items() if name not in ("schema", "id")}
        try:
            verdict: Verdict = from_json(body, cls, "the verdict")
        except ValueError as error:
            raise InputError(f"this is not a verdict: {str(error)[:200]}") from None
        return verdict


def verdict_id(job: str | JobKey, stage: Stage, seq: int) -> str:
    """The same verdict has the same id wherever and whenever it is computed."""
    return str(uuid.uuid5(_NAMESPACE, f"{job}/{stage}/{seq}"))
