"""Settings, each defined once: type, default and meaning. Where values come from is the caller's business."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import UnionType
from typing import Any, NamedTuple, get_args, get_type_hints

from tocsin.core.errors import SettingsError

__all__ = [
    "ClusterSettings",
    "HistorySettings",
    "Layer",
    "Line",
    "Settings",
    "StoreSettings",
    "WatchSettings",
    "WorkloadSettings",
    "resolve",
]


def _setting(default: Any, doc: str, *, secret: bool = False) -> Any:
    """`secret`: it names a file that holds one."""
    return dataclasses.field(default=default, metadata={"doc": doc, "secret": secret})


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSettings:
    """A cluster to read from; NAME is Slurm's ClusterName."""

    timezone: str = _setting(
        "", "time zone of its logs and of its people, such as Europe/Rome; empty: this host's"
    )
    slurm_conf: str = _setting("", "slurm.conf for the client commands; empty: Slurm's own search")
    rest_url: str = _setting(
        "", "slurmrestd: http://host:6820 or unix:/path; empty: the client commands are used"
    )
    rest_user: str = _setting("", "user name sent to slurmrestd; empty: the user who runs tocsin")
    rest_token_file: str = _setting(
        "", "file with the user's token; empty: own tokens by `scontrol token`", secret=True
    )
    timeout: int = _setting(60, "seconds to wait for one answer of Slurm, or for the next word of a long one")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSettings:
    """Where jobs and verdicts are kept."""

    url: str = _setting(
        "", "sqlite:///path or postgresql://user@host/name; empty: tocsin.db in the home folder"
    )
    password_file: str = _setting("", "file with the database password", secret=True)
    keep_days: int = _setting(0, "days that `tocsin prune` keeps ended jobs; 0: for ever")


@dataclass(frozen=True, slots=True, kw_only=True)
class HistorySettings:
    """What was known when."""

    lag: int = _setting(60, "seconds from a job's end until an import counts its outcome as known")


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchSettings:
    """How `tocsin watch` follows a cluster."""

    interval: int = _setting(
        5, "least seconds between two looks at the queue; it is never less than 20 times what one look takes"
    )
    scripts: bool = _setting(
        False, "read the scripts of jobs, one question to Slurm for each; the site must allow it"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadSettings:
    """What jobs are, and who may run what."""

    allow_file: str = _setting(
        "", "the allow-list; empty: /etc/tocsin/allow.toml where there is one, and what `tocsin allow` keeps"
    )
    log_file: str = _setting("", "file that gets one line of JSON for each verdict; empty: none")
    log_megabytes: int = _setting(10, "size at which the log is rotated")
    log_files: int = _setting(5, "rotated logs that are kept")
    read_files: bool = _setting(
        False,
        "read the files that a script names (sourced, run, imported) as far as its submitter may read them",
    )
    alpha_days: int = _setting(5, "what ended jobs were is learned from those of so many last days")
    beta_days: int = _setting(
        1,
        "after so many days `tocsin screen` and `tocsin watch` learn it anew; 0: only `tocsin train execution` does",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All sections; `cluster` has one for each name."""

    cluster: Mapping[str, ClusterSettings] = field(default_factory=dict)
    store: StoreSettings = field(default_factory=StoreSettings)
    history: HistorySettings = field(default_factory=HistorySettings)
    watch: WatchSettings = field(default_factory=WatchSettings)
    workload: WorkloadSettings = field(default_factory=WorkloadSettings)


_NAMED: Mapping[str, type] = {"cluster": ClusterSettings}
_PLAIN: Mapping[str, type] = {
    "store": StoreSettings,
    "history": HistorySettings,
    "watch": WatchSettings,
    "workload": WorkloadSettings,
}


class Layer(NamedTuple):
    """Values from one place; a later layer wins."""

    origin: str
    values: Mapping[str, Any]


class Line(NamedTuple):
    """One setting as it stands, for `tocsin config show`."""

    name: str
    value: Any
    origin: str
    doc: str
    secret: bool = False
    """The value names a file that only its owner may read."""


def resolve(layers: Sequence[Layer]) -> tuple[Settings, list[Line]]:
    """The settings that these layers make, and each line with the place that it came from."""
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
            getattr(value, f.name),
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
            raise SettingsError(f'"{section}" in {layer.origin} is no section; there are {known}')


def _typed(section: str, cls: type, name: str, value: Any, origin: str) -> Any:
    hints = get_type_hints(cls)
    if name not in hints:
        raise SettingsError(
            f'"{name}" in [{section}] of {origin} is no setting; there are {", ".join(sorted(hints))}'
        )
    wanted = hints[name]
    if isinstance(wanted, UnionType):
        wanted = get_args(wanted)[0]
    if isinstance(value, str) and wanted is not str:  # the environment has text only
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
