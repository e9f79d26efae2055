"""Converts sacct's text columns to job fields and step usage."""

from collections.abc import Callable
from typing import Any

import polars as pl

from tocsin.core.frames import outcome_from_state
from tocsin.core.outcomes import STATES
from tocsin.core.units import parse_memory
from tocsin.sources.ambiguous_times import resolve_ambiguous_times
from tocsin.sources.columns import Converted, by_value, instants, integers, numbers
from tocsin.sources.read_warnings import ReadWarnings
from tocsin.sources.records import BAD, EXAMPLE, LINE, RECORD
from tocsin.sources.sacct_steps import FOLDED, ID
from tocsin.sources.sacct_values import (
    EXIT,
    MEMORY,
    STATE,
    TRES,
    USED,
    cached_duration,
    parse_array_size,
    parse_exit_code,
    parse_requested_memory,
    parse_resources,
    parse_state,
    parse_used,
)
from tocsin.sources.step_memory import memory_on_node_of

__all__ = ["STEP", "WANTED", "jobs_of", "split_ids", "steps_of"]

STEP = "_step"

# Comments are deliberately not read: tools write outcomes into them.
WANTED = frozenset(
    {
        "account",
        "alloccpus",
        "allocnodes",
        "alloctres",
        "averss",
        "cluster",
        "constraints",
        "consumedenergyraw",
        "elapsed",
        "elapsedraw",
        "eligible",
        "end",
        "exitcode",
        "gid",
        "group",
        "jobid",
        "jobidraw",
        "jobname",
        "licenses",
        "maxdiskread",
        "maxdiskwrite",
        "maxrss",
        "ncpus",
        "nnodes",
        "nodelist",
        "ntasks",
        "partition",
        "priority",
        "qos",
        "reqcpus",
        "reqgres",
        "reqmem",
        "reqnodes",
        "reqtres",
        "reservation",
        "start",
        "state",
        "submit",
        "submitline",
        "suspended",
        "systemcpu",
        "timelimit",
        "timelimitraw",
        "totalcpu",
        "tresusageintot",
        "tresusageouttot",
        "uid",
        "user",
        "usercpu",
        "workdir",
    }
)

_JOB_ID = (
    r"^(?<job>\d{1,18})(?:_(?:(?<task>\d{1,10})|\[(?<array>[0-9,:%.\-]+)\])|\+(?<het>\d{1,6}))?"
    r"(?:\.(?<step>[A-Za-z0-9_]{1,64}(?:\+\d{1,6})?))?$"
)

_TEXTS = {
    "name": "jobname",
    "user": "user",
    "group": "group",
    "account": "account",
    "partition": "partition",
    "qos": "qos",
    "reservation": "reservation",
    "submit_line": "submitline",
    "work_dir": "workdir",
    "constraints": "constraints",
    "licenses": "licenses",
    "req_gres": "reqgres",
}
_NO_NODES = "None assigned"
_KNOWN_STATES = (*STATES, "UNKNOWN")
_RAN = ("RUNNING", "SUSPENDED", "COMPLETING", "COMPLETED", "TIMEOUT", "OUT_OF_MEMORY")
"""States of jobs that have started."""


class _Columns:
    """Columns of text. An unreadable time makes its row bad; any other unreadable value is left empty with a warning."""

    def __init__(self, rows: pl.DataFrame, warnings: ReadWarnings) -> None:
        self.rows = rows
        self.warnings = warnings
        self.bad = pl.repeat(False, rows.height, dtype=pl.Boolean, eager=True)
        self.example = pl.repeat(None, rows.height, dtype=pl.String, eager=True)

    def text(self, name: str) -> pl.Series:
        if name in self.rows.columns:
            return self.rows[name]
        return pl.repeat(None, self.rows.height, dtype=pl.String, eager=True)

    def take(self, name: str, read: Callable[[pl.Series], Converted]) -> pl.Series:
        found = read(self.text(name))
        if found.bad is not None:
            self.warnings.unreadable(
                name, self.text(name).filter(found.bad), self.rows[LINE].filter(found.bad)
            )
        return found.values

    def instant(self, name: str, zone: str) -> pl.Series:
        found = instants(self.text(name), zone)
        if found.bad is not None:
            shown = pl.select(pl.format('{} "{}"', pl.lit(name.title()), self.text(name))).to_series()
            self.example = shown.zip_with(found.bad & ~self.bad, self.example)
            self.bad = self.bad | found.bad
        return found.values

    def count(self, name: str) -> pl.Series:
        return self.take(name, integers)

    def parse(self, name: str, parse: Callable[[str], Any], dtype: Any = pl.Int64) -> pl.Series:
        return self.take(name, lambda column: by_value(column, parse, dtype))


