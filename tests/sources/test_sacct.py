"""Text of sacct gives its jobs with their steps folded in, from a file or from a live sacct."""

import gzip
import os
import stat
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tocsin.core.errors import ClusterError, SourceError
from tocsin.core.frames import SCHEMA
from tocsin.core.units import UNLIMITED, format_duration, parse_instant
from tocsin.sources.formats import open_log
from tocsin.sources.sacct import LIVE_COLUMNS, SacctFile, SacctLive
from tocsin.sources.sacct_fields import unknown_fields
from tocsin.sources.sacct_jobs import WANTED
from tocsin.sources.step_memory import memory_on_node, memory_on_node_of

RECORDED = Path(__file__).parent / "fixtures" / "sacct-22.05.txt"
PUBLIC = (
    "JobID,JobIDRaw,Cluster,Partition,QOS,Account,Group,GID,User,UID,Submit,Eligible,Start,End,Elapsed,ExitCode,State,"
    "NNodes,NCPUS,ReqCPUS,ReqMem,ReqTRES,AllocTRES,Timelimit,NodeList,JobName"
)
SHORT = "JobID|Cluster|Submit|Start|End|State|JobName"


def row(job: str, *, name: str = "x", submit: str = "100", start: str = "110", end: str = "120") -> str:
    return f"{job}|lab|{submit}|{start}|{end}|COMPLETED|{name}\n"


def write(folder: Path, text: str | bytes) -> Path:
    path = folder / "sacct.txt"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def read(path: Path, **options: Any) -> tuple[pl.DataFrame, SacctFile]:
    source = SacctFile(path, **options)
    return pl.concat([SCHEMA.to_frame(), *(batch.jobs for batch in source.batches())]), source


def one(folder: Path, **words: str) -> dict[str, Any]:
    """The one job of a file with these columns."""
    words = {"JobID": "1", "Cluster": "lab", "Submit": "100"} | words
    jobs, source = read(write(folder, "|".join(words) + "\n" + "|".join(words.values()) + "\n"))
    assert source.rejects.total == 0, source.rejects
    assert jobs.height == 1
    return jobs.row(0, named=True)


def test_a_recorded_job_has_all_that_sacct_told() -> None:
    jobs, source = read(RECORDED)
    job = {name: value for name, value in jobs.row(0, named=True).items() if value is not None}
    assert job == {
        "cluster": "lab",
        "job_id": 1,
        "submit": 1794771952,
        "raw_id": 1,
        "name": "ok",
        "user": "alice",
        "uid": 1001,
        "group": "alice",
        "gid": 1001,
        "account": "research",
        "partition": "main",
        "qos": "normal",
        "submit_line": "sbatch -o /home/alice/%x-%j.out /lab/jobs/ok.sh",
        "work_dir": "/tmp",
        "req_nodes": 1,
        "req_cpus": 1,
        "req_memory": 100 * 2**20,
        "req_gpus": 0,
        "req_tres": "billing=1,cpu=1,mem=100M,node=1",
        "time_limit": 600,
        "priority": 1,
        "eligible": 1794771952,
        "start": 1794771952,
        "node_list": "n1",
        "alloc_nodes": 1,
        "alloc_cpus": 1,
        "alloc_memory": 100 * 2**20,
        "alloc_gpus": 0,
        "alloc_tres": "billing=1,cpu=1,mem=100M,node=1",
        "state": "COMPLETED",
        "outcome": "completed",
        "end": 1794771955,
        "exit_code": 0,
        "exit_signal": 0,
        "elapsed": 3,
        "cpu_seconds": 0,
        "user_cpu_seconds": 0,
        "system_cpu_seconds": 0,
        "max_memory": 4652 * 1024,
        "read_bytes": 19188,
        "written_bytes": 20,
        "steps": 1,
        "source": "sacct",
        "request_final": True,
    }
    assert source.rejects.total == 0


