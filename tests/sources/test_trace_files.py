"""Samples from Parquet and .npz files, and from the folder of a campaign."""

import json
from contextlib import suppress
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tocsin.core.errors import NotFound, SourceError
from tocsin.core.frames import CPU_SAMPLES, JOB_SAMPLES, Samples
from tocsin.sources.trace_files import TraceFiles

CPUS = pl.DataFrame(
    [("n1", 0, at, "7", 0.5, 0.1, 0.0) for at in range(100)], schema=CPU_SAMPLES, orient="row"
)
JOBS = pl.DataFrame(
    [{"node": "n1", "job": "7", "at": at, "memory": 1e6} for at in range(100)],
    schema=JOB_SAMPLES,
    orient="row",
)


def read(path: Path, since: int = -1, until: int = 10**6) -> Samples:
    parts = [batch.samples for batch in TraceFiles(path).batches(since, until)]
    return Samples(pl.concat([part.cpus for part in parts]), pl.concat([part.jobs for part in parts]))


def test_a_campaigns_folder_is_read_whole_or_in_part(tmp_path: Path) -> None:
    CPUS.write_parquet(tmp_path / "cpus.parquet")
    JOBS.write_parquet(tmp_path / "jobs.parquet")
    (tmp_path / "campaign.json").write_text(json.dumps({"cluster": "lab"}))
    assert read(tmp_path).cpus.equals(CPUS)
    assert read(tmp_path).jobs.equals(JOBS)
    assert read(tmp_path, 10, 20).cpus["at"].to_list() == list(range(11, 21))
    assert TraceFiles(tmp_path).cluster == "lab"


def test_a_file_that_makes_its_reader_panic_or_abort_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "x.parquet"
    CPUS.write_parquet(file)
    whole = file.read_bytes()
    for place in range(36, 44):  # the end of the first page's header: a length of exabytes among others
        file.write_bytes(whole[:place] + b"\xff" + whole[place + 1 :])
        with suppress(SourceError):
            read(file)
    file.write_bytes(whole)
    assert read(file).cpus.equals(CPUS)


def test_large_files_come_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tocsin.sources.trace_files._ROWS", 30)
    CPUS.write_parquet(tmp_path / "x.parquet")
    heights = [batch.samples.cpus.height for batch in TraceFiles(tmp_path / "x.parquet").batches(-1, 10**6)]
    assert heights == [30, 30, 30, 10]


def test_arrays_of_one_node_need_no_node_and_no_job(tmp_path: Path) -> None:
    file = tmp_path / "n7.npz"
    shares = {name: np.linspace(0, 0.3, 50) for name in ("user", "system", "iowait")}
    np.savez(file, cpu=np.array(3), at=np.arange(50), **shares)
    cpus = read(file).cpus
    assert cpus.schema == CPU_SAMPLES
    assert cpus.row(49) == pytest.approx(("n7", 3, 49, None, 0.3, 0.3, 0.3))


def test_arrays_with_texts(tmp_path: Path) -> None:
    file = tmp_path / "x.npz"
    np.savez(
        file, node=np.array("n1"), job=np.array(["7", "8"]), at=np.array([5, 5]), memory=np.array([1.0, 2.0])
    )
    assert read(file).jobs.select("node", "job", "at", "memory").rows() == [
        ("n1", "7", 5, 1.0),
        ("n1", "8", 5, 2.0),
    ]


def test_what_is_no_file_of_samples_is_refused_in_a_sentence(tmp_path: Path) -> None:
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(b"PAR1 not really")
    odd = tmp_path / "odd.parquet"
    pl.DataFrame({"x": [1]}).write_parquet(odd)
    text = tmp_path / "text.parquet"
    CPUS.with_columns(user=pl.lit("much")).write_parquet(text)
    pickled = tmp_path / "pickled.npz"
    np.savez(pickled, cpu=np.array([object()]), at=np.array([1]))
    uneven = tmp_path / "uneven.npz"
    np.savez(uneven, cpu=np.arange(3), at=np.arange(4))
    for file, part in [
        (broken, "not a readable Parquet file"),
        (odd, "has no column job"),
        (text, "text.parquet"),
        (pickled, "plain arrays"),
        (uneven, "3 values"),
    ]:
        with pytest.raises(SourceError, match=part):
            read(file)
    with pytest.raises(NotFound, match="no file or folder"):
        read(tmp_path / "none")
    (tmp_path / "empty").mkdir()
    with pytest.raises(NotFound, match=r"no \.parquet and no \.npz"):
        read(tmp_path / "empty")
