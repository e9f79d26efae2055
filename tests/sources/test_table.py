"""Tables of any shape give jobs, as their mapping says."""

import csv
import gzip
import io
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tocsin.core.errors import SourceError
from tocsin.core.frames import SCHEMA
from tocsin.core.units import UNLIMITED
from tocsin.sources.mapping import read_mapping, shipped_mappings
from tocsin.sources.table import TableFile

MAPPING = """
cluster = "lab"
zone = "Europe/Zurich"
null = ["", "-"]

[fields]
job_id = { column = "id" }
submit = { column = "sent" }
start = { column = "began" }
end = { column = "ended" }
user = "who"
time_limit = { column = "limit", unit = "minutes", unlimited = 999 }
req_memory = { column = "memory", unit = "GiB", null = [0] }
state = { column = "state", states = { ok = "COMPLETED", bad = "FAILED" } }
energy = { column = "energy", unit = "watt-hours" }
exclusive = { column = "alone" }
partition = { value = "main" }
"""
HEAD = "id,sent,began,ended,who,limit,memory,state,energy,alone\n"
DATABASE = (
    "id_job,id_array_job,id_array_task,id_user,nodes_alloc,nodelist,cpus_req,exit_code,mem_req,partition,priority,state,"
    "timelimit,time_submit,time_eligible,time_start,time_end,time_suspended,tres_alloc,tres_req,time_norm\n"
)


def write(folder: Path, text: str | bytes, name: str = "jobs.csv") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def mapping_in(folder: Path, text: str = MAPPING) -> Path:
    return write(folder, text, "mapping.toml")


def read(path: Path, mapping: Path | str, **options: Any) -> tuple[pl.DataFrame, TableFile]:
    source = TableFile(path, mapping, **options)
    return pl.concat([SCHEMA.to_frame(), *(batch.jobs for batch in source.batches())]), source


def test_a_table_is_read_as_its_mapping_says(tmp_path: Path) -> None:
    text = HEAD + (
        '1,2024-07-01T12:00:00,2024-07-01T12:00:10,2024-07-01T12:01:00,"ann, b",90,1.5,ok,2,yes\n'
        "2,1719828000,-,-,-,999,0,other,-,0\n"
    )
    jobs, source = read(write(tmp_path, text), mapping_in(tmp_path))
    first, second = jobs.iter_rows(named=True)
    assert {name: value for name, value in first.items() if value is not None} == {
        "cluster": "lab",
        "job_id": 1,
        "submit": 1719828000,
        "user": "ann, b",
        "partition": "main",
        "exclusive": True,
        "req_memory": 3 * 2**29,
        "time_limit": 5400,
        "start": 1719828010,
        "state": "COMPLETED",
        "outcome": "completed",
        "end": 1719828060,
        "elapsed": 50,
        "energy": 7200.0,
        "source": "table",
        "request_final": True,
    }
    assert second["submit"] == 1719828000
    assert second["time_limit"] == UNLIMITED
    assert second["outcome"] == "unknown"
    assert [second[name] for name in ("user", "start", "elapsed", "req_memory", "energy")] == [None] * 5
    assert source.rejects.total == 0