@pytest.mark.parametrize(("file", "number"), [("phillips", 4285), ("pozidriv", 11_704)])
def test_public_files_without_a_header_are_read_whole(data: Path, file: str, number: int) -> None:
    path = data / "sacct" / f"{file}.log.gz"
    with gzip.open(path, "rt") as text:
        lines = [line.rstrip("\n").split("|") for line in text]
    jobs, source = read(path, columns=PUBLIC, zone="America/New_York")
    assert jobs.height == len(lines) == number
    assert source.rejects.total == 0
    assert Counter(jobs["state"]) == Counter(line[16].split()[0] for line in lines)
    zone = ZoneInfo("America/New_York")
    assert jobs["end"].to_list() == [parse_instant(line[13], zone) for line in lines]
    # 2147486448 is Slurm's old flag for "per CPU" and 2800 megabytes
    flagged = [n for n, line in enumerate(lines) if line[20].startswith("21474")]
    for n in flagged[:50]:
        line = lines[n]
        whole = (int(line[20].removesuffix("Mn")) - 2**31) * int(line[19])
        assert jobs["req_memory"][n] == -(-whole * 2**20 // int(line[17]))


def test_columns_are_found_whatever_their_case_width_and_order(tmp_path: Path) -> None:
    text = "jobname%20|SUBMIT|jobid%-8|CLUSTER|\nx|100|7|lab|\n"
    assert read(write(tmp_path, text))[0].select("job_id", "submit", "name").row(0) == (7, 100, "x")
    bare = write(tmp_path, "x|100|7|lab\n")
    assert read(bare, columns=["JobName%20", "Submit", "JobID", "Cluster"])[0]["job_id"].to_list() == [7]
    trailing = write(tmp_path, "x|100|7|lab|\n")
    assert read(trailing, columns="JobName,Submit,JobID,Cluster")[0]["job_id"].to_list() == [7]
    twice = write(tmp_path, (SHORT + "\n" + row("1")) + (SHORT + "\n" + row("2")))
    jobs, source = read(twice)
    assert (jobs["job_id"].to_list(), source.rejects.total) == ([1, 2], 0)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1|lab|100\n2|lab|100\n", "not a header.*-o"),
        ("JobID|Cluster|State\n1|lab|COMPLETED\n", "no column submit"),
    ],
)
def test_what_is_missing_is_said_with_the_next_step(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(SourceError, match=words):
        read(write(tmp_path, text))


def test_a_text_without_the_cluster_names_it_by_its_file(tmp_path: Path) -> None:
    text = "JobID|Submit|State\n1|100|COMPLETED\n1.batch|100|COMPLETED\n2|100|FAILED\n"
    jobs, source = read(write(tmp_path, text))
    assert jobs["cluster"].to_list() == ["sacct", "sacct"]
    assert source.notes == [
        'the text has no column Cluster; using "sacct" from the file name (set it with -M)'
    ]
    named, source = read(write(tmp_path, text), cluster="lab")
    assert (named["cluster"].to_list(), source.notes) == (["lab", "lab"], [])
    bare = write(tmp_path, "1|100|COMPLETED\n")
    assert read(bare, columns="JobID,Submit,State")[0]["cluster"].to_list() == ["sacct"]
    with pytest.raises(SourceError, match="name the cluster with -M"):
        list(SacctFile(bare.rename(tmp_path / "-"), columns="JobID,Submit,State").batches())


def test_an_unknown_zone_is_refused(tmp_path: Path) -> None:
    for zone in ("Mars/Olympus", "../etc/passwd", ""):
        with pytest.raises(SourceError, match="is not a time zone"):
            SacctFile(write(tmp_path, SHORT), zone=zone)


@pytest.mark.parametrize(
    ("word", "field", "value"),
    [
        ({"State": "CANCELLED by 1234"}, "cancelled_by", 1234),
        ({"State": "CANCELLED by 1234"}, "state", "CANCELLED"),
        ({"State": "CANCELLED+"}, "outcome", "cancelled"),
        ({"State": "OUT_OF_ME+"}, "outcome", "out_of_memory"),
        ({"State": "COMPLE+"}, "outcome", "unknown"),  # COMPLETED or COMPLETING
        ({"State": "cancelled by 7"}, "outcome", "cancelled"),
        ({"State": "PENDING"}, "outcome", None),
        ({"State": "CD"}, "state", "COMPLETED"),
        ({"ExitCode": "1:9", "State": "FAILED"}, "exit_code", 1),
        ({"ExitCode": "1:9", "State": "FAILED"}, "exit_signal", 9),
        ({"Timelimit": "UNLIMITED"}, "time_limit", UNLIMITED),
        ({"Timelimit": "Partition_Limit"}, "time_limit", None),
        ({"Timelimit": "1-02:03:04"}, "time_limit", 93784),
        ({"TimelimitRaw": "90", "Timelimit": "01:30:00"}, "time_limit", 5400),
        ({"TimelimitRaw": "UNLIMITED", "Timelimit": "UNLIMITED"}, "time_limit", UNLIMITED),
        ({"ReqMem": "4Gc", "ReqCPUS": "8", "NNodes": "2"}, "req_memory", 16 * 2**30),
        ({"ReqMem": "4Gn", "ReqCPUS": "8", "NNodes": "2"}, "req_memory", 4 * 2**30),
        ({"ReqMem": "4G", "ReqCPUS": "8", "NNodes": "2"}, "req_memory", 2 * 2**30),
        ({"ReqMem": "0n"}, "req_memory", 0),
        ({"ReqTRES": "cpu=2,gres/gpu=3,gres/gpu:a100=3,mem=3G,node=2"}, "req_gpus", 3),
        ({"ReqTRES": "cpu=2,gres/gpu:a100=1,gres/gpu:v100=2"}, "req_gpus", 3),
        ({"ReqTRES": "cpu=2,mem=3G,node=2"}, "req_memory", 3 * 2**29),
        ({"ReqTRES": "cpu=2,mem=3G,node=2"}, "req_nodes", 2),
        ({"NNodes": "2", "NCPUS": "8"}, "req_nodes", 2),
        ({"NNodes": "2", "NCPUS": "8"}, "alloc_nodes", None),
        ({"NNodes": "2", "NCPUS": "8", "Start": "110"}, "alloc_cpus", 8),
        ({"NNodes": "2", "NCPUS": "8", "Start": "110"}, "req_nodes", None),
        ({"NodeList": "None assigned"}, "node_list", None),
        ({"NodeList": "None assigned", "Start": "120", "End": "120", "Elapsed": "00:00:00"}, "start", None),
        ({"NodeList": "n[1-2]", "Start": "120", "End": "120", "Elapsed": "00:00:00"}, "start", 120),
        ({"Start": "Unknown", "End": "Unknown"}, "end", None),
        ({"Start": "None"}, "start", None),
        ({"JobName": "none"}, "name", "none"),
        ({"TotalCPU": "1-00:00:01.5"}, "cpu_seconds", 86401),
        ({"ConsumedEnergyRaw": "0"}, "energy", None),
        ({"ConsumedEnergyRaw": "5000"}, "energy", 5000.0),
        ({"ConsumedEnergyRaw": "18446744073709551614"}, "energy", None),
    ],
)
def test_words_of_sacct(tmp_path: Path, word: dict[str, str], field: str, value: Any) -> None:
    assert one(tmp_path, **word)[field] == value


def test_ids_of_arrays_and_heterogeneous_jobs(tmp_path: Path) -> None:
    lines = ["JobID|JobIDRaw|Cluster|Submit"]
    lines += [
        f"{a}|{b}|lab|100" for a, b in [("17_4", "21"), ("30_[1-9%2]", "30"), ("40+0", "40"), ("40+1", "41")]
    ]
    jobs, _ = read(write(tmp_path, "\n".join(lines)))
    names = ["job_id", "task", "raw_id", "array", "array_tasks", "het_id", "het_offset"]
    assert jobs.select(names).rows() == [
        (17, 4, 21, None, None, None, None),
        (30, None, 30, "1-9%2", 9, None, None),
        (40, None, 40, None, None, 40, 0),
        (41, None, 41, None, None, 40, 1),
    ]
    jobs, _ = read(write(tmp_path, "JobID|Cluster|Submit\n40+2|lab|100\n"))
    assert jobs.select("job_id", "het_id", "het_offset").row(0) == (42, 40, 2)


def test_local_times_follow_the_clock_of_their_zone(tmp_path: Path) -> None:
    """An hour that comes twice is its first; one that was skipped is counted on: as Python has it."""
    zone = ZoneInfo("Europe/Zurich")
    words = ["2024-07-01T12:00:00", "2024-10-27T02:30:00", "2024-03-31T02:30:00", "2024-01-01 12:00:00"]
    words += ["2024-07-01T12:00:00Z", "2024-07-01T12:00:00.500"]
    text = "JobID|Cluster|Submit\n" + "".join(f"{n}|lab|{word}\n" for n, word in enumerate(words))
    jobs, source = read(write(tmp_path, text), zone="Europe/Zurich")
    assert source.rejects.total == 0
    expected = [datetime.fromisoformat(word) for word in words]
    assert jobs["submit"].to_list() == [
        int((moment if moment.tzinfo else moment.replace(tzinfo=zone)).timestamp()) for moment in expected
    ]


def test_steps_fold_into_their_job(tmp_path: Path) -> None:
    head = "JobID|Cluster|Submit|State|MaxRSS|TotalCPU|MaxDiskRead|TRESUsageInTot\n"
    text = head + (
        "1|lab|100|COMPLETED||00:01:00||\n"
        "1.batch|lab|100|COMPLETED|100K|00:00:40|1K|cpu=1,fs/disk=2000\n"
        "1.0|lab|100|COMPLETED|300K|00:00:40|1K|fs/disk=500\n"
        "2_7|lab|100|COMPLETED||||\n"
        "2_7.extern|lab|100|COMPLETED|50K|00:00:10|7K|\n"
        "2_7.0|lab|100|COMPLETED|20K|00:00:20|1K|\n"
        "3|lab|100|COMPLETED||||\n"
        "9.batch|lab|100|COMPLETED|1K|||\n"
    )
    jobs, source = read(write(tmp_path, text))
    assert jobs.select("job_id", "max_memory", "cpu_seconds", "read_bytes", "steps").rows() == [
        (1, 300 * 1024, 60, 2500, 2),
        (2, 50 * 1024, 30, 8 * 1024, 2),
        (3, None, None, None, None),
    ]
    assert source.rejects.total == 0
    assert source.notes == ["left out: 1 step without its job (first at line 9)"]
    assert [batch.read for batch in SacctFile(tmp_path / "sacct.txt").batches()] == [2, 1]


def test_a_peak_that_was_never_sampled_is_absent(tmp_path: Path) -> None:
    text = "1|lab|100|COMPLETED|\n1.0|lab|||0\n2|lab|100|COMPLETED|\n2.0|lab|||0\n2.1|lab|||5K\n"
    jobs, _ = read(write(tmp_path, f"JobID|Cluster|Submit|State|MaxRSS\n{text}"))
    assert jobs["max_memory"].to_list() == [None, 5 * 1024]


def test_a_job_and_its_steps_may_lie_in_different_blocks(tmp_path: Path) -> None:
    head = "JobID|Cluster|Submit|MaxRSS|JobName\n"
    text = head + "".join(
        f"{n}|lab|100||{'x' * 200}\n" + "".join(f"{n}.{k}|lab|100|{k + n}K|step\n" for k in range(40))
        for n in range(1, 30_000, 3)
    )
    path = write(tmp_path, text)
    source = SacctFile(path)
    batches = list(source.batches())
    jobs = pl.concat([batch.jobs for batch in batches])
    assert len(batches) > 2
    assert jobs["steps"].to_list() == [40] * 10_000
    assert (jobs["max_memory"] // 1024 - jobs["job_id"]).to_list() == [39] * 10_000
    assert sum(batch.read for batch in batches) == batches[-1].position == 10_000
    assert source.rejects.total == 0
    middle = batches[0].position
    rest = pl.concat([batch.jobs for batch in SacctFile(path).batches(middle)])
    assert rest.equals(jobs[middle:])


def test_requeues_are_jobs_of_their_own_and_their_steps_stay_with_them(tmp_path: Path) -> None:
    text = "JobID|Cluster|Submit|State|MaxRSS\n1|lab|100|REQUEUED|\n1.0|lab|||5K\n1|lab|200|COMPLETED|\n1.0|lab|||7K\n"
    jobs, _ = read(write(tmp_path, text))
    assert jobs.select("submit", "outcome", "max_memory").rows() == [
        (100, "requeued", 5 * 1024),
        (200, "completed", 7 * 1024),
    ]


def test_the_same_record_again_is_counted_and_a_later_state_replaces_the_earlier(tmp_path: Path) -> None:
    text = "JobID|Cluster|Submit|State\n1|lab|1|RUNNING\n2|lab|1|FAILED\n2|lab|1|FAILED\n1|lab|1|COMPLETED\n"
    text += "3|lab|1|COMPLETED\n"
    jobs, source = read(write(tmp_path, text))
    assert sorted(jobs.select("job_id", "state").rows()) == [
        (1, "COMPLETED"),
        (2, "FAILED"),
        (3, "COMPLETED"),
    ]
    assert source.rejects.counts == {"job seen before in this file": 2}


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (2, 3, 0, 1)])
def test_an_ended_job_does_not_come_back_to_life(tmp_path: Path, order: tuple[int, ...]) -> None:
    lines = [
        "1|lab|1|FAILED|9|\n",
        "1.batch|lab||FAILED|9|5K\n",
        "1|lab|1|PENDING||\n",
        "1|lab|1|RUNNING||\n",
    ]
    head = "JobID|Cluster|Submit|State|End|MaxRSS\n"
    jobs, source = read(write(tmp_path, head + "".join(lines[n] for n in order) + "2|lab|1|FAILED|9|\n"))
    assert jobs.select("job_id", "state", "end", "max_memory").rows() == [
        (1, "FAILED", 9, 5 * 1024),
        (2, "FAILED", 9, None),
    ]
    assert source.rejects.counts == {"job seen before in this file": 2}


