"""How long a job really waits after its earliest start: slurmctld checks only at intervals."""

import re
from collections.abc import Mapping
from typing import NamedTuple

__all__ = ["StartDelay", "start_delay"]

# Defaults of slurm.conf(5): the main loop, and the backfill scheduler.
_SCHED_INTERVAL = 60
_BF_INTERVAL = 30


class StartDelay(NamedTuple):
    seconds: int
    """The maximum, for a job that could start."""
    setting: str
    """The setting that determines it."""


def start_delay(config: Mapping[str, str]) -> StartDelay:
    """From the settings of slurm.conf, as `scontrol show config` prints them.

    >>> start_delay({"SchedulerType": "sched/backfill", "SchedulerParameters": "bf_interval=10"})
    StartDelay(seconds=10, setting='bf_interval')
    """
    given = dict(re.findall(r"(\w+)=(-?\d+)", config.get("SchedulerParameters", "")))
    main = int(given.get("sched_interval", _SCHED_INTERVAL))
    loops = [StartDelay(main, "sched_interval")] if main > 0 else []
    backfill = int(given.get("bf_interval", _BF_INTERVAL))
    if "backfill" in config.get("SchedulerType", "sched/backfill") and backfill > 0:
        loops.append(StartDelay(backfill, "bf_interval"))
    return min(loops, default=StartDelay(_SCHED_INTERVAL, "sched_interval"))
