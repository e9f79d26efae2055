"""Data for the detector checks: a log with its machine and scripts, and the same log with a different future."""

import random
from dataclasses import dataclass, field
from functools import cache

import polars as pl

from tocsin.core.detector import Budget, Detector, Fitted
from tocsin.core.fields import FIELDS, Part, ValueType, fields_of
from tocsin.core.frames import LARGEST, SCHEMA, reached_at
from tocsin.core.machine import Machine
from tocsin.core.outcomes import Outcome
from tocsin.core.stages import EARLY_SECONDS, Stage
from tocsin.core.units import UNLIMITED
from tocsin.history.known_windows import KnownWindows
from tocsin.history.replay import Replay

__all__ = [
    "BUDGET",
    "SEED",
    "CheckData",
    "demo_check_data",
    "odd_values",
    "other_value",
    "scrambled",
    "scrambled_windows",
]

SEED = 11
BUDGET = Budget(trials=2)
_LAG = 10  # seconds from a job's end until its outcome counts as known (history.lag)
_ROWS = 12
_ODD_TEXTS = (
    "",
    " ",
    "x\ny",
    "a\tb\rc\x00d\x1b[2J",
    "a\x85b\u2028c\u202ed\ud7ff\U0010ffff",
    "n[1-3,[4],",
    "n[1-99999999]",
    "-1,%,=,:,;,(null),N/A",
    "$(reboot)`id`'\"\\",
    "{0} {name} %s %(x)s",
    "gpu:a100:-1,gres/gpu=1:,cpu=,mem=9999999999T",
    "x" * 100_000,
)
"""Texts with meaning for parsers, terminals and templates."""
_LATER = (Part.ALLOCATION, Part.FIRST_METRICS, Part.OUTCOME, Part.USAGE)


@dataclass(slots=True, eq=False)
class CheckData:
    """A log with outcomes, and the machine, scripts and trace windows if known."""

    log: pl.DataFrame
    machine: Machine | None = None
    scripts: dict[str, str] = field(default_factory=dict)
    windows: pl.DataFrame | None = None
    _fitted: dict[tuple[int, Stage], tuple[Detector, Fitted]] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        known = pl.coalesce("known_at", pl.col("end") + _LAG)
        self.log = self.log.with_columns(known_at=pl.when(pl.col("outcome").is_not_null()).then(known))

    @property
    def cut(self) -> int:
        """Training uses what was known by this instant, which follows three quarters of the submissions."""
        return int(self.log["submit"].sort()[int(self.log.height * 0.75)])

    @property
    def now(self) -> int:
        """When running jobs are assessed: a minute after the last of `asked` has started."""
        return max(self.asked(Stage.RUNNING)["start"].to_list(), default=self.cut) + 60

    def known(
        self, log: pl.DataFrame | None = None, *, now: int | None = None, windows: pl.DataFrame | None = None
    ) -> Replay:
        """By default, at `now`."""
        log = self.log if log is None else log
        windows = self.windows if windows is None else windows
        return Replay(
            log,
            machine=self.machine,
            scripts=self.scripts.get,
            windows=None if windows is None else KnownWindows(windows, log),
            now=self.now if now is None else now,
        )

    def ended(self) -> pl.DataFrame:
        """The jobs to train on."""
        return self.log.filter(pl.col("known_at") <= self.cut)

    def fit(self, detector: Detector, stage: Stage, known: Replay | None = None) -> Fitted:
        return detector.fit(self.ended(), known or self.known(), stage=stage, seed=SEED, budget=BUDGET)

    def fitted(self, detector: Detector, stage: Stage) -> Fitted:
        """Fitted once, for the checks that only assess."""
        found = self._fitted.get((id(detector), stage))
        if found is None:
            found = self._fitted[(id(detector), stage)] = (detector, self.fit(detector, stage))
        return found[1]

    def asked(self, stage: Stage, until: int | None = None) -> pl.DataFrame:
        """A few jobs that reach the stage, just before `until` or after the cut, and some that request too much."""
        # The record of an ended job is available once its end is known.
        at = pl.coalesce("known_at", "end") if stage is Stage.END else reached_at(stage)
        reached = self.log.with_columns(at=at).filter(pl.col("at").is_not_null()).sort("at", "job_id", "task")
        if stage is Stage.RUNNING and until is not None:
            reached = reached.filter((pl.col("end") > until).fill_null(True))
        mine = (
            reached.filter(pl.col("at") > self.cut).head(_ROWS)
            if until is None
            else reached.filter(pl.col("at") <= until).tail(4 * _ROWS)
        ).select(SCHEMA.names())
        greedy = mine.head(4).with_columns(
            req_memory=pl.lit(2**50, pl.Int64),
            time_limit=pl.lit(10**9, pl.Int64),
            req_nodes=pl.lit(10**6, pl.Int64),
        )
        return pl.concat([mine, greedy]) if until is None else mine


