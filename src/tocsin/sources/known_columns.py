"""Names of columns in common use, by the field of a job that they hold."""

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType

__all__ = ["FIELD_ORDER", "candidates", "have_one_rank", "name_and_unit"]

_NAMES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "cluster": ("cluster", "clustername", "machinename"),
        "job_id": ("jobid", "idjob", "jobnumber", "jobidentifier", "cobaltjobid", "slurmjobid"),
        "submit": (
            *("submit", "submittime", "submitted", "submittedtime", "submittedat", "submittimestamp", "submitepoch"),
            *("submitdate", "submissiontime", "submissiondate", "submissiontimestamp", "timesubmit", "tsubmit"),
            *("queuedtimestamp", "queuedtime"),
        ),
        "eligible": ("eligible", "eligibletime", "timeeligible"),
        "start": (
            *("start", "starttime", "started", "startedat", "starttimestamp", "startepoch", "startdate"),
            *("startingtime", "timestart", "jobstart", "trun"),
        ),
        "end": (
            *("end", "endtime", "ended", "endedat", "endtimestamp", "endepoch", "enddate", "timeend", "jobend"),
            *("finish", "finishtime", "finished", "finishedat", "finishtimestamp", "completiontime", "stoptime"),
        ),
        "user": ("user", "username", "userid", "userhash", "iduser", "uid", "owner", "usernamegenid"),
        "group": ("group", "groupname", "groupid", "gid"),
        "account": ("account", "accountname", "project", "projectname", "projectid", "projectnamegenid"),
        "partition": ("partition", "partitionname", "queuename", "virtualcluster", "vc", "queue"),
        "qos": ("qos",),
        "name": ("jobname", "name"),
        "req_nodes": (
            *("nodesreq", "reqnodes", "nodesrequested", "numnodesreq", "nodenum", "numnodes", "nnodes", "nodecount"),
            *("nodes", "numhosts"),
        ),
        "req_cpus": (
            *("reqcpus", "cpusreq", "cpusrequested", "numcpusreq", "coresrequested", "reqcores", "numcoresreq"),
            *("processorsreq", "cpunum", "numcpus", "ncpus", "cpus", "cpucount", "numcores", "ncores", "cores"),
            *("corecount", "processors", "requestednumberofresources"),
        ),
        "req_gpus": (
            *("reqgpus", "gpusreq", "gpusrequested", "numgpusreq", "gpunum", "numgpus", "ngpus", "gpus", "gpucount"),
            *("numgpu",),
        ),
        "req_tasks": ("tasksrequested", "ntasks", "numtasks"),
        "alloc_nodes": ("allocnodes", "nodesalloc", "nodesused", "numnodesalloc", "nodesallocated"),
        "alloc_cpus": ("alloccpus", "cpusalloc", "coresused", "numcoresalloc", "coresallocated"),
        "alloc_gpus": ("allocgpus", "gpusalloc", "numgpusalloc", "gpusallocated"),
        "node_list": ("nodelist", "hostlist"),
        "time_limit": (
            *("timelimit", "timelimitraw", "walllimit", "walltimelimit", "wallclocklimit", "wallclockreq"),
            *("walltimereq", "reqwalltime", "reqtime", "requestedtime", "requestedwalltime", "timereq", "walltime"),
        ),
        "state": ("state", "status", "jobstate", "jobstatus", "finalstate", "endstate", "exitstate"),
        "exit_code": ("exitcode", "exitstatus", "returncode"),
    }
)  # fmt: skip
"""Names of columns for each field, in lower case without other characters, the best first."""
_LAST_RESORT = {"job_id": ("id", "job")}
_UNITS: Mapping[str, str] = MappingProxyType(
    dict.fromkeys(("s", "sec", "secs", "second", "seconds"), "seconds")
    | dict.fromkeys(("m", "min", "mins", "minute", "minutes"), "minutes")
    | dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), "hours")
    | dict.fromkeys(("ms", "msec", "milliseconds"), "milliseconds")
)
"""Units that may end the name of a column."""
FIELD_ORDER = tuple(_NAMES)


def candidates(columns: Sequence[str]) -> dict[str, list[str]]:
    """The columns that could be each field, the best first."""
    keys: dict[str, list[str]] = {}
    for column in columns:
        for key in dict.fromkeys((_plain(column), name_and_unit(column)[0])):
            keys.setdefault(key, []).append(column)
    found: dict[str, list[str]] = {}
    for name, names in _NAMES.items():
        there = [column for key in names for column in keys.get(key, [])]
        there = there or [column for key in _LAST_RESORT.get(name, ()) for column in keys.get(key, [])]
        if there:
            found[name] = list(dict.fromkeys(there))
    return found


def have_one_rank(name: str, columns: list[str]) -> bool:
    return (
        sum(name_and_unit(column)[0] in _NAMES[name] or _plain(column) in _NAMES[name] for column in columns)
        > 1
    )


def _plain(column: str) -> str:
    return re.sub(r"[^a-z0-9]", "", column.lower())


def name_and_unit(column: str) -> tuple[str, str | None]:
    """The name without a unit at its end, and that unit: `wallclock_req_sec`, `Wall time (h)`."""
    words = re.findall(r"[a-z0-9]+", re.sub(r"(?<=[a-z0-9])(?=[A-Z][a-z])", " ", column).lower())
    unit = _UNITS.get(words[-1]) if len(words) > 1 else None
    return "".join(words[:-1] if unit else words), unit
