"""`tocsin profiles` for people and for programs."""

import gzip
import json
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from tests.kits.command_line import Tocsin


def swf(jobs: int = 120) -> str:
    """Every third job has 64 CPUs, runs for hours and is cancelled."""
    lines = ["; UnixStartTime: 1000000000"]
    for number in range(1, jobs + 1):
        large = number % 3 == 0
        run, procs, limit, status = (
            (20_000, 64, 36_000, 5) if large else (60 + number, 1 + number % 2, 600, 1)
        )
        words = [
            number,
            number * 500,
            10,
            run,
            procs,
            -1,
            -1,
            procs,
            limit,
            -1,
            status,
            1 + number % 7,
            1,
            1,
            1,
            1,
        ]
        lines.append(" ".join(map(str, [*words, -1, -1])))
    return "\n".join(lines) + "\n"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "small.swf.gz"
    path.write_bytes(gzip.compress(swf().encode()))
    return path


def test_profiles_are_printed_in_words_and_tables(tocsin: Tocsin, log: Path) -> None:
    said = tocsin("profiles", log)
    assert said.code == 0
    assert "request profiles of 120 jobs by a Gaussian mixture" in said.out
    assert "medium 64-CPU jobs of many users, 5.6 h of 10 h requested: 40 jobs (33%)" in said.out
    for title in ("Resources and times", "Jobs by run time", "Users by activity", "target: unsuccessful"):
        assert title in said.out
    assert "no job has a memory request" in said.err


def test_json_and_the_files_say_the_same(tocsin: Tocsin, log: Path, tmp_path: Path) -> None:
    said = tocsin(
        "profiles", log, "--kind", "usage", "--method", "kmeans", "--out", tmp_path / "out", "--json"
    )
    document = json.loads(said.out)
    assert document == json.loads((tmp_path / "out" / "profiles.json").read_text())
    assert document["kind"] == "usage"
    assert sum(row["jobs"] for row in document["tables"]["resources"]) == document["rows"] == 120
    for name in ("elbow", "bic", "outcomes", "correlations"):
        ElementTree.fromstring((tmp_path / "out" / f"{name}.svg").read_text())


def test_charts_without_their_package_are_one_sentence(
    tocsin: Tocsin, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    refused = tocsin("profiles", log, "--out", tmp_path / "out")
    assert refused.code == 1
    assert "pip install 'tocsin[charts]'" in refused.err
    assert tocsin("profiles", log).code == 0


def test_the_store_gives_the_same_profiles_as_the_log(tocsin: Tocsin, log: Path) -> None:
    assert tocsin("import", log).code == 0
    stored, read = (json.loads(tocsin("profiles", *of, "--json").out) for of in (["--store"], [log]))
    assert stored == read


def test_the_number_of_profiles_can_be_given(tocsin: Tocsin, log: Path) -> None:
    found = json.loads(tocsin("profiles", log, "--method", "kmeans", "--k", 3, "--json").out)
    assert len(found["profiles"]) == 3
    assert "ask for fewer" in tocsin("profiles", log, "--k", 100_000).err


def test_impossible_requests_are_refused(tocsin: Tocsin, tmp_path: Path) -> None:
    (tmp_path / "few.swf").write_text(swf(20))
    (tmp_path / "junk.txt").write_text("hello\nworld\n")
    assert "20 jobs are too few for profiles; 50 are needed" in tocsin("profiles", tmp_path / "few.swf").err
    assert "name a mapping with -m" in tocsin("profiles", tmp_path / "junk.txt").err
    assert "there is no file" in tocsin("profiles", tmp_path / "none").err
    assert "the store has no jobs" in tocsin("profiles", "--store").err
    assert tocsin("profiles").code == 2
    assert tocsin("profiles", tmp_path / "few.swf", "--store").code == 2