def test_slurms_database_columns(tmp_path: Path) -> None:
    text = DATABASE + (
        "41.0,40.0,3,77.0,2,\"['n1', 'n2']\",8,256,9.22337e+18,main,10,5,60,100,100,110,170,20,"
        '"1=8,2=4000,4=2,5=8","1=8,2=4000,4=2,5=8,1002=3",0.5\n'
        '50.0,9.0,4294967294,77.0,0,None assigned,1,9,2000.0,main,10,4,4294967295,100,100,0,170,0,"","1=1,2=2000,4=1",\n'
        '50.0,9.0,4294967294,77.0,1,n7,1,0,2000,main,10,3,4294967294,200,200,210,220,0,"1=1,1001=2,1002=2","1=1",\n'
    )
    jobs, source = read(write(tmp_path, text), "slurm-database", cluster="mit")
    assert source.rejects.total == 0
    task, waiting, plain = jobs.iter_rows(named=True)
    assert (task["cluster"], task["job_id"], task["task"], task["raw_id"]) == ("mit", 40, 3, 41)
    assert (task["user"], task["uid"], task["node_list"], task["alloc_nodes"]) == ("77", 77, "n1,n2", 2)
    assert (task["state"], task["exit_code"], task["exit_signal"]) == ("FAILED", 1, 0)
    assert (task["req_memory"], task["req_gpus"], task["req_nodes"]) == (2000 * 2**20, 3, 2)
    assert (task["time_limit"], task["elapsed"]) == (3600, 40)  # 20 s of suspension are no run time
    assert (waiting["job_id"], waiting["task"], waiting["start"], waiting["alloc_nodes"]) == (
        50,
        None,
        None,
        None,
    )
    assert (waiting["exit_signal"], waiting["time_limit"]) == (9, UNLIMITED)
    assert (plain["submit"], plain["time_limit"], plain["alloc_gpus"]) == (200, None, 2)


def test_the_public_table_of_mit_supercloud(data: Path) -> None:
    path = data / "accounting" / "mit-supercloud-2021q1.csv.gz"
    jobs, source = read(path, "slurm-database", cluster="supercloud")
    assert jobs.height == 9628
    assert jobs.select(pl.struct("cluster", "job_id", "task", "submit").n_unique()).item() == 9628
    assert source.rejects.total == 0
    assert Counter(jobs["outcome"]) == {
        "completed": 5784,
        "cancelled": 1893,
        "failed": 1077,
        "timeout": 841,
        "out_of_memory": 21,
        "node_fail": 12,
    }
    assert jobs["req_memory"].null_count() == 0
    assert jobs.filter(pl.col("time_limit") == UNLIMITED).height == 3216
    with gzip.open(path, "rt", newline="") as file:
        service = [float(line["service_time"]) for line in csv.DictReader(file)]
    assert jobs["elapsed"].to_list() == service


def test_the_cluster_is_named_after_the_file_where_nothing_else_names_it(tmp_path: Path) -> None:
    path = write(tmp_path, "id_job,time_submit\n1,100\n", "centre.csv")
    jobs, source = read(path, "slurm-database")
    assert jobs["cluster"].to_list() == ["centre"]
    assert "-M" in source.notes[0]


def fugaku() -> pl.DataFrame:
    noon = datetime(2021, 4, 1, 12, 0, 0)
    return pl.DataFrame(
        {
            "jid": ["jid_17", "f3a9", "f3a9"],
            "usr": ["usr_1", "usr_2", "usr_2"],
            "jnam": ["jnam_5", "jnam_6", None],
            "cnumr": [48, 96, 96],
            "nnumr": [1, 2, 2],
            "elpl": [3600.0, 1.8446744073709552e19, 60.0],
            "mszl": [1.8446744073709552e19, 3e10, None],
            "adt": [noon, noon, noon.replace(hour=13)],
            "sdt": [noon.replace(second=30)] * 2 + [None],
            "edt": [noon.replace(minute=1)] * 2 + [None],
            "econ": [2.0, float("nan"), None],
            "avgpcon": [100.0, 200.0, None],
            "cnumat": [48, 96, 0],
            "nnuma": [1, 2, 0],
            "elp": [30.0, 30.0, 0.0],
            "idle_time_ave": [0.5, 0.25, None],
            "mbwidth": [1e9, 2e9, None],
            "flops": [1e10, 2e10, None],
            "exit state": ["completed", "failed", "failed"],
            "embedding": [[0.1, 0.2]] * 3,
        }
    )


