"""Accounting logs of PBS, LSF and Grid Engine give jobs with the outcomes that these schedulers mean."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kits.command_line import Tocsin
from tocsin.core.frames import SCHEMA
from tocsin.core.intake import JobSource, valid_batches
from tocsin.sources.accounting_log import AccountingLog
from tocsin.sources.formats import open_log
from tocsin.sources.grid_engine_log import GridEngineParser
from tocsin.sources.lsf_log import LsfParser
from tocsin.sources.pbs_log import PbsParser

START, END = 1_700_000_100, 1_700_003_700  # an hour


def pbs(job: str = "12.head.example.org", kind: str = "E", **values: str) -> str:
    known = {
        "user": "ada",
        "group": "staff",
        "jobname": "cfd",
        "queue": "batch",
        "ctime": "1700000000",
        "qtime": "1700000000",
        "etime": "1700000010",
        "start": str(START),
        "exec_host": "n1/0*8+n2/0*8",
        "Resource_List.mem": "64gb",
        "Resource_List.ncpus": "16",
        "Resource_List.nodect": "2",
        "Resource_List.walltime": "02:00:00",
        "end": str(END),
        "Exit_status": "0",
        "resources_used.cput": "10:00:00",
        "resources_used.mem": "33554432kb",
        "run_count": "1",
    } | {name.replace("__", "."): value for name, value in values.items()}
    words = " ".join(f"{name}={value}" for name, value in known.items() if value)
    return f"11/14/2023 23:13:20;{kind};{job};{words}\n"


def lsf(
    *,
    status: int = 64,
    reason: int = 0,
    exit_status: int = 0,
    start: int = START,
    tail: str = "",
    **over: str,
) -> str:
    hosts = over.get("hosts", '2 "8*n1" "8*n2"')
    usage = "36000.5 12.25 1024 0 -1 0 0 1 0 0 0 0 -1 0 0 0 1 1 -1"
    tail = tail or (
        '"" -1 "" "" "" "" -1 "" "" 16 "" 0 "" "" 1 1041 "x" 2 n1 9000 0 1 1 0 n2 12000 0 1 1 0 7200 0 8000 '
        '"select[type == any] rusage[mem=16000.00] "'
    )
    return (
        f'"JOB_FINISH" "10.1" {END} 12 1001 33 16 1700000000 0 0 {start} "ada" "normal" "rusage[mem=16000]" "" "" '
        f'"login" "run/a" "" "%J.out" "" "17.12" 0 {hosts} {status} 60.0 "cfd" "mpirun ""./a"" b" {usage} "" '
        f'"proj" {exit_status} 16 "" "" {over.get("task", "0")} 20971520 0 "" "" "" "" 0 "" {reason} {tail}\n'
    )


SGE = "all.q n1 staff ada cfd 12 sge 0 1700000000 {start} {end} {failed} {status} 3600 30000 60 2048 0 0 0 0 1 0 0 0 0 0 0 0 1 1 "
SGE += "proj dept smp 8 {task} 30060.5 1 0.1 -l@h_rt=7200,h_vmem=4G@-pe@smp@8 0 {pe} {peak} 0 0"


def sge(**values: Any) -> str:
    known = {
        "start": START,
        "end": END,
        "failed": 0,
        "status": 0,
        "task": 0,
        "pe": "NONE",
        "peak": "8589934592.000000",
    }
    return SGE.format(**known | values).replace(" ", ":").replace("@", " ") + values.get("more", "") + "\n"


def jobs_of(folder: Path, text: str, cluster: str | None = "lab") -> tuple[pl.DataFrame, JobSource]:
    path = folder / "accounting"
    path.write_text(text)
    source = open_log(str(path), cluster=cluster)
    assert isinstance(source, AccountingLog)
    return pl.concat([SCHEMA.to_frame(), *(batch.jobs for batch in valid_batches(source))]), source


EXPECTED = {
    "job_id": 12,
    "submit": 1_700_000_000,
    "start": START,
    "end": END,
    "elapsed": 3600,
    "user": "ada",
    "name": "cfd",
    "time_limit": 7200,
    "state": "COMPLETED",
    "outcome": "completed",
    "exit_code": 0,
}


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        (
            pbs(ctime="1700000000.25", start=f"{START}.5", end=f"{END}.0"),  # as Cobalt writes times
            {"submit": 1_700_000_000, "start": START, "end": END, "elapsed": 3600},
        ),
        (
            pbs(),
            {
                "source": "pbs",
                "partition": "batch",
                "group": "staff",
                "req_nodes": 2,
                "req_cpus": 16,
                "req_memory": 32 * 2**30,
                "max_memory": 16 * 2**30,
                "node_list": "n1,n2",
                "alloc_nodes": 2,
                "alloc_cpus": 16,
                "cpu_seconds": 36000,
                "eligible": 1_700_000_010,
            },
        ),
        (
            lsf(),
            {
                "source": "lsf",
                "uid": 1001,
                "partition": "normal",
                "account": "proj",
                "req_cpus": 16,
                "req_memory": 16000 * 2**20,
                "max_memory": 12000 * 2**20,
                "node_list": "n1,n2",
                "alloc_cpus": 16,
                "cpu_seconds": 36012,
            },
        ),
        (
            sge(),
            {
                "source": "sge",
                "partition": "all.q",
                "account": "proj",
                "req_cpus": 8,
                "req_memory": 32 * 2**30,
                "max_memory": 8 * 2**30,
                "node_list": "n1",
                "cpu_seconds": 30060,
            },
        ),
    ],
)
def test_every_field_has_its_place_and_unit(tmp_path: Path, text: str, fields: dict[str, Any]) -> None:
    jobs, source = jobs_of(tmp_path, text)
    assert (jobs.height, source.rejects.total) == (1, 0)
    job = jobs.row(0, named=True)
    assert {name: job[name] for name in EXPECTED | fields} == EXPECTED | fields


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        (pbs(Exit_status="1"), "failed"),
        (pbs(Exit_status="271"), "cancelled"),
        (pbs(Exit_status="271", Resource_List__walltime="01:00:00"), "timeout"),
        (pbs(Exit_status="265"), "failed"),
        (pbs(kind="D") + pbs(Exit_status="265"), "cancelled"),
        (pbs(Exit_status="265", resources_used__mem="64gb"), "out_of_memory"),
        (pbs(Exit_status="-29"), "timeout"),
        (pbs(Exit_status="-27"), "out_of_memory"),
        (pbs(Exit_status="-11"), "requeued"),
        (pbs(Exit_status="-11", run_count=""), "timeout"),  # Torque
        (pbs(Exit_status="-10", run_count=""), "out_of_memory"),
        (pbs(Exit_status="-1"), "boot_fail"),
        (pbs(Exit_status=""), "unknown"),
        (lsf(status=32, exit_status=256), "failed"),
        (lsf(status=32, reason=5), "timeout"),
        (lsf(status=32, reason=12), "timeout"),
        (lsf(status=32, reason=16), "out_of_memory"),
        (lsf(status=32, reason=14), "cancelled"),
        (lsf(status=32, reason=15), "cancelled"),
        (lsf(status=32, reason=1), "preempted"),
        (lsf(status=32, start=0, hosts="0"), "cancelled"),
        (lsf(status=1), "unknown"),
        (sge(status=1), "failed"),
        (sge(failed=100, status=137), "cancelled"),
        (sge(failed=100, status=139), "failed"),
        (sge(failed=100, status=137, end=START + 7200), "timeout"),
        (sge(failed=100, status=137, peak="34359738368"), "out_of_memory"),
        (sge(failed=37, status=137), "timeout"),
        (sge(failed=37, status=137, peak="34359738368"), "out_of_memory"),
        (sge(failed=25), "requeued"),
        (sge(failed=26), "boot_fail"),
        (sge(failed=19), "node_fail"),
        (sge(failed=100, status=139, more=":NONE:ada@login"), "cancelled"),
    ],
)
def test_outcomes_are_what_the_scheduler_means(tmp_path: Path, text: str, outcome: str) -> None:
    assert jobs_of(tmp_path, text)[0]["outcome"].to_list() == [outcome]


def test_arrays_other_events_and_bad_lines_are_counted(tmp_path: Path) -> None:
    text = "".join(
        [
            pbs(kind="Q"),
            pbs(kind="S"),
            pbs("12[3].head"),
            pbs("12[].head"),
            pbs("13-4.head"),
            "11/14/2023 23:13:20;E\n",
            pbs("x.head"),
            pbs("14.head", ctime="", qtime=""),
            pbs("15.head", start=str(END + 5)),
            pbs("16.head", end=str(10**15)),
            pbs("12[3].head"),
        ]
    )
    jobs, source = jobs_of(tmp_path, text, cluster=None)
    assert jobs.select("cluster", "job_id", "task").rows() == [("head", 12, 3), ("head", 13, 4)]
    assert source.rejects.counts == {
        "summary of an array, whose tasks have records of their own": 1,
        "wrong number of columns": 1,
        "no job id": 1,
        "no submit time": 1,
        "times that run backwards": 1,
        "end out of range": 1,
        "job seen before in this file": 1,
    }
    assert "Q 1, S 1" in source.notes[0]


def test_hosts_and_requests_of_torque(tmp_path: Path) -> None:
    asked = {
        "Resource_List__nodes": "2:ppn=8:gpus=1+n9:ppn=4",
        "Resource_List__ncpus": "1",
        "Resource_List__mem": "",
    }
    jobs, _ = jobs_of(
        tmp_path, pbs(exec_host="n1/0-7+n2/0,1,4+n9/3+n9/5", Resource_List__nodect="3", **asked)
    )
    assert jobs.select("req_cpus", "req_gpus", "alloc_cpus", "alloc_nodes", "node_list").row(0) == (
        *(20, 2, 13, 3, "n1,n2,n9"),
    )


def test_older_records_of_lsf_end_earlier_and_new_ones_of_grid_engine_count_milliseconds(
    tmp_path: Path,
) -> None:
    jobs, _ = jobs_of(tmp_path, lsf(tail='""', task="4"))
    oldest = lsf().partition(' "" "" "" "" 0 ""')[0].replace('"10.1"', '"5.1"') + ' "" "" ""\n'
    assert jobs_of(tmp_path, oldest)[0]["outcome"].to_list() == ["completed"]
    assert jobs_of(tmp_path, lsf() + lsf()[:250] + "\n")[1].rejects.counts == {"wrong number of columns": 1}
    assert jobs.select("task", "time_limit", "max_memory", "req_memory").row(0) == (
        *(4, None, 10 * 2**30, 16000 * 2**20),
    )
    new = sge(start=START * 1000 + 5, end=END * 1000 + 999, more=":NONE:NONE:4294967296").replace(
        ":1700000000:", ":1700000000123:"
    )
    jobs, _ = jobs_of(tmp_path, new + sge(pe="1.n2"))
    assert jobs.select("submit", "start", "end", "max_memory").rows() == [(1_700_000_000, START, END, 2**32)]


GARBAGE = st.text('0123456789:;=+-*"[]./ abEJOB_FINISH\n', max_size=300)


@settings(deadline=None, max_examples=150)
@given(data=st.data())
@pytest.mark.parametrize("parser", [PbsParser, LsfParser, GridEngineParser])
def test_garbage_raises_nothing_and_totals_add_up(
    tmp_path_factory: pytest.TempPathFactory, parser: type[PbsParser], data: st.DataObject
) -> None:
    line = {PbsParser: pbs(), LsfParser: lsf(), GridEngineParser: sge()}[parser]
    cut, end = sorted(data.draw(st.tuples(st.integers(0, len(line)), st.integers(0, len(line)))))
    text = line + line[:cut] + data.draw(GARBAGE) + line[end:] + "\n" + data.draw(GARBAGE)
    path = tmp_path_factory.mktemp("logs") / "log"
    path.write_text(text)
    source = AccountingLog(str(path), parser(), cluster="lab")
    batches = list(valid_batches(source))
    assert sum(batch.read for batch in batches) == sum(b.jobs.height for b in batches) + source.rejects.total


def test_such_a_log_is_imported_and_a_second_time_adds_nothing(tmp_path: Path, tocsin: Tocsin) -> None:
    log = tmp_path / "20231114"
    log.write_text(pbs() + pbs("13.head", Exit_status="1"))
    assert "2 jobs read" in tocsin("import", log).out
    assert "0 new" in tocsin("import", "files", log).out
    assert tocsin("jobs", "-n", "-P", "-o", "Cluster,JobID,State").out.split() == [
        "head|12|COMPLETED",
        "head|13|FAILED",
    ]


def test_a_record_of_lsf_may_have_quoted_text_of_several_lines(tmp_path: Path) -> None:
    script = '#!/bin/bash\n\n#BSUB -n 4\n""JOB_FINISH"" ""10.1"" 1 2\necho ""hi""'
    first = lsf().replace('mpirun ""./a"" b', script)
    cut = lsf().replace(" 12 1001", " 13 1001")[:300]
    jobs, source = jobs_of(tmp_path, first + cut + "\n" + lsf().replace(" 12 1001", " 14 1001"))
    assert jobs["job_id"].to_list() == [12, 14]
    assert source.rejects.counts == {"wrong number of columns": 1}
    assert source.rejects.lines == {"wrong number of columns": [6]}


def test_records_of_several_lines_are_found_wherever_a_block_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = lsf().replace('mpirun ""./a"" b', "#!/bin/bash\ntrue") + lsf(task="7")
    whole, _ = jobs_of(tmp_path, text)
    source = open_log(str(tmp_path / "accounting"), cluster="lab")
    assert isinstance(source, AccountingLog)
    monkeypatch.setattr(source._file, "block", 10)
    assert pl.concat(batch.jobs for batch in source.batches()).equals(whole)


JOBCOMP = Path(__file__).parent / "fixtures" / "jobcomp-22.05.txt"


def test_the_log_of_jobcomp_filetxt_gives_the_jobs_that_sacct_shows(tmp_path: Path) -> None:
    jobs, source = jobs_of(tmp_path, JOBCOMP.read_text(), cluster=None)
    assert not source.rejects.counts
    found = jobs.sort("job_id", "task").select(
        "job_id", "task", "name", "outcome", "exit_code", "time_limit", "elapsed"
    )
    assert found.rows() == [
        (901000, None, "plain", "completed", 0, 300, 0),
        (901001, None, "a b JobState=FAILED c", "completed", 0, 300, 0),
        (901002, 1, "arr", "completed", 0, 600, 0),
        (901002, 2, "arr", "completed", 0, 600, 0),
        (901003, None, "bad", "failed", 3, 600, 0),
        (901004, None, "held", "cancelled", 0, 600, None),
        (901005, None, "long", "cancelled", 0, 600, 2),
        (901006, None, "nl\nx", "completed", 0, 600, 0),
    ]
    first = jobs.filter(pl.col("job_id") == 901001).row(0, named=True)
    wanted = {
        "cluster": "lab",
        "submit": 1795004508,
        "user": "alice",
        "uid": 1001,
        "account": "research",
        "req_memory": 200 * 2**20,
        "req_gpus": 1,
        "node_list": "n1",
        "work_dir": "/home/alice",
        "source": "jobcomp",
    }
    assert {key: first[key] for key in wanted} == wanted
    local = open_log(str(tmp_path / "accounting"), zone="Europe/Zurich")
    assert pl.concat(batch.jobs for batch in local.batches())["submit"].min() == 1795004508 - 3600


def test_a_hostile_name_in_jobcomp_filetxt_neither_forges_a_state_nor_takes_long(tmp_path: Path) -> None:
    record = JOBCOMP.read_text().splitlines()[3]
    tail = record[record.index(" JobState=") :]
    text = (
        record.replace("Name=plain", f"Name=x{tail.replace('COMPLETED', 'FAILED') * 2000}")
        + "\n"
        + record[:200]
        + "\n"
    )
    jobs, source = jobs_of(tmp_path, text, cluster=None)
    assert jobs["outcome"].to_list() == ["completed"]
    assert source.rejects.counts == {"wrong number of columns": 1}
