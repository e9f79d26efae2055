"""A log in the Standard Workload Format gives its jobs, and counts what is none."""

import gzip
from collections import Counter
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tocsin.core.errors import SourceError
from tocsin.core.frames import SCHEMA
from tocsin.sources.swf import SwfFile

HEADER = """\
; Version: 2.2
; UnixStartTime: 1000000
; TimeZoneString: Europe/Stockholm
; Queue:  4  low
; Partition: 1 batch
;
"""
ROW = "1 10 5 100 4 20 1000 4 3600 2000 1 12 13 14 4 -1 -1 -1"


def write(folder: Path, text: str | bytes, name: str = "MACHINE-2000-1.swf") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def read(path: Path, resume: int = 0) -> tuple[pl.DataFrame, SwfFile]:
    source = SwfFile(path)
    return pl.concat([SCHEMA.to_frame(), *(batch.jobs for batch in source.batches(resume))]), source


def test_every_field_has_its_place_and_unit(tmp_path: Path) -> None:
    jobs, source = read(write(tmp_path, HEADER + ROW + "\n2 20 0 1 1 -1 -1 1 -1 -1 0 -1 -1 -1 9 1 1 60\n"))
    job = {name: value for name, value in jobs.row(0, named=True).items() if value is not None}
    assert job == {
        "cluster": "MACHINE-2000-1",
        "job_id": 1,
        "submit": 1000010,
        "user": "12",
        "uid": 12,
        "group": "13",
        "gid": 13,
        "executable": "14",
        "partition": "low",
        "req_cpus": 4,
        "req_memory": 2000 * 1024 * 4,
        "time_limit": 3600,
        "start": 1000015,
        "alloc_cpus": 4,
        "state": "COMPLETED",
        "outcome": "completed",
        "end": 1000115,
        "elapsed": 100,
        "cpu_seconds": 80,
        "max_memory": 1000 * 1024 * 4,
        "source": "swf",
        "request_final": True,
    }
    second = jobs.row(1, named=True)
    assert second["dependency"] == "after:1"
    assert (second["partition"], second["segment"]) == ("9", "batch")
    assert second["outcome"] == "failed"
    assert second["time_limit"] is None
    assert source.labels("TimeZoneString") == ["Europe/Stockholm"]
    assert not source.notes


def test_the_name_of_the_file_names_the_cluster(tmp_path: Path) -> None:
    packed = write(tmp_path, gzip.compress(ROW.encode()), "SDSC-BLUE-2000-4.2-cln.swf.gz")
    assert read(packed)[0]["cluster"].to_list() == ["SDSC-BLUE-2000-4.2-cln"]
    assert SwfFile(packed, cluster="blue").cluster == "blue"
    with pytest.raises(SourceError, match="-M"):
        SwfFile("-")


def test_partitions_are_taken_where_there_are_no_queues(tmp_path: Path) -> None:
    jobs, source = read(write(tmp_path, "1 0 1 1 1 -1 -1 1 1 -1 1 1 1 1 -1 3 -1 -1\n"))
    assert (jobs["partition"][0], jobs["segment"][0]) == ("3", None)
    assert "no UnixStartTime" in source.notes[0]


def test_a_start_time_that_is_no_number_is_named(tmp_path: Path) -> None:
    _, source = read(write(tmp_path, f"; UnixStartTime: yesterday\n{ROW}"))
    assert 'UnixStartTime "yesterday" is not a number' in source.notes[0]


@pytest.mark.parametrize(
    "header",
    [
        "; UnixStartTime:\n; UnixStartTime: 1000000000\n",
        "; UnixStartTime: 1000000000 (Sun Sep 9 01:46:40 UTC 2001)\n",
        "# UnixStartTime: 1000000000\n",
    ],
)
def test_a_header_in_another_style_gives_the_start_time(tmp_path: Path, header: str) -> None:
    (tmp_path / "x.swf").write_text(header + "1 5 10 100 4 -1 -1 4 100 -1 1 1 1 -1 1 -1 -1 -1\n")
    source = SwfFile(tmp_path / "x.swf")
    assert [int(batch.jobs["submit"][0]) for batch in source.batches()] == [1_000_000_005]
    assert not source.notes
    assert not source.rejects.counts


def test_a_later_job_with_a_queue_does_not_change_an_earlier_one_without(tmp_path: Path) -> None:
    early = "1 0 1 1 1 -1 -1 1 1 -1 1 1 1 1 -1 3 -1 -1\n"
    jobs, _ = read(write(tmp_path, early + "2 9 1 1 1 -1 -1 1 1 -1 1 1 1 1 7 3 -1 -1\n"))
    assert jobs.select("partition", "segment").rows() == [("3", None), ("7", "3")]


