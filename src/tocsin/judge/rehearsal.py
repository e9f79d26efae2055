"""A script that is not submitted yet as a job, so that it can be judged like one."""

import hashlib
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from tocsin.core.fields import Job
from tocsin.core.frames import from_jobs
from tocsin.scripts.script import Script
from tocsin.scripts.text import encode

__all__ = ["job_of"]

UNNUMBERED = 0
"""The id of a job that has none yet."""


def job_of(
    script: Script,
    *,
    cluster: str,
    user: str,
    at: int,
    path: str | None = None,
    options: Sequence[str] = (),
    known: Mapping[str, Any] | None = None,
) -> pl.DataFrame:
    """The job that submitting this script now would make; `known` adds what the script does not say.

    `options` are those of the submission, which the script was already read with.
    """
    request = {
        name: value for name, value in {**(known or {}), **script.request}.items() if value is not None
    }
    job = Job(
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
    return from_jobs([job])
