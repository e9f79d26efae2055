"""Which metrics of which exporter become which samples: mapping files in TOML, some shipped for known exporters."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from importlib.resources import files
from pathlib import Path
from typing import Any

from tocsin.core.channels import CPU_CHANNELS, JOB_CHANNELS
from tocsin.core.errors import SourceError
from tocsin.core.toml import parse_toml

__all__ = ["CpuJobs", "CpuMetric", "JobLabel", "JobMetric", "TraceMapping", "read_trace_mapping", "shipped"]

_METRIC = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*", re.ASCII)


@dataclass(frozen=True, slots=True)
class JobLabel:
    """Where a series has its job id: the first of these labels that matches."""

    labels: tuple[str, ...]
    pattern: str = r"^([1-9]\d*)$"


@dataclass(frozen=True, slots=True)
class CpuMetric:
    """Time of each CPU by mode: shares of one, or with `counter` seconds since the machine started."""

    metric: str
    counter: bool
    cpu: str
    mode: str
    modes: Mapping[str, Sequence[str]]
    """The modes counted for each of CPU_CHANNELS; the rest are `other`."""
    job: JobLabel | None = None


@dataclass(frozen=True, slots=True)
class CpuJobs:
    """Which job has which CPUs: a label with one CPU, or with a list such as `0-3,8`."""

    metric: str
    cpus: str
    job: JobLabel


@dataclass(frozen=True, slots=True)
class JobMetric:
    """One of JOB_CHANNELS; several series of a job on a node are added, or with `mean` averaged."""

    metric: str
    job: JobLabel
    counter: bool = False
    factor: float = 1.0
    mean: bool = False


@dataclass(frozen=True, slots=True)
class TraceMapping:
    """How the series of one or more exporters become samples."""

    name: str
    node: tuple[str, ...] = ("node", "hostname", "instance")
    """Labels with the name of the node; the first that a series has is used. A port and a domain are removed."""
    cpus: CpuMetric | None = None
    cpu_jobs: CpuJobs | None = None
    jobs: Mapping[str, JobMetric] = field(default_factory=dict)

    def joined(self, other: "TraceMapping") -> "TraceMapping":
        """Combined with what only the other has."""
        return TraceMapping(
            f"{self.name},{other.name}",
            self.node,
            self.cpus or other.cpus,
            self.cpu_jobs or other.cpu_jobs,
            {**other.jobs, **self.jobs},
        )


def shipped() -> list[str]:
    """The names of the mappings shipped with tocsin."""
    return sorted(
        file.name.removesuffix(".toml") for file in _folder().iterdir() if file.name.endswith(".toml")
    )


def read_trace_mapping(names: str) -> TraceMapping:
    """A mapping by name or path; several, separated by commas, are combined: the first that has a metric applies."""
    found: TraceMapping | None = None
    for name in filter(None, (part.strip() for part in names.split(","))):
        one = _read(name)
        found = one if found is None else found.joined(one)
    if found is None:
        raise SourceError(f"name a mapping of metrics: {', '.join(shipped())}, or a TOML file")
    return found


def _folder() -> Any:
    return files("tocsin.sources") / "trace_mappings"


def _read(name: str) -> TraceMapping:
    if name in shipped():
        text, place = (_folder() / f"{name}.toml").read_text(), name
    elif name.endswith(".toml"):
        try:
            text, place = Path(name).read_text(), name
        except (OSError, UnicodeDecodeError) as error:
            raise SourceError(f"the mapping {name} cannot be read: {error}") from None
    else:
        known = ", ".join(shipped())
        raise SourceError(f'no mapping "{name[:80]}"; there are {known}, or name a TOML file')
    try:
        return _Reader(place).mapping(parse_toml(text))
    except ValueError as error:
        raise SourceError(f"the mapping {place} cannot be read: {error}") from None


class _Reader:
    """Turns the parts of a document into rules, and reports which part is invalid."""

    def __init__(self, place: str) -> None:
        self.place = place

    def mapping(self, document: dict[str, Any]) -> TraceMapping:
        known = [part.name for part in fields(TraceMapping)][1:]
        if wrong := next((name for name in document if name not in known), None):
            raise ValueError(f'"{wrong}" is unknown; known are {", ".join(known)}')
        jobs = self.table("jobs", document.get("jobs", {}))
        if wrong := next((name for name in jobs if name not in JOB_CHANNELS), None):
            raise ValueError(f"jobs.{wrong} is unknown; known are {', '.join(JOB_CHANNELS)}")
        node = {"node": self.texts("node", document["node"])} if "node" in document else {}
        return TraceMapping(
            self.place,
            cpus=self.cpus(document["cpus"]) if "cpus" in document else None,
            cpu_jobs=self.rule("cpu_jobs", CpuJobs, document["cpu_jobs"]) if "cpu_jobs" in document else None,
            jobs={name: self.rule(f"jobs.{name}", JobMetric, value) for name, value in jobs.items()},
            **node,
        )

    def cpus(self, given: Any) -> CpuMetric:
        parts = dict(self.table("cpus", given))
        modes = {name: self.texts(f"cpus.{name}", parts.pop(name)) for name in CPU_CHANNELS if name in parts}
        if len(modes) < len(CPU_CHANNELS):
            raise ValueError(f"cpus needs the modes of {', '.join(CPU_CHANNELS)}")
        found: CpuMetric = self.rule("cpus", CpuMetric, {**parts, "modes": modes})
        return found

    def rule(self, key: str, kind: type, given: Any) -> Any:
        parts = self.table(key, given)
        known = {part.name: part for part in fields(kind)}
        if wrong := next((name for name in parts if name not in known), None):
            raise ValueError(f"{key}.{wrong} is unknown; known are {', '.join(known)}")
        made = {name: self.value(f"{key}.{name}", name, value) for name, value in parts.items()}
        try:
            return kind(**made)
        except TypeError:
            raise ValueError(f"{key} needs {', '.join(name for name in known if name not in made)}") from None

    def value(self, key: str, name: str, value: Any) -> Any:
        if name == "job":
            parts = self.table(key, value)
            return JobLabel(self.texts(f"{key}.label", parts.get("label")), *self.pattern(key, parts))
        if name in ("counter", "mean") and isinstance(value, bool):
            return value
        if name == "factor" and isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
        if name == "modes":
            return value
        if name in ("cpu", "mode", "cpus", "metric") and isinstance(value, str):
            if not _METRIC.fullmatch(value):
                raise ValueError(f'{key}: "{value[:80]}" is not the name of a metric or label')
            return value
        raise ValueError(f"{key} cannot be {value!r}")

    def pattern(self, key: str, parts: Mapping[str, Any]) -> list[str]:
        if "pattern" not in parts:
            return []
        try:
            groups = re.compile(parts["pattern"]).groups
        except (re.error, TypeError) as error:
            raise ValueError(f"{key}.pattern: {error}") from None
        if groups != 1:
            raise ValueError(f"{key}.pattern must have one group, which is the job id")
        return [parts["pattern"]]

    def table(self, key: str, value: Any) -> Mapping[str, Any]:
        if not isinstance(value, dict):
            raise ValueError(f"{key} must be a table")
        return value

    def texts(self, key: str, value: Any) -> tuple[str, ...]:
        found = value if isinstance(value, list) else [value]
        if not found or not all(isinstance(text, str) for text in found):
            raise ValueError(f"{key} must be text, or a list of texts")
        return tuple(found)
