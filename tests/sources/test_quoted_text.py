"""CSV made from the text of sacct gives the same jobs as the text itself."""

import csv
import io
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.sources.formats import open_log
from tocsin.sources.quoted_text import is_quoted, without_quotes

ROWS = [
    ["JobID", "Cluster", "JobName", "Submit", "Start", "End", "State", "ReqMem", "AllocTRES", "NodeList"],
    ["1", "lab", "a", "2024-05-01T10:00:00", "2024-05-01T10:00:05", "2024-05-01T11:00:05", "COMPLETED", "4Gc",
     "cpu=4,mem=16G,node=2", "n[1,3]"],
    ["2", "lab", 'say "hi", then go', "2024-05-01T10:00:00", "None", "2024-05-01T10:01:00", "CANCELLED by 7", "4Gn",
     "", "None assigned"],
    ["3", "lab", "c", "2024-05-01T10:00:00", "2024-05-01T10:00:05", "2024-05-01T11:00:05", "TIMEOUT", "4000M",
     "cpu=1,mem=4G,node=1,gres/gpu:a100=2", "n3"],
]  # fmt: skip


def read(path: Path) -> pl.DataFrame:
    source = open_log(str(path))
    jobs = pl.concat([batch.jobs for batch in source.batches()])
    assert not source.rejects.counts
    assert not source.notes
    return jobs


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
@pytest.mark.parametrize("numbered", [False, True], ids=["", "with a nameless first column"])
def test_sacct_as_csv_is_read_as_the_text_it_was_made_from(
    tmp_path: Path, separator: str, quoting: int, numbered: bool
) -> None:
    (tmp_path / "jobs.txt").write_text("".join("|".join(row) + "\n" for row in ROWS))
    with (tmp_path / "jobs.csv").open("w", newline="") as file:
        writer = csv.writer(file, delimiter=separator, quoting=quoting)  # type: ignore[arg-type]  # a Literal of ints
        for number, row in enumerate(ROWS):
            writer.writerow([str(number) if number else "", *row] if numbered else row)
    assert read(tmp_path / "jobs.csv").equals(read(tmp_path / "jobs.txt"))


def test_a_line_with_irregular_quotes_is_split_at_every_separator() -> None:
    data = b'"a,b",c\n5" disk,d\n"e""f",g\n'
    assert without_quotes(data, ",", b"\x1f") == b'a,b\x1fc\n5" disk\x1fd\ne"f\x1fg\n'


def test_quotes_inside_names_do_not_make_a_text_csv() -> None:
    assert not is_quoted(b'JobID,JobName\n1,5" disk\n2,say "hi"\n', ",")
    assert is_quoted(b'JobID,NodeList\n1,"n[1,3]"\n', ",")


@given(
    st.lists(
        st.lists(st.text(alphabet='a", |', max_size=5), min_size=2, max_size=4).filter(any),
        min_size=1,
        max_size=5,
    )
)
def test_any_values_come_back(rows: list[list[str]]) -> None:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    found = without_quotes(text.getvalue().encode(), ",", b"\x1f").decode()
    assert [line.split("\x1f") for line in found.splitlines()] == rows
