"""Prunes old jobs, and backs up the store."""

import errno
import fcntl
import os
import shutil
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import sqlalchemy as sa

from tocsin.core.errors import StoreError
from tocsin.core.ids import parse_key
from tocsin.core.verdict import CaseStatus
from tocsin.store.database import Store
from tocsin.store.home import Home, open_private
from tocsin.store.jobs import superseded
from tocsin.store.scriptfiles import saved_scripts
from tocsin.store.tables import (
    NO_TASK,
    actions,
    cases,
    causes,
    challenger_scores,
    habit_hints,
    jobs,
    key_text,
    screenings,
    verdicts,
)
from tocsin.store.windows import WindowStore

__all__ = ["Pruned", "backup", "prune"]

_PARTIAL = ".tocsin-backup-"
_YOUNG = 86_400  # seconds: a script is stored before its job, so a young file without a job may yet get one


@dataclass(frozen=True, slots=True)
class Pruned:
    jobs: int
    verdicts: int
    scripts: int
    trace_days: int
    """Number of (node, day) pairs."""


def prune(
    store: Store, home: Home, *, before: int, traces_before: int | None = None, dry_run: bool = False
) -> Pruned:
    """Delete the jobs that ended before an instant, their verdicts, and the scripts that no job uses any more.

    Everything that belongs to an open case is kept: it is evidence that somebody has yet to look at.

    Traces of days before `traces_before` (default: `before`) are deleted, too.

    Queued messages in the outbox are kept. A SQLite file does not shrink; its free space is reused. On a full disk, it could
    not even delete rows, so traces go first.
    """
    old_traces = before if traces_before is None else traces_before
    trace_days = WindowStore(home.windows).prune(before=old_traces, dry_run=dry_run)
    with store.reading() if dry_run else store.writing() as connection:
        evidence, scripts = _evidence(connection)
        # In the text of the statement: SQLite limits the number of parameters.
        others = jobs.c.job_id.not_in(
            sa.bindparam("evidence", sorted(evidence), sa.BigInteger, expanding=True, literal_execute=True)
        )
        old = sa.and_(_old(before), others)
        gone = sa.select(key_text()).where(old)
        job_count = _count(connection, jobs, old)
        verdict_count = _count(connection, verdicts, verdicts.c.job.in_(gone))
        used = set(connection.execute(sa.select(jobs.c.script).where(sa.not_(old)).distinct()).scalars())
        used |= scripts
        if not dry_run:
            for table in (verdicts, screenings, habit_hints, actions, causes, challenger_scores):
                connection.execute(sa.delete(table).where(table.c.job.in_(gone)))
            connection.execute(sa.delete(jobs).where(_array_of_old(before), others))
            connection.execute(sa.delete(jobs).where(_ended(jobs, before), others))
    young = time.time() - _YOUNG
    orphans = [
        path
        for name, path in saved_scripts(home.scripts).items()
        if name not in used and path.stat().st_mtime < young
    ]
    if not dry_run:
        for path in orphans:
            path.unlink(missing_ok=True)
    return Pruned(job_count, verdict_count, len(orphans), trace_days)


def _count(connection: sa.Connection, table: sa.Table, where: sa.ColumnElement[bool]) -> int:
    return connection.execute(sa.select(sa.func.count()).select_from(table).where(where)).scalar_one()


def _evidence(connection: sa.Connection) -> tuple[set[int], set[str]]:
    """The ids of the jobs of open cases, and their scripts. An array is kept with its tasks, so the id is enough."""
    found = connection.execute(
        sa.select(cases.c.id, cases.c.job, cases.c.opened, cases.c.document).where(
            cases.c.status == str(CaseStatus.OPEN)
        )
    ).all()
    number = verdicts.c.document["rogue"]["case"]["number"].as_integer()
    since = min((case.opened for case in found), default=0)
    accused = sa.select(verdicts.c.job).where(verdicts.c.at >= since, number.in_(case.id for case in found))
    keys = [case.job for case in found]
    keys += connection.execute(accused).scalars() if found else []
    return {parse_key(key).job_id for key in keys}, {
        script for case in found if (script := case.document.get("script"))
    }


def _old(before: int) -> sa.ColumnElement[bool]:
    return sa.or_(_ended(jobs, before), _array_of_old(before))