def test_a_log_without_wait_times_starts_jobs_as_they_are_submitted_and_says_so(tmp_path: Path) -> None:
    jobs, source = read(write(tmp_path, HEADER + "1 10 -1 100 4 -1 -1 4 -1 -1 1 1 1 1 1 -1 -1 -1\n"))
    assert jobs.select("start", "end").row(0) == (1000010, 1000110)
    assert source.notes == ["the log has no wait times; start is taken as submit"]


def test_a_job_cancelled_before_it_started_has_an_end_and_no_start(tmp_path: Path) -> None:
    jobs, _ = read(write(tmp_path, HEADER + "1 10 50 -1 -1 -1 -1 4 60 -1 5 1 1 1 1 -1 -1 -1\n"))
    assert jobs.select("start", "end", "elapsed", "alloc_cpus", "outcome").row(0) == (
        None,
        1000060,
        None,
        None,
        "cancelled",
    )


def test_bad_rows_are_counted_by_reason_with_their_lines_and_good_ones_kept(tmp_path: Path) -> None:
    rows = [
        ROW,  # 7
        "2 10 5 100",
        "2 10 5 100 4",
        "",
        ROW.replace("3600", "an-hour"),
        ROW.replace("3600", "1e400"),
        "3 -1 5 100 4 -1 -1 4 -1 -1 1 1 1 1 1 -1 -1 -1",
        "4 10 -5 100 4 -1 -1 4 -1 -1 1 1 1 1 1 -1 -1 -1",
        "5 10 5 -100 4 -1 -1 4 -1 -1 1 1 1 1 1 -1 -1 -1",
        "6 -7 5 100 4 -1 -1 4 -1 -1 1 1 1 1 1 -1 -1 -1",
        "7 10 5 100 4 -1 -1 4 -1 -1 3 1 1 1 1 -1 -1 -1",
        "-1 10 5 100 4 -1 -1 4 -1 -1 1 1 1 1 1 -1 -1 -1",
        ROW,
        "8\t10.5\t5 100 4 -1 -1 4 -1 -1 1 1 1 1 1 -1 -1 -1  ",
    ]
    jobs, source = read(write(tmp_path, HEADER + "\r\n".join(rows)))
    assert jobs["job_id"].to_list() == [1, 8]
    assert source.rejects.lines == {
        "wrong number of columns": [8, 9],
        "text in a number field": [11, 12],
        "no submit time": [13],
        "times that run backwards": [14, 15, 16],
        "piece of a job (status 2–4)": [17],
        "no job id": [18],
        "job seen before in this file": [19],
    }


def test_lines_with_more_columns_are_read_with_a_note(tmp_path: Path) -> None:
    rows = [ROW, ROW.replace("1", "2", 1) + " 19 twenty", ROW.replace("1", "3", 1) + " -1", "4 " + ROW[2:]]
    jobs, source = read(write(tmp_path, HEADER + "\n".join(rows)))
    plain, _ = read(write(tmp_path, HEADER + "\n".join(f"{n} {ROW[2:]}" for n in (1, 2, 3, 4))))
    assert jobs.equals(plain)
    assert source.rejects.total == 0
    assert source.notes == ["2 lines have more than 18 columns; the surplus was ignored"]


@pytest.mark.parametrize(
    ("start", "submit", "expected"),
    [(1_200_000_000, 1_200_000_500, 1_200_000_500), (1_200_000_000, 500, 1_200_000_500), (0, 500, 500)],
)
def test_absolute_submit_times_are_noticed(tmp_path: Path, start: int, submit: int, expected: int) -> None:
    row = ROW.replace("1 10 ", f"1 {submit} ", 1)
    jobs, source = read(write(tmp_path, f"; UnixStartTime: {start}\n{row}\n"))
    assert jobs["submit"].to_list() == [expected]
    assert any("relative" in note for note in source.notes) == (submit > start > 0)


def test_jobs_are_recognised_across_blocks_and_an_import_goes_on_where_it_stopped(tmp_path: Path) -> None:
    rows = [f"{n} {n} 1 1 1 -1 -1 1 1 -1 1 1 1 1 -1 -1 -1 -1{' ' * 100}\n" for n in range(120_000)]
    path = write(tmp_path, HEADER + "".join(rows) + rows[5] + rows[119_999])
    source = SwfFile(path)
    batches = list(source.batches())
    assert [batch.jobs.height for batch in batches if batch.jobs.height > 50_000] == []
    assert sum(batch.jobs.height for batch in batches) == 120_000
    assert sum(batch.read for batch in batches) == 120_002
    assert source.rejects.lines == {"job seen before in this file": [120_007, 120_008]}
    assert batches[-1].position == 120_002
    assert batches[-1].done == source.total
    for stop in (0, 1, len(batches) - 2):
        rest = list(SwfFile(path).batches(batches[stop].position))
        assert pl.concat([b.jobs for b in rest]).equals(pl.concat([b.jobs for b in batches[stop + 1 :]]))
        assert sum(batch.read for batch in rest) == 120_002 - batches[stop].position


