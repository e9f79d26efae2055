"""Rules about --begin and --deadline: what a job may no longer, or not yet, do in time."""

import re
from collections.abc import Iterator, Sequence
from datetime import UTC

from tocsin.core.errors import InputError
from tocsin.core.units import UNLIMITED, format_duration, parse_instant
from tocsin.limits.breach import Breach
from tocsin.limits.capacity import NO_LIMIT, Capacity
from tocsin.limits.demand import Demand
from tocsin.scripts.submission import Submission

__all__ = [
    "DAY",
    "begin_after_deadline",
    "deadline_before_end",
    "deadline_before_limit",
    "deadline_too_soon",
    "default_time_breaches",
    "moment",
]

DAY = 86400
_AFTER_22_05 = (22, 6)
_UNITS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 7 * DAY}


def begin_after_deadline(submission: Submission) -> str | None:
    begin, deadline = (moment(submission.value(option)) for option in ("--begin", "--deadline"))
    if begin is None or deadline is None or begin[0] != deadline[0] or begin[1] <= deadline[1]:
        return None
    return "may begin only after its deadline; move --begin before --deadline"


def deadline_too_soon(submission: Submission) -> str | None:
    return _ends_too_late(submission, _seconds(submission, "time_min"))


def deadline_before_limit(submission: Submission) -> str | None:
    """Older releases take the job and end it with the state DEADLINE as soon as they look at it."""
    if _seconds(submission, "time_min"):
        return None
    return _ends_too_late(submission, _seconds(submission, "time_limit") or 1)


def deadline_before_end(submission: Submission) -> str | None:
    if _seconds(submission, "time_min"):
        return None
    # The shortest limit is a minute, and it counts from the submission.
    return _ends_too_late(submission, _seconds(submission, "time_limit") or 61)


def default_time_breaches(
    demand: Sequence[Demand], submissions: Sequence[Submission | None], capacity: Capacity
) -> Iterator[Breach]:
    """22.05 ends a job whose deadline is before the default time of its partition; newer releases shorten it."""
    release = capacity.machine.release
    if release is None or release >= _AFTER_22_05:
        return
    for row in demand:
        submission = submissions[row["row"]]
        if submission is None or row["job_id"] or row["default_time"] == NO_LIMIT:
            continue
        if any(map(submission.last, ("--time", "--time-min"))):
            continue
        deadline = moment(submission.value("--deadline"))
        if deadline and deadline[0] and deadline[1] < row["default_time"]:
            limit = f"partition {row['partition']} gives it {format_duration(row['default_time'])}"
            text = f"has a deadline in {deadline[1]} s, but no time limit, and {limit}"
            yield Breach.here(row, "deadline_too_soon", text, "set --time")


def _ends_too_late(submission: Submission, least: int) -> str | None:
    deadline = moment(submission.value("--deadline"))
    if not deadline or not deadline[0] or least == UNLIMITED or deadline[1] >= least:
        return None
    return f"has a deadline in {deadline[1]} s, but needs at least {format_duration(least)}; move --deadline"


def moment(text: str) -> tuple[bool, int] | None:
    """Whether it is relative to the submission, and when; None for other forms (`16:00`, `tomorrow`)."""
    text = text.strip()
    if relative := re.fullmatch(r"now(?:\+(\d{1,9})([a-z]*))?", text.lower(), re.ASCII):
        unit = (relative[2] or "second").rstrip("s")
        return None if unit not in _UNITS else (True, int(relative[1] or 0) * _UNITS[unit])
    if not re.match(r"\d{4}-\d\d-\d\d", text, re.ASCII):
        return None
    try:
        instant = parse_instant(text, UTC)  # both are local time of one cluster
    except InputError:
        return None
    return None if instant is None else (False, instant)


def _seconds(submission: Submission, name: str) -> int:
    value = submission.script.request.get(name)
    return value if type(value) is int else 0