@pytest.mark.parametrize(
    ("submit", "start", "end", "elapsed", "expected"),
    [
        ("02:30:00", "02:45:00", "02:15:00", "00:30:00", ("00:30:00", "00:45:00", "01:15:00")),
        ("01:30:00", "01:45:00", "02:15:00", "00:30:00", ("23:30:00", "23:45:00", "00:15:00")),
        ("01:30:00", "01:45:00", "02:15:00", "01:30:00", ("23:30:00", "23:45:00", "01:15:00")),
        ("02:50:00", "02:55:00", "03:05:00", "00:10:00", ("00:50:00", "01:55:00", "02:05:00")),
        ("02:50:00", "02:05:00", "02:06:00", "00:01:00", ("00:50:00", "01:05:00", "01:06:00")),
        ("02:50:00", "02:05:00", "Unknown", "", ("00:50:00", "01:05:00", None)),
        ("01:59:00", "02:59:50", "02:00:10", "00:00:20", ("23:59:00", "00:59:50", "01:00:10")),
        ("02:00:00", "02:10:00", "02:20:00", "00:05:00", ("00:00:00", "00:10:00", "00:20:00")),  # suspended
    ],
)
def test_in_the_hour_that_comes_twice_order_and_elapsed_time_decide(
    tmp_path: Path, submit: str, start: str, end: str, elapsed: str, expected: tuple[str | None, ...]
) -> None:
    times = "|".join(word if word == "Unknown" else f"2024-10-27T{word}" for word in (submit, start, end))
    text = f"JobID|Cluster|Submit|Start|End|Elapsed\n1|lab|{times}|{elapsed}\n2|lab|2024-01-01T00:00:00|||\n"
    jobs, source = read(write(tmp_path, text), zone="Europe/Rome")
    assert source.rejects.total == 0
    found = jobs.select("submit", "start", "end").row(0)
    assert tuple(t and datetime.fromtimestamp(t, UTC).strftime("%H:%M:%S") for t in found) == expected