def test_fugakus_f_data(tmp_path: Path) -> None:
    path = tmp_path / "21_04.parquet"
    fugaku().write_parquet(path)
    jobs, source = read(path, "f-data")
    assert source.rejects.total == 0
    first, second, third = jobs.iter_rows(named=True)
    assert (first["cluster"], first["job_id"], first["user"], first["name"]) == (
        "fugaku",
        17,
        "usr_1",
        "jnam_5",
    )
    assert first["submit"] == int(datetime(2021, 4, 1, 3, 0, 0, tzinfo=UTC).timestamp())
    assert (first["start"] - first["submit"], first["end"] - first["submit"], first["elapsed"]) == (
        30,
        60,
        30,
    )
    assert (first["req_cpus"], first["req_nodes"], first["time_limit"], first["req_memory"]) == (
        48,
        1,
        3600,
        None,
    )
    assert (first["energy"], first["power"], first["outcome"]) == (7200.0, 100.0, "completed")
    assert (second["time_limit"], second["req_memory"], second["energy"]) == (None, 30_000_000_000, None)
    # The same text is the same number, for ever.
    assert second["job_id"] == third["job_id"] == 983952808574791193
    assert (third["outcome"], third["start"], third["alloc_cpus"]) == ("failed", None, None)


@pytest.mark.parametrize("kind", ["text", "aware"])
def test_times_in_parquet_may_be_text_or_know_their_zone(tmp_path: Path, kind: str) -> None:
    table = fugaku()
    times = pl.col("adt", "sdt", "edt").dt.replace_time_zone("Asia/Tokyo")
    table = table.with_columns(times if kind == "aware" else times.dt.strftime("%Y-%m-%d %H:%M:%S%:z"))
    path = tmp_path / "jobs.parquet"
    table.write_parquet(path)
    jobs, _ = read(path, "f-data", zone="UTC")
    assert jobs["submit"][0] == int(datetime(2021, 4, 1, 3, 0, 0, tzinfo=UTC).timestamp())


def test_large_tables_come_in_batches_and_go_on_where_they_stopped(tmp_path: Path) -> None:
    rows = pl.DataFrame(
        {"jid": range(120_000), "adt": [1_600_000_000] * 120_000, "usr": ["x" * 300] * 120_000}
    )
    rows.write_parquet(tmp_path / "jobs.parquet")
    rows.write_csv(tmp_path / "jobs.csv")
    for path in (tmp_path / "jobs.parquet", tmp_path / "jobs.csv"):
        source = TableFile(path, "f-data")
        batches = list(source.batches())
        whole = pl.concat([batch.jobs for batch in batches])
        assert max(batch.jobs.height for batch in batches) <= 50_000
        assert whole["job_id"].to_list() == list(range(120_000))
        assert (batches[-1].position, batches[-1].done) == (120_000, source.total)
        rest = pl.concat([batch.jobs for batch in TableFile(path, "f-data").batches(batches[1].position)])
        assert rest.equals(whole[batches[1].position :])