def _ended(table: sa.FromClause, before: int) -> sa.ColumnElement[bool]:
    return sa.and_(table.c.outcome.is_not(None), sa.func.coalesce(table.c.end, table.c.submit) < before)


def _array_of_old(before: int) -> sa.ColumnElement[bool]:
    """An array whose tasks are all here is deleted with the first of them; else it would be listed as pending again."""
    tasks = jobs.alias("old_tasks")
    first = sa.exists().where(
        tasks.c.job_id == jobs.c.job_id,
        tasks.c.cluster == jobs.c.cluster,
        tasks.c.task != NO_TASK,
        tasks.c.submit >= jobs.c.submit,
        _ended(tasks, before),
    )
    return sa.and_(superseded(), first)


def backup(store: Store, home: Home, target: Path) -> Path:
    """Copy the store, scripts, models and confirmed regions into a new folder, consistent while others write.

    With SQLite, that folder is itself a home: `TOCSIN_HOME` may name it. With PostgreSQL, it holds `tocsin.dump`, for
    pg_restore. Trace windows are not included: they are large, and each day is a file of its own already.
    """
    if target.exists():
        raise StoreError(f"{target} already exists; name a new folder for the backup")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with _partial(target.parent) as folder:
            partial = Home(folder)
            if store.embedded:
                _copy_sqlite(store, partial.database)
            else:
                _dump_postgres(store, partial.root / "tocsin.dump")
            for kept in (home.scripts, home.models, home.regions):
                if kept.is_dir():
                    shutil.copytree(kept, partial.root / kept.name, ignore=_unfinished)
            _sync(partial.root)
            partial.root.rename(target)
    except OSError as error:
        raise StoreError(f"cannot back {store.place} up to {target}: {error}{_remedy(error)}") from error
    return target


def _remedy(error: OSError) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "; is there room?"
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return "; name a folder that you may write to"
    return ""


_unfinished = shutil.ignore_patterns(".new-*", ".lock")


@contextmanager
def _partial(beside: Path) -> Iterator[Path]:
    """A new folder, removed at the end unless it was renamed. Those of killed backups are removed first.

    A backup locks its folder; the kernel drops the lock when the process dies.
    """
    for left in beside.glob(f"{_PARTIAL}*"):
        with suppress(OSError), _locked(left):
            shutil.rmtree(left, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=_PARTIAL, dir=beside))
    with ExitStack() as stack:
        with suppress(OSError):  # some network file systems cannot lock folders
            stack.enter_context(_locked(folder))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


def _sync(folder: Path) -> None:
    """Write all of it to disk."""
    for path in (folder, *folder.rglob("*")):
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _copy_sqlite(store: Store, target: Path) -> None:
    os.close(open_private(target, os.O_RDWR))
    with store.reading() as connection, closing(sqlite3.connect(target)) as copy:
        source = connection.connection.driver_connection
        assert isinstance(source, sqlite3.Connection), "an embedded store is SQLite's"
        try:
            source.backup(copy)
            [found] = copy.execute("PRAGMA quick_check(1)").fetchone()
            if found != "ok":
                raise StoreError(f"the store {store.place} is damaged, so there is no backup of it: {found}")
        except sqlite3.Error as error:  # a problem of the target, not of the store
            raise StoreError(
                f"cannot write the backup to {target.parents[1]}: {error}; is there room?"
            ) from error


def _dump_postgres(store: Store, target: Path) -> None:
    program = shutil.which("pg_dump")
    url = store.engine.url.set(drivername="postgresql")
    if program is None:
        raise StoreError(
            f"{store.place} is backed up by pg_dump, which is not on this machine; install postgresql-client, "
            f"or run on the server: pg_dump --format=custom --file={target.name} {url.database}"
        )
    secret = {} if url.password is None else {"PGPASSWORD": str(url.password)}
    done = subprocess.run(
        [
            program,
            "--format=custom",
            f"--file={target}",
            f"--dbname={url._replace(password=None).render_as_string()}",
        ],
        env={**os.environ, **secret},
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode != 0:
        raise StoreError(f"pg_dump could not back {store.place} up: {done.stderr.strip()[:500]}")