def test_an_instant_with_its_offset_is_never_moved(tmp_path: Path) -> None:
    jobs, _ = read(
        write(
            tmp_path,
            "JobID|Cluster|Submit|Start|End|Elapsed\n"
            "1|lab|2024-10-27T02:10:00|2024-10-27T02:20:00+02:00|2024-10-27T02:40:00+02:00|01:20:00\n",
        ),
        zone="Europe/Rome",
    )
    assert jobs["end"][0] - jobs["start"][0] == 1200


def test_without_a_start_column_what_a_job_got_is_kept(tmp_path: Path) -> None:
    head = "JobID|Cluster|Submit|State|Elapsed|NodeList|AllocTRES|AllocCPUS\n"
    text = head + (
        "1|lab|100|COMPLETED|00:10:00|n1|cpu=4,mem=4G,node=1|4\n"
        "2|lab|100|PENDING|00:00:00|None assigned||4\n"
        "3|lab|100|CANCELLED|00:00:00|None assigned||4\n"
    )
    jobs, _ = read(write(tmp_path, text))
    assert jobs.select("elapsed", "node_list", "alloc_cpus", "alloc_memory", "start").rows() == [
        (600, "n1", 4, 2**32, None),
        (None, None, None, None, None),
        (None, None, None, None, None),
    ]


@pytest.mark.parametrize(
    ("words", "elapsed"),
    [
        ({}, 60),
        ({"Suspended": "00:00:20"}, 40),
        ({"Suspended": "00:02:00"}, None),
        ({"Elapsed": "00:00:50"}, 50),
        ({"End": "Unknown", "State": "RUNNING"}, None),
    ],
)
def test_without_an_elapsed_column_start_and_end_give_the_run_time(
    tmp_path: Path, words: dict[str, str], elapsed: int | None
) -> None:
    words = {"Start": "110", "End": "170", "State": "COMPLETED"} | words
    assert one(tmp_path, **words)["elapsed"] == elapsed


