"""All settings, each defined once: type, default and description. The caller finds the files."""

import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import UnionType
from typing import Any, NamedTuple, get_args, get_type_hints

from tocsin.core.errors import SettingsError
from tocsin.core.setting import setting as _setting
from tocsin.core.sink_settings import SINK_KINDS, SinkSettings

__all__ = [
    "NAMED_SECTIONS",
    "PLAIN_SECTIONS",
    "CausesSettings",
    "ClusterSettings",
    "HistorySettings",
    "KafkaSettings",
    "Layer",
    "LearnSettings",
    "Line",
    "PolicySettings",
    "RuleSettings",
    "ServiceSettings",
    "Settings",
    "StoreSettings",
    "TracesSettings",
    "WatchSettings",
    "WorkloadSettings",
    "resolve",
    "without_password",
]


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
    kafka_topic: str = _setting(
        "",
        "Kafka topics with its job events, separated by commas; `tocsin watch` reads these instead of Slurm",
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

    lag: int = _setting(10, "seconds from a job's end until an import counts its outcome as known")


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchSettings:
    """How `tocsin watch` follows a cluster."""

    interval: int = _setting(
        1,
        "minimum seconds between two queries of the queue; raised to 20 times what a query costs Slurm, up to 30 s",
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
        "of them separated by commas, or the path of a TOML file",
    )
    agents: str = _setting(
        "", "addresses of tocsin-agent to read directly, separated by commas: http://n1:9814"
    )
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
        "`tocsin watch` reads the output of failed jobs when they end, with their owners' permissions; otherwise only "
        "`tocsin explain` does",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnSettings:
    """How models are retrained, by `tocsin nightly` and by the service itself."""

    in_service: bool = _setting(
        True, "`tocsin serve` retrains by itself once a day; false: only `tocsin nightly`, by a timer, does"
    )
    hour: int = _setting(
        2, "hour of the day from which the service retrains, 0 to 23, in this host's time zone"
    )
    failure_days: int = _setting(
        7, "days between two retrainings of the failure model; other models are retrained every day"
    )
    holdback_days: int = _setting(
        3, "days of the latest jobs that a new model is not trained on, but compared on with the model in use"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaSettings:
    """The Kafka brokers that job events are read from, and that sinks and `tocsin connect` write to."""

    brokers: str = _setting("", "addresses of some brokers, separated by commas: host:9092")
    group: str = _setting("tocsin", "consumer group; the name of the cluster is added")
    user: str = _setting("", "user name; empty: none")
    password_file: str = _setting("", "file with the password", secret=True)
    mechanism: str = _setting(
        "SCRAM-SHA-512", "how the password is sent: SCRAM-SHA-512, SCRAM-SHA-256, PLAIN"
    )
    tls: bool = _setting(False, "use TLS")
    ca_file: str = _setting("", "certificates of the authorities to trust; empty: those of this host")


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicySettings:
    """What tocsin may do to jobs. Which findings lead to which action is in [rule.NAME]."""

    mode: str = _setting(
        "shadow", "advise: verdicts only; shadow: also record what would be done; act: do it"
    )
    lease_seconds: int = _setting(
        300, "seconds by which a lease delays a job's start; renewed while its reason holds"
    )
    lease_minutes: int = _setting(60, "minutes after which a leased job may start in any case")
    hold_hours: int = _setting(
        24, "hours after which a held job is released, whether or not its case was answered"
    )
    per_hour: int = _setting(
        20,
        "most actions per hour and cluster; for misuse, users are counted instead, separately; 0: no limit",
    )
    per_user_hour: int = _setting(5, "most actions per hour and user; misuse is exempt; 0: no limit")
    control_percent: int = _setting(
        10, "percent of jobs that are left alone, to measure precision on them; misuse is exempt"
    )
    exclude_users: str = _setting("", "users whose jobs are never touched, separated by commas")
    exclude_accounts: str = _setting("", "accounts whose jobs are never touched, separated by commas")
    exclude_partitions: str = _setting("", "partitions whose jobs are never touched, separated by commas")
    exclude_qos: str = _setting("", "QOS whose jobs are never touched, separated by commas")
    array_failures: int = _setting(
        3,
        "first tasks of an array that must all fail in the same way before the others are delayed; 0: never delay",
    )
    screening_seconds: int = _setting(
        0, "seconds for which new batch jobs wait to be screened (`tocsin slurm install`); 0: none"
    )
    advice_milliseconds: int = _setting(
        150,
        "longest time in milliseconds that sbatch waits for advice at a terminal (`tocsin slurm install`)",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleSettings:
    """Which findings lead to which action; choose any NAME. Of all rules that match, the most severe action applies."""

    detector: str = _setting("*", "detector of the finding; * matches any text")
    kind: str = _setting("*", "kind of the finding; * matches any text")
    level: str = _setting("warning", "minimum level of the finding: warning or critical")
    score_percent: int = _setting(0, "minimum score of the finding, in percent")
    action: str = _setting("notify", "notify, comment, lease, hold (kind rogue only) or cancel")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSettings:
    """Where `tocsin serve` listens, where other commands find it, and whom it serves."""

    socket: str = _setting(
        "",
        "unix socket of the service; empty: /run/tocsin/tocsin.sock for the service's user, else run/ in the home",
    )
    listen: str = _setting("127.0.0.1:8642", "address and port for HTTP; empty: only the unix socket")
    tls_certificate_file: str = _setting(
        "",
        "TLS certificate with its chain, as PEM; empty: plain HTTP, for this host or behind a proxy",
    )
    tls_key_file: str = _setting("", "file with the key of that certificate", secret=True)
    url: str = _setting("", "service to ask when none answers on the socket, such as https://tocsin.site")
    workers: int = _setting(1, "trainings, back-tests and profiles that run at once, each in its own process")
    public_url: str = _setting(
        "", "address at which browsers reach the service, such as https://tocsin.site; empty: this host only"
    )
    operators: str = _setting(
        "", "users who see all jobs and answer cases, separated by commas; a group is written @group"
    )
    admins: str = _setting(
        "", "users who may also change models, thresholds and rules; written as for operators"
    )
    slurm_tokens: str = _setting(
        "", "cluster whose slurmrestd checks users' Slurm tokens; empty: the only one with a rest_url"
    )
    proxy_header: str = _setting("", "header in which a trusted proxy names the user; empty: none")
    proxy_from: str = _setting(
        "", "proxies that may send it, separated by commas: unix:USER for one on the socket, or IP addresses"
    )
    oidc_issuer: str = _setting("", "OpenID Connect issuer for browsers: https://id.site/realm; empty: none")
    oidc_client_id: str = _setting("", "client ID of tocsin at the issuer")
    oidc_secret_file: str = _setting(
        "", "file with the client secret; empty: a public client (PKCE)", secret=True
    )
    oidc_user_claim: str = _setting(
        "preferred_username", "claim with the user's name; users must not be able to change it"
    )
    session_hours: int = _setting(12, "hours until a browser must log in again")
    max_body_megabytes: int = _setting(8, "largest body of a request, in megabytes")
    request_seconds: int = _setting(
        30, "longest time in seconds for a whole request; event streams may last longer"
    )
    requests_per_minute: int = _setting(
        6000, "requests per minute of one user, or of one address without a user; 0: no limit"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All sections; `cluster`, `sinks` and `rule` have one for each name."""

    cluster: Mapping[str, ClusterSettings] = field(default_factory=dict)
    sinks: Mapping[str, SinkSettings] = field(default_factory=dict)
    rule: Mapping[str, RuleSettings] = field(default_factory=dict)
    store: StoreSettings = field(default_factory=StoreSettings)
    history: HistorySettings = field(default_factory=HistorySettings)
    watch: WatchSettings = field(default_factory=WatchSettings)
    workload: WorkloadSettings = field(default_factory=WorkloadSettings)
    traces: TracesSettings = field(default_factory=TracesSettings)
    causes: CausesSettings = field(default_factory=CausesSettings)
    learn: LearnSettings = field(default_factory=LearnSettings)
    kafka: KafkaSettings = field(default_factory=KafkaSettings)
    policy: PolicySettings = field(default_factory=PolicySettings)
    service: ServiceSettings = field(default_factory=ServiceSettings)


NAMED_SECTIONS: Mapping[str, type] = {"cluster": ClusterSettings, "sinks": SinkSettings, "rule": RuleSettings}
"""Sections that exist once per name."""
PLAIN_SECTIONS: Mapping[str, type] = {
    "store": StoreSettings,
    "history": HistorySettings,
    "watch": WatchSettings,
    "workload": WorkloadSettings,
    "traces": TracesSettings,
    "causes": CausesSettings,
    "learn": LearnSettings,
    "kafka": KafkaSettings,
    "policy": PolicySettings,
    "service": ServiceSettings,
}


def without_password(value: Any) -> Any:
    """The value, with the password removed from any URL in it.

    >>> without_password("postgresql://ann:secret@host/jobs?password=x")
    'postgresql://ann:***@host/jobs?password=***'
    """
    if not isinstance(value, str):
        return value
    value = re.sub(r"(://[^:/@]*:).*@", r"\1***@", value)
    return re.sub(r"(?i)((?:password|token|secret)=)[^&\s]*", r"\1***", value)


class Layer(NamedTuple):
    """Values from one source; later layers override earlier ones."""

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
    kinds = _sink_kinds(layers)
    for layer in layers:
        for section, cls, name, value in _values(layer):
            cls = kinds.get(section, cls)
            if name:
                found.setdefault(section, {})[name] = _typed(section, cls, name, value, layer.origin)
                origins[f"{section}.{name}"] = layer.origin
            else:
                found.setdefault(section, {})
    named: dict[str, dict[str, Any]] = {section: {} for section in NAMED_SECTIONS}
    for section in sorted(section for section in found if "." in section):
        kind, _, name = section.partition(".")
        named[kind][name] = kinds.get(section, NAMED_SECTIONS[kind])(**found[section])
    plain = {section: cls(**found.get(section, {})) for section, cls in PLAIN_SECTIONS.items()}
    settings = Settings(cluster=named["cluster"], sinks=named["sinks"], rule=named["rule"], **plain)
    sections = [(f"{kind}.{name}", value) for kind in NAMED_SECTIONS for name, value in named[kind].items()]
    sections += [(name, getattr(settings, name)) for name in PLAIN_SECTIONS]
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


def _sink_kinds(layers: Sequence[Layer]) -> dict[str, type[SinkSettings]]:
    """The class of each sink's section; the kind may be in one layer, and a key of that kind in another."""
    found: dict[str, tuple[Any, str]] = {}
    for layer in layers:
        sinks = layer.values.get("sinks")
        for name, keys in sinks.items() if isinstance(sinks, Mapping) else ():
            if isinstance(keys, Mapping):
                before = found.get(f"sinks.{name}", (None, layer.origin))
                found[f"sinks.{name}"] = (keys["kind"], layer.origin) if "kind" in keys else before
    for section, (kind, origin) in found.items():
        if kind not in SINK_KINDS:
            lacks = f"has no kind in {origin}" if kind is None else f'is of the kind "{kind}" in {origin}'
            raise SettingsError(f"[{section}] {lacks}; write kind = one of {', '.join(SINK_KINDS)}")
    return {section: SINK_KINDS[kind] for section, (kind, _) in found.items()}


def _values(layer: Layer) -> Iterator[tuple[str, type, str, Any]]:
    """Section, its class, key and value; a named section without keys yields an empty key, so that it exists."""
    for section, content in layer.values.items():
        if section in NAMED_SECTIONS and isinstance(content, Mapping):
            for name, keys in content.items():
                if not isinstance(keys, Mapping):
                    raise SettingsError(f"[{section}] in {layer.origin} needs a name; write [{section}.NAME]")
                yield f"{section}.{name}", NAMED_SECTIONS[section], "", None
                yield from (
                    (f"{section}.{name}", NAMED_SECTIONS[section], key, value) for key, value in keys.items()
                )
        elif section in PLAIN_SECTIONS and isinstance(content, Mapping):
            yield from ((section, PLAIN_SECTIONS[section], key, value) for key, value in content.items())
        else:
            known = ", ".join(
                [*(f"[{name}.NAME]" for name in NAMED_SECTIONS), *(f"[{name}]" for name in PLAIN_SECTIONS)]
            )
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
