"""The section of docs/benchmarks.md on clusters that the shipped failure model has never seen."""

from collections.abc import Iterator
from typing import Any

__all__ = ["dayone_section"]


def dayone_section(result: dict[str, Any]) -> Iterator[str]:
    yield "## Failure prediction on the first day"
    yield ""
    yield (
        f"Target: {result['target']}. AUC on the last 20 % by time, with 95 % intervals. *Shipped*: a model that was trained "
        "on the other public logs only and saw nothing of this one. *Own*: trained on the first 80 % of this log. *Blend*: "
        "both, with the weight of the own model chosen on jobs before the test. The weekly back-test below compares them by month."
    )
    yield ""
    yield "| log | stage | jobs | shipped | own | blend | own weight |"
    yield "|---|---|---|---|---|---|---|"
    for log, found in result["logs"].items():
        for stage, row in found["stages"].items():
            if "refused" in row:
                yield f"| {log} | {stage} | {row['refused']} | | | | |"
                continue
            figures = " | ".join(_interval(row[name]) for name in ("shipped", "own", "blend"))
            yield f"| {log} | {stage} | {row['jobs']:,} | {figures} | {_number(row['own_weight'])} |"
    yield ""
    if "note" in result:
        yield result["note"]
        yield ""
    losses = ", ".join(f"{loss:+.3f} at {stage}" for stage, loss in result["mean_loss"].items())
    gains = ", ".join(f"{gain:+.3f} at {stage}" for stage, gain in result["mean_gain_of_blend"].items())
    yield f"Own minus shipped, mean over the logs: {losses}. Blend minus own: {gains}."
    yield ""


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _interval(value: list[float | None]) -> str:
    low, high = value[1:]
    return _number(value[0]) + (f" [{low:.3f}–{high:.3f}]" if low is not None and high is not None else "")