def test_a_named_cluster_is_the_only_one_that_is_read(tmp_path: Path) -> None:
    jobs, source = read(
        write(tmp_path, SHORT + "\n" + row("1") + row("2").replace("lab", "gamma")), cluster="gamma"
    )
    assert jobs.select("cluster", "job_id").rows() == [("gamma", 2)]
    assert source.rejects.lines == {'not of cluster "gamma"': [2]}


def test_a_mistyped_column_is_refused_in_an_option_and_noted_in_a_header(tmp_path: Path) -> None:
    path = write(tmp_path, "JobID|Cluster|Submit|Sate\n1|lab|100|COMPLETED\n")
    with pytest.raises(SourceError, match=r'"Sate" is not a column of sacct; did you mean State\?'):
        SacctFile(path, columns="JobID,Cluster,Submit,Sate%20")
    jobs, source = read(path)
    assert jobs.height == 1
    assert source.notes == ['columns that sacct does not have were ignored: "Sate"']
    SacctFile(path, columns="JobID,Submit,AveVMSize,Planned,Restarts")  # not used, but sacct's


def test_the_fields_of_the_recorded_version_are_all_known() -> None:
    assert not unknown_fields(RECORDED.read_text().splitlines()[0].split("|"))
    assert not unknown_fields(LIVE_COLUMNS)
    assert not unknown_fields(WANTED)


def test_an_unknown_state_is_named_and_counted(tmp_path: Path) -> None:
    _, source = read(
        write(tmp_path, "JobID|Cluster|Submit|State\n1|lab|1|ODD\n2|lab|1|odd\n3|lab|1|FAILED\n")
    )
    assert source.notes == ['the state "ODD" of 2 records is unknown; its outcome is "unknown"']


@pytest.mark.parametrize("word", ["?", "0?", "16E"])
def test_a_request_that_cannot_be_read_costs_no_job(tmp_path: Path, word: str) -> None:
    jobs, source = read(
        write(
            tmp_path, f"JobID|Cluster|Submit|ReqMem|MaxRSS\n1|lab|1|{word}|\n1.0|lab|||16?\n2|lab|1|4Gn|1K\n"
        )
    )
    assert jobs.select("req_memory", "max_memory").rows() == [(None, None), (2**32, 1024)]
    assert source.rejects.total == 0
    assert source.notes == [
        f'ReqMem could not be read in 1 record and is left empty (first at line 2: "{word}")',
        'MaxRSS could not be read in 1 record and is left empty (first at line 3: "16?")',
    ]


def test_text_of_fixed_width_and_utf16_are_recognised(tmp_path: Path) -> None:
    fixed = "JobID           JobName      State \n------------ ---------- ---------- \n2 wrap COMPLETED\n"
    with pytest.raises(SourceError, match="use sacct -P"):
        read(write(tmp_path, fixed), cluster="lab")
    with pytest.raises(SourceError, match="UTF-16"):
        read(write(tmp_path, (SHORT + "\n" + row("1")).encode("utf-16")))


def test_bom_crlf_comments_and_a_trailing_bar_are_taken(tmp_path: Path) -> None:
    text = "# from sacct\n\n" + SHORT + "|\n" + row("1").replace("\n", "|\n") + "# the end\n"
    jobs, source = read(write(tmp_path, b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode()))
    assert jobs.select("job_id", "name").rows() == [(1, "x")]
    assert (source.rejects.total, source.notes) == (0, [])


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("json", [False, True])
def test_a_fifo_is_opened_once(tmp_path: Path, packed: bool, json: bool) -> None:
    path = tmp_path / "fifo"
    os.mkfifo(path)
    record = '{"jobs": [{"cluster": "lab", "job_id": 1, "state": {"current": ["COMPLETED"]}, "time": {"submission": 100}}]}'
    text = (record if json else SHORT + "\n" + row("1") * 1).encode()
    data = gzip.compress(text) if packed else text
    with ThreadPoolExecutor(1) as pool:
        written = pool.submit(path.write_bytes, data)
        source = open_log(str(path))
        jobs = pl.concat([batch.jobs for batch in source.batches()])
        written.result(timeout=10)
    assert jobs["job_id"].to_list() == [1]


def test_names_with_newlines_are_put_together(tmp_path: Path) -> None:
    head = "JobID|JobName|Cluster|Submit|State\n"
    text = head + "1|a\nb\n\nc|lab|100|COMPLETED\n2|plain|lab|100|FAILED\n3|d\ne|lab|100|TIMEOUT\n"
    jobs, source = read(write(tmp_path, text))
    assert jobs.select("job_id", "name", "state").rows() == [
        (1, "a b  c", "COMPLETED"),
        (2, "plain", "FAILED"),
        (3, "d e", "TIMEOUT"),
    ]
    assert source.rejects.total == 0
    assert "joined" in source.notes[0]


def test_a_name_in_the_last_column_may_end_on_the_next_line(tmp_path: Path) -> None:
    jobs, source = read(
        write(tmp_path, SHORT + "\n" + row("1", name="a\nb") + "sacct: error: no\n" + row("2"))
    )
    assert jobs["name"].to_list() == ["a b", "x"]
    assert source.rejects.lines == {"wrong number of columns": [4]}


def test_separators_in_a_name_are_kept_where_only_the_name_can_have_them(tmp_path: Path) -> None:
    jobs, source = read(write(tmp_path, "JobID|JobName|Cluster|Submit\n1|a|b||c|lab|100\n"))
    assert jobs["name"].to_list() == ["a|b||c"]
    assert source.rejects.total == 0
    text = "JobID|JobName|WorkDir|Cluster|Submit\n1|a|b|/tmp|lab|100\n2|a|/tmp|lab|100\n"
    jobs, source = read(write(tmp_path, text))
    assert jobs["job_id"].to_list() == [2]
    assert source.rejects.lines == {"wrong number of columns": [2]}


