"""Adapters for the versions of Slurm's JSON; each lists its differences from the one before.

`accounting_job` reads a job of `/slurmdb/…/jobs` or of `sacct --json`, `queued` one of `/slurm/…/jobs`, `node` and
`partition` the machine. Each returns values by the names of core's fields. Environments and comments are never read.
"""

import re
from collections.abc import Mapping
from typing import Any

from tocsin.core.machine import DEFAULT_PARTITION, Partition
from tocsin.sources.json_jobs import JobReader
from tocsin.sources.json_machine import MachineReader, MemoryLimits, nested_partition, per_node_and_cpu
from tocsin.sources.json_values import member, number, printed_code, words

__all__ = ["ADAPTERS", "NEWEST", "V36", "adapter_for"]

Record = Mapping[str, Any]


class V36(JobReader, MachineReader):
    """v0.0.36 (Slurm 20.11 to 22.05).

    Numbers are plain, state and exit status are words, TRES of accounting are lists, those of the queue text.
    - accounting: an exit code other than 0 is given as `SUCCESS` 0, so only that of a job which completed or
      was ended by slurmctld is used; signals are right. `time.start` is when a job became eligible: the start is
      computed from the end, and is absent while the job runs. Without a time window a running job ends now: no end is read while it runs.
      `required.memory` is per CPU or per node without saying which: the TRES of the whole job are used. A pending
      array is a bitmap. No time limit is null, as is an unknown one. No submit line, no licences.
    - queue: `user_name` is empty, only `user_id` is set. The exit code is what wait(2) gave. `end_time` of a running
      job is when it must end, `start_time` of a pending one a guess: both are left out.
    - partitions: no state; no default time (always 0); a memory limit carries its per-CPU flag as its sign.
    - nodes: no partitions; no flags such as DRAIN.
    - an update of a job renames it to "openapi": updates are refused here.
    """

    version = "v0.0.36"
    slash = ""
    """The suffix of the path of a list."""
    can_update = False
    accepts_comment = False
    """Whether an update can set the administrator's comment."""
    missing: Mapping[str, str] = {
        "node states": "v0.0.36 does not report drained nodes",
        "partition states": "v0.0.36 does not report them",
        "default times": "v0.0.36 does not report them",
    }

    def window(self, since: int, until: int) -> dict[str, str]:
        """Query for the jobs alive in a span; it includes requeued jobs and true times."""
        return {"start_time": f"uts{since}", "end_time": f"uts{until}"}

    def begin_time(self, instant: int) -> Any:
        """An earliest start, as an update takes it."""
        return f"uts{instant}"


class V37(V36):
    """v0.0.37 (Slurm 21.08 to 22.05), against v0.0.36:

    - accounting: `state.previous` became `state.reason`; neither is read.
    - queue: `user_name` is filled in.
    - nodes: partitions and `state_flags` are there; so is what is in use, which is not read.
    - partitions: `state` is there; the least number of nodes is called `min nodes per job`, with blanks.
    - a successful update of an array is reported as failed, without an error number: the result must be read back.
    """

    version = "v0.0.37"
    can_update = True
    missing: Mapping[str, str] = {"default times": "v0.0.37 does not report them"}

    def _node_state(self, record: Record) -> list[str]:
        return words(record.get("state")) + words(record.get("state_flags"))

    def partition(self, record: Record) -> Partition:
        return super().partition({**record, "min_nodes_per_job": record.get("min nodes per job")})


class V38(V37):
    """v0.0.38 (Slurm 22.05, and `sacct --json` of it), against v0.0.37:

    - accounting: `time.start` is the start (for a job that never ran, it may be the end: it has no nodes then);
    `container`, which is not read.
    - queue: `group_name`; `job_resources` was rebuilt, and `container`, `prefer` added: none of them is read. `cpus`
      and `tasks` of a job that never ran are null, not 0: both are absent here.
    - partitions: memory per CPU and per node are apart and plain; the default time is right.
    """

    version = "v0.0.38"
    start_reliable = True
    missing: Mapping[str, str] = {}

    def _memory(self, record: Record) -> MemoryLimits:
        return per_node_and_cpu(record)


