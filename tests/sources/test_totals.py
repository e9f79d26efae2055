"""Records that cannot be jobs are rejected at import with a reason, and the totals of an import add up."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kits.job_frames import SUBMIT, frame
from tocsin.core.frames import invalid_reason
from tocsin.core.ids import parse_key
from tocsin.core.intake import Batch, JobSource, Rejects, valid_batches
from tocsin.core.job_json import to_json
from tocsin.sources.accounting_log import AccountingLog
from tocsin.sources.formats import open_log
from tocsin.sources.pbs_log import PbsParser
from tocsin.sources.sacct import SacctFile
from tocsin.sources.sacct_json import SacctJsonFile
from tocsin.sources.swf import SwfFile
from tocsin.sources.table import TableFile
from tocsin.store.database import open_store
from tocsin.store.importing import ImportSummary, run_import
from tocsin.store.jobs import load

MAPPING = 'cluster = "lab"\n[fields]\njob_id = "id"\nsubmit = "submit"\nend = "end"\nstate = "state"\nreq_cpus = "cpus"\n'
POISON = [
    ({"submit": 253_402_300_800}, "submit out of range"),
    ({"end": 2**60}, "end out of range"),
    ({"eligible": -5}, "eligible out of range"),
    ({"state": "  "}, "blank state"),
    ({"cluster": "a:b"}, "invalid cluster name"),
    ({"cluster": ""}, "invalid cluster name"),
    ({"cluster": "../../elsewhere"}, "invalid cluster name"),
    ({"cluster": "/tmp/elsewhere"}, "invalid cluster name"),
    ({"cluster": ".."}, "invalid cluster name"),
    ({"cluster": "a\0b"}, "invalid cluster name"),
    ({"cluster": "a" * 61}, "invalid cluster name"),
    ({"job_id": 10**18}, "job_id out of range"),
    ({"task": -1}, "task out of range"),
    ({"req_cpus": -4}, "req_cpus out of range"),
    ({"req_memory": 2**62 + 1}, "req_memory out of range"),
    ({"elapsed": -1}, "elapsed out of range"),
    ({"energy": float("inf")}, "energy out of range"),
]


@pytest.mark.parametrize(("values", "reason"), POISON)
def test_a_poison_record_is_rejected_with_a_reason(
    tmp_path: Path, values: dict[str, Any], reason: str
) -> None:
    class Source:
        identity, total, notes = "poison", None, list[str]()

        def __init__(self) -> None:
            self.rejects = Rejects()

        def batches(self, resume: int = 0):  # type: ignore[no-untyped-def]  # a generator of batches
            yield Batch(frame({"job_id": 7}, {"job_id": 8} | values), read=2, position=2)

    with open_store(f"sqlite:///{tmp_path / 'db'}") as store:
        summary = run_import(store, Source())
        assert summary.rejects.counts == {reason: 1}
        assert load(store)["job_id"].to_list() == [7]
    adds_up(summary)


number = st.integers(-(2**63), 2**63 - 1) | st.sampled_from([0, 1, SUBMIT, 253_402_300_800])


@settings(deadline=None)
@given(
    values=st.dictionaries(
        st.sampled_from(["job_id", "task", "submit", "end", "begin", "time_limit"]), number
    )
)
def test_a_job_that_is_not_rejected_can_be_shown(values: dict[str, int]) -> None:
    jobs = frame(values)
    if invalid_reason(jobs)[0] is None:
        shown = to_json(jobs.row(0, named=True))
        assert str(parse_key(shown["job"])) == shown["job"]


words = st.sampled_from(
    [
        "1",
        "2",
        "3",
        "-1",
        "",
        " ",
        "x",
        "100",
        "200",
        "9999999999999",
        "COMPLETED",
        "RUNNING",
        "1_[1-3]",
        "2.0",
        "lab",
    ]
)
long = st.just("y" * 2**20 + "y")


def lines_of(separator: str) -> st.SearchStrategy[str]:
    rows = st.lists(words, min_size=3, max_size=6).map(separator.join)
    return st.lists(rows | long, max_size=12).map("\n".join)


def swf(path: Path, text: str) -> JobSource:
    path.write_text("; UnixStartTime: 0\n" + text)
    return SwfFile(path, cluster="lab")


def sacct(path: Path, text: str) -> JobSource:
    path.write_text("JobID|Submit|State|End|JobName\n" + text)
    return SacctFile(path, cluster="lab")


def cut_gzip(path: Path, text: str) -> JobSource:
    path.write_bytes(gzip.compress(("JobID|Submit|State|End|JobName\n" + text).encode())[:-3])
    return SacctFile(path, cluster="lab")


def table(path: Path, text: str) -> JobSource:
    mapping = path.with_suffix(".toml")
    mapping.write_text(MAPPING)
    path.write_text("id,submit,end,state,cpus\n" + text.replace("|", ","))
    return TableFile(path, mapping)


def as_json(path: Path, text: str) -> JobSource:
    cells = [line.split("|") for line in text.splitlines()]
    jobs = [{"job_id": c[0], "time": {"submission": c[-1]}, "state": {"current": c[:1]}} for c in cells if c]
    numbers = [{**job, "job_id": len(job), "time": {"submission": n}} for n, job in enumerate(jobs)]
    path.write_text(json.dumps({"jobs": [*jobs, *numbers]}))
    return SacctJsonFile(path, cluster="lab")


def pbs(path: Path, text: str) -> JobSource:
    kinds = ("E", "D", "E", "S")
    rows = [line.split("|") for line in text.splitlines()]
    path.write_text(
        "".join(
            f"01/01/2026 10:00:00;{kinds[n % 4]};{cells[0]}.lab;ctime={cells[1]} start={cells[2]} end={cells[-1]}\n"
            if len(cells) > 2
            else cells[0] + "\n"
            for n, cells in enumerate(rows)
        )
    )
    return AccountingLog(str(path), PbsParser())


def adds_up(summary: ImportSummary) -> None:
    rejected = sum(summary.rejects.counts.values())
    assert summary.read == summary.new + summary.updated + summary.unchanged + rejected


@pytest.mark.parametrize("make", [swf, sacct, cut_gzip, table, as_json, pbs])
@settings(deadline=None, max_examples=25)
@given(data=st.data())
def test_totals_add_up_also_after_an_interruption(
    tmp_path_factory: pytest.TempPathFactory, make: Callable[[Path, str], JobSource], data: st.DataObject
) -> None:
    text = data.draw(lines_of("|" if make is not swf else " "))
    folder = tmp_path_factory.mktemp("totals")
    with open_store(f"sqlite:///{folder / 'db'}") as store:
        adds_up(run_import(store, make(folder / "jobs", text)))
    source = make(folder / "jobs", text)
    positions = [batch.position for batch in source.batches()]
    resume = data.draw(st.sampled_from([0, *positions]))
    again = make(folder / "jobs", text)
    rest = [(batch.read, batch.jobs.height) for batch in valid_batches(again, resume)]
    assert sum(read for read, _ in rest) == sum(kept for _, kept in rest) + again.rejects.total


def test_an_infinite_number_is_not_nan() -> None:
    jobs = frame({"energy": float("nan")}, {"energy": float("inf")})
    assert invalid_reason(jobs).to_list() == [None, "energy out of range"]


FAR = 10**14
SGE = "q:h:g:u:n:7:a:0:100:110:{}:0:0:1" + ":0" * 21 + ":0:1:1:1:NONE:0:NONE:0:0:0"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            f"; UnixStartTime: 1000000\n1 {FAR} 5 100 4 -1 -1 4 -1 -1 1 1 1 1 1 -1 -1 -1\n",
            "submit out of range",
        ),
        (f"JobID|Cluster|Submit|End|State\n1|lab|100|{FAR}|COMPLETED\n", "end out of range"),
        (f"id_job,time_submit,time_end,state\n1,100,{FAR},3\n", "end out of range"),
        (f"01/01/2026 10:00:00;E;7.lab;ctime=100 start=110 end={FAR} Exit_status=0\n", "end out of range"),
        (SGE.format(FAR * 1000) + "\n", "end out of range"),
    ],
)
def test_an_instant_beyond_the_year_9999_is_rejected_in_every_format(
    tmp_path: Path, text: str, reason: str
) -> None:
    (tmp_path / "log").write_text(text)
    with open_store(f"sqlite:///{tmp_path / 'db'}") as store:
        summary = run_import(store, open_log(str(tmp_path / "log"), cluster="lab"))
        assert summary.rejects.counts == {reason: 1}
        assert summary.rejects.lines == {reason: [len(text.splitlines())]}, "the number of its line"
        assert load(store).is_empty()
    adds_up(summary)
