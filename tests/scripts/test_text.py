"""What is read, what is refused, and that nothing is too long or too odd."""

import doctest
import importlib
import io
import json
import os
import pkgutil
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tocsin.scripts
from tocsin.core.errors import ScriptError
from tocsin.scripts.edits import apply
from tocsin.scripts.script import parse, to_json
from tocsin.scripts.text import LARGEST, decode, encode, read

MARKS = ["#SBATCH ", "#PBS ", "#BSUB ", "#$ ", "#PJM ", "# flux: ", "#COBALT ", "#OAR "]
PIECES = ["-l ", "-R ", "-J ", "-t", "--time=", "select=", "nodes=", "1:2", "+", ",", "[", "]", "{", "}", "'", '"',
          "\\", "#", "=", "/", "walltime=", "mem=", "\n", "-pe smp ", "<<EOF\n", "EOF\n", "９", "²", "hetjob", "-"]  # fmt: skip


@given(
    st.sampled_from(MARKS),
    st.lists(st.one_of(st.sampled_from(PIECES + MARKS), st.text(max_size=5)), max_size=30),
)
def test_no_text_raises(mark: str, pieces: list[str]) -> None:
    script = parse("#!/bin/sh\n" + mark + "".join(pieces))
    json.dumps(to_json(script))
    script.with_options(["sbatch", *pieces])
    assert apply(script.text, []) == script.text


@given(st.binary(max_size=300))
def test_bytes_are_read_or_refused(content: bytes) -> None:
    try:
        text = decode(content)
    except ScriptError:
        return
    parse(text)
    if not content.startswith((b"\xff\xfe", b"\xfe\xff")):
        assert encode(text) == content


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"\x7fELF\x02\x01", "binary"),
        (b"#!/bin/sh\n\0\0", "binary"),
        (b"#" * (LARGEST + 1), "larger than 4 MiB"),
        (b"\xff\xfe\x00", "UTF-16"),
    ],
)
def test_binary_content_is_refused(content: bytes, says: str, tmp_path: Path) -> None:
    path = tmp_path / "job"
    path.write_bytes(content)
    with pytest.raises(ScriptError, match=says):
        read(path)
    with pytest.raises(ScriptError, match=says):
        parse(content)


def test_a_folder_and_a_missing_file_are_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none", "bad\0name"):
        with pytest.raises(ScriptError, match="cannot be read"):
            read(path)


def test_other_encodings_are_read(tmp_path: Path) -> None:
    path = tmp_path / "job.sh"
    path.write_bytes("#!/bin/sh\n#SBATCH -J café\n".encode("utf-16"))
    assert parse(read(path)).request["name"] == "café"
    latin = b"#!/bin/sh\n#SBATCH -J caf\xe9\nrun"
    script = parse(latin)
    assert script.request["name"] == "caf?"
    assert encode(script.text) == latin
    with pytest.raises(ScriptError, match="NUL characters; save it as UTF-8"):
        parse("#!/bin/sh\n".encode("utf-32"))
    marked = parse("\ufeff#!/bin/bash\n#SBATCH -N 1\n")
    assert (marked.interpreter, marked.request) == ("bash", {"req_nodes": 1})


@pytest.mark.parametrize(
    "line",
    [" ", "#SBATCH ", "'", "<<E", "#SBATCH --mem=", "#SBATCH '", "#BSUB -R rusage[", "#PBS -l a=1,", "[", "#", "\\",
     "#OAR -l {", "#BSUB -J x[", "<<'"],
)  # fmt: skip
def test_a_line_of_four_megabytes_takes_linear_time(line: str) -> None:
    for text in (line * (LARGEST // len(line)), (line + "\n") * (LARGEST // 8 // (len(line) + 1)),
                 "#!/bin/sh\n#SBATCH " + line * (60_000 // len(line))):  # fmt: skip
        start = time.process_time()
        parse(text)
        assert time.process_time() - start < 10


def test_json_output() -> None:
    seen = to_json(parse("#!/bin/bash\n#SBATCH -t UNLIMITED --mem=1G -o x.out\nsrun a.out\n"))
    assert seen == {
        "scheduler": "slurm",
        "interpreter": "bash",
        "directives": [
            {"line": 2, "option": "--time", "value": "UNLIMITED", "field": "time_limit", "effective": True},
            {"line": 2, "option": "--mem", "value": "1G", "field": "req_memory", "effective": True},
            {"line": 2, "option": "--output", "value": "x.out", "field": None, "effective": True},
        ],
        "request": {"time_limit": "UNLIMITED", "req_memory": 1024**3},
        "components": [{"time_limit": "UNLIMITED", "req_memory": 1024**3}],
        "commands": [{"line": 3, "text": "srun a.out"}],
        "problems": [],
    }


def test_examples_in_docstrings_hold() -> None:
    modules = [
        importlib.import_module(m.name)
        for m in pkgutil.iter_modules(tocsin.scripts.__path__, "tocsin.scripts.")
    ]
    results = [doctest.testmod(module) for module in modules]
    assert sum(result.failed for result in results) == 0
    assert sum(result.attempted for result in results) > 1


def test_a_script_comes_from_standard_input_or_a_pipe(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"#!/bin/sh\n")))
    assert read("-") == "#!/bin/sh\n"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"#" * (LARGEST + 10))))
    with pytest.raises(ScriptError, match="standard input is larger than"):
        read("-")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=_endless, args=(pipe,))
    writer.start()
    with pytest.raises(ScriptError, match="larger than"):
        read(pipe)
    writer.join()


def _endless(pipe: Path) -> None:
    with suppress(BrokenPipeError), pipe.open("wb", buffering=0) as file:
        while True:
            file.write(b"#" * 65536)


def test_a_pipe_is_read_until_a_timeout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=("#!/bin/sh\n" * 20_000,))
    writer.start()
    assert read(pipe) == "#!/bin/sh\n" * 20_000
    writer.join()
    monkeypatch.setattr("tocsin.scripts.text.PIPE_TIMEOUT", 0)
    with pytest.raises(ScriptError, match="a pipe without data"):
        read(pipe)
