"""How a trace detector performs on recorded jobs: which raised an alarm, when, and how often wrongly."""

import polars as pl

from tocsin.core.stages import Stage
from tocsin.models.cards import Figure
from tocsin.traces.fitted import FittedTraces

__all__ = ["by_job", "figures"]


def by_job(fitted: FittedTraces, scores: pl.DataFrame) -> pl.DataFrame:
    """One row per job: its windows, how many are unusual, errors of its CPUs, and the instant of its first alarm.

    The errors of CPUs and of job counters have different scales; `largest` has both in multiples of the threshold.
    """
    alarms = pl.col("in_a_row") >= fitted.in_a_row
    of_cpu = pl.col("cpu").is_not_null()
    begins = pl.col("in_a_row") == fitted.in_a_row
    return (
        scores.filter(pl.col("job").is_not_null())
        .group_by("job")
        .agg(
            windows=pl.len(),
            unusual=pl.col("unusual").sum(),
            error=pl.col("error").filter(of_cpu).mean(),
            largest=(pl.col("error") / pl.col("threshold")).max(),
            longest_row=pl.col("in_a_row").max(),
            alarms=begins.sum(),
            first_alarm=pl.col("at").filter(alarms).min(),
            nodes=pl.col("node").unique().sort().str.join(","),
        )
        .sort("job")
    )


def figures(fitted: FittedTraces, scores: pl.DataFrame, labels: pl.DataFrame, data: str) -> list[Figure]:
    """On labelled jobs (`job`, `label`, `normal`): the share of bad jobs with an alarm, and false alarms per CPU-day."""
    jobs = by_job(fitted, scores).join(labels, on="job")
    bad, good = jobs.filter(~pl.col("normal")), jobs.filter("normal")
    cpus = scores.filter(pl.col("cpu").is_not_null())
    normal = cpus.join(good.select("job"), on="job", how="semi")
    found: dict[str, tuple[float | None, str | None]] = {
        "error_normal": (_mean(normal["error"]), None),
        "error_bad": (_mean(cpus.join(bad.select("job"), on="job", how="semi")["error"]), "no bad job"),
        "recall": (_mean(bad["first_alarm"].is_not_null()), "no bad job"),
    }
    days = normal.height * fitted.stride / 86400
    false = int(good["alarms"].sum())
    found["false_alarms_per_cpu_day"] = (false / days if days else None, "no window of a normal job")
    for (label,), each in bad.group_by("label", maintain_order=True):
        found[f"recall.{label}"] = (_mean(each["first_alarm"].is_not_null()), None)
    return [
        Figure(
            name=name,
            value=value,
            low=None,
            high=None,
            stage=Stage.RUNNING,
            split="jobs of another campaign",
            data=data,
            reason=reason if value is None else None,
        )
        for name, (value, reason) in found.items()
    ]


def _mean(values: pl.Series) -> float | None:
    return float(values.mean()) if len(values) else None  # type: ignore[arg-type]  # a number
