"""Settings, each defined once: type, default and description. The caller finds the files."""

import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import UnionType
from typing import Any, NamedTuple, get_args, get_type_hints

from tocsin.core.errors import SettingsError

__all__ = [
    "CausesSettings",
    "ClusterSettings",
    "HistorySettings",
    "Layer",
    "LearnSettings",
    "Line",
    "Settings",
    "StoreSettings",
    "TracesSettings",
    "WatchSettings",
    "WorkloadSettings",
    "resolve",
    "without_password",
]


def _setting(default: Any, doc: str, *, secret: bool = False) -> Any:
    """`secret`: the value is the path of a file with a secret."""
    return dataclasses.field(default=default, metadata={"doc": doc, "secret": secret})


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSettings:
    """A cluster to read from; NAME is Slurm's ClusterName."""

    timezone: str = _setting("", "time zone of its logs and users, such as Europe/Rome; empty: this host's")
    slurm_conf: str = _setting("", "slurm.conf for the client commands; empty: Slurm's default")
    rest_url: str = _setting("", "slurmrestd: http://host:6820 or unix:/path; empty: use the client commands")
    rest_user: str = _setting("", "user name sent to slurmrestd; empty: the user who runs tocsin")
    rest_token_file: str = _setting(
        "", "file with the user's token; empty: tokens from `scontrol token`", secret=True
    )
    timeout: int = _setting(
        60, "seconds to wait for an answer from Slurm, or for the next part of a long one"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSettings:
    """Where jobs and verdicts are stored."""

    url: str = _setting(
        "", "sqlite:///path or postgresql://user@host/name; empty: tocsin.db in the home folder"
    )
    password_file: str = _setting("", "file with the database password", secret=True)
    keep_days: int = _setting(0, "days for which `tocsin prune` keeps ended jobs; 0: forever")


@dataclass(frozen=True, slots=True, kw_only=True)
class HistorySettings:
    """When outcomes count as known."""

    lag: int = _setting(60, "seconds from a job's end until an import counts its outcome as known")


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchSettings:
    """How `tocsin watch` follows a cluster."""

    interval: int = _setting(
        5,
        "minimum seconds between two queries of the queue; raised to 20 times the duration of a query, up to 6 intervals",
    )
    scripts: bool = _setting(
        True, "read job scripts, one Slurm query each, if the user is root, SlurmUser or a Slurm Operator"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadSettings:
    """Workload classification and the allow-list."""

    allow_file: str = _setting(
        "", "allow-list file; empty: /etc/tocsin/allow.toml if it exists, and the entries of `tocsin allow`"
    )
    log_file: str = _setting("", "file for verdicts, one line of JSON each; empty: none")
    log_megabytes: int = _setting(10, "size at which the log is rotated")
    log_files: int = _setting(5, "rotated logs to keep")
    read_files: bool = _setting(
        False,
        "also read files that a script sources, runs or imports, if its submitter may read them",
    )
    alpha_days: int = _setting(5, "days of ended jobs that the execution-time model is trained on")
    beta_days: int = _setting(
        1,
        "days after which `tocsin screen` and `tocsin watch` retrain it; 0: only `tocsin train execution` does",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TracesSettings:
    """CPU traces of running jobs: where they come from, and the windows that are cut from them."""

    prometheus_url: str = _setting("", "Prometheus that scrapes the nodes: http://host:9090; empty: none")
    mapping: str = _setting(
        "tocsin",
        "how its metrics become samples: tocsin, node_exporter, cgroup_exporter, slurm-job-exporter, ceems, dcgm, several "
        "of them with commas, or the path of a TOML file",
    )
    agents: str = _setting("", "addresses of tocsin-agent to read directly, with commas: http://n1:9814")
    keep_days: int = _setting(30, "days for which `tocsin prune` keeps traces; 0: forever")
    window: int = _setting(100, "points in a window")
    stride: int = _setting(10, "points from one window to the next")
    interval: int = _setting(1, "seconds between two points; 1 needs a scrape interval of 1 s")


@dataclass(frozen=True, slots=True, kw_only=True)
class CausesSettings:
    """Why jobs failed, by their own output."""

    folder: str = _setting(
        "", "folder with a site's own kinds of causes; empty: /etc/tocsin/causes.d if it exists"
    )
    at_end: bool = _setting(
        False,
        "`tocsin watch` reads the output of failed jobs when they end, as their owners may; otherwise only "
        "`tocsin explain` does",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnSettings:
    """How `tocsin nightly` retrains."""

    holdback_days: int = _setting(
        3, "last days that a new model is not trained on, but compared on with the model in use"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All sections; `cluster` has one for each name."""

    cluster: Mapping[str, ClusterSettings] = field(default_factory=dict)
    store: StoreSettings = field(default_factory=StoreSettings)
    history: HistorySettings = field(default_factory=HistorySettings)
    watch: WatchSettings = field(default_factory=WatchSettings)
    workload: WorkloadSettings = field(default_factory=WorkloadSettings)
    traces: TracesSettings = field(default_factory=TracesSettings)
    causes: CausesSettings = field(default_factory=CausesSettings)
    learn: LearnSettings = field(default_factory=LearnSettings)


_NAMED: Mapping[str, type] = {"cluster": ClusterSettings}
_PLAIN: Mapping[str, type] = {
    "store": StoreSettings,
    "history": HistorySettings,
    "watch": WatchSettings,
    "workload": WorkloadSettings,
    "traces": TracesSettings,
    "causes": CausesSettings,
    "learn": LearnSettings,
}


def without_password(value: Any) -> Any:
    """The value; a URL in it without its password.

    >>> without_password("postgresql://ann:secret@host/jobs?password=x")
    'postgresql://ann:***@host/jobs?password=***'
    """
    if not isinstance(value, str):
        return value
    value = re.sub(r"(://[^:/@]*:).*@", r"\1***@", value)
    return re.sub(r"(?i)((?:password|token|secret)=)[^&\s]*", r"\1***", value)


class Layer(NamedTuple):
    """Values from one place; later layers override earlier ones."""

    origin: str
    values: Mapping[str, Any]


class Line(NamedTuple):
    """One setting with its value and origin, for `tocsin config show`."""

    name: str
    value: Any
    origin: str
    doc: str
    secret: bool = False
    """The value is the path of a file that only its owner may read."""


def resolve(layers: Sequence[Layer]) -> tuple[Settings, list[Line]]:
    """The settings of these layers combined, and one line per setting with its origin."""
    found: dict[str, dict[str, Any]] = {}
    origins: dict[str, str] = {}
    for layer in layers:
        for section, cls, name, value in _values(layer):
            if name:
                found.setdefault(section, {})[name] = _typed(section, cls, name, value, layer.origin)
                origins[f"{section}.{name}"] = layer.origin
            else:
                found.setdefault(section, {})
    clusters = {
        section.partition(".")[2]: ClusterSettings(**v) for section, v in found.items() if "." in section
    }
    plain = {section: cls(**found.get(section, {})) for section, cls in _PLAIN.items()}
    settings = Settings(cluster=clusters, **plain)
    sections = [(f"cluster.{name}", value) for name, value in sorted(clusters.items())]
    sections += [(name, getattr(settings, name)) for name in _PLAIN]
    lines = [
        Line(
            f"{section}.{f.name}",
            without_password(getattr(value, f.name)),
            origins.get(f"{section}.{f.name}", "default"),
            f.metadata["doc"],
            f.metadata["secret"],
        )
        for section, value in sections
        for f in dataclasses.fields(value)
    ]
    return settings, lines


def _values(layer: Layer) -> Iterator[tuple[str, type, str, Any]]:
    """Section, its class, key and value; a named section without keys yields an empty key, so that it exists."""
    for section, content in layer.values.items():
        if section in _NAMED and isinstance(content, Mapping):
            for name, keys in content.items():
                if not isinstance(keys, Mapping):
                    raise SettingsError(f"[{section}] in {layer.origin} needs a name; write [{section}.NAME]")
                yield f"{section}.{name}", _NAMED[section], "", None
                yield from ((f"{section}.{name}", _NAMED[section], key, value) for key, value in keys.items())
        elif section in _PLAIN and isinstance(content, Mapping):
            yield from ((section, _PLAIN[section], key, value) for key, value in content.items())
        else:
            known = ", ".join([*(f"[{name}.NAME]" for name in _NAMED), *(f"[{name}]" for name in _PLAIN)])
            raise SettingsError(f'"{section}" in {layer.origin} is not a section; the sections are {known}')


def _typed(section: str, cls: type, name: str, value: Any, origin: str) -> Any:
    hints = get_type_hints(cls)
    if name not in hints:
        raise SettingsError(
            f'"{name}" in [{section}] of {origin} is not a setting; the settings are {", ".join(sorted(hints))}'
        )
    wanted = hints[name]
    if isinstance(wanted, UnionType):
        wanted = get_args(wanted)[0]
    if isinstance(value, str) and wanted is not str:  # environment variables are text
        value = _from_text(value, wanted)
    if type(value) is not wanted:
        kind = {int: "a whole number", str: "text", bool: "true or false"}[wanted]
        raise SettingsError(f"{section}.{name} in {origin} is {value!r}; it must be {kind}")
    if isinstance(value, int) and not isinstance(value, bool) and value < 0:
        raise SettingsError(f"{section}.{name} in {origin} is {value}; it cannot be negative")
    return value


def _from_text(text: str, wanted: type) -> Any:
    if wanted is int and text.strip().lstrip("-").isdecimal():
        return int(text)
    if wanted is bool and text.strip().lower() in ("true", "false"):
        return text.strip().lower() == "true"
    return text
