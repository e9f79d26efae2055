"""Whatever a job is named and its script says, no control character reaches the terminal, and no column is forged."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import tocsin.cli
from tests.kits.command_line import Result, Tocsin
from tests.kits.job_frames import SUBMIT, frame
from tests.kits.sign_screener import by_signs
from tocsin.cli.main import cli
from tocsin.store.database import open_store
from tocsin.store.home import Home
from tocsin.store.jobs import upsert
from tocsin.store.scriptfiles import save_script

__all__ = ["by_signs"]

pytestmark = pytest.mark.usefixtures("by_signs")

HOSTILE = "\x1b]0;owned\x07\x9b2J\x85\u202e\u2028|x|\r\n7|forged"
MINER = (
    f"#!/bin/bash\n#SBATCH --job-name='{HOSTILE[:13]}' --nonsense={HOSTILE[:13]}\n"
    f"# {HOSTILE}\n./gcc\x1b[2J -o stratum+tcp://any.example:3333 -u me\x9b31m &\n"
)
TOCSIN = f"{sys.executable} -c 'from tocsin.cli.main import run; run()'"
LISTS = [["jobs"], ["cases"], ["models"], ["allow", "list"], ["predict"], ["threshold"]]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(tmp_path / "home").prepare()
    text = dict.fromkeys(
        ["name", "user", "account", "partition", "work_dir", "submit_line", "state", "qos"], HOSTILE
    )
    ended = {"outcome": "failed", "start": SUBMIT, "end": SUBMIT + 9, "elapsed": 9}
    with open_store(made.url) as store:
        script = save_script(made.scripts, MINER)
        upsert(store, frame({"script": script, **text}, *({"job_id": n, **text, **ended} for n in (2, 3))))
    return made


@pytest.fixture
def commands(tmp_path: Path) -> list[list[str]]:
    """Every command at least once; what it cannot do here, it refuses with a sentence."""
    script, table = tmp_path / f"{HOSTILE.replace('/', '')}.sh", tmp_path / "table.csv"
    script.write_text(MINER)
    table.write_text(f'id,name\n"{HOSTILE}","{HOSTILE}"\n')
    examples = tmp_path / "examples" / "yes"
    examples.mkdir(parents=True)
    (examples / script.name).write_text(MINER)
    return [
        ["screen", "--all"],
        ["allow", "add", "ai", "--user", HOSTILE],
        ["allow", "add", HOSTILE, "--user", "ann"],
        ["cases", "confirm", "1", "--note", HOSTILE],
        ["cases", "show", "1"],
        *LISTS,
        *([*listing, "-P"] for listing in LISTS),
        ["answer", HOSTILE, "failed"],
        ["jobs", "-o", "ALL"],
        ["jobs", "-u", HOSTILE],
        ["job", "1"],
        ["job", HOSTILE],
        ["explain", "1"],
        ["check", str(script)],
        ["check", str(script), "--", "--nonsense", HOSTILE],
        ["check", HOSTILE],
        ["script", str(script)],
        ["classify", str(script)],
        ["classify", str(script), "-P"],
        ["classify", str(script), "--jsonl"],
        ["import", str(table), "-m", "pm100"],
        ["import", str(table)],
        ["watch", "-M", HOSTILE, "--once"],
        ["models", "show", HOSTILE],
        ["train", "failure"],
        ["train", "workload", "--operation", "new", "--data", str(examples.parent)],
        ["backtest"],
        ["profiles"],
        ["doctor"],
        ["traces", "bench", str(examples)],
        ["campaign", "simulate", str(tmp_path / "campaign"), "--types", HOSTILE],
        ["campaign", "show", str(tmp_path / HOSTILE.replace("/", ""))],
        ["config", "show"],
        ["schema", "verdict"],
        ["completion", "bash"],
        ["manual", str(tmp_path / "man")],
        ["actions", "-j", HOSTILE],
        ["actions", "--all", "-u", HOSTILE],
        ["undo", "1", "--note", HOSTILE],
        ["expire"],
        ["resubmit", HOSTILE, str(script)],
        ["slurm", "status", "--folder", HOSTILE],
        ["demo", "--days", "1"],
        ["backup", str(tmp_path / f"{HOSTILE}backup")],
        ["prune", "--days", "1", "--dry-run"],
        ["upgrade"],
        ["nightly"],
        ["nightly", HOSTILE],
        ["tokens", "create", HOSTILE],
        ["tokens"],
        ["login", "--socket", HOSTILE],
        ["relay", "--to", HOSTILE, "--token-file", HOSTILE],
        ["serve", "--for", HOSTILE],
        ["connect", "slurm-to-kafka", "-M", HOSTILE],
        [HOSTILE],
        ["jobs", HOSTILE],
    ]


def is_clean(result: Result) -> bool:
    text = result.out + result.err
    return all(character.isprintable() or character == "\n" for character in text)


def test_no_command_prints_a_control_character(
    tocsin: Tocsin, home: Home, commands: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")  # no Slurm
    assert {command[0] for command in commands} >= set(cli.commands)
    for command in commands:
        assert is_clean(tocsin(*command)), command
        json_form = tocsin(*command, "--json")
        assert is_clean(json_form), command
        assert HOSTILE not in json_form.out
    names = {job["name"] for job in json.loads(tocsin("jobs", "-M", "lab", "--json").out)["jobs"]}
    assert names == {HOSTILE}, "JSON keeps the text"


@pytest.mark.parametrize("end", ["-P", "-p"])
def test_a_name_forges_no_column_and_no_line(tocsin: Tocsin, home: Home, end: str) -> None:
    lines = tocsin("jobs", end, "-o", "JobName,User,JobID").out.splitlines()
    assert len(lines) == 4
    assert {line.count("|") for line in lines} == {2 + (end == "-p")}
    assert lines[1].startswith(r"\x1b]0;owned\x07\x9b2J\x85\u202e\u2028\x7cx\x7c\r\n7\x7cforged|")


def test_only_the_module_output_writes_to_the_terminal() -> None:
    for file in Path(tocsin.cli.__file__).parent.glob("*.py"):
        if file.name in ("output.py", "main.py"):
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            name = ast.unparse(node) if isinstance(node, ast.Attribute | ast.Name) else ""
            assert name not in ("print", "click.echo", "click.secho", "sys.stdout", "sys.stderr"), file


def run(tmp_path: Path, command: str, **environ: str) -> subprocess.CompletedProcess[bytes]:
    """A shell command in which $T is tocsin, on a home of its own."""
    script = tmp_path / "job.sh"
    script.write_text("#!/bin/bash\n#SBATCH --time=5 --job-name=é→\x9b\nsrun ./a.out\n")
    own = {"TOCSIN_HOME": str(tmp_path / "home"), "HOME": str(tmp_path), "PYTHONUNBUFFERED": ""}
    return subprocess.run(
        ["bash", "-c", f"cd '{tmp_path}'; {command.replace('$T', TOCSIN)}"],
        env={**os.environ, **own, "PATH": "/usr/bin:/bin", **environ},
        capture_output=True,
        check=False,
        timeout=120,
    )


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_check_answers_in_every_encoding(tmp_path: Path, encoding: str) -> None:
    done = run(tmp_path, "$T check job.sh", PYTHONIOENCODING=encoding)
    assert done.returncode in (0, 1, 3), done.stderr
    assert b"internal error" not in done.stderr
    assert all(character >= " " or character == "\n" for character in done.stdout.decode(encoding))
    document = run(tmp_path, "$T check job.sh --json", PYTHONIOENCODING=encoding)
    assert document.returncode == done.returncode
    assert json.loads(document.stdout)["stage"] == "submit"


def test_an_ascii_terminal_gets_ascii(tmp_path: Path) -> None:
    """`doctor` has arrows; click would write them in UTF-8."""
    assert rb"\u2192" in run(tmp_path, "$T doctor", PYTHONIOENCODING="ascii").stdout


@pytest.mark.parametrize(
    "command",
    [
        "$T check job.sh >/dev/full",
        "$T check job.sh --json >/dev/full 2>/dev/full",
        "$T check missing.sh >&- 2>&-",
        "$T --config missing.toml check job.sh",
        "set -o pipefail; $T check job.sh | true",
        "rm -rf home; touch home; $T check job.sh",
    ],
)
def test_a_check_that_nobody_could_read_is_unknown(tmp_path: Path, command: str) -> None:
    assert run(tmp_path, command).returncode == 3


def test_an_unexpected_error_in_check_is_unknown(
    tocsin: Tocsin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise MemoryError("\x1b[2J")

    script = tmp_path / "job.sh"
    script.write_text("#!/bin/bash\n")
    monkeypatch.setattr("tocsin.cli.check.check_script", fail)
    failed = tocsin("check", script)
    assert (failed.code, failed.out) == (3, "")
    assert "MemoryError" in failed.err
    assert is_clean(failed)
    assert tocsin("--debug", "check", script).code == 3
    assert tocsin("jobs", "-o", "nonsense").code == 1