def test_a_cut_off_log_keeps_what_came_before(tmp_path: Path) -> None:
    rows = "".join(
        f"{n} {n} 1 {n * 7919 % 10007} 1 -1 -1 1 1 -1 1 1 1 1 -1 -1 -1 -1\n" for n in range(20_000)
    )
    jobs, source = read(write(tmp_path, gzip.compress(rows.encode())[:-500], "cut.swf.gz"))
    assert 10_000 < jobs.height < 20_000
    assert source.rejects.counts == {"the file ends in the middle of gzip data": 1}
    assert source.rejects.lines["the file ends in the middle of gzip data"] == [jobs.height + 1]


@given(data=st.binary(max_size=200) | st.text("0123456789 -;.\n\teE", max_size=300).map(str.encode))
def test_no_bytes_make_it_raise(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = write(tmp_path_factory.mktemp("swf"), data)
    source = SwfFile(path)
    try:
        batches = list(source.batches())
    except SourceError:
        return
    assert (
        sum(batch.read for batch in batches)
        == sum(batch.jobs.height for batch in batches) + source.rejects.total
    )


known = st.none() | st.integers(0, 2**31)
jobs_as_numbers = st.fixed_dictionaries(
    {
        "submit": st.integers(0, 2**31),
        "wait": st.integers(0, 2**31),
        "run": known,
        "procs": st.none() | st.integers(1, 10**6),
        "limit": known,
        "status": st.sampled_from([0, 1, 5, -1]),
        "user": known,
        "group": known,
        "executable": known,
        "queue": st.integers(0, 100),
    }
)


@settings(deadline=None, max_examples=50)
@given(jobs=st.lists(jobs_as_numbers, min_size=1, max_size=20), gap=st.sampled_from([" ", "   ", "\t"]))
def test_what_is_written_comes_back(
    tmp_path_factory: pytest.TempPathFactory, jobs: list[dict[str, int]], gap: str
) -> None:
    def word(value: int | None) -> str:
        return "-1" if value is None else str(value)

    rows = [
        (
            *(n, j["submit"], j["wait"], j["run"], j["procs"], None, None, j["procs"], j["limit"], None),
            *(j["status"], j["user"], j["group"], j["executable"], j["queue"], None, None, None),
        )
        for n, j in enumerate(jobs)
    ]
    text = "; UnixStartTime: 7\n" + "".join(gap + gap.join(word(v) for v in row) + "\n" for row in rows)
    found, source = read(write(tmp_path_factory.mktemp("swf"), text))
    assert source.rejects.total == 0
    for number, (job, row) in enumerate(zip(jobs, found.iter_rows(named=True), strict=True)):
        assert row["job_id"] == number
        assert row["submit"] == job["submit"] + 7
        assert row["elapsed"] == job["run"]
        assert row["time_limit"] == job["limit"]
        assert row["req_cpus"] == job["procs"]
        assert row["uid"] == job["user"]
        assert row["executable"] == (None if job["executable"] is None else str(job["executable"]))
        assert row["partition"] == str(job["queue"])
        assert row["outcome"] == {0: "failed", 1: "completed", 5: "cancelled", -1: "unknown"}[job["status"]]
        if job["run"] is not None:
            assert row["start"] == row["submit"] + job["wait"]
            assert row["end"] == row["start"] + job["run"]


@pytest.mark.parametrize(
    "name",
    [
        "SDSC-BLUE-2000-4.2-cln",
        "KTH-SP2-1996-2.1-cln",
        "LLNL-Thunder-2007-1.1-cln",
        "METACENTRUM-2009-2",
        "DOST-COARE-2020-cln",
    ],
)
def test_public_logs_are_read_whole(data: Path, name: str) -> None:
    path = data / "swf" / f"{name}.swf.gz"
    with gzip.open(path, "rt", errors="replace") as file:
        lines = [line.split() for line in file if not line.startswith(";")]
    timed = [
        line for line in lines if line[1] != "-1"
    ]  # a record without a submit time is no job that can be known
    jobs, source = read(path)
    words = {"0": "failed", "1": "completed", "5": "cancelled", "-1": "unknown"}
    assert Counter(jobs["outcome"]) == Counter(words[line[10]] for line in timed)
    assert jobs["job_id"].to_list() == [int(line[0]) for line in timed]
    assert source.rejects.total == len(lines) - len(timed)
    if name.startswith("SDSC"):
        assert (jobs.height, source.rejects.total) == (243_306, 0)
