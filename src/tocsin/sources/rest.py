"""Client of slurmrestd: finds its API versions, reads jobs and nodes, changes and cancels jobs."""

import re
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, Self, TypeVar

import polars as pl

from tocsin.core.errors import ClusterError, TocsinError
from tocsin.core.intake import Rejects
from tocsin.core.machine import Node, Partition
from tocsin.core.settings import without_password
from tocsin.sources.json_replies import error_in, jobs_frame, latest, notes_on_version, warning_texts
from tocsin.sources.json_stream import JsonObject
from tocsin.sources.json_values import member, read_release
from tocsin.sources.records import RECORD
from tocsin.sources.rest_http import RestHttp, json_object
from tocsin.sources.rest_versions import ADAPTERS, NEWEST, V36, adapter_for
from tocsin.sources.sacct_json import JobsReply

__all__ = ["Served", "SlurmRest"]

# Slurm 26.05 writes each slash of a path as "\\/".
_PATH = re.compile(rb'"\\?/(slurm|slurmdb)\\?/(v\d{1,3}\.\d{1,3}\.\d{1,5})\\?/jobs(?:\\?/)?"\s*:')

T = TypeVar("T")


class Served(NamedTuple):
    """An API version that slurmrestd serves, and its adapter."""

    version: str
    adapter: V36


