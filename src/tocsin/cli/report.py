"""A first report on a set of jobs: how they ended, whose failed, and what the failures cost."""

from dataclasses import dataclass
from typing import Any

import polars as pl

from tocsin.core.outcomes import TARGETS, Outcome, Target

__all__ = ["Report", "first_report"]

_BAR = 30


@dataclass(frozen=True, slots=True)
class Report:
    """Shares are of ended jobs; node-hours are those of jobs that failed."""

    jobs: int
    ended: int
    outcomes: dict[str, int]
    node_hours: float
    lost_node_hours: float
    users: list[dict[str, Any]]

    def to_json(self) -> dict[str, Any]:
        return {
            "jobs": self.jobs,
            "ended": self.ended,
            "outcomes": self.outcomes,
            "node_hours": round(self.node_hours, 1),
            "lost_node_hours": round(self.lost_node_hours, 1),
            "users": self.users,
        }

    def to_text(self) -> str:
        lines = ["How jobs ended"]
        for outcome, number in self.outcomes.items():
            share = number / max(1, self.ended)
            bar = "█" * max(1, round(share * _BAR))
            lines.append(f"  {outcome:<14} {number:>7,}  {share:>6.1%}  {bar}")
        lost = self.lost_node_hours / self.node_hours if self.node_hours else 0
        lines += [
            "",
            f"Failed jobs took {self.lost_node_hours:,.0f} of {self.node_hours:,.0f} node-hours ({lost:.0%}).",
            "",
            "Whose jobs failed most",
            f"  {'user':<12} {'jobs':>7} {'failed':>7} {'share':>7}  most often",
        ]
        for user in self.users:
            share = user["failed"] / user["jobs"]
            lines.append(
                f"  {user['user']:<12} {user['jobs']:>7,} {user['failed']:>7,} {share:>7.0%}  {user['mostly']}"
            )
        return "\n".join(lines)


def first_report(frame: pl.DataFrame, *, most_users: int = 8) -> Report:
    """Counts by outcome (target `failed`), node-hours lost, and the users with the most failed jobs."""
    ended = frame.filter(pl.col("outcome").is_not_null())
    failed = pl.col("outcome").is_in([str(outcome) for outcome in TARGETS[Target.FAILED]])
    hours = (pl.col("elapsed").fill_null(0) * pl.col("alloc_nodes").fill_null(1)) / 3600
    order = {str(outcome): place for place, outcome in enumerate(Outcome)}
    outcomes = dict(sorted(ended["outcome"].value_counts().iter_rows(), key=lambda pair: order[pair[0]]))
    users = (
        ended.group_by("user")
        .agg(
            jobs=pl.len(),
            failed=failed.sum(),
            mostly=pl.col("outcome").filter(failed).mode().sort().first().fill_null(""),
        )
        .filter(pl.col("failed") > 0)
        .sort("failed", "user", descending=[True, False])
        .head(most_users)
    )
    return Report(
        jobs=frame.height,
        ended=ended.height,
        outcomes=outcomes,
        node_hours=float(ended.select(hours.sum()).item() or 0),
        lost_node_hours=float(ended.filter(failed).select(hours.sum()).item() or 0),
        users=users.to_dicts(),
    )
