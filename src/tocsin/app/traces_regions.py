"""Regions confirmed as bad: confirm and dismiss them, compute them for the model in use, and compare a job with them."""

import re
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tocsin.app.app import App
from tocsin.app.traces_models import OpenModel, open_trace_model
from tocsin.app.traces_of_job import JobRequest, find_job, normal_windows, read_job_windows
from tocsin.core.errors import InputError, NotFound, TocsinError
from tocsin.core.ids import parse_key
from tocsin.store.home import user_name

if TYPE_CHECKING:
    import numpy as np
    import polars as pl

    from tocsin.judge.answers import DetectorModels
    from tocsin.store.trace_regions import Confirmed
    from tocsin.traces.regions import Region
    from tocsin.traces.windows import Windows

__all__ = [
    "confirm_region",
    "current_regions",
    "diagnose_job",
    "dismiss_region",
    "list_regions",
    "with_regions",
]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,39}", re.ASCII)
_MOST_EXAMPLES = 4000  # windows in the file of a region
_FEWEST = 10  # unusual windows; with fewer, all windows of the job count


def diagnose_job(app: App, request: JobRequest, version: str) -> dict[str, Any]:
    """How unusual the windows of a job are, how close they are to confirmed regions, and its worst CPUs."""
    import numpy as np

    from tocsin.traces.diagnosis import Embedded, reconstructions, worst, worst_iowait

    job = find_job(app, request)
    opened = open_trace_model(app, version, job["cluster"][0])
    found = read_job_windows(app, request, job, opened)
    errors, embedding = found.scores.error[found.mine], found.scores.embedding[found.mine]
    count = len(found.mine)
    shown = Embedded(found.windows, found.scores, np.full(count, found.kind), np.zeros(count, dtype=bool))
    regions, stale = current_regions(app, opened)
    near = [_distance(region, embedding) for region in regions]
    near += [{**each.to_json(), "stale": why} for each, why in stale]
    return {
        "job": str(found.key),
        "kind": found.kind,
        "model": opened.version,
        "windows": len(errors),
        "unusual": int((errors > opened.threshold).sum()),
        "threshold": float(f"{opened.threshold:.6g}"),
        "error": {"median": float(np.median(errors)), "largest": float(errors.max())},
        "worst_iowait": round(float(worst_iowait(found.windows[found.mine]).max()), 4),
        "regions": near,
        "reconstructions": reconstructions(opened.model, shown, worst(shown, found.mine)),
    }


def confirm_region(
    app: App, request: JobRequest, name: str, *, note: str = "", version: str = "champion"
) -> dict[str, Any]:
    """Store that the windows of a job were bad, as the current user; new jobs like it raise an alarm by that name."""
    from tocsin.store import trace_regions
    from tocsin.traces.regions import QUANTILE, fit_shape

    if not _NAME.fullmatch(name):
        raise InputError(
            f'"{name[:60]}" cannot name a region; use letters, digits, ".", "_" and "-", such as bad_io'
        )
    job = find_job(app, request)
    opened = open_trace_model(app, version, job["cluster"][0])
    found = read_job_windows(app, request, job, opened)
    unusual = found.mine & (found.scores.error > opened.threshold)
    members = unusual if unusual.sum() >= _FEWEST else found.mine
    others, compared = normal_windows(app, found, opened)
    shape = fit_shape(found.scores.embedding[members], compared)
    confirmed = trace_regions.confirm(
        app.store,
        app.home.regions,
        job=found.key,
        name=name,
        windows=_examples(found.windows, members, others),
        detail={
            "model": opened.version,
            "centroid": [float(value) for value in shape.centroid],
            "radius": shape.radius,
            "quantile": QUANTILE,
            "windows": int(members.sum()),
        },
        who=user_name(),
        at=int(time.time()),
        note=note,
    )
    return {**confirmed.to_json(), "unusual_only": members is unusual, "compared_with": len(others)}


def dismiss_region(app: App, number: int, note: str) -> dict[str, Any]:
    """Dismiss a region, as the current user."""
    from tocsin.store.trace_regions import dismiss

    return dismiss(app.store, number, who=user_name(), at=int(time.time()), note=note).to_json()


def list_regions(app: App) -> list[dict[str, Any]]:
    """The confirmed regions; `stale` says why one cannot be compared with the model in use."""
    from tocsin.store.trace_regions import list_confirmed

    confirmed = list_confirmed(app.store)
    if not confirmed:
        return []
    try:
        opened = open_trace_model(app, cluster=parse_key(confirmed[-1].job).cluster)
    except NotFound as error:
        return [{**each.to_json(), "stale": str(error)} for each in confirmed]
    regions, stale = current_regions(app, opened)
    why = {each.number: reason for each, reason in stale}
    radius = {region.number: region.shape.radius for region in regions}
    return [
        {
            **each.to_json(),
            "in_use": opened.version,
            "radius": radius.get(each.number, each.radius),
            "stale": why.get(each.number),
        }
        for each in confirmed
    ]


