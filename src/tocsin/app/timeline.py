"""The life of a job as a list of events: its changes of state, and the verdicts on it."""

from typing import Any

from tocsin.app.jobs import JobWithVerdicts
from tocsin.core.units import format_instant

__all__ = ["timeline"]

_CHANGES = {"submit": "submitted", "eligible": "eligible", "start": "started", "end": "ended"}


def timeline(job: JobWithVerdicts) -> dict[str, Any]:
    """All events in order of time."""
    events: list[tuple[int, dict[str, Any]]] = []
    for place, (field, change) in enumerate(_CHANGES.items()):
        if (at := job.row[field]) is not None:
            event: dict[str, Any] = {"kind": "state", "change": change}
            if field == "start":
                event["nodes"] = job.row["node_list"]
            if field == "end":
                event |= {"state": job.row["state"], "outcome": job.row["outcome"]}
            events.append((at * 10 + place, event | {"at": format_instant(at)}))
    for verdict in job.verdicts:
        document = verdict.to_json()
        events.append((verdict.at * 10 + 5, {"kind": "verdict", "at": document["at"], "verdict": document}))
    return {
        "job": str(job.key),
        "user": job.row["user"],
        "events": [event for _, event in sorted(events, key=lambda pair: pair[0])],
    }