def split_ids(rows: pl.DataFrame) -> pl.DataFrame:
    """Add the parts of the ids: _job, task, array, het_offset, _step, and the id without the step."""
    plain = rows["jobid"].cast(pl.Int64, strict=False)
    if plain.null_count() == 0:
        parts = pl.DataFrame(schema=dict.fromkeys(("task", "array", "het", "step"), pl.String)).clear(
            rows.height
        )
    else:
        parts = rows["jobid"].str.extract_groups(_JOB_ID).struct.unnest()
        plain = parts["job"].cast(pl.Int64, strict=False)
    return rows.with_columns(
        plain.alias("_job"),
        parts["task"].cast(pl.Int64, strict=False),
        parts["array"],
        parts["het"].cast(pl.Int64, strict=False).alias("het_offset"),
        parts["step"].alias(STEP),
        rows["jobid"].str.extract(r"^([^.]*)").alias(ID),
    )


def steps_of(rows: pl.DataFrame, warnings: ReadWarnings) -> pl.DataFrame:
    """Steps with their usage."""
    return rows.select(LINE, ID, **_usage(_Columns(rows, warnings)), steps=pl.lit(1, pl.Int64))


def jobs_of(rows: pl.DataFrame, *, cluster: str | None, zone: str, warnings: ReadWarnings) -> pl.DataFrame:
    """Job fields of rows that are not steps, with LINE, RECORD, ID, BAD, EXAMPLE and empty columns for step usage."""
    words = _Columns(rows, warnings)
    time = {name: words.instant(name, zone) for name in ("submit", "start", "end")}
    time["eligible"] = words.take("eligible", lambda column: instants(column, zone))
    elapsed = words.count("elapsedraw")
    elapsed = elapsed.zip_with(elapsed.is_not_null(), words.parse("elapsed", cached_duration))
    time = resolve_ambiguous_times(time, {name: words.text(name) for name in time}, elapsed, zone)
    nodes = pl.lit(words.text("nodelist")).replace(_NO_NODES, None)
    state = words.parse("state", parse_state, STATE).struct.unnest()
    warnings.unknown_states(state["state"].filter(~state["state"].is_in(_KNOWN_STATES)))
    code = words.parse("exitcode", parse_exit_code, EXIT).struct.unnest()
    memory = words.parse("reqmem", parse_requested_memory, MEMORY).struct.unnest()
    asked = words.parse("reqtres", parse_resources, TRES).struct.unnest()
    given = words.parse("alloctres", parse_resources, TRES).struct.unnest()
    started = pl.lit(time["start"]).is_not_null()
    if "start" not in rows.columns:
        ran = pl.lit(elapsed > 0) | nodes.is_not_null() | pl.lit(state["state"].is_in(_RAN))
        started = ran & (pl.lit(state["state"]) != "PENDING").fill_null(True)
    elif "nodelist" in rows.columns:
        # Older sacct prints the end as the start of a job that was cancelled before it had nodes.
        started &= nodes.is_not_null() | pl.lit(elapsed > 0) | pl.lit(time["end"]).is_null()
    started = started.fill_null(False)
    node_count = pl.coalesce(words.count("allocnodes"), words.count("nnodes"), given["node"])
    cpu_count = pl.coalesce(words.count("alloccpus"), words.count("ncpus"), given["cpu"])
    # For a job that has not started, these two are the request.
    waiting_nodes, waiting_cpus = pl.when(~started).then(node_count), pl.when(~started).then(cpu_count)
    req_nodes = pl.coalesce(words.count("reqnodes"), asked["node"], waiting_nodes)
    req_cpus = pl.coalesce(words.count("reqcpus"), asked["cpu"], waiting_cpus)
    over = pl.max_horizontal(pl.coalesce(req_nodes, node_count), 1)
    raw_id = words.text("jobidraw").cast(pl.Int64, strict=False)
    het = pl.col("het_offset").is_not_null()
    own_name = words.text("cluster")
    request = {
        # sacct prints the leader's id for a het component; JobIDRaw is its own.
        "job_id": pl.when(het)
        .then(pl.coalesce(raw_id, pl.col("_job") + pl.col("het_offset")))
        .otherwise("_job"),
        "het_id": pl.when(het).then("_job"),
        "cluster": pl.coalesce(own_name, pl.lit(cluster, pl.String)),
        "raw_id": raw_id,
        "array_tasks": by_value(rows["array"], parse_array_size).values,
        **{field: words.text(name) for field, name in _TEXTS.items()},
        "uid": words.count("uid"),
        "gid": words.count("gid"),
        "priority": words.count("priority"),
        "req_nodes": req_nodes,
        "req_cpus": req_cpus,
        "req_memory": _per_node(memory, asked["mem"], pl.coalesce(req_cpus, cpu_count), over),
        "req_gpus": asked["gpu"],
        "req_tres": asked["text"],
        "time_limit": pl.coalesce(_minutes(words), words.parse("timelimit", cached_duration)),
        "submit": time["submit"],
        "eligible": time["eligible"],
    }
    allocation: dict[str, Any] = {
        "start": time["start"],
        "node_list": nodes,
        "alloc_nodes": node_count,
        "alloc_cpus": cpu_count,
        "alloc_memory": _share(pl.lit(given["mem"]), pl.max_horizontal(node_count, 1)),
        "alloc_gpus": given["gpu"],
        "alloc_tres": given["text"],
        "elapsed": pl.coalesce(elapsed, _between(time["start"], time["end"], words)),
    }
    ending = pl.when(state["state"].is_not_null()).then(outcome_from_state(pl.lit(state["state"])))
    outcome = {
        "end": time["end"],
        "state": state["state"],
        "outcome": ending,
        "cancelled_by": state["by"],
        # sacct prints 0:0 for a job that is still alive.
        "exit_code": pl.when(ending.is_not_null()).then(code["code"]),
        "exit_signal": pl.when(ending.is_not_null()).then(code["signal"]),
        "source": pl.lit("sacct"),
        "request_final": pl.lit(True),
    }
    fields: dict[str, Any] = request | outcome | _usage(words)
    fields |= {field: pl.when(started).then(value) for field, value in allocation.items()}
    fields |= {f"_{field}": pl.lit(None, _type(field)) for field in FOLDED}
    return rows.select(
        LINE, RECORD, ID, "task", "array", "het_offset", **fields, **{BAD: words.bad, EXAMPLE: words.example}
    )


