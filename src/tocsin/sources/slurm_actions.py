"""Acts on the jobs of a Slurm cluster (port `Actuator`), by commands or through slurmrestd."""

import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from tocsin.core.errors import ClusterError, NotFound
from tocsin.core.ids import JobKey
from tocsin.core.ports import QueueState
from tocsin.sources.json_values import ABSENT, instant, number, state_of, text
from tocsin.sources.squeue import separators

if TYPE_CHECKING:
    from tocsin.sources.rest import SlurmRest

__all__ = ["SlurmActions", "slurm_id", "with_remark"]

_FIELDS = (
    "ArrayJobID",
    "ArrayTaskID",
    "SubmitTime",
    "State",
    "Reason",
    "PriorityLong",
    "EligibleTime",
    "admin_comment",
)
_OURS = re.compile(r"\s*\[tocsin: [^\]]*\]")
_LONGEST = 500
_BATCH = 20
_FRESH = 1.0
"""Seconds for which a record need not be read again."""


class _Record(NamedTuple):
    """The parts of a queue record of a job, array or task that actions need."""

    job_id: int | None
    task: int | None
    submit: int | None
    state: str | None
    reason: str
    priority: int | None
    begin: int | None
    comment: str

    @property
    def held(self) -> str:
        if self.priority != 0:
            return ""
        return "user" if self.reason == "JobHeldUser" else "admin"


class SlurmActions(ABC):
    """Acts on the jobs of the cluster `name`. Each change is read back: Slurm may report failure for an array
    with ended tasks although it worked, and success although it did nothing.
    """

    name: str
    rest: "SlurmRest | None"
    _seen: dict[JobKey, tuple[float, list[_Record]]]
    """Recently read records, and when they were read."""

    @abstractmethod
    def _run(self, argv: list[str], **more: dict[str, str]) -> bytes:
        """The output of one of Slurm's commands."""

    @property
    def batch_size(self) -> int:
        """slurmrestd cannot query several jobs at once, but it answers each in some milliseconds."""
        return 1 if self.rest else _BATCH

    def look_up(self, keys: Sequence[JobKey]) -> None:
        self._seen.clear()
        if not self.rest:
            records = self._by_squeue(",".join(sorted({slurm_id(key) for key in keys})))
            for key in keys:
                if found := _of(key, records):
                    self._remember(key, found)

    def queue_state(self, key: JobKey) -> QueueState:
        records = self._recent_records(key) or self._records(key)
        self._remember(key, records)
        waiting = [record for record in records if record.state == "PENDING"]
        if not waiting:
            return QueueState(pending=False)
        held = {record.held for record in waiting}
        begins = [record.begin for record in waiting if record.begin is not None]
        # Of an array with tasks in several states, the one closest to its start counts.
        return QueueState(
            pending=True, held=min(held, key=("", "user", "admin").index), begin=min(begins, default=None)
        )

    def hold(self, key: JobKey, reason: str) -> None:
        def carry_out(job: str) -> None:
            if not self._by_rest(job, hold=True):
                self._run(["scontrol", "hold", job])

        self._change(key, "hold", carry_out, lambda record: record.held == "admin")
        with suppress(ClusterError):  # on 22.05 only administrators may set it; the hold works without
            self.comment(key, reason)

    def release(self, key: JobKey, *, to_owner: bool = False) -> None:
        """slurmrestd cannot leave a job held for its owner, so that needs scontrol."""

        def carry_out(job: str) -> None:
            if to_owner:
                self._run(["scontrol", "uhold", job])
            elif not self._by_rest(job, hold=False):
                self._run(["scontrol", "release", job])

        wanted = "user" if to_owner else ""
        self._change(key, "release", carry_out, lambda record: record.held == wanted)

    def delay(self, key: JobKey, begin: int) -> None:
        def carry_out(job: str) -> None:
            if not self._by_rest(job, begin=begin):
                self._run(["scontrol", "update", f"JobId={job}", f"StartTime=uts{begin}"])

        # Slurm may turn an instant that has passed into now.
        self._change(key, "delay", carry_out, lambda record: (record.begin or 0) >= begin)

    def delay_all(self, keys: Sequence[JobKey], begin: int) -> set[JobKey]:
        if self.rest:
            return {key for key in keys if not self._is_delayed_by_rest(key, begin)}
        with suppress(ClusterError, NotFound):
            with suppress(
                ClusterError
            ):  # of several jobs it reports one that failed; their records show which
                jobs = ",".join(slurm_id(key) for key in keys)
                self._run(["scontrol", "update", f"JobId={jobs}", f"StartTime=uts{begin}"])
            self.look_up(keys)
        return {key for key in keys if not _starts_from(begin, self._recent_records(key))}

    def _is_delayed_by_rest(self, key: JobKey, begin: int) -> bool:
        with suppress(ClusterError, NotFound):
            self.delay(key, begin)
            return True
        return False

    def cancel(self, key: JobKey) -> None:
        self._records(key)  # by now, the id may belong to another job
        job = slurm_id(key)
        if self.rest:
            self.rest.cancel(job)
        else:
            self._run(["scancel", job])

    def comment(self, key: JobKey, text: str) -> None:
        for record in self._known(key)[:1]:  # tasks of an array share it
            remark = with_remark(record.comment, text)
            if remark != record.comment and not self._by_rest(slurm_id(key), comment=remark):
                self._run(["scontrol", "update", f"JobId={slurm_id(key)}", f"AdminComment={remark}"])

    def _change(
        self, key: JobKey, verb: str, carry_out: Callable[[str], None], achieved: Callable[[_Record], bool]
    ) -> None:
        records = self._known(key)
        if not any(record.state == "PENDING" for record in records):
            states = ", ".join(sorted({str(record.state) for record in records}))
            raise ClusterError(f"job {key} is no longer pending; it is {states}")
        failure: ClusterError | None = None
        try:
            carry_out(slurm_id(key))
        except ClusterError as error:
            failure = error
        records = self._records(key)
        self._remember(key, records)
        waiting = [record for record in records if record.state == "PENDING"]
        if not all(map(achieved, waiting)):
            raise failure or ClusterError(
                f"Slurm accepted the request to {verb} job {slurm_id(key)} but did not do it; "
                f"see: scontrol show job {slurm_id(key)}"
            )
        if failure and not waiting:
            raise failure

    def _by_rest(self, job: str, **change: Any) -> bool:
        """Whether slurmrestd changed it. Since 26.05, it changes only whole arrays; scontrol changes one task."""
        if not self.rest:
            return False
        try:
            self.rest.change(job, **change)
        except ClusterError:
            if "_" not in job:
                raise
            return False
        return True

    def _records(self, key: JobKey) -> list[_Record]:
        """The queue's records of this job; for a task, its own or, before it has one, its array's.

        By now, the id may belong to another job, or to the same job after a requeue.
        """
        try:
            found = self._by_document(key) if self.rest else self._by_squeue(slurm_id(key))
        except NotFound:
            raise NotFound(f'no job {key.job_id} in the queue of cluster "{self.name}"') from None
        if same := _of(key, found):
            return same
        raise NotFound(f'job {key} is no longer in the queue of cluster "{self.name}"; was it requeued?')

    def _remember(self, key: JobKey, records: list[_Record]) -> None:
        self._seen[key] = time.monotonic(), records

    def _recent_records(self, key: JobKey) -> list[_Record]:
        """The records read in the last second, if any."""
        at, records = self._seen.get(key, (0.0, []))
        return records if time.monotonic() - at < _FRESH else []

    def _known(self, key: JobKey) -> list[_Record]:
        """For a change: the cached records, once, since the change makes them stale."""
        records = self._recent_records(key)
        self._seen.pop(key, None)
        return records or self._records(key)

    def _by_squeue(self, job: str) -> list[_Record]:
        """The records of a job, or of several separated by commas."""
        between, after = separators()
        form = ",".join(f"{name}:0{between}" for name in _FIELDS[:-1]) + f",{_FIELDS[-1]}:0{after}"
        try:
            output = self._run(
                ["squeue", "-h", "-a", "-t", "all", "-O", form, "-j", job, *(["-r"] if "_" in job else [])]
            )
        except ClusterError as error:
            if "Invalid job id" in str(error):  # squeue's own words
                raise NotFound(str(error)) from None
            raise
        parts = output.decode("utf-8", "replace").split(after)[:-1]
        return [_from_text(part.removeprefix("\n").split(between)) for part in parts]

    def _by_document(self, key: JobKey) -> list[_Record]:
        assert self.rest, "asked for only then"
        return [_from_document(document) for document in self.rest.job_documents(key.job_id)]


