"""Resolves local times in the hour that repeats when clocks are set back: chooses the reading that fits."""

import polars as pl

__all__ = ["resolve_ambiguous_times"]

_QUARTER = 900  # clocks change at whole quarters of an hour
_MOST = 2**33  # no zone's rules are known beyond it
_LOCAL = r"^\s*\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?\s*$"


def resolve_ambiguous_times(
    times: dict[str, pl.Series], texts: dict[str, pl.Series], elapsed: pl.Series, zone: str
) -> dict[str, pl.Series]:
    """Move times (submit, eligible, start, end; read as the first hour) to the second hour where they must be.

    The order submit, start, end must hold and, if possible, the end is the start plus the elapsed time. A submit time
    always stays in the first hour: it is part of the job's key, which must not change later.
    """
    shift = {name: _shift(times[name], texts[name], zone) for name in ("eligible", "start", "end")}
    ambiguous = shift["eligible"] + shift["start"] + shift["end"] > 0
    if not ambiguous.any():
        return times
    rows = pl.DataFrame(
        {name: times[name] for name in times}
        | {f"+{name}": moved for name, moved in shift.items()}
        | {"elapsed": elapsed, "place": pl.int_range(len(ambiguous), eager=True)}
    ).filter(ambiguous)
    submit, length = rows["submit"], rows["elapsed"]
    best_start, best_end = rows["start"], rows["end"]
    least = _faults(submit, best_start, best_end, length)
    for late_start, late_end in ((0, 1), (1, 1), (1, 0)):
        start, end = rows["start"] + late_start * rows["+start"], rows["end"] + late_end * rows["+end"]
        faults = _faults(submit, start, end, length)
        better = faults < least
        best_start, best_end = start.zip_with(better, best_start), end.zip_with(better, best_end)
        least = faults.zip_with(better, least)
    eligible = pl.when(pl.col("eligible") < pl.col("submit")).then(pl.col("eligible") + pl.col("+eligible"))
    found = {
        "start": best_start,
        "end": best_end,
        "eligible": rows.select(eligible.otherwise("eligible")).to_series(),
    }
    return times | {name: times[name].scatter(rows["place"], values) for name, values in found.items()}


def _faults(submit: pl.Series, start: pl.Series, end: pl.Series, elapsed: pl.Series) -> pl.Series:
    """Penalty of a reading: 2 for times in the wrong order, 1 for a length that is not the elapsed time."""
    backwards = (start < submit).fill_null(False) | (end < start).fill_null(False)
    backwards |= (end < submit).fill_null(False)
    return 2 * backwards.cast(pl.Int64) + (end - start != elapsed).fill_null(False).cast(pl.Int64)


def _shift(times: pl.Series, texts: pl.Series, zone: str) -> pl.Series:
    """Seconds between the two readings of a time; 0 if it is not ambiguous."""
    known = times.is_between(0, _MOST).fill_null(False)
    quarter = (times // _QUARTER).zip_with(known, pl.repeat(None, len(times), dtype=pl.Int64, eager=True))
    start = quarter.drop_nulls().unique() * _QUARTER
    clock = pl.from_epoch(start, "s").dt.replace_time_zone("UTC").dt.convert_time_zone(zone)
    second = clock.dt.replace_time_zone(None).dt.replace_time_zone(zone, ambiguous="latest").dt.epoch("s")
    table = pl.DataFrame({"quarter": start // _QUARTER, "shift": second - start}).filter(pl.col("shift") > 0)
    if not table.height:
        return pl.repeat(0, len(times), dtype=pl.Int64, eager=True)
    found = quarter.replace_strict(table["quarter"], table["shift"], default=0, return_dtype=pl.Int64)
    return found.fill_null(0) * texts.str.contains(_LOCAL).fill_null(False).cast(pl.Int64)