def _between(start: pl.Series, end: pl.Series, words: _Columns) -> pl.Series:
    """The run time, for text without such a column."""
    suspended = words.parse("suspended", cached_duration).fill_null(0)
    length = end - start - suspended
    return length.set((length < 0).fill_null(False), None)


def _usage(words: _Columns) -> dict[str, Any]:
    """Usage in a row; a job's own value takes precedence over the sum of its steps."""
    used = words.parse("tresusageintot", parse_used, USED).struct.unnest()
    written = words.parse("tresusageouttot", parse_used, USED).struct.field("disk")
    energy = pl.lit(words.take("consumedenergyraw", numbers))
    tasks, nodes = words.count("ntasks"), words.count("nnodes")
    total = pl.coalesce(used["mem"], words.parse("averss", parse_memory) * tasks)
    return {
        "max_memory": memory_on_node_of(
            pl.lit(words.parse("maxrss", parse_memory)), total, pl.lit(tasks), pl.lit(nodes)
        ),
        "cpu_seconds": words.parse("totalcpu", cached_duration),
        "user_cpu_seconds": words.parse("usercpu", cached_duration),
        "system_cpu_seconds": words.parse("systemcpu", cached_duration),
        "read_bytes": pl.coalesce(used["disk"], words.parse("maxdiskread", parse_memory)),
        "written_bytes": pl.coalesce(written, words.parse("maxdiskwrite", parse_memory)),
        # Without a gatherer sacct prints 0; NO_VAL of 32 and 64 bits means the same.
        "energy": pl.when(energy.is_between(1, 2**32 - 3)).then(energy),
    }


def _type(field: str) -> Any:
    return pl.Float64 if field == "energy" else pl.Int64


def _minutes(words: _Columns) -> pl.Series:
    """TimelimitRaw in minutes; words such as UNLIMITED are read from Timelimit."""
    return words.text("timelimitraw").cast(pl.Int64, strict=False) * 60


def _share(amount: pl.Expr, nodes: pl.Expr) -> pl.Expr:
    """A whole job's amount per node, rounded up."""
    return (amount + nodes - 1) // nodes


def _per_node(memory: pl.DataFrame, total: pl.Series, cpus: pl.Expr, nodes: pl.Expr) -> pl.Expr:
    amount, per = pl.lit(memory["amount"]), pl.lit(memory["per"])
    return (
        pl.when(per == "node")
        .then(amount)
        .when((per == "cpu") & (amount.cast(pl.Float64) * cpus < 2.0**62))
        .then(_share(amount * cpus, nodes))
        .when(per == "job")
        .then(_share(amount, nodes))
        .otherwise(_share(pl.lit(total), nodes))
    )
