"""`doctor`: check settings, home, store, libraries and Slurm, and say how to fix what is missing."""

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING

from tocsin.app.app import App
from tocsin.app.clusters import rest_client
from tocsin.core.errors import TocsinError
from tocsin.core.settings import ClusterSettings

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Finding", "Status", "doctor"]


class Status(StrEnum):
    FINE = "fine"
    NOTE = "note"  # works, but less than it could
    ABSENT = "absent"  # not installed, and no setting needs it
    BROKEN = "broken"


LEAST_FREE = 1 << 30
LEAST_JOB_AGE = 60  # an ended job that leaves slurmctld sooner may be missed between two rounds


@dataclass(frozen=True, slots=True)
class Finding:
    link: str
    status: Status
    text: str
    fix: str = ""
    """The next step."""


def doctor(app: App) -> Iterator[Finding]:
    """All findings, from settings to Slurm; a broken link does not hide the next."""
    try:
        _, lines = app.resolved
    except TocsinError as error:
        yield Finding("settings", Status.BROKEN, str(error), "correct the file or variable named here")
        return
    yield Finding(
        "settings",
        Status.FINE,
        f"{sum(line.origin != 'default' for line in lines)} set, the rest at defaults",
    )
    for check in (_home, _store, _libraries):
        yield from _guarded(check.__name__.strip("_"), check, app)
    yield from _guarded("slurm", _slurm, app)
    for name, cluster in app.settings.cluster.items():
        if cluster.rest_url:
            yield from _guarded(f"rest {name}", partial(_rest, name, cluster), app)


def _guarded(link: str, check: Callable[[App], Iterator[Finding]], app: App) -> Iterator[Finding]:
    try:
        yield from check(app)
    except TocsinError as error:
        yield Finding(link, Status.BROKEN, str(error))
    except OSError as error:
        yield Finding(link, Status.BROKEN, f"{error.strerror}: {error.filename}")


def _home(app: App) -> Iterator[Finding]:
    folder = app.home.prepare().root
    free = shutil.disk_usage(folder).free
    text = f"{folder} with {free / 2**30:.0f} GiB free"
    if free < LEAST_FREE:
        yield Finding("home", Status.NOTE, text, "make room, or move it with TOCSIN_HOME")
    else:
        yield Finding("home", Status.FINE, text)


def _store(app: App) -> Iterator[Finding]:
    from tocsin.store.jobs import number_of_jobs

    yield Finding("store", Status.FINE, f"{app.store.place}, {number_of_jobs(app.store):,} jobs")


def _libraries(_: App) -> Iterator[Finding]:
    from ctypes.util import find_library

    if find_library("gomp"):
        yield Finding("libgomp", Status.FINE, "found; LightGBM can train")
    else:
        yield Finding("libgomp", Status.BROKEN, "not found; LightGBM cannot load", "apt-get install libgomp1")
    yield Finding("sqlite", Status.FINE, sqlite3.sqlite_version)


def _slurm(app: App) -> Iterator[Finding]:
    from tocsin.sources.commands import run

    missing = [name for name in ("sacct", "squeue", "scontrol") if not shutil.which(name)]
    if missing:
        wanted = any(not cluster.rest_url for cluster in app.settings.cluster.values())
        yield Finding(
            "slurm commands",
            Status.BROKEN if wanted else Status.ABSENT,
            f"{', '.join(missing)} not found; logs can still be imported from files",
            "apt-get install slurm-client, and the cluster's slurm.conf, to read it live",
        )
        return
    try:
        version = run(["scontrol", "--version"], timeout=10).decode().strip()
        text = run(["scontrol", "show", "config"], timeout=10).decode(errors="replace")
    except TocsinError as error:
        asked = bool(app.settings.cluster)
        yield Finding(
            "slurmctld",
            Status.BROKEN if asked else Status.ABSENT,
            str(error),
            "run `scontrol ping` on this host; it needs the cluster's slurm.conf and munge key",
        )
        return
    yield Finding("slurm commands", Status.FINE, version)
    from tocsin.sources.slurm_machine import read_config

    yield from _controller(read_config(text))
    run(["sacct", "-n", "-X", "-P", "-S", "now-1hour", "-o", "JobID"], timeout=30)
    yield Finding("accounting", Status.FINE, "sacct answers")


def _controller(config: "Mapping[str, str]") -> Iterator[Finding]:
    """The settings of slurm.conf that tocsin depends on."""
    yield Finding("slurmctld", Status.FINE, f"cluster {config.get('ClusterName', 'unnamed')} answers")
    if "slurmdbd" not in config.get("AccountingStorageType", ""):
        yield Finding(
            "accounting",
            Status.BROKEN,
            "there is no slurmdbd: outcomes of jobs are lost",
            "set AccountingStorageType in slurm.conf",
        )
    flags = config.get("AccountingStoreFlags", "").lower()
    if "job_script" in flags:
        yield Finding("script storage", Status.FINE, "scripts are stored with the job")
    else:
        yield Finding(
            "script storage",
            Status.NOTE,
            "scripts are lost when a job ends",
            "AccountingStoreFlags=job_script in slurm.conf (not job_env: it stores every secret of the environment)",
        )
    if "job_env" in flags:
        yield Finding(
            "script storage",
            Status.NOTE,
            "AccountingStoreFlags has job_env: the whole environment of every job is stored, secrets included",
            "remove job_env from AccountingStoreFlags unless the site needs it",
        )
    age = config.get("MinJobAge", "").split(" ")[0]
    if age.isdecimal() and int(age) < LEAST_JOB_AGE:
        yield Finding(
            "scheduler",
            Status.NOTE,
            f"MinJobAge is {age} s: short jobs may end unseen between two rounds",
            f"MinJobAge={LEAST_JOB_AGE} or more in slurm.conf",
        )
    else:
        yield Finding(
            "scheduler",
            Status.FINE,
            f"MinJobAge {age or 'unknown'} s, {config.get('SchedulerParameters', '')}",
        )


def _rest(name: str, cluster: ClusterSettings, _: App) -> Iterator[Finding]:
    with rest_client(cluster) as rest:
        rest.partitions()  # the cheapest thing that a wrong token is refused for
        version = rest.served("slurm").version
    yield Finding(f"rest {name}", Status.FINE, f"{cluster.rest_url} serves {version} and accepts our token")