class SlurmRest:
    """A slurmrestd at `http://host:port` or `unix:/path/to/socket`; `notes` collects its warnings.

    `token` is called for each request; `options` are those of `RestHttp`.
    """

    def __init__(self, url: str, *, user: str, token: Callable[[], str], **options: Any) -> None:
        self.url = without_password(url)
        self.notes: list[str] = []
        self.release: tuple[int, int] | None = None  # of Slurm, known after nodes or partitions were read
        self._http = RestHttp(url, user=user, token=token, unserved=self._forget_versions, **options)
        # One dump at a time, since they are large; but slurmctld's queue does not wait for slurmdbd.
        self._one_dump = {"slurm": threading.Lock(), "slurmdb": threading.Lock()}
        self._offers: dict[str, set[str]] = {}
        self._unread = ""

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # --- what it serves --------------------------------------------------------------------------

    def served(self, family: str, *, queue: bool = False) -> Served:
        """The newest version known to both sides; else the oldest of the newer ones, with a note.

        For the queue, the newest that shows which jobs want whole nodes, if there is one.
        """
        offers = self._offers
        if not offers:
            self._offers = offers = self._offered()
            for versions in offers.values():
                self._note(notes_on_version(_choose(versions).version))
        offered = offers.get(family)
        if not offered:
            raise ClusterError(
                f"slurmrestd at {self.url} serves no {family} API; start it with the plug-in openapi/{family}"
            )
        whole = {version for version in offered if adapter_for(version).reports_exclusive} if queue else None
        return _choose(whole or offered)

    def concerns(self) -> list[str]:
        """Why its answers may be misread: an untested version, or unreadable jobs."""
        versions = {_choose(offered).version for offered in self._offers.values()}
        notes = [note for version in sorted(versions) for note in notes_on_version(version)]
        return [f"slurmrestd at {self.url}: {note}" for note in (*notes, self._unread) if note]

    def _forget_versions(self) -> None:
        """An upgrade of Slurm may retire the version in use: the next question asks what is served."""
        self._offers = {}

    def _offered(self) -> dict[str, set[str]]:
        status, body = self._http.request("GET", "/openapi/v3")
        if status >= 500:  # 511 is the refusal of a token
            raise self._http.refusal("/openapi/v3", status, body)
        offered: dict[str, set[str]] = {}
        for family, version in _PATH.findall(body) if status == 200 else ():
            offered.setdefault(family.decode(), set()).add(version.decode())
        if offered:
            return offered
        for version in reversed(list(ADAPTERS)):  # no specification: try each version
            for family in ("slurm", "slurmdb"):
                status, _ = self._http.request("GET", f"/{family}/{version}/diag{ADAPTERS[version].slash}")
                if status not in (404, 405):
                    offered.setdefault(family, set()).add(version)
            if offered:
                return offered
        raise ClusterError(
            f"{self.url} is not slurmrestd: it serves neither /openapi/v3 nor a known API version"
        )

    # --- jobs and machine ------------------------------------------------------------------------

    def queue(self, *, cluster: str | None = None) -> pl.DataFrame:
        """The jobs in slurmctld."""
        version, adapter = self.served("slurm", queue=True)
        path = f"/slurm/{version}/jobs{adapter.slash}"
        rejects = Rejects()
        jobs = self._jobs(path, {}, adapter.queue_job, rejects, cluster=cluster, final=False)
        self._unread = ""
        if rejects.total:
            self._unread = f"{rejects.total} jobs of the queue could not be read: {', '.join(rejects.counts)}"
            self._note([self._unread])
        return latest(jobs).drop(RECORD)

    def accounting(
        self, since: int, until: int, *, rejects: Rejects, first: int = 1, cluster: str | None = None
    ) -> pl.DataFrame:
        """The jobs of slurmdbd that were alive in [since, until), numbered from `first`."""
        version, adapter = self.served("slurmdb")
        path, query = f"/slurmdb/{version}/jobs{adapter.slash}", adapter.window(since, until)
        if cluster:
            query["cluster"] = cluster
        read = adapter.accounting_job
        return self._jobs(path, query, read, rejects, first=first, cluster=cluster, final=True)

    def nodes(self) -> tuple[Node, ...]:
        adapter = self.served("slurm").adapter
        return self._records("nodes", adapter.node)

    def partitions(self) -> tuple[Partition, ...]:
        adapter = self.served("slurm").adapter
        return self._records("partitions", adapter.partition)

    def job_documents(self, job_id: int) -> list[dict[str, Any]]:
        """The raw records in slurmctld with this id, including an array's tasks."""
        version, _ = self.served("slurm", queue=True)
        reply = json_object(self._http.request_ok("GET", f"/slurm/{version}/job/{job_id}"))
        if failure := error_in(reply.get("errors")):
            raise failure
        jobs = reply.get("jobs")
        return [job for job in jobs if isinstance(job, dict)] if isinstance(jobs, list) else []

    def change(
        self, job: str, *, hold: bool | None = None, begin: int | None = None, comment: str | None = None
    ) -> None:
        """Change a job, an array, or a task (`17_4`) of it: hold or release it, set its earliest start or our comment."""
        version, adapter = self.served("slurm")
        if not adapter.can_update:
            raise ClusterError(
                f"{version} of slurmrestd renames a job when it updates it; use scontrol or a newer slurmrestd"
            )
        if comment is not None and not adapter.accepts_comment:
            raise ClusterError(f"{version} of slurmrestd cannot set an administrator's comment")
        wanted = {
            "hold": hold,
            "begin_time": None if begin is None else adapter.begin_time(begin),
            "admin_comment": comment,
        }
        body = {name: value for name, value in wanted.items() if value is not None}
        reply = json_object(self._http.request_ok("POST", f"/slurm/{version}/job/{job}", body=body))
        self._note(warning_texts(reply.get("warnings")))
        errors = reply.get("errors")
        # 22.05 reports a successful update of an array as failed, without an error number.
        if not (
            isinstance(errors, list) and errors and all(_is_array_update_notice(error) for error in errors)
        ) and (failure := error_in(errors)):
            done = "changed" if hold is None else "held" if hold else "released"
            raise ClusterError(f"job {job} could not be {done}: {failure}")

    def cancel(self, job: str) -> None:
        """Cancel a job, an array, or a task of it."""
        version, _ = self.served("slurm")
        reply = json_object(self._http.request_ok("DELETE", f"/slurm/{version}/job/{job}"))
        self._note(warning_texts(reply.get("warnings")))
        if failure := error_in(reply.get("errors")):
            raise ClusterError(f"job {job} could not be cancelled: {failure}")

    def _jobs(
        self,
        path: str,
        query: Mapping[str, str],
        read: Callable[[Mapping[str, Any]], dict[str, Any]],
        rejects: Rejects,
        *,
        first: int = 1,
        cluster: str | None,
        final: bool,
    ) -> pl.DataFrame:
        def parse(chunks: Iterator[bytes]) -> tuple[JobsReply, list[pl.DataFrame], Rejects]:
            reply, bad, number = JobsReply(chunks), Rejects(), first
            frames = [jobs_frame([], read, first=first, rejects=bad, source="rest", final=final)]
            for block in reply.blocks():
                frames.append(
                    jobs_frame(
                        block, read, first=number, rejects=bad, source="rest", cluster=cluster, final=final
                    )
                )
                number += len(block)
            return reply, frames, bad

        with self._one_dump[path.split("/")[1]]:
            reply, frames, bad = self._http.stream_ok(path, parse, query=query)
        for reason, numbers in bad.lines.items():
            rejects.add(reason, numbers, number=bad.counts[reason])
        if reply.broken:
            raise ClusterError(
                f"the answer of slurmrestd at {self.url} is incomplete: {reply.broken}; try again"
            )
        self._note(warning_texts(reply.warnings))
        if failure := error_in(reply.errors):
            raise self._with_place(failure, path)
        return pl.concat(frames)

    def _records(self, name: str, read: Callable[[dict[str, Any]], T]) -> tuple[T, ...]:
        version, adapter = self.served("slurm")

        def parse(chunks: Iterator[bytes]) -> tuple[list[T], list[Any]]:
            found, errors = [], []
            for key, _, value in JsonObject(chunks).members():
                if key == name and isinstance(value, dict) and isinstance(value.get("name"), str):
                    try:
                        found.append(read(value))
                    except (ValueError, OverflowError):
                        self._note([f"{name}: {value['name'][:60]} has text in a number field; ignored"])
                elif key == "errors" and value:
                    errors.append(value)
                elif key == "warnings" and value:
                    self._note(warning_texts([value]))
                elif key == "meta" and isinstance(value, dict):
                    about = member(value, "slurm") or member(value, "Slurm")
                    self.release = read_release(about.get("release"))
            return found, errors

        path = f"/slurm/{version}/{name}{adapter.slash}"
        found, errors = self._http.stream_ok(path, parse)
        if failure := error_in(errors):
            raise self._with_place(failure, path)
        return tuple(found)

    def _with_place(self, failure: TocsinError, path: str) -> TocsinError:
        daemon, ask = ("slurmdbd", "sacctmgr ping") if "slurmdb/" in path else ("slurmctld", "scontrol ping")
        return type(failure)(
            f"slurmrestd at {self.url} cannot answer {path}: {failure}; is {daemon} up ({ask})?"
        )

    def _note(self, warning_texts: list[str]) -> None:
        self.notes.extend(note for note in warning_texts if note not in self.notes)


def _choose(offered: set[str]) -> Served:
    known = [version for version in ADAPTERS if version in offered]
    newest = _order(NEWEST)
    newer = sorted((version for version in offered if _order(version) > newest), key=_order)
    version = known[-1] if known else newer[0] if newer else max(offered, key=_order)
    return Served(version, adapter_for(version))


def _order(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.removeprefix("v").split("."))


def _is_array_update_notice(error: Any) -> bool:
    text = error.get("description") if isinstance(error, dict) else None
    return isinstance(text, str) and text.startswith("job array update") and not error.get("error_number")
