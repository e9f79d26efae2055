"""Files with names of nodes, which sbatch reads when a job is submitted: `--nodelist=./hosts`, `--exclude`, `--nodefile`."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tocsin.limits.breach import Breach
from tocsin.limits.submitter_checks import is_own_user
from tocsin.scripts.options import Directive
from tocsin.scripts.scheduler import Scheduler
from tocsin.scripts.submission import Submission

__all__ = ["empty_node_files", "with_node_files"]

_LARGEST = 1 << 20
_NAMES = re.compile(r"[A-Za-z][\w.,\[\]-]*", re.ASCII)


def with_node_files(
    request: Mapping[str, Any], submission: Submission | None
) -> tuple[Mapping[str, Any], Submission | None]:
    """The same job with the names in place of the files. A file that is not a plain list stays as it is."""
    if submission is None or not _is_readable_here(request, submission):
        return request, submission
    values, directives = dict(request), list(submission.script.directives)
    for at, given in enumerate(directives):
        if submission.last(given.option) is not given or not (names := _names(given, request["work_dir"])):
            continue
        if given.option == "--nodefile":
            if submission.last("--nodelist"):  # seldom, and not compared with sbatch
                continue
            directives.append(given._replace(option="--nodelist", field="req_node_list", value=names))
        else:
            directives[at] = given._replace(value=names)
        values["exclude_nodes" if given.option == "--exclude" else "req_node_list"] = names
    return values, replace(submission, script=replace(submission.script, directives=tuple(directives)))


def empty_node_files(submission: Submission, row: int, request: Mapping[str, Any]) -> Iterator[Breach]:
    """sbatch refuses a file that names no node."""
    if not _is_readable_here(request, submission):
        return
    for option in ("--nodelist", "--exclude", "--nodefile"):
        given = submission.last(option)
        if given and _names(given, request["work_dir"]) == "":
            yield Breach(
                row=row,
                kind="empty_node_file",
                text=f"has {option}={(given.value or '')[:200]}, a file that names no node",
                remedy="write the names of nodes into it, one per line",
            )


def _is_readable_here(request: Mapping[str, Any], submission: Submission) -> bool:
    """Before submission, by the process of the submitter: no other may see the same file."""
    return bool(
        not request["job_id"]
        and request["work_dir"]
        and submission.script.scheduler is Scheduler.SLURM
        and is_own_user(request["user"])
    )


def _names(given: Directive, folder: str) -> str | None:
    """The names in the file, separated by commas; None if there is no file, or if it is not a plain list."""
    is_file = given.option == "--nodefile" or (
        given.option in ("--nodelist", "--exclude") and "/" in (given.value or "")
    )
    if not is_file or not given.value:
        return None
    path = Path(folder, given.value)
    try:
        if not path.is_file() or path.stat().st_size > _LARGEST:
            return None
        lines = [line.partition("#")[0].rstrip("\r") for line in path.read_text("utf-8").split("\n")]
    except (OSError, ValueError):
        return None
    names = [line for line in lines if line]
    return ",".join(names) if all(_NAMES.fullmatch(line) for line in names) else None
