"""The section of docs/benchmarks.md on the weekly back-test: figures, promises, and the blend by month."""

from collections.abc import Iterator, Sequence
from typing import Any

__all__ = ["walk_section"]

TRIED = (
    "Other rules for the weight were tried on the scores of such walks, with only what was known at each instant: choosing it "
    "every day instead of at each training, other constants, and log loss with forgetting (Hedge). None was better on all "
    "logs, and the seed of the training matters more than any of them. The loss on METACENTRUM in June "
    "was looked into: most of it is between weeks, because in the week with the most failures the own model expected the "
    "fewest. An own model that learns only from the shipped model's features, learns on top of the shipped model, counts "
    "recent jobs more, or may only raise its risk with the shares of failures, leaves the blend behind in June, too."
)


def walk_section(result: dict[str, Any]) -> Iterator[str]:
    logs = {name: row for name, row in result["logs"].items() if "refused" not in row}
    yield "## Weekly back-test"
    yield ""
    yield (
        f"Target: {result['target']} at {result['stage']}. Each log is walked through as the service would have done it, from the "
        "first job on: with a shipped model that never saw it; from 1,000 outcomes on with a model of its own, blended with the "
        "shipped one, which is retrained on everything known by then, except for the last days, and used if it is no worse "
        'on these. "Run time held" is the share of completed jobs (in brackets: of all ended jobs) within the predicted 95 % '
        'bound. "Last 20 %" are the jobs that the single split above predicts. The audit changes everything that became known '
        "after an instant T and counts the predictions before T that change."
    )
    yield ""
    yield "| log | days between trainings | predicted | AUC | AP | AUC, last 20 % | AP | calibration error | run time held | CPU seconds | MiB | audit |"
    yield "|---|---|---|---|---|---|---|---|---|---|---|---|"
    for log, row in logs.items():
        figures, last, audit = row["figures"], row["last_fifth"], row.get("audit")
        proof = f"{audit['differing']} of {audit['compared']:,}" if audit else ""
        covered, every = row["runtime_covered"], row["runtime_covered_all"]
        held = f"{covered:.1%} ({every:.1%})" if covered else ""
        yield (
            f"| {log} | {row['every_days']:g} | {row['predicted']:,} | {_interval(figures['auc'])} "
            f"| {_interval(figures['average_precision'])} | {_number(last['auc'][0])} | {_number(last['average_precision'][0])} "
            f"| {_number(figures['calibration_error'][0])} | {held} | {row['seconds']:,.0f} | {row['peak_mib']:,} | {proof} |"
        )
    yield ""
    if "note" in result:
        yield result["note"]
        yield ""
    yield from _promises(result, logs)
    yield from _months(result, logs)


def _promises(result: dict[str, Any], logs: dict[str, Any]) -> Iterator[str]:
    total = result["promise"]
    yield (
        f"The rule promises a precision of {next(iter(logs.values()))['promise']['precision']:g}. Of {total['months']} months, "
        f"{total['silent']} had no alarm of the model, and {total['kept']} had at least this precision; in {total['possible']} the "
        "promise lies in the 95 % interval of the month's precision or below it, so that a miss may be the luck of few alarms; in "
        f"{total['inside']} the precision was in the range that the model's card gave. Kept or silent: "
        f"{result['promise_kept']:.0%} of the months; within the interval or silent: {result['promise_possible']:.0%}."
    )
    yield ""
    yield "| log | months | silent | kept | within the interval | in the range of the card | model's alarms | precision | recall |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for log, row in logs.items():
        promise, model = row["promise"], row["sources"]["model"]
        counts = " | ".join(str(promise[key]) for key in ("months", "silent", "kept", "possible", "inside"))
        shown = " | ".join(_number(model[key]) for key in ("precision", "recall"))
        yield f"| {log} | {counts} | {model['alarms']:,} | {shown} |"
    yield ""


def _months(result: dict[str, Any], logs: dict[str, Any]) -> Iterator[str]:
    fixed = result["fixed_months_behind"]
    yield (
        f"By month (at least {result['fewest']} jobs, all of them predicted with an own model): what was answered is more than "
        f"{result['behind']:g} of AUC behind the better of own and shipped model in {result['blend_months_behind']} of "
        f"{result['blend_months']} months, in {result['blend_months_behind_beyond_luck']} of them with 95 % confidence, at most by "
        f"{_number(result['blend_most_behind'])}. Who is better in a month is known only after it: the own model alone is as far "
        f"behind in {fixed['own']} months, the shipped one in {fixed['shipped']}, and the one of them that is better on the whole "
        f"log, chosen in hindsight, in {result['fixed_in_hindsight_months_behind']}. Whoever takes, at each training, the one "
        f"that ranked the jobs of the last week better (column follower) is behind in {result['follower_months_behind']} months, "
        f"at most by {_number(result['follower_most_behind'])}. The rule that chooses the weight of the blend was found on these "
        "logs, so on others expect a little less."
    )
    yield ""
    yield TRIED
    yield ""
    yield "| log | month | jobs | shipped | own | follower | blend | own weight | behind |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for log, row in logs.items():
        for month in row["blend"]:
            shown = ("shipped", "own", "follower", "blend", "own_weight")
            figures = " | ".join(_number(month[name]) for name in shown)
            behind = month.get("behind_interval")
            far = f"{month['behind']:.3f} [{behind[0]:.3f}, {behind[1]:.3f}]" if behind else ""
            yield f"| {log} | {month['month']} | {month['jobs']:,} | {figures} | {far} |"
    yield ""


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _interval(value: Sequence[float | None]) -> str:
    low, high = value[1:]
    return _number(value[0]) + (f" [{low:.3f}–{high:.3f}]" if low is not None and high is not None else "")