def test_records_broken_at_a_block_end_are_put_together(tmp_path: Path) -> None:
    head = "JobID|JobName|Cluster|Submit|State\n"
    text = head + "".join(f"{n}|{'y' * 300}\n{'z' * 300}|lab|100|FAILED\n" for n in range(1, 40_001))
    jobs, source = read(write(tmp_path, text))
    assert jobs["job_id"].to_list() == list(range(1, 40_001))
    assert source.rejects.total == 0


def test_bytes_that_are_no_utf8_are_replaced_and_said(tmp_path: Path) -> None:
    jobs, source = read(
        write(tmp_path, (SHORT + "\n").encode() + row("1").encode().replace(b"x", b"caf\xe9"))
    )
    assert jobs["name"].to_list() == ["caf\ufffd"]
    assert source.notes == ["invalid UTF-8 was replaced"]


def test_bad_records_are_counted_by_reason_with_their_lines_and_good_ones_kept(tmp_path: Path) -> None:
    head = "JobID|Cluster|Submit|Start|End|State|NCPUS|Timelimit\n"
    text = head + (
        "1|lab|100|110|120|COMPLETED|4|01:00:00\n"
        "2|lab|100\n"
        "3|lab|100|110|120|COMPLETED|4|01:00:00|more\n"
        "4|lab|100|110|120|COMPLETED|four|01:00:00\n"
        "5|lab|100|110|120|COMPLETED|4|soon\n"
        "6|lab|100|tomorrow|120|COMPLETED|4|01:00:00\n"
        "7|lab|100|130|120|COMPLETED|4|01:00:00\n"
        "8|lab|100|90|120|COMPLETED|4|01:00:00\n"
        "9|lab|Unknown|110|120|COMPLETED|4|01:00:00\n"
        "x|lab|100|110|120|COMPLETED|4|01:00:00\n"
        "11||100|110|120|COMPLETED|4|01:00:00\n"
        "12|lab|100|110|120|COMPLETED|4|01:00:00\n"
    )
    jobs, source = read(write(tmp_path, text))
    assert jobs.select("job_id", "alloc_cpus", "time_limit").rows() == [
        (1, 4, 3600),
        (4, None, 3600),
        (5, 4, None),
        (12, 4, 3600),
    ]
    assert source.notes == [
        'NCPUS could not be read in 1 record and is left empty (first at line 5: "four")',
        'Timelimit could not be read in 1 record and is left empty (first at line 6: "soon")',
        "unset SLURM_TIME_FORMAT, or set it to %s, and run sacct again",
    ]
    assert source.rejects.examples == {
        "time that cannot be read": 'Start "tomorrow"',
        "times that run backwards": "Submit 1970-01-01T00:01:40Z, Start 1970-01-01T00:02:10Z, End 1970-01-01T00:02:00Z",
        "no job id": 'JobID "x"',
    }
    assert source.rejects.lines == {
        "wrong number of columns": [3, 4],
        "time that cannot be read": [7],
        "times that run backwards": [8, 9],
        "no submit time": [10],
        "no job id": [11],
        "no cluster name": [12],
    }


words = st.text(st.characters(exclude_categories=["Cc", "Cs"], exclude_characters="|"), max_size=8)


@settings(deadline=None)
@given(
    data=st.binary(max_size=200)
    | st.lists(
        st.lists(words | st.sampled_from(["1", "1.0", "2_[1-", "100", "Unknown"]), max_size=8), max_size=9
    ).map(lambda lines: (SHORT + "\n" + "\n".join("|".join(line) for line in lines)).encode())
)
def test_no_bytes_make_it_raise(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = write(tmp_path_factory.mktemp("sacct"), data)
    source = SacctFile(path, cluster="lab")
    try:
        batches = list(source.batches())
    except SourceError:
        return
    kept = sum(batch.jobs.height for batch in batches)
    assert sum(batch.read for batch in batches) == kept + source.rejects.total


name_text = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Zl", "Zp"]), min_size=1, max_size=20
)
sacct_jobs = st.fixed_dictionaries(
    {
        "submit": st.integers(1, 2**32),
        "wait": st.integers(0, 10**6),
        "run": st.integers(0, 10**7),
        "limit": st.sampled_from([60, 3600, 86400 * 3, UNLIMITED]),
        "cpus": st.integers(1, 10**5),
        "memory": st.integers(1, 10**6),
        "name": name_text.filter(lambda name: "\x1f" not in name),
        "state": st.sampled_from(["COMPLETED", "FAILED", "TIMEOUT", "NODE_FAIL"]),
        "uid": st.integers(0, 2**32),
    }
)


