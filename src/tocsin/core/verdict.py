"""The Verdict: what tocsin says of one job at one stage, the same in CLI, REST, streams and store."""

import dataclasses
import uuid
from dataclasses import dataclass, field
from datetime import UTC
from enum import StrEnum
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from tocsin.core.errors import InputError
from tocsin.core.fields import Bytes, Instant, Kind, Seconds, kind_of
from tocsin.core.ids import JobKey
from tocsin.core.outcomes import Outcome, Target
from tocsin.core.stages import Stage
from tocsin.core.units import UNLIMITED, format_instant, parse_instant

__all__ = [
    "SCHEMA_VERSION",
    "SEEN_FROM",
    "Advice",
    "Anomaly",
    "Avoid",
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
"""An operation counts as seen from this probability on; detectors are calibrated so."""

_NAMESPACE = uuid.UUID("6f1f2f3c-52c8-5f0e-9d43-7b1d0e8a5c11")


class Level(StrEnum):
    OK = "ok"
    WARNING = "warning"
    CRITICAL = "critical"
    UNKNOWN = "unknown"


_SEVERITY = (Level.OK, Level.UNKNOWN, Level.WARNING, Level.CRITICAL)


def severity(level: Level) -> int:
    """How grave it is."""
    return _SEVERITY.index(level)


def worst(levels: "list[Level]") -> Level:
    """The level of a verdict with these findings; none at all is fine."""
    return max(levels, key=severity, default=Level.OK)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Contribution:
    """How much one feature moved the probability, in words."""

    feature: str
    value: str | None
    effect: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Similar:
    """A past job that was much like this one."""

    job: str
    outcome: Outcome
    distance: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Will it fail."""

    probability: float
    threshold: float
    will_fail: bool
    target: Target
    causes: dict[str, float] = field(default_factory=dict)
    contributions: list[Contribution] = field(default_factory=list)
    similar: list[Similar] = field(default_factory=list)
    profile: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """A line of the script that spoke for an operation."""

    line: int
    operation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Screening:
    """What the job is, by one look at it."""

    operations: dict[str, float]
    application: str | None = None
    domain: str | None = None
    language: str | None = None
    evidence: list[Evidence] = field(default_factory=list)
    open: list[str] = field(default_factory=list)
    """What people should see and what proves nothing, each with its line: what is fetched and run, packed too deep."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """What the job is: by its script at submission, and by what it did when it ran."""

    submission: Screening | None = None
    execution: Screening | None = None

    @property
    def operations(self) -> dict[str, float]:
        """By both answers together: what the job did when it ran corrects what its script said."""
        answers = (self.submission, self.execution)
        return {name: p for answer in answers if answer for name, p in answer.operations.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rogue:
    """Whether its group may run what it is, and the rule that says so."""

    rogue: bool
    operations: list[str]
    rule: str
    action: str
    case: str | None = None


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
    """What it will need beside what it asked for."""

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
    findings: list[Finding] = field(default_factory=list)
    failure: Failure | None = None
    workload: Workload | None = None
    rogue: Rogue | None = None
    resources: Resources | None = None
    nodes: Nodes | None = None
    anomalies: list[Anomaly] = field(default_factory=list)
    advice: list[Advice] = field(default_factory=list)
    models: dict[str, str] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        document: dict[str, Any] = _jsonable(self, Verdict)
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
            verdict: Verdict = _from_json(body, cls)
        except (TypeError, ValueError, AttributeError) as error:
            raise InputError(f"this is not a verdict: {str(error)[:200]}") from None
        return verdict


def verdict_id(job: str | JobKey, stage: Stage, seq: int) -> str:
    """The same verdict has the same id wherever and whenever it is computed."""
    return str(uuid.uuid5(_NAMESPACE, f"{job}/{stage}/{seq}"))


def _from_json(value: Any, hint: Any) -> Any:
    """The inverse of `_jsonable`."""
    if value is None:
        return None
    if isinstance(hint, UnionType):
        hint = next(part for part in get_args(hint) if part is not type(None))
    if dataclasses.is_dataclass(hint):
        hints = get_type_hints(hint, include_extras=True)
        unknown = sorted(set(value) - set(hints))
        if unknown:
            raise ValueError(f"unknown field {unknown[0]}")
        made: Any = hint
        return made(**{name: _from_json(each, hints[name]) for name, each in value.items()})
    if get_origin(hint) is list:
        return [_from_json(item, get_args(hint)[0]) for item in value]
    if get_origin(hint) is dict:
        return dict(value)
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return hint(value)
    kind = kind_of(hint) if isinstance(value, str) and hint is not str else None
    if kind is Kind.INSTANT:
        return parse_instant(value, UTC)
    return UNLIMITED if kind is Kind.SECONDS else value


def _jsonable(value: Any, hint: Any) -> Any:
    """A value as JSON by its type hint: instants in RFC 3339, no limit as the word."""
    if value is None:
        return None
    if dataclasses.is_dataclass(value):
        hints = get_type_hints(type(value), include_extras=True)
        return {f.name: _jsonable(getattr(value, f.name), hints[f.name]) for f in dataclasses.fields(value)}
    if isinstance(hint, UnionType):
        hint = next(part for part in get_args(hint) if part is not type(None))
    if isinstance(value, list):
        return [_jsonable(item, get_args(hint)[0]) for item in value]
    if isinstance(value, dict) or get_origin(hint) is dict:
        return dict(value)
    kind = kind_of(hint) if isinstance(value, int) and not isinstance(value, bool) else None
    if kind is Kind.INSTANT:
        return format_instant(value)
    if kind is Kind.SECONDS and value == UNLIMITED:
        return "UNLIMITED"
    return str(value) if isinstance(value, StrEnum) else value
