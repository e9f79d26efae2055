"""Rules about where a job is submitted from, and by whom: folders and files of this host, options only for some users."""

import os
import pwd
import re
from collections.abc import Iterator
from pathlib import Path

from tocsin.core.verdict import Level
from tocsin.limits.breach import Breach
from tocsin.limits.script_checks import option_breach
from tocsin.scripts.scheduler import Scheduler
from tocsin.scripts.submission import Submission

__all__ = ["is_own_user", "missing_files", "missing_folders", "not_for_users"]


def missing_folders(submission: Submission, row: int, work_dir: str | None) -> Iterator[Breach]:
    """Folders on this host that sbatch does not check: without them, a job loses its output or runs elsewhere."""
    if submission.script.scheduler is not Scheduler.SLURM or not work_dir:
        return
    if not Path(work_dir).is_dir():
        text = f"starts in {work_dir[:200]}, which is not a folder here; Slurm would start it in /tmp instead"
        yield option_breach(submission, row, "no_work_folder", text, "--chdir", level=Level.WARNING)
        return
    for option in ("--output", "--error"):
        given = submission.value(option)
        folder = Path(work_dir, given).parent
        if given and "%" not in str(folder) and not folder.is_dir():
            text = (
                f"writes to {given[:200]}, but there is no folder {str(folder)[:200]} here; create it first"
            )
            yield option_breach(submission, row, "no_output_folder", text, option, level=Level.WARNING)


def missing_files(
    submission: Submission, row: int, work_dir: str | None, user: str | None
) -> Iterator[Breach]:
    """Files that sbatch reads. Only the submitter's own process sees what sbatch will see."""
    if submission.script.scheduler is not Scheduler.SLURM or not work_dir:
        return
    level = Level.CRITICAL if is_own_user(user) else Level.WARNING
    for option in ("--nodelist", "--exclude", "--nodefile", "--export-file", "--bbf"):
        given = submission.value(option)
        is_path = "/" in given if option in ("--nodelist", "--exclude") else not _is_open(given)
        if given and is_path and not Path(work_dir, given).is_file():
            text = f"needs the file {given[:200]}, which does not exist; sbatch refuses the job without it"
            yield option_breach(submission, row, "no_such_file", text, option, level=level)


def _is_open(given: str) -> bool:
    """sbatch takes a number from 3 on for an open file."""
    try:
        return given.isdigit() and int(given[:9]) > 2 and bool(os.fstat(int(given[:9])))
    except OSError:
        return False


def is_own_user(user: str | None) -> bool:
    """Whether this process belongs to the user."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name == user
    except KeyError:  # a user without an entry
        return False


def not_for_users(
    submission: Submission, row: int, user: str | None, operator: bool | None = None
) -> Iterator[Breach]:
    """Options only for root or for operators."""
    if operator is False and submission.last("--reboot"):
        text = "has --reboot, which only administrators may use; remove it"
        yield option_breach(submission, row, "only_for_operators", text, "--reboot")
    if operator is False and re.match(r"\s*-0*[1-9]", submission.value("--nice")):
        text = "has a negative --nice, which only operators may use; write 0 or more"
        yield option_breach(submission, row, "only_for_operators", text, "--nice")
    for option in ("--uid", "--gid"):
        if submission.last(option) and user not in (None, "root"):
            text = f"has {option}, which only root may use; remove it"
            yield option_breach(submission, row, "only_for_root", text, option)
