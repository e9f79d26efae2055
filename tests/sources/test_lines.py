"""Files and pipes come in as whole lines, within bounds, and what is broken is said."""

import gzip
import io
import os
import re
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from tocsin.core.errors import SourceError
from tocsin.core.ids import CLUSTER
from tocsin.sources.lines import CUT_OFF, DAMAGED, TOO_LONG, LineFile, Lines, stem

Lost = dict[str, list[int]]


def read(source: Lines) -> tuple[list[bytes], Lost]:
    """All lines, and the numbers of those that were lost, by reason."""
    lines: list[bytes] = []
    lost: Lost = {}
    for block in source.blocks():
        lines += block.data.split(b"\n")[:-1]
        for reason, numbers in block.lost.items():
            lost.setdefault(reason, []).extend(numbers)
    return lines, lost


def lines_of(source: Lines) -> list[bytes]:
    return read(source)[0]


def opened(path: Path | str, **limits: int) -> LineFile:
    return LineFile(path, notes=[], **limits)


@given(data=st.binary(max_size=300), block=st.integers(1, 40), pack=st.booleans())
def test_blocks_put_together_are_the_file(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, block: int, pack: bool
) -> None:
    packed = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd", b"PK")
    marks = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
    assume(not data.startswith(packed + marks))
    path = tmp_path_factory.mktemp("lines") / "file"
    path.write_bytes(gzip.compress(data) if pack else data)
    file = opened(path, block=block)
    blocks = list(file.blocks())
    whole = data if not data or data.endswith(b"\n") else data + b"\n"
    assert b"".join(b.data for b in blocks) == whole
    first = 1
    for one in blocks:
        assert one.first == first
        assert one.data.endswith(b"\n")
        first += one.data.count(b"\n")
    if blocks:
        assert blocks[-1].done == file.total
    assert not any(one.lost for one in blocks)


def test_a_truncated_gzip_gives_the_lines_before_the_cut(tmp_path: Path) -> None:
    data = b"".join(b"line %d of many\n" % n for n in range(50_000))
    path = tmp_path / "log.gz"
    path.write_bytes(gzip.compress(data)[:-2000])
    file = opened(path)
    lines, lost = read(file)
    assert 1000 < len(lines) < 50_000
    assert lines == data.split(b"\n")[: len(lines)]
    assert lost == {CUT_OFF: [len(lines) + 1]}
    assert CUT_OFF in file.notes[0]


def test_a_damaged_gzip_gives_the_lines_before_the_damage(tmp_path: Path) -> None:
    packed = bytearray(gzip.compress(os.urandom(600_000).hex().encode().replace(b"a", b"\n")))
    packed[400_000:400_400] = bytes(400)
    path = tmp_path / "log.gz"
    path.write_bytes(packed)
    file = opened(path)
    lines, lost = read(file)
    assert len(lines) > 100
    assert lost == {DAMAGED: [len(lines) + 1]}


def test_gzip_members_one_after_the_other_are_one_file(tmp_path: Path) -> None:
    path = tmp_path / "log.gz"
    path.write_bytes(gzip.compress(b"a\n") + gzip.compress(b"b\n") + bytes(512))
    assert lines_of(opened(path)) == [b"a", b"b"]


def test_a_line_that_is_too_long_is_skipped_counted_and_never_held(tmp_path: Path) -> None:
    path = tmp_path / "log.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(b"one\n")
        for _ in range(40):
            file.write(b"x" * 2**20)
        file.write(b"\nthree\n")
    source = opened(path)
    tracemalloc.start()
    try:
        lines, lost = read(source)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert lines == [b"one", b"", b"three"]  # the empty line keeps the numbers right
    assert lost == {TOO_LONG: [2]}
    assert peak < 8 * 2**20


def test_a_long_line_inside_a_block_is_skipped_too(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"a\n" + b"y" * 60 + b"\nb\n" + b"z" * 51 + b"\n" + b"c" * 50)
    file = opened(path, max_line=50)
    assert read(file) == ([b"a", b"", b"b", b"", b"c" * 50], {"line longer than 50 bytes": [2, 4]})


def test_standard_input_is_read_for_a_dash(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = io.TextIOWrapper(io.BytesIO(gzip.compress(b"a\nb")))
    monkeypatch.setattr("sys.stdin", pipe)
    file = opened("-")
    assert lines_of(file) == [b"a", b"b"]
    assert file.total is None
    assert file.identity("swf") != file.identity("swf")  # nobody knows what comes through it next time


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda folder: folder / "nothing", "there is no file"),
        (lambda folder: folder, "is a directory"),
        (lambda folder: "a\0b", "cannot be read"),
    ],
)
def test_what_cannot_be_opened_is_said_in_a_sentence(tmp_path: Path, make, words: str) -> None:  # type: ignore[no-untyped-def] # a lambda
    with pytest.raises(SourceError, match=words):
        opened(make(tmp_path))


def test_an_empty_file_has_no_lines_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "empty"
    path.touch()
    file = opened(path)
    assert lines_of(file) == []
    assert "is empty" in file.notes[0]


def test_other_packings_are_named(tmp_path: Path) -> None:
    path = tmp_path / "log.xz"
    path.write_bytes(b"\xfd7zXZ\0 and so on")
    with pytest.raises(SourceError, match="packed with xz"):
        lines_of(opened(path))


def test_the_identity_follows_content_and_options_not_the_name(tmp_path: Path) -> None:
    one, two, other = tmp_path / "one", tmp_path / "two", tmp_path / "other"
    one.write_bytes(b"a\n" * 10)
    two.write_bytes(b"a\n" * 10)
    other.write_bytes(b"a\n" * 9 + b"b\n")
    assert opened(one).identity("swf", zone="UTC") == opened(two).identity("swf", zone="UTC")
    assert opened(one).identity("swf") != opened(other).identity("swf")
    assert opened(one).identity("swf", zone="UTC") != opened(one).identity("swf", zone="CET")
    assert opened(one).identity("swf") != opened(one).identity("sacct")


def test_a_byte_order_mark_is_no_part_of_the_first_line(tmp_path: Path) -> None:
    path = tmp_path / "log"
    for data in (b"\xef\xbb\xbfa\n", gzip.compress(b"\xef\xbb\xbfa\n")):
        path.write_bytes(data)
        assert lines_of(opened(path)) == [b"a"]


@given(name=st.text(min_size=1, max_size=200))
@example(name="a name that somebody gave to a copy of the log of a cluster in another folder.swf")
@example(name=".hidden.swf")
@example(name="..log")
@example(name="lab:2014\x01.csv")
def test_whatever_a_log_is_called_its_jobs_are_not_refused_for_the_name(name: str) -> None:
    cluster = stem(name)
    assert cluster is None or re.fullmatch(CLUSTER, cluster)


def test_a_long_name_is_cut_and_a_hidden_file_has_one() -> None:
    assert stem("/data/" + "log-of-lab-" * 9 + ".swf.gz") == ("log-of-lab-" * 9)[:60]
    assert stem(".hidden.swf") == "hidden"