class V40(V38):
    """v0.0.40 (Slurm 23.11 on; recorded from 24.11), against v0.0.38; v0.0.39 of 23.02 is read by this one too:

    - numbers that may be absent or without limit are `{set, infinite, number}`: no limit differs from absent now.
    - states and exit status are lists of words with flags; exit codes are right.
    - accounting: `required.memory_per_cpu` and `…_node` replace `memory` (the TRES are still used); `array.task` is
      text; `submit_line` and `licenses` are there; so are `script`, `extra`, `failed_node`, which are not read.
    - queue: exit codes as objects; `exclusive` and `oversubscribe` beside `shared`.
    - nodes: states are one list, features lists. `cpus` still counts all CPUs, `effective_cpus` is not read.
    - partitions: nested by subject; the default one is not marked.
    - requeued jobs and untruncated times must be asked for.
    - an update can set `admin_comment`, and takes a number as `begin_time`; the paths of lists end in a slash.
    """

    version = "v0.0.40"
    slash = "/"
    accepts_comment = True
    exit_codes_reliable = True
    missing: Mapping[str, str] = {DEFAULT_PARTITION: "slurmrestd reports it before v0.0.40 and since v0.0.45"}

    def window(self, since: int, until: int) -> dict[str, str]:
        return {
            **super().window(since, until),
            "show_duplicates": "true",
            "disable_truncate_usage_time": "true",
        }

    def begin_time(self, instant: int) -> Any:
        return {"set": True, "infinite": False, "number": instant}

    def _exit(self, value: Any) -> tuple[int | None, int | None]:
        return self._queue_exit(value)

    def _queue_exit(self, value: Any) -> tuple[int | None, int | None]:
        if type(value) is not dict:
            return None, None
        signal = number(member(value, "signal").get("id"))
        code = number(value.get("return_code"))
        if code is None:
            return (0, signal) if signal else (None, None)
        return printed_code(code), signal or 0

    def _exclusive(self, record: Record) -> bool | None:
        return "none" in words(record.get("shared")) or "true" in words(record.get("exclusive"))

    def _node_state(self, record: Record) -> list[str]:
        return words(record.get("state"))

    def partition(self, record: Record) -> Partition:
        return nested_partition(record)


class V41(V40):
    """v0.0.41 (Slurm 24.05 on; recorded from 24.11), against v0.0.40:

    - accounting: paths of the standard streams and `time.planned`; none is read.
    - queue: `job_resources` was rebuilt; not read. Nodes: `gpu_spec`, `res_cores_per_gpu`; not read.
    """

    version = "v0.0.41"


class V42(V41):
    """v0.0.42 (Slurm 24.11 on), against v0.0.41:

    - accounting: `qosreq`, `restart_cnt`; not read.
    - queue: `exclusive`, `oversubscribe`, `show_flags` and `minimum_switches` are gone, `priority_by_partition` and
      `required_switches` new; `shared` says `none` for a job that wants whole nodes, as before.
    - times in a query are plain epoch seconds, which v0.0.40 and v0.0.41 refuse (measured on 24.11).
    """

    version = "v0.0.42"

    def window(self, since: int, until: int) -> dict[str, str]:
        return {**super().window(since, until), "start_time": str(since), "end_time": str(until)}


class V43(V42):
    """v0.0.43 (Slurm 25.05 on; recorded from 26.05), against v0.0.42:

    - accounting: `reservation.requested`, `segment_size`, and for steps time limits and paths of the standard streams;
      none is read.
    - queue: `licenses_allocated`, `segment_size`, expanded paths of the standard streams; not read.
    - nodes and partitions: `topology`; nodes: the state of TLS certificates; not read.
    """

    version = "v0.0.43"


class V44(V43):
    """v0.0.44 (Slurm 25.11 on; recorded from 26.05), against v0.0.43:

    - queue: `step_id` with the job's own identifier, and `submit_line`, which sbatch's directives are not part of;
      neither is read. Accounting, nodes and partitions have the same shape.
    """

    version = "v0.0.44"


class V45(V44):
    """v0.0.45 (Slurm 26.05 on, and `squeue --json` of it), against v0.0.44:

    - accounting: `exclusive` and `oversubscribe` (not read; `sacct` has them for no older job), `sluid`; steps have no `pid`.
    - queue: `shared` is always empty, and the fields that replace it are not there, so whole nodes are not reported:
      the queue is read in v0.0.44 where that is served too. (`job_resources.nodes.whole` tells it of started jobs alone,
      and nothing tells it of those that wait; both are needed for one verdict whenever a job is first seen.)
    - nodes: `external_sensors`, `power` and `tres_weighted` are gone; none was read.
    - partitions: `flags` mark the default one; `preempt_mode`, `exclusive` and `oversubscribe` are not read.
    """

    version = "v0.0.45"
    reports_exclusive = False
    missing: Mapping[str, str] = {}

    def _exclusive(self, record: Record) -> bool | None:
        value = record.get("exclusive")
        return value == "NODE" if type(value) is str else None


class V46(V45):
    """v0.0.46 (Slurm 26.11 on), untested: no slurmrestd with it could be run.

    Slurm keeps the shape of a version and adds to the next one, and 26.05 announces that `exclusive` and
    `oversubscribe` replace `shared` in the queue: they are read if they are there, in the form that accounting has.
    """

    version = "v0.0.46"


ADAPTERS: Mapping[str, V36] = {
    adapter.version: adapter
    for adapter in (V36(), V37(), V38(), V40(), V41(), V42(), V43(), V44(), V45(), V46())
}
NEWEST = V46.version


def adapter_for(version: str) -> V36:
    """The adapter of this version, else of the next newer one, else the newest."""
    wanted = _order(version)
    return next((ADAPTERS[known] for known in ADAPTERS if _order(known) >= wanted), ADAPTERS[NEWEST])


def _order(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d{1,9}", version))