def _starts_from(begin: int, records: Sequence[_Record]) -> bool:
    """Whether all pending ones start no earlier, and some are pending."""
    waiting = [record for record in records if record.state == "PENDING"]
    return bool(waiting) and all((record.begin or 0) >= begin for record in waiting)


def _of(key: JobKey, records: Sequence[_Record]) -> list[_Record]:
    """The records of this very job; for a task, its own or, before it has one, its array's."""
    same = [record for record in records if (record.job_id, record.submit) == (key.job_id, key.submit)]
    own = [record for record in same if record.task == key.task] if key.task is not None else same
    return own or [record for record in same if record.task is None]


def slurm_id(key: JobKey) -> str:
    return str(key.job_id) if key.task is None else f"{key.job_id}_{key.task}"


def with_remark(comment: str, remark: str) -> str:
    """The comment with our own part replaced; text by others stays as it is.

    >>> with_remark("see ticket 7 [tocsin: old]", "new")
    'see ticket 7 [tocsin: new]'
    >>> with_remark("see ticket 7 [tocsin: old]", "")
    'see ticket 7'
    """
    others = _OURS.sub("", comment)
    line = " ".join(remark.replace("[", "(").replace("]", ")").split())[:_LONGEST]
    return f"{others} [tocsin: {line}]".lstrip() if line else others


def _from_text(words: Sequence[str]) -> _Record:
    if len(words) != len(_FIELDS):
        raise ClusterError("unexpected output of squeue; is it Slurm 20.11 or newer?")
    column = dict(zip(_FIELDS, ("" if word in ABSENT else word for word in words), strict=True))

    def whole(name: str) -> int | None:
        return int(column[name]) if column[name].isdecimal() else None

    return _Record(
        whole("ArrayJobID"),
        whole("ArrayTaskID"),
        whole("SubmitTime"),
        state_of(column["State"], requeued=False),
        column["Reason"],
        whole("PriorityLong"),
        whole("EligibleTime"),
        column["admin_comment"],
    )


def _from_document(document: Mapping[str, Any]) -> _Record:
    return _Record(
        number(document.get("array_job_id")) or number(document.get("job_id")),
        number(document.get("array_task_id")),
        instant(document.get("submit_time")),
        state_of(document.get("job_state"), requeued=False),
        text(document.get("state_reason")) or "",
        number(document.get("priority")),
        instant(document.get("eligible_time")),
        text(document.get("admin_comment")) or "",
    )