def test_bad_rows_are_counted_by_reason_with_their_lines_and_good_ones_kept(tmp_path: Path) -> None:
    text = HEAD + (
        "1,100,110,120,ann,90,1,ok,2,1\n"
        "2,100,110\n"
        "3,100,110,120,ann,90,1,ok,2,1,more\n"
        "\n"
        '4,100,110,120,"ann,90,1,ok,2,1\n'
        "5,100,110,120,ann,ninety,1,ok,2,1\n"
        "6,100,never,120,ann,90,1,ok,2,1\n"
        "7,100,130,120,ann,90,1,ok,2,1\n"
        "-,100,110,120,ann,90,1,ok,2,1\n"
        "9,-,110,120,ann,90,1,ok,2,1\n"
        "1,100,110,120,ann,90,1,ok,2,1\n"
        "11,100,110,120,ann,90,1,ok,2,1\n"
    )
    jobs, source = read(write(tmp_path, text), mapping_in(tmp_path))
    assert jobs["job_id"].to_list() == [1, 5, 11]
    assert source.notes[-1].endswith(
        'could not be read in 1 record and is left empty (first at line 7: "ninety")'
    )
    assert source.rejects.examples["time that cannot be read"] == 'start "never"'
    assert source.rejects.lines == {
        "wrong number of columns": [3, 4, 6],
        "time that cannot be read": [8],
        "times that run backwards": [9],
        "no job id": [10],
        "no submit time": [11],
        "job seen before in this file": [12],
    }


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("[fields]", "[fields"), "cannot be read"),
        (("[fields]", "[other]"), "other is unknown"),
        (('cluster = "lab"', "cluster = 7"), "cluster must be text"),
        (
            ('unit = "minutes"', 'unit = "fortnights"'),
            'fields.time_limit.unit "fortnights" is unknown; known are seconds',
        ),
        (('user = "who"', 'usr = "who"'), "fields.usr is not a field"),
        (('user = "who"', "user = 7"), "fields.user must be a column"),
        (('user = "who"', 'user = { colum = "who" }'), "fields.user.colum is unknown"),
        (('user = "who"', "user = {}"), "fields.user needs either a column or a value"),
        (('user = "who"', 'outcome = "who"'), "fields.outcome is not a field that a table can set"),
        (('job_id = { column = "id" }', ""), "fields.job_id is missing"),
        (("unlimited = 999", 'unlimited = "x"'), "fields.time_limit.unlimited must be a number"),
        (('zone = "Europe/Zurich"', 'zone = "Mars"'), "is not a time zone"),
        (('{ value = "main" }', '{ value = "main", needs = "nothing" }'), 'needs "nothing" is not a field'),
    ],
)
def test_a_broken_mapping_is_refused_with_key_and_reason(
    tmp_path: Path, change: tuple[str, str], words: str
) -> None:
    assert change[0] in MAPPING
    with pytest.raises(SourceError, match=words):
        TableFile(write(tmp_path, HEAD), mapping_in(tmp_path, MAPPING.replace(*change)))


def test_a_mapping_that_does_not_fit_the_table_is_said(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r'has no column "id".*mapping.toml uses for job_id; it has: a, b'):
        read(write(tmp_path, "a,b\n1,2\n"), mapping_in(tmp_path))
    constant = MAPPING.replace('{ value = "main" }', '"who"').replace(
        'user = "who"', 'uid = { value = "ann" }'
    )
    with pytest.raises(SourceError, match=r"fields\.uid does not fit"):
        read(write(tmp_path, HEAD + "1,100,,,,,,,,\n"), mapping_in(tmp_path, constant))
    with pytest.raises(SourceError, match="name a TOML file or one of: f-data, slurm-database"):
        read(write(tmp_path, HEAD), "fdata")


def test_what_ships_can_be_read() -> None:
    assert shipped_mappings() == ["f-data", "slurm-database"]
    for name in shipped_mappings():
        assert {"job_id", "submit", "state"} <= set(read_mapping(name).rules)


def test_a_damaged_parquet_file_is_said(tmp_path: Path) -> None:
    good = io.BytesIO()
    fugaku().write_parquet(good)
    whole = good.getvalue()
    for broken in (whole[:200], whole[:-20], b"PAR1"):
        with pytest.raises(SourceError, match="is not a readable Parquet file"):
            read(write(tmp_path, broken, "jobs.parquet"), "f-data")


