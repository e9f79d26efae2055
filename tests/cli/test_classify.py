"""`tocsin classify`: thousands of scripts, unusual files, and one line for each."""

import base64
import io
import json
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.kits.command_line import Tocsin
from tests.kits.scripts import mutated
from tests.kits.sign_screener import by_signs

__all__ = ["by_signs"]

pytestmark = pytest.mark.usefixtures("by_signs")

MINER = "#!/bin/bash\nnohup ./gcc -o stratum+tcp://any.example:3333 -u me &\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    scripts = tmp_path / "scripts"
    (scripts / "deep").mkdir(parents=True)
    (scripts / "miner.sh").write_text(MINER)
    (scripts / "deep" / "plain.sh").write_text("#!/bin/bash\nsrun ./a.out\n")
    return scripts


def lines(text: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines()]


def test_a_domain_that_no_script_has_is_no_empty_answer(tocsin: Tocsin, folder: Path) -> None:
    said = tocsin("classify", folder, "--domain", "chemisty")
    assert (said.code, 'none of 2 scripts has the domain "chemisty"' in said.err) == (0, True)
    assert "none of" not in tocsin("classify", folder).err


def test_a_folder_is_read_to_its_depth_and_each_script_is_a_line(tocsin: Tocsin, folder: Path) -> None:
    said = tocsin("classify", folder, "--jsonl")
    assert said.code == 0
    miner, plain = lines(said.out)
    assert miner == {
        "file": str(folder / "miner.sh"),
        "operations": {"ai": 0.01, "cryptomining": 0.99, "cyber": 0.01},
        "application": None,
        "domain": None,
        "language": "bash",
        "evidence": [
            {
                "line": 2,
                "operation": "cryptomining",
                "why": "the scheme of mining pools: stratum+tcp://any.example:3333 -u me &",
            }
        ],
    }
    assert plain["file"] == str(folder / "deep" / "plain.sh")
    assert json.loads(tocsin("classify", folder, "--json").out) == {"scripts": [miner, plain]}


def test_a_table_for_people(tocsin: Tocsin, folder: Path) -> None:
    said = tocsin("classify", folder / "miner.sh", folder / "deep" / "plain.sh", "-P")
    assert said.out.splitlines() == [
        "File|Operations|Application|Domain|Language|Lines",
        f"{folder}/miner.sh|cryptomining 99%|||bash|2",
        f"{folder}/deep/plain.sh|none|||bash|",
    ]


def test_a_hidden_command_is_named_as_hidden(tocsin: Tocsin, tmp_path: Path) -> None:
    hidden = base64.b64encode(b"./gcc -o stratum+tcp://any.example:3333").decode()
    (tmp_path / "a.sh").write_text(f"echo {hidden} | base64 -d | sh\n./xmrig -c c.json\n")
    [row] = lines(tocsin("classify", tmp_path / "a.sh", "--jsonl").out)
    told = {entry["line"]: entry["why"] for entry in row["evidence"]}  # type: ignore[index,attr-defined]  # JSON
    assert told == {
        2: "a miner: ./xmrig -c c.json",
        1: "hidden: the scheme of mining pools: stratum+tcp://any.example:3333",
    }


def test_what_it_calls_is_read_when_asked(tocsin: Tocsin, folder: Path) -> None:
    (folder / "outer.sh").write_text("#!/bin/bash\ncd .\npython train.py\n")
    (folder / "train.py").write_text("import torch\n")
    [row] = lines(tocsin("classify", folder / "outer.sh", "--jsonl").out)
    assert row["operations"]["ai"] == 0.01  # type: ignore[index]  # JSON
    [row] = lines(tocsin("classify", folder / "outer.sh", "--jsonl", "--follow").out)
    assert row["operations"]["ai"] == 0.9  # type: ignore[index]  # JSON
    assert row["calls"] == [{"file": str(folder / "train.py"), "kind": "python", "line": 3}]


def test_evidence_in_a_called_file_names_its_own_line(tocsin: Tocsin, folder: Path) -> None:
    (folder / "outer.sh").write_text("#!/bin/bash\ncd .\nsource miner.sh\n")
    [row] = lines(tocsin("classify", folder / "outer.sh", "--jsonl", "--follow").out)
    [told] = row["evidence"]  # type: ignore[misc]  # JSON
    assert told == {
        "line": 3,
        "operation": "cryptomining",
        "file": str(folder / "miner.sh"),
        "file_line": 2,
        "why": "the scheme of mining pools: stratum+tcp://any.example:3333 -u me &",
    }
    assert tocsin("classify", folder / "outer.sh", "-P", "-n", "--follow").out.endswith("|miner.sh:2\n")


def test_unusual_files_are_classified_or_refused_with_a_reason(tocsin: Tocsin, folder: Path) -> None:
    odd = {
        "nul": b"#!/bin/sh\n\0\n",
        "elf": b"\x7fELF" + bytes(1000),
        "big": b"x" * (50 * 1024**2),
        "utf16": "#!/bin/sh\n./xmrig\n".encode("utf-16"),
        "half16": b"\xff\xfea",
        "one-line": b"srun a " * 300_000,
        "latin": "# café\nsrun a\n".encode("latin-1"),
        "empty": b"",
    }
    for name, content in odd.items():
        (folder / name).write_bytes(content)
    began = time.process_time()
    said = tocsin("classify", *(folder / name for name in odd), folder / "nowhere", "--jsonl")
    assert time.process_time() - began < 20
    assert said.code == 0
    rows = {Path(str(row["file"])).name: row for row in lines(said.out)}
    assert {name for name, row in rows.items() if "error" in row} == {
        "nul",
        "elf",
        "big",
        "half16",
        "nowhere",
    }
    assert rows["utf16"]["operations"]["cryptomining"] == 0.99  # type: ignore[index]  # JSON
    assert "larger than 4 MiB" in str(rows["big"]["error"])
    assert tocsin("classify", folder / "nul", folder / "empty", "--strict").code == 1
    refused = tocsin("classify", folder / "elf")
    assert refused.code == 1
    assert "is a binary file" in refused.err


def test_a_closed_pipe_is_no_error(folder: Path, tmp_path: Path) -> None:
    for number in range(300):
        (folder / f"{number}.sh").write_text(f"srun ./{'a' * 500} {number}\n")
    line = [sys.executable, "-c", "from tocsin.cli.main import run; run()"]
    line += ["--home", str(tmp_path / "home"), "classify", str(folder), "--jsonl"]
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        process.stdout.close()
        assert process.stderr is not None
        assert (process.wait(), process.stderr.read()) == (0, b"")


def test_standard_input_is_a_script(tocsin: Tocsin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(MINER.encode())))
    [row] = lines(tocsin("classify", "-", "--jsonl").out)
    assert (row["file"], row["operations"]["cryptomining"]) == ("-", 0.99)  # type: ignore[index]  # JSON


def test_an_empty_folder_is_reported(tocsin: Tocsin, tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()
    said = tocsin("classify", tmp_path / "none")
    assert (said.code, "contains no files" in said.err) == (1, True)


def test_many_mutated_scripts_have_a_line_each(tocsin: Tocsin, tmp_path: Path) -> None:
    chance = random.Random(3)
    many = tmp_path / "many"
    many.mkdir()
    for number in range(600):
        text = mutated(MINER * 5, chance)
        (many / f"{number:04}.sh").write_bytes(text.encode("utf-8", "surrogatepass"))
    rows = lines(tocsin("classify", many, "--jsonl").out)
    assert len(rows) == 600
    assert all("error" in row or "operations" in row for row in rows)
