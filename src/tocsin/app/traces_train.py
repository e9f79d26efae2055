"""`traces train` and `traces score`: train the trace detector, and score recorded traces."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tocsin.app.app import App
from tocsin.app.text import count
from tocsin.app.traces_parts import TracePart, campaign_part, stored_parts
from tocsin.app.traces_request import TraceRequest
from tocsin.core.errors import ModelError, NotFound
from tocsin.core.stages import Stage
from tocsin.core.units import format_instant

if TYPE_CHECKING:
    from tocsin.models.cards import Figure
    from tocsin.traces.fitted import FittedTraces

__all__ = ["TraceTraining", "normal_windows", "score_traces", "train_traces"]

_MOST_WINDOWS = 100_000
"""Windows in a training; of more, an evenly spread subset is used."""
_NAME = "traces"


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceTraining:
    folders: Sequence[Path]
    """Campaigns: those with the split `train` (or else all) are for training, those with `test` for evaluation."""
    cluster: str | None
    starttime: str | None
    endtime: str | None
    architecture: str
    seeds: int
    seed: int
    seconds: float | None
    rate: float
    promote: bool


def train_traces(app: App, request: TraceTraining) -> dict[str, Any]:
    """Train on campaigns or on the stored traces of jobs that raised no alarm; store the model with its card."""
    from tocsin.learn.train_traces import train_traces as train
    from tocsin.traces.detector import TracesDetector
    from tocsin.traces.thresholds import Rule

    learned, tested, data = _data(app, request)
    settings = app.settings.traces
    app.notify(f"training on {count(learned.windows.height, 'window')} of {data}; this may take minutes")
    app.home.prepare()
    trained = train(
        learned.windows,
        learned.jobs,
        app.registry,
        TracesDetector(
            architecture=request.architecture, ensemble=request.seeds, rule=Rule(rate=request.rate)
        ),
        data=data,
        stride=settings.stride * settings.interval,
        interval=settings.interval,
        seed=request.seed,
        seconds=request.seconds,
        progress=lambda done, of: app.progress("training", done, of),
        measure=lambda fitted: [figure for part in tested for figure in _measured(fitted, *part)],
        promote=request.promote,
        cluster=request.cluster,
    )
    model = trained.model
    return {
        "version": trained.version,
        "stage": str(Stage.RUNNING),
        "windows": model.windows,
        "jobs": learned.jobs["job"].n_unique(),
        "data": data,
        "architecture": request.architecture,
        "seeds": request.seeds,
        "thresholds": trained.card.to_json()["thresholds"],
        "split": model.split,
        "figures": {f"{figure.name} ({figure.data})": figure.value for figure in trained.card.figures},
        "promoted": trained.promoted,
    }


def score_traces(app: App, request: TraceRequest, out: Path | None) -> dict[str, Any]:
    """The errors of a campaign's or stored windows by the model in use; with `out`, each window's as Parquet."""
    import polars as pl

    from tocsin.traces.outcome import by_job

    fitted, version = _in_use(app, request.cluster)
    parts = [campaign_part(app, request.folder)[0]] if request.folder else stored_parts(app, request)
    found, jobs = [], []
    for part in parts:
        found.append(fitted.scores(part.windows, part.jobs).drop("in_a_row"))
        jobs.append(part.jobs)
    if not found:
        raise NotFound(
            "there are no windows to score; are there traces in that time? See: tocsin traces train -h"
        )
    from tocsin.traces.alarms import in_a_row

    scores = pl.concat(found)
    scores = scores.with_columns(in_a_row(scores, fitted.stride))
    if out:
        scores.write_parquet(out)
    about = pl.concat(jobs).unique("job")
    rows = by_job(fitted, scores).join(about, on="job", how="left", maintain_order="left")
    first = pl.Series(
        [None if at is None else format_instant(at) for at in rows["first_alarm"]], dtype=pl.String
    )
    return {
        "version": version,
        "windows": scores.height,
        "unusual": int(scores["unusual"].sum()),
        "rule": str(fitted.cpus.thresholds.rule),
        "jobs": rows.with_columns(first_alarm=first).to_dicts(),
    }


def _in_use(app: App, cluster: str | None) -> "tuple[FittedTraces, str]":
    from tocsin.traces.detector import DETECTOR

    if app.registry.champion(_NAME, Stage.RUNNING, cluster) is None:
        raise ModelError("no model is trained for traces yet; run `tocsin traces train`")
    folder, card = app.registry.open_verified(_NAME, stage=Stage.RUNNING, cluster=cluster)
    return DETECTOR.load(folder), card.version


def _data(app: App, request: TraceTraining) -> tuple[TracePart, list[tuple[TracePart, str]], str]:
    """Training data, test data, and the name of the data."""
    if request.folders:
        read = [(*campaign_part(app, folder), folder.name) for folder in request.folders]
        tested = [(part, name) for part, split, name in read if split == "test"]
        learned = [(part, name) for part, split, name in read if split == "train"]
        learned = learned or [(part, name) for part, split, name in read if split != "test"]
        if not learned:
            raise NotFound(
                "these campaigns are all for tests; name one to learn from, or record one: tocsin campaign run"
            )
        names = ", ".join(name for _, name in learned)
        return _joined([_normal(app, part) for part, _ in learned]), tested, f"campaign {names}"
    window = TraceRequest(cluster=request.cluster, starttime=request.starttime, endtime=request.endtime)
    return (
        normal_windows(app, window),
        [],
        f"stored traces{f' of {request.cluster}' if request.cluster else ''}",
    )


def normal_windows(app: App, request: TraceRequest) -> TracePart:
    """Stored windows of jobs that raised no alarm and were not confirmed as bad; a subset if there are too many."""
    return _joined(list(_thinned(_normal(app, part) for part in stored_parts(app, request))))


def _normal(app: App, part: TracePart) -> TracePart:
    """Without jobs that were labelled or confirmed as bad, or raised an alarm by their traces."""
    import polars as pl

    from tocsin.store.trace_regions import confirmed_anomalies
    from tocsin.store.verdicts import at_stage

    keys = part.jobs["job"].to_list()
    if part.jobs["normal"].is_null().all():
        verdicts_by_job = at_stage(app.store, keys, Stage.RUNNING)
        bad = {job for job, verdicts in verdicts_by_job.items() if any(each.findings for each in verdicts)}
        bad |= set(confirmed_anomalies(app.store, 0, int(time.time()) + 1))
        good = part.jobs.filter(~pl.col("job").is_in(list(bad)))
    else:
        good = part.jobs.filter(pl.col("normal"))
    return TracePart(part.windows.join(good.select("job"), on="job", how="semi"), good)


def _thinned(parts: Iterator[TracePart]) -> Iterator[TracePart]:
    """All windows, or every second, fourth, … by a hash, to bound their number."""
    import polars as pl

    kept: list[TracePart] = []
    one_in = 1
    for part in parts:
        kept.append(part)
        while sum(each.windows.height for each in kept) > _MOST_WINDOWS:
            one_in *= 2
            chosen = pl.struct("job", "node", "cpu", "at").hash(seed=7) % one_in == 0
            kept = [TracePart(each.windows.filter(chosen), each.jobs) for each in kept]
        if one_in > 1:
            chosen = pl.struct("job", "node", "cpu", "at").hash(seed=7) % one_in == 0
            kept[-1] = TracePart(kept[-1].windows.filter(chosen), part.jobs)
    yield from kept


def _joined(parts: list[TracePart]) -> TracePart:
    import polars as pl

    from tocsin.core.frames import WINDOWS

    windows = pl.concat([WINDOWS.to_frame(), *(part.windows for part in parts)])
    empty = pl.DataFrame(schema=dict.fromkeys(("job", "user", "name"), pl.String))
    jobs = pl.concat([empty, *(part.jobs.select("job", "user", "name") for part in parts)])
    return TracePart(windows, jobs.unique("job", maintain_order=True))


def _measured(fitted: "FittedTraces", part: TracePart, name: str) -> "list[Figure]":
    from tocsin.traces.outcome import figures

    scores = fitted.scores(part.windows, part.jobs)
    return figures(fitted, scores, part.jobs.select("job", "label", "normal"), f"campaign {name}")