@given(
    data=st.binary(max_size=200)
    | st.text('0123456789,"-.\n\r\tabc', max_size=300).map(lambda t: (HEAD + t).encode())
)
def test_no_bytes_make_it_raise(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    folder = tmp_path_factory.mktemp("table")
    source = TableFile(write(folder, data), mapping_in(folder))
    try:
        batches = list(source.batches())
    except SourceError:
        return
    assert (
        sum(batch.read for batch in batches)
        == sum(batch.jobs.height for batch in batches) + source.rejects.total
    )


@given(text=st.text(max_size=100) | st.sampled_from([MAPPING[:n] for n in range(0, len(MAPPING), 7)]))
@settings(deadline=None, max_examples=60)
def test_no_mapping_makes_it_raise(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = write(tmp_path_factory.mktemp("mapping"), text.encode("utf-8", "replace"), "mapping.toml")
    try:
        read_mapping(path)
    except SourceError as error:
        assert "mapping" in str(error)


cells = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Zs", "Zl", "Zp"]), min_size=1, max_size=10
)


@settings(deadline=None, max_examples=50)
@given(jobs=st.lists(st.tuples(st.integers(1, 2**32), st.integers(0, 10**6), cells), min_size=1, max_size=20))
def test_what_is_written_comes_back(
    tmp_path_factory: pytest.TempPathFactory, jobs: list[tuple[int, int, str]]
) -> None:
    folder = tmp_path_factory.mktemp("table")
    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_ALL)
    writer.writerow(["id", "sent", "limit", "who"])
    writer.writerows([n, submit, limit, user] for n, (submit, limit, user) in enumerate(jobs))
    found, source = read(write(folder, text.getvalue()), mapping_in(folder))
    assert source.rejects.total == 0
    for number, ((submit, limit, user), line) in enumerate(
        zip(jobs, found.iter_rows(named=True), strict=True)
    ):
        assert (line["job_id"], line["submit"]) == (number, submit)
        assert line["time_limit"] == (UNLIMITED if limit == 999 else limit * 60)
        assert line["user"] == (None if user == "-" else user)


def test_an_id_that_is_text_is_none_unless_the_mapping_takes_text(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id,sub\nabc,2024-01-01T00:00:00\n7,2024-01-01T00:00:00\n")
    (tmp_path / "m.toml").write_text('[fields]\njob_id = "id"\nsubmit = "sub"\n')
    source = TableFile(tmp_path / "t.csv", tmp_path / "m.toml", cluster="lab")
    assert pl.concat([batch.jobs for batch in source.batches()])["job_id"].to_list() == [7]
    assert source.rejects.lines == {"no job id": [2]}
    (tmp_path / "m.toml").write_text('[fields]\njob_id = { column = "id", unit = "text" }\nsubmit = "sub"\n')
    source = TableFile(tmp_path / "t.csv", tmp_path / "m.toml", cluster="lab")
    assert pl.concat([batch.jobs for batch in source.batches()]).height == 2


def test_a_quoted_newline_belongs_to_its_value(tmp_path: Path) -> None:
    (tmp_path / "m.toml").write_text('[fields]\njob_id = "id"\nsubmit = "sub"\nuser = "user"\n')
    (tmp_path / "t.csv").write_text(
        'id,sub,user\n1,100,"a\nb"\n2,100,"say ""hi"", ok"\n3,100,"c\n9,9,d\n\ne"\n4,100,5" disk\n5,"100\n",x,y\n'
        '6,100,"open\n7,100,f\n'
    )
    source = TableFile(tmp_path / "t.csv", tmp_path / "m.toml", cluster="lab")
    jobs = pl.concat([batch.jobs for batch in source.batches()])
    assert jobs.select("job_id", "user").rows() == [
        (1, "a\nb"),
        (2, 'say "hi", ok'),
        (3, "c\n9,9,d\n\ne"),
        (4, '5" disk'),
        (7, "f"),
    ]
    assert source.rejects.lines == {"wrong number of columns": [10, 11, 12]}, "nothing is stored by halves"


def test_a_parquet_bomb_is_refused(tmp_path: Path) -> None:
    """A few bytes that claim to be millions of rows, or gigabytes of text."""
    many, long = tmp_path / "many.parquet", tmp_path / "long.parquet"
    pl.select(jid=pl.repeat("jid_1", 30_000_000), adt=pl.repeat(1, 30_000_000)).write_parquet(many)
    pl.select(jid=pl.repeat("x" * 60_000, 20_000), adt=pl.repeat(1, 20_000)).write_parquet(long)
    for path, words in ((many, "claims 30,000,000 rows"), (long, "text values of gigabytes")):
        with pytest.raises(SourceError, match=words):
            list(TableFile(path, "f-data", cluster="lab").batches())
