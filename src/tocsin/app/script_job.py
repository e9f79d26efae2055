"""Turns a script into a job before its submission, so that detectors can assess it."""

import grp
import hashlib
import pwd
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from tocsin.core.fields import Job
from tocsin.core.machine import Machine, Partition
from tocsin.scripts.script import Script
from tocsin.scripts.text import encode

__all__ = ["READS", "job_from_script", "usual_values", "with_defaults", "with_group"]

UNNUMBERED = 0
"""The id of a job that has none yet."""
_USER_FIELDS = ("uid", "gid", "group", "account", "qos", "partition")
"""Values that depend on the user; the partition only if the cluster's default is unknown."""
READS = ("user", "submit", *_USER_FIELDS)
"""The fields of earlier jobs that are used."""
_LATEST = 20


def job_from_script(
    script: Script,
    *,
    cluster: str,
    user: str,
    at: int,
    path: str | None = None,
    options: Sequence[str] = (),
    known: Mapping[str, Any] | None = None,
) -> Job:
    """The job that submitting this script now would make; `known` adds values that the script does not set.

    `script` was already parsed with the `options` of the submission.
    """
    request = {
        name: value for name, value in {**(known or {}), **script.request}.items() if value is not None
    }
    return Job(
        cluster=cluster,
        job_id=UNNUMBERED,
        task=None,
        submit=at,
        **{
            "user": user,
            "command": path,
            "submit_line": shlex.join(options) or None,
            "script": hashlib.sha256(encode(script.text)).hexdigest(),
            **request,
        },
    )


def with_defaults(job: Job, machine: Machine | None, usual: Mapping[str, Any]) -> Job:
    """The job with the defaults that Slurm would fill in.

    Without them it would share no history with the user's earlier jobs, whose records have a partition and a number of
    CPUs. The `usual` values of the user are filled in, too.
    """
    filled = dict(usual)
    if machine and machine.default_account:  # Slurm charges it, whatever earlier jobs named
        filled["account"] = machine.default_account
    nodes = job.req_nodes or 1
    cpus = job.req_cpus or (job.req_tasks or nodes) * (job.cpus_per_task or 1)
    filled |= {"req_nodes": nodes, "req_cpus": cpus, "req_gpus": None if job.req_gres else 0}
    if partition := _partition(machine, job.partition):
        per_node, per_cpu = partition.default_memory_per_node, partition.default_memory_per_cpu
        filled |= {
            "partition": partition.name,
            "time_limit": partition.default_time or partition.max_time,
            "req_memory": per_node or (per_cpu and per_cpu * -(-cpus // nodes)),
        }
    return replace(job, **{name: value for name, value in filled.items() if getattr(job, name) is None})


def with_group(job: Job) -> Job:
    """The job with its user's primary group on this host, unless it has a group.

    Slurm records that group, so an allow-list entry must name it.
    """
    if job.group is not None:
        return job
    try:
        gid = pwd.getpwnam(job.user or "").pw_gid if job.gid is None else job.gid
        group = grp.getgrgid(gid).gr_name
    except KeyError:  # a user of another host
        return job
    return replace(job, gid=gid, group=group)


def usual_values(earlier: pl.DataFrame, user: str | None) -> dict[str, Any]:
    """The values that the user's latest jobs have in common."""
    latest = earlier.filter(pl.col("user") == user).top_k(_LATEST, by="submit")
    agreed = {name: latest[name].drop_nulls().unique() for name in _USER_FIELDS}
    return {name: values[0] for name, values in agreed.items() if values.len() == 1}


def _partition(machine: Machine | None, name: str | None) -> Partition | None:
    """The named partition, else the cluster's default."""
    known = machine.partitions if machine else ()
    return next((p for p in known if (p.default if name is None else p.name == name)), None)