@settings(deadline=None, max_examples=50)
@given(
    jobs=st.lists(sacct_jobs, min_size=1, max_size=15),
    zone=st.sampled_from(["UTC", "Asia/Tokyo"]),
    epoch=st.booleans(),
)
def test_what_is_written_comes_back(
    tmp_path_factory: pytest.TempPathFactory, jobs: Sequence[dict[str, Any]], zone: str, epoch: bool
) -> None:
    def clock(instant: int) -> str:
        moment = datetime.fromtimestamp(instant, UTC).astimezone(ZoneInfo(zone))
        return str(instant) if epoch else moment.strftime("%Y-%m-%dT%H:%M:%S")

    text = "JobID|Cluster|Submit|Start|End|Elapsed|State|Timelimit|ReqCPUS|ReqMem|UID|JobName\n"
    for number, job in enumerate(jobs):
        start = job["submit"] + job["wait"]
        parts = [number, "lab", clock(job["submit"]), clock(start), clock(start + job["run"])]
        parts += [format_duration(job["run"]), job["state"], format_duration(job["limit"])]
        parts += [job["cpus"], f"{job['memory']}Mn", job["uid"], job["name"]]
        text += "|".join(map(str, parts)) + "\n"
    found, source = read(write(tmp_path_factory.mktemp("sacct"), text), zone=zone)
    assert source.rejects.total == 0
    for number, (job, line) in enumerate(zip(jobs, found.iter_rows(named=True), strict=True)):
        assert (line["job_id"], line["submit"], line["name"]) == (number, job["submit"], job["name"])
        assert line["start"] == job["submit"] + job["wait"]
        assert line["end"] - line["start"] == line["elapsed"] == job["run"]
        assert (line["time_limit"], line["req_cpus"], line["uid"]) == (job["limit"], job["cpus"], job["uid"])
        assert line["req_memory"] == job["memory"] * 2**20
        assert line["state"] == job["state"]


SACCT = """#!/bin/sh
echo "$* TZ=$TZ $SLURM_TIME_FORMAT" >> "$0.log"
for option; do case "$option" in --delimiter=*) between="${option#*=}" ;; esac; done
case "$1" in
--helpformat) echo "Account  Cluster  JobID\nState Submit Start End JobName Partition" ;;
*) case "$*" in
   *"-S 1970-01-02"*) printf '7|lab|90000|90010|90020|COMPLETED||main|x\n7.0|lab|||||||\n8|lab|90000|90010|90020|COMPLETED|||\n' | sed "s/|/$between/g" ;;
   esac ;;
esac
"""


@pytest.fixture
def fake_sacct(tmp_path: Path) -> Path:
    path = tmp_path / "sacct"
    path.write_text(SACCT)
    path.chmod(stat.S_IRWXU)
    return path


def test_a_live_sacct_is_asked_span_by_span_for_what_it_knows(fake_sacct: Path) -> None:
    source = SacctLive(3600, 86400 * 5, cluster="lab", command=str(fake_sacct))
    batches = list(source.batches())
    asked = fake_sacct.with_name("sacct.log").read_text().splitlines()
    assert "-o JobID,Cluster,Submit,Start,End,State,Account,Partition,JobName " in asked[1]
    assert "-S 1970-01-01T01:00:00 -E 1970-01-02T01:00:00 -M lab TZ=UTC %s" in asked[1]
    assert " -D " in asked[1]
    jobs = pl.concat([batch.jobs for batch in batches])
    assert jobs.select("job_id", "submit", "start", "name", "steps").rows() == [(7, 90000, 90010, "x", 1)]
    assert sum(batch.read for batch in batches) == 2  # job 8 is not whole yet, and is left for the next look
    positions = [batch.position for batch in batches]
    assert positions == sorted(positions)
    assert positions[-1] == 86400 * 5
    assert batches[-1].done == source.total
    again = list(SacctLive(3600, 86400 * 5, cluster="lab", command=str(fake_sacct)).batches(positions[-2]))
    assert again[-1].position == 86400 * 5
    assert not any(batch.read for batch in again)  # the job was in an earlier span


def test_a_job_name_cannot_forge_a_record_of_another_job(fake_sacct: Path) -> None:
    """Slurm takes any character in a name: newlines, and the separators of control."""
    forged = "9|lab|90000|90010|90020|FAILED||main|mine".replace("|", "\\037")
    fake_sacct.write_text(SACCT.replace("main|x\n", f"main|x\n{forged}\n"))
    jobs = pl.concat(batch.jobs for batch in SacctLive(86400, 86400 * 2, command=str(fake_sacct)).batches())
    assert jobs["job_id"].to_list() == [7]
    assert jobs["outcome"].to_list() == ["completed"]


def test_a_sacct_that_fails_says_why(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match="not installed"):
        list(SacctLive(0, 10, command="no-such-sacct").batches())
    path = tmp_path / "sacct"
    path.write_text("#!/bin/sh\necho 'sacct: error: slurmdbd is down' >&2\nexit 1\n")
    path.chmod(stat.S_IRWXU)
    with pytest.raises(ClusterError, match="slurmdbd is down"):
        list(SacctLive(0, 10, command=os.fspath(path)).batches())


def test_what_a_live_sacct_is_asked_for_exists_in_the_recorded_version() -> None:
    known = RECORDED.read_text().splitlines()[0].split("|")
    assert set(LIVE_COLUMNS) - set(known) == {"Licenses"}  # which newer ones have


@pytest.mark.parametrize("delimiter", ["|", ";", "\t", "<|>", "^_^", "§", "\x1f", ", "])
def test_a_delimiter_of_any_length_is_found_in_the_header(tmp_path: Path, delimiter: str) -> None:
    text = (SHORT + "\n" + row("1", name="a") + row("2_3", name="b c")).replace("|", delimiter)
    source = open_log(str(write(tmp_path, text)))
    jobs = pl.concat([batch.jobs for batch in source.batches()])
    assert jobs.select("job_id", "task", "name", "end").rows() == [(1, None, "a", 120), (2, 3, "b c", 120)]
    assert source.rejects.total == 0


def test_a_delimiter_can_be_named_for_text_without_a_header(tmp_path: Path) -> None:
    path = write(tmp_path, row("1", name="a|b").replace("|lab|", "#!lab#!").replace("|1", "#!1"))
    text = path.read_text().replace("|COMPLETED|", "#!COMPLETED#!")
    jobs, source = read(write(tmp_path, text), columns=SHORT.split("|"), delimiter="#!")
    assert jobs.select("job_id", "name").rows() == [(1, "a|b")]
    assert source.rejects.total == 0