def current_regions(app: App, opened: OpenModel) -> "tuple[list[Region], list[tuple[Confirmed, str]]]":
    """The confirmed regions in this model's embedding, and those that cannot be computed for it, with the reason.

    A region of another version is recomputed from the windows stored with it.
    """
    from tocsin.store.trace_regions import list_confirmed

    regions: list[Region] = []
    stale: list[tuple[Confirmed, str]] = []
    for each in list_confirmed(app.store):
        try:
            regions.append(_region(app, each, opened))
        except TocsinError as error:
            stale.append((each, str(error)))
    return regions, stale


def with_regions(app: App, models: "DetectorModels") -> "DetectorModels":
    """The trace models with the confirmed regions, for the judge: jobs in a region raise an alarm by its name."""
    from tocsin.traces.fitted import FittedTraces

    found = {}
    for stage, model in models.models.items():
        fitted = model.fitted
        if isinstance(fitted, FittedTraces):
            opened = OpenModel(model.version, fitted.cpus.model, fitted.cpus.thresholds.all.threshold)
            regions, stale = current_regions(app, opened)
            for each, why in stale:
                app.notify(f'warning: region {each.number} "{each.name}" is stale and raises no alarm: {why}')
            fitted = fitted.with_regions(regions, model.version)
        found[stage] = replace(model, fitted=fitted)
    return replace(models, models=found)


def _region(app: App, confirmed: "Confirmed", opened: OpenModel) -> "Region":
    import numpy as np
    import polars as pl

    from tocsin.store.trace_regions import examples
    from tocsin.traces.regions import Region, Shape, fit_shape
    from tocsin.traces.windows import Windows

    if confirmed.model == opened.version:
        shape = Shape(np.asarray(confirmed.centroid), confirmed.radius)
    else:
        kept = examples(app.home.regions, confirmed.examples)
        windows = Windows.from_frame(kept.drop("role"))
        if windows.length != opened.model.length:
            raise InputError(
                f"its windows have {windows.length} points, those of model {opened.version} {opened.model.length}"
            )
        embedding = opened.model.score(windows).embedding
        role = kept.select(pl.col("role")).to_series().to_numpy()
        shape = fit_shape(embedding[role == "member"], embedding[role == "other"])
    return Region(confirmed.number, confirmed.name, opened.version, shape, confirmed.at)


def _distance(region: "Region", embedding: "np.ndarray[Any, Any]") -> dict[str, Any]:
    import numpy as np

    distances = region.shape.distances(embedding)
    return {
        "number": region.number,
        "name": region.name,
        "model": region.version,
        "radius": float(f"{region.shape.radius:.6g}"),
        "nearest": float(f"{distances.min():.6g}"),
        "median": float(f"{np.median(distances):.6g}"),
        "inside": int((distances <= region.shape.radius).sum()),
        "stale": None,
    }


def _examples(
    around: "Windows", members: "np.ndarray[Any, np.dtype[np.bool_]]", others: "Windows"
) -> "pl.DataFrame":
    """Windows to keep, with the `role` of each: `member`, `graph` (other CPUs at the same instant) and `other`.

    Whole instants of nodes, evenly spread in time, so that a model of all CPUs of a node can read them.
    """
    import polars as pl

    place = pl.struct("node", "at")
    frame = around.to_frame().with_columns(
        role=pl.when(pl.Series(members)).then(pl.lit("member")).otherwise(pl.lit("graph"))
    )
    chosen = _some(
        frame.filter(role="member").select(place.alias("place")).to_series(), frame, _MOST_EXAMPLES
    )
    rest = others.to_frame().with_columns(role=pl.lit("other"))
    some = _some(rest.select(place.alias("place")).to_series(), rest, _MOST_EXAMPLES // 2)
    kept = [frame.filter(place.is_in(chosen.implode())), rest.filter(place.is_in(some.implode()))]
    return pl.concat(kept)


def _some(places: "pl.Series", frame: "pl.DataFrame", most: int) -> "pl.Series":
    """Evenly spread instants of nodes with at most `most` windows in total."""
    distinct = places.unique().sort()
    if distinct.is_empty():
        return distinct
    each = max(1, frame.height // max(1, frame.select("node", "at").n_unique()))
    return distinct.gather_every(max(1, -(-len(distinct) * each // most)))
