"""The links to Slurm that `doctor` checks: its commands, slurmctld, accounting, scripts and slurmrestd."""

import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from tocsin.app.app import App
from tocsin.app.clusters import MISREAD, rest_client
from tocsin.app.doctor_finding import Finding, Status
from tocsin.app.heartbeat import read_heartbeats
from tocsin.core.errors import TocsinError
from tocsin.core.intake import Rejects
from tocsin.core.settings import ClusterSettings
from tocsin.store.home import user_name

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["rest_links", "slurm_links"]

LEAST_JOB_AGE = 60  # an ended job that leaves slurmctld sooner may be missed between two rounds
_NO_SLURM_CONF = ("resolve_ctls_from_dns_srv", "configuration source")
"""What Slurm's commands print on a host that has no slurm.conf, and so belongs to no cluster."""
_ACCOUNTING = (
    "start slurmdbd, or its database; `sacctmgr ping` and slurmdbd's log show what is wrong. Until it answers, jobs get "
    "their verdicts, but ended ones without their usage"
)


def slurm_links(conf: str, named: str, app: App) -> Iterator[Finding]:
    """One Slurm, by its slurm.conf; with several, each check is named after its file."""
    for finding in _links(conf, app):
        yield replace(finding, link=finding.link + named)


def _links(conf: str, app: App) -> Iterator[Finding]:
    from tocsin.sources.commands import run, slurm_env

    env = slurm_env(conf)
    missing = [name for name in ("sacct", "squeue", "scontrol") if not shutil.which(name)]
    if missing:
        wanted = any(not (one.rest_url or one.kafka_topic) for one in app.settings.cluster.values())
        yield Finding(
            "slurm commands",
            Status.BROKEN if wanted else Status.ABSENT,
            f"{', '.join(missing)} not found; logs can still be imported from files",
            "apt-get install slurm-client, and the cluster's slurm.conf, to read it live",
        )
        return
    try:
        version = run(["scontrol", "--version"], timeout=10, env=env).decode().strip()
        text = run(["scontrol", "show", "config"], timeout=10, env=env).decode(errors="replace")
    except TocsinError as error:
        followed = any(beat.cluster != "demo" for beat in read_heartbeats(app.home.cache))
        configured = not any(words in str(error) for words in _NO_SLURM_CONF)
        asked = bool(app.settings.cluster) or followed or configured
        yield Finding(
            "slurmctld",
            Status.BROKEN if asked else Status.ABSENT,
            str(error),
            "run `scontrol ping` on this host; it needs the cluster's slurm.conf and munge key",
        )
        return
    yield Finding("slurm commands", Status.FINE, version)
    from tocsin.sources.slurm_cluster import SlurmCluster
    from tocsin.sources.slurm_machine import read_config

    config = read_config(text)
    yield from _controller(config)
    yield from _starts(app, dict(config))
    try:
        run(["sacct", "-n", "-X", "-P", "-S", "now-1hour", "-o", "JobID"], timeout=30, env=env)
    except TocsinError as error:
        answers = False
        yield Finding("accounting", Status.BROKEN, str(error), _ACCOUNTING)
    else:
        answers = True
        yield Finding("accounting", Status.FINE, "sacct answers")
    off = None if app.settings.watch.scripts else "watch.scripts is false"
    if why := off or SlurmCluster("", slurm_conf=conf, timeout=30).scripts_refused(user_name()):
        yield Finding("scripts", Status.NOTE, f"`tocsin watch` does not read them: {why}")
    elif not answers and user_name() != "root":
        text = f"accounting does not say whether user {user_name()} may read them"
        yield Finding("scripts", Status.NOTE, text, _ACCOUNTING)
    else:
        yield Finding("scripts", Status.FINE, f"user {user_name()} may read them")


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
            f"MinJobAge is {age} s: short jobs may end between two queries and be missed",
            f"MinJobAge={LEAST_JOB_AGE} or more in slurm.conf",
        )
    else:
        yield Finding(
            "scheduler",
            Status.FINE,
            f"MinJobAge {age or 'unknown'} s, {config.get('SchedulerParameters', '')}",
        )


def _starts(app: App, config: dict[str, str]) -> Iterator[Finding]:
    """How long a job really waits after the screening window or a lease."""
    from tocsin.app.slurm_hooks import screening_delay

    window, delay = screening_delay(app, config)
    text = f"slurmctld starts a job up to {delay.seconds} s after its earliest start ({delay.setting})"
    if not window:
        yield Finding("start delay", Status.FINE, f"{text}; there is no screening window")
        return
    text += f"; with the screening window of {window} s, jobs start {window} to {window + delay.seconds} s after submission"
    if delay.seconds > window:
        fix = f"lower {delay.setting} in SchedulerParameters, if the load of slurmctld allows it"
        yield Finding("start delay", Status.NOTE, text, fix)
    else:
        yield Finding("start delay", Status.FINE, text)


def rest_links(name: str, cluster: ClusterSettings, _: App) -> Iterator[Finding]:
    now = int(time.time())
    with rest_client(cluster) as rest:
        rest.partitions()  # the cheapest request that a wrong token is refused for
        version = rest.served("slurm").version
        concerns = rest.concerns()
        try:
            rest.accounting(now - 60, now, rejects=Rejects())
        except TocsinError as error:
            yield Finding(f"rest {name} accounting", Status.BROKEN, str(error), _ACCOUNTING)
    for concern in concerns:
        yield Finding(f"rest {name}", Status.NOTE, concern, MISREAD)
    if not concerns:
        yield Finding(f"rest {name}", Status.FINE, f"{rest.url} serves {version} and accepts our token")
