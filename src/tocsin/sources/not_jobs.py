"""Recognises files that tocsin cannot read, and says what they are and what to use instead."""

import re

__all__ = ["other_kind"]

_NO_RECORDS = "which has no accounting records"
_USE_PBS_LOG = "give the server's accounting log, server_priv/accounting/YYYYMMDD"
_USE_SACCT = "give the output of sacct --json, or of sacct -P with JobID and Submit among its columns"
_USE_TABLE = "export its jobs as CSV with a header line, and name a mapping with -m"
_KINDS = tuple(
    (re.compile(pattern), what, instead)
    for pattern, what, instead in (
        (rb"(JobId|NodeName|PartitionName)=", f"is the text of scontrol show, {_NO_RECORDS}", _USE_SACCT),
        (rb"\s*JOBID\s+(PARTITION|NAME|USER)\s", f"is the text of squeue, {_NO_RECORDS}", _USE_SACCT),
        (rb"\s*PARTITION\s+AVAIL\s", f"is the text of sinfo, {_NO_RECORDS}", _USE_SACCT),
        (rb"-{60,}|Cluster\|Account\|Login\|", f"is a report of sreport, {_NO_RECORDS}", _USE_SACCT),
        (rb"\*{50,}|sdiag output", f"is the text of sdiag, {_NO_RECORDS}", _USE_SACCT),
        (rb"Job ID: \d+", "is the output of seff, which has no times", _USE_SACCT),
        (rb"\s*JobID\s+State\s+Elapsed\s", "is the output of reportseff, which has no times", _USE_SACCT),
        (rb"(sacct|slurmrestd): (error|fatal):", "is an error message of Slurm, not its jobs", "run the command again"),
        (rb"Job(?: Id)?: \d+", "is the output of tracejob or qstat", _USE_PBS_LOG),
        (rb"\*\*\* |ClusterId = |MyType = |\s*ID\s+OWNER\s+SUBMITTED", "is HTCondor's history, which tocsin does not read", _USE_TABLE),
        (rb"000 \(\d+\.\d+\.\d+\) ", "is HTCondor's log of job events, which tocsin does not read", _USE_TABLE),
        (rb"#\s*JobID\s+SubmitTime\s+WaitTime|\d+(\s+-?[\w.]+){28}\s*$", "is a log in the Grid Workload Format, which tocsin does not read", _USE_TABLE),
        (rb"version https://git-lfs", "is a pointer of Git LFS, not the file itself", "fetch it with git lfs pull"),
        (rb"(?i)\s*<(!doctype html|html)", "is a web page", "download the file itself"),
        (rb"(?i)--.{0,40}\bdump\b|CREATE TABLE|INSERT INTO", "is a dump of a database", "export the table of jobs as CSV"),
        (rb"\[", "is a JSON list, and only the JSON of Slurm's commands is read", _USE_TABLE),
    )
)  # fmt: skip
"""How the first line begins, what such a file is, and what to use instead."""
_BINARY = (
    (b"SQLite format 3\0", "is an SQLite database", "export the table of jobs as CSV"),
    (b"\x89HDF", "is an HDF5 file", "write the table of jobs as Parquet or CSV"),
    (b"ARROW1\0\0", "is an Arrow (Feather) file", "write it as Parquet or CSV"),
    (b"\x80\x02", "looks like a Python pickle, which can run code, so it is not read", "write it as Parquet or CSV"),
    (b"\x80\x03", "looks like a Python pickle, which can run code, so it is not read", "write it as Parquet or CSV"),
    (b"\x80\x04", "looks like a Python pickle, which can run code, so it is not read", "write it as Parquet or CSV"),
    (b"\x80\x05", "looks like a Python pickle, which can run code, so it is not read", "write it as Parquet or CSV"),
)  # fmt: skip
_JSON = (
    (b'"ClusterId"', "HTCondor"),
    (b'"t_submit"', "Flux"),
    (b'"submissionTime"', "OAR"),
    (b'"submitted_time"', "the Philly trace"),
    (b'"apiVersion"', "Kubernetes"),
)


def other_kind(head: bytes, first: bytes) -> str | None:
    """What a file that is no log of jobs is, and the next step; None if that is unknown."""
    for magic, what, instead in _BINARY:
        if head.startswith(magic):
            return f"{what}; {instead}"
    if head.lstrip()[:1] in (b"{", b"["):
        for word, system in _JSON:
            if word in head:
                return f"looks like JSON of {system}, which tocsin does not read; {_USE_TABLE}"
        if first.lstrip().startswith(b"{"):
            return None  # the reader of Slurm's JSON says what it lacks
    for pattern, what, instead in _KINDS:
        if pattern.match(first):
            return f"{what}; {instead}"
    return None