ALL = "Account|AllocCPUS|Comment|Cluster|JobID|JobName|Layout|NCPUS|NNodes|State|Submit|SubmitLine|Suspended|User|WorkDir"


def of_all(job: str, *, name: str, line: str, cpus: str = "4") -> str:
    return f"acc|{cpus}||lab|{job}|{name}|Unknown|{cpus}|1|COMPLETED|2026-01-01T10:00:00|{line}|00:00:00|ada|/home\n"


def test_separators_and_newlines_in_several_columns_are_recovered_by_the_shape_of_the_others(
    tmp_path: Path,
) -> None:
    rows = [
        of_all("1", name="plain", line="sbatch x.sh"),
        of_all("2", name="a|b", line="sbatch -J a|b x.sh | tee"),
        of_all("3", name="c", line="sbatch --wrap=one\ntwo | three\n\nfour"),
        of_all("4_7", name="d|\n|e", line="sbatch x.sh"),
        of_all("5", name="plain", line="sbatch y.sh"),
    ]
    jobs, source = read(write(tmp_path, ALL + "\n" + "".join(rows)))
    assert jobs.select("job_id", "name", "submit_line", "work_dir").rows() == [
        (1, "plain", "sbatch x.sh", "/home"),
        (2, "a|b", "sbatch -J a|b x.sh | tee", "/home"),
        (3, "c", "sbatch --wrap=one two | three  four", "/home"),
        (4, "d| |e", "sbatch x.sh", "/home"),
        (5, "plain", "sbatch y.sh", "/home"),
    ]
    assert source.rejects.total == 0


def test_a_separator_that_may_belong_to_two_columns_rejects_one_record(tmp_path: Path) -> None:
    head = "JobID|Cluster|Submit|State|WorkDir|SubmitLine\n"
    text = head + "1|lab|100|FAILED|/a|b|sbatch\nx\n2|lab|100|FAILED|/a|sbatch\n"
    jobs, source = read(write(tmp_path, text))
    assert jobs["job_id"].to_list() == [2]
    assert source.rejects.counts == {"wrong number of columns": 1}


def test_memory_is_that_of_all_tasks_on_a_node(tmp_path: Path) -> None:
    head = "JobID|Cluster|Submit|State|NNodes|NTasks|MaxRSS|AveRSS|TRESUsageInTot\n"
    steps = [
        "1|lab|100|OUT_OF_MEMORY|1||||\n1.0|lab|||1|8|619M|600M|cpu=1,fs/disk=5,mem=4800M",  # all on one node
        "2|lab|100|COMPLETED|2||||\n2.0|lab|||2|8|10G|2G|mem=17G",  # the largest task and three others
        "3|lab|100|COMPLETED|2||||\n3.0|lab|||2|2|3G|2G|mem=4G",  # one task on each node
        "4|lab|100|COMPLETED|1||||\n4.batch|lab|||1|1|7M|7M|mem=7M\n4.0|lab|||1|4|2M|2M|",  # by the average
        "5|lab|100|COMPLETED|2||||\n5.0|lab|||2|8|1G||",  # by the largest task alone
        "6|lab|100|COMPLETED|1||||\n6.0|lab|||1|4|0|0|mem=0",
    ]
    jobs, _ = read(write(tmp_path, head + "\n".join(steps) + "\n"))
    gib, mib = 2**30, 2**20
    assert jobs["max_memory"].to_list() == [4800 * mib, 13 * gib, 3 * gib, 8 * mib, 4 * gib, None]
    assert jobs["read_bytes"].to_list()[0] == 5


amounts = st.none() | st.integers(0, 2**55)


@settings(deadline=None, max_examples=300)
@given(
    rows=st.lists(
        st.tuples(amounts, amounts, st.none() | st.integers(0, 5000), st.none() | st.integers(0, 5000)),
        min_size=1,
    )
)
def test_text_and_json_compute_the_same_memory(rows: list[tuple[int | None, ...]]) -> None:
    names = ["largest", "total", "tasks", "nodes"]
    frame = pl.DataFrame(rows, schema=dict.fromkeys(names, pl.Int64), orient="row")
    found = frame.select(memory_on_node_of(*(pl.col(name) for name in names)).alias("memory"))["memory"]
    assert found.to_list() == [memory_on_node(*row) for row in rows]
    for row, memory in zip(rows, found, strict=True):
        assert (memory or 0) >= (row[0] or 0)
        if row[0] and row[1] and row[0] <= row[1] < 2**52 and row[3] == 1 and (row[2] or 0) < 1000:
            assert memory == row[1]


def test_a_newline_before_the_id_is_recovered_if_enough_columns_come_first(tmp_path: Path) -> None:
    head = (
        "Account<|>AllocCPUS<|>AllocNodes<|>AllocTRES<|>AveRSS<|>Comment<|>Cluster<|>JobID<|>State<|>Submit\n"
    )
    rows = [
        f"acc<|>4<|>1<|>cpu=4<|><|>{note}<|>lab<|>{n}<|>FAILED<|>100\n"
        for n, note in enumerate(["", "a|b\nc", "x"])
    ]
    source = open_log(str(write(tmp_path, head + "".join(rows))))
    assert pl.concat([batch.jobs for batch in source.batches()])["job_id"].to_list() == [0, 1, 2]
    assert source.rejects.total == 0