@cache
def demo_check_data() -> CheckData:
    """A week of the demo cluster."""
    from tocsin.demo.cluster import START, DemoCluster
    from tocsin.demo.windows import demo_windows

    days = 7
    cluster = DemoCluster(seed=5, days=days)
    log = pl.concat(cluster.accounting(START, START + days * 86400))
    data = CheckData(log, cluster.machine(), dict(cluster.scripts()))
    data.windows = demo_windows(data.log, moments=(data.cut, data.now))
    return data


def scrambled(log: pl.DataFrame, until: int) -> pl.DataFrame:
    """The log with a different future: everything not known by then is changed, including later jobs."""
    seed = random.Random(until)  # noqa: S311  # no secret
    unknown = (pl.col("known_at") > until).fill_null(True)
    waiting = pl.col("_waiting")  # before anything is changed
    since = {
        Part.ALLOCATION: waiting,
        Part.FIRST_METRICS: unknown & (pl.col("start") + EARLY_SECONDS > until).fill_null(True),
    }
    # an end before `until` that was not known then may become any; ends known later stay later
    other = [
        pl.when(since.get(FIELDS[name].part, unknown))
        .then(other_value(name, seed))
        .otherwise(name)
        .alias(name)
        for name in fields_of(*_LATER)
    ]
    shifted = pl.col("known_at") + seed.randrange(1, 86400)
    waited = (unknown & (pl.col("start") > until).fill_null(True)).alias("_waiting")
    changed = (
        log.with_columns(waited)
        .with_columns(
            *other,
            pl.when(unknown & pl.col("known_at").is_not_null())
            .then(shifted)
            .otherwise("known_at")
            .alias("known_at"),
        )
        .with_columns(
            pl.when(waiting & (pl.col("start") <= until)).then(None).otherwise("start").alias("start"),
            pl.when(unknown)
            .then(pl.coalesce("known_at", pl.lit(until + 86400)))
            .otherwise("known_at")
            .alias("known_at"),
        )
        .drop("_waiting")
    )
    now = changed.filter(pl.col("submit") <= until)
    later = changed.filter(pl.col("submit") > until)[::2].with_columns(
        pl.col("user").reverse(), pl.col("name").reverse(), pl.col("submit") + 7
    )
    return pl.concat([now, later])


def scrambled_windows(windows: pl.DataFrame, until: int) -> pl.DataFrame:
    """The windows with a different future: all that end later are changed."""
    later = pl.col("at") > until
    return windows.with_columns(
        pl.when(later).then(pl.col("values").list.reverse()).otherwise("values").alias("values")
    )


def odd_values(name: str) -> tuple[str | int | bool, ...]:
    """Values that users can give the field, or that Slurm may report for it, and that few jobs have."""
    entry = FIELDS[name]
    if entry.type is ValueType.TEXT:
        return _ODD_TEXTS
    if entry.type is ValueType.FLAG:
        return False, True
    largest = LARGEST[entry.type]
    return (0, 1, largest, UNLIMITED) if entry.limit else (0, 1, largest)


def other_value(name: str, seed: random.Random) -> pl.Expr:
    """Another value of the column's own type."""
    entry = FIELDS[name]
    if name == "outcome":
        cycle = [str(outcome) for outcome in Outcome]
        swapped = {outcome: cycle[(place + 3) % len(cycle)] for place, outcome in enumerate(cycle)}
        return pl.col(name).replace_strict(swapped, default=str(Outcome.FAILED), return_dtype=pl.String)
    if entry.type is ValueType.TEXT:
        return pl.lit(f"other-{seed.randrange(1000)}").alias(name)
    if entry.type is ValueType.FLAG:
        return ~pl.col(name).fill_null(False)
    if entry.type is ValueType.INSTANT:
        return pl.coalesce(name, "submit") + seed.randrange(1, 100_000)
    return (
        (pl.coalesce(pl.col(name), pl.lit(0)) * 3 + seed.randrange(1, 10**6)).cast(SCHEMA[name]).alias(name)
    )
