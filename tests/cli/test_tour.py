"""What a newcomer tries first: help, the demo, a script, the doctor, completion, man pages, backup, prune."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from tests.kits.command_line import Tocsin
from tocsin.cli.main import cli
from tocsin.cli.manual import man_pages

REPOSITORY = Path(__file__).parents[2]


def all_commands(group: click.Group, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    found = []
    for name, command in group.commands.items():
        found.append((*path, name))
        if isinstance(command, click.Group):
            found += all_commands(command, (*path, name))
    return found


@pytest.mark.parametrize("path", all_commands(cli), ids=" ".join)
def test_every_command_explains_itself(tocsin: Tocsin, path: tuple[str, ...]) -> None:
    said = tocsin(*path, "--help")
    assert said.code == 0
    assert said.out.startswith(f"Usage: tocsin {' '.join(path)}")


def test_the_list_of_commands_shows_the_first_line_of_each_help(tocsin: Tocsin) -> None:
    listed = tocsin("--help").out
    for name, command in cli.commands.items():
        [line] = [line for line in listed.splitlines() if line.split()[:1] == [name]]
        assert line.split(maxsplit=1)[1] == command.get_short_help_str(200)


def test_help_loads_nothing_heavy() -> None:
    heavy = "tocsin.cli.check,polars,numpy,sqlalchemy,alembic,httpx2,sklearn,lightgbm,optuna,pydantic"
    code = (
        "import sys\nfrom tocsin.cli.main import cli\ntry:\n    cli.main(['--help'])\nexcept SystemExit:\n    pass\n"
        f"loaded = [m for m in '{heavy}'.split(',') if m in sys.modules]\nassert not loaded, loaded\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_a_check_loads_nothing_that_only_training_or_traces_need(tmp_path: Path) -> None:
    heavy = "tocsin.traces.fitted,lightgbm,sklearn,scipy,optuna,pandas,pydantic,onnxruntime,torch"
    script = tmp_path / "job.sh"
    script.write_text("#!/bin/bash\n#SBATCH --time=60\nsrun ./a.out\n")
    code = (
        "import sys\nfrom tocsin.cli.main import cli\n"
        f"arguments = ['--home', {str(tmp_path / 'home')!r}, 'check', '--local', '-M', 'demo', {str(script)!r}]\n"
        "try:\n    cli.main(arguments)\nexcept SystemExit:\n    pass\n"
        "assert 'tocsin.failure.fitted' in sys.modules\n"
        f"loaded = [m for m in '{heavy}'.split(',') if m in sys.modules]\nassert not loaded, loaded\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_the_demo_reports_and_is_the_same_again(tocsin: Tocsin) -> None:
    first = json.loads(tocsin("demo", "--days", "3", "--json").out)
    again = json.loads(tocsin("demo", "--days", "3", "--json").out)
    assert first["import"]["new"] > 100
    assert again["import"]["new"] == 0
    assert first["outcomes"] == again["outcomes"]
    assert sum(first["outcomes"].values()) == first["ended"]
    text = tocsin("demo", "--days", "3").out
    assert "How jobs ended\n" in text
    assert "out_of_memory" in text
    assert "How jobs ended, with those of earlier runs: " in tocsin("demo", "--days", "1").out


def test_a_demo_run_as_a_module_names_a_command_that_works(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "tocsin", "--home", tmp_path, "demo", "--days", "1"],
        env={**os.environ, "PATH": "/nonexistent"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert f"Next: {sys.executable} -m tocsin --home {tmp_path} jobs -M demo" in ran.stdout


def test_a_demo_job_names_its_script_and_the_store_has_it(tocsin: Tocsin, tmp_path: Path) -> None:
    tocsin("demo", "--days", "2")
    jobs = json.loads(tocsin("jobs", "-M", "demo", "--json").out)["jobs"]
    digests = {job["script"] for job in jobs if job["script"]}
    assert digests
    assert all((tmp_path / "home" / "scripts" / digest).is_file() for digest in digests)


def test_a_demo_script_asks_for_what_its_job_asked_for(tocsin: Tocsin, tmp_path: Path) -> None:
    tocsin("demo", "--days", "2")
    for job in json.loads(tocsin("jobs", "-M", "demo", "--json").out)["jobs"]:
        if job["script"] and job["task"] is None:
            seen = json.loads(tocsin("script", tmp_path / "home" / "scripts" / job["script"], "--json").out)
            assert seen["scheduler"] == "slurm"
            for name in ("name", "partition", "time_limit", "req_memory", "account"):
                assert seen["request"].get(name, job[name]) == job[name], name


def test_a_script_is_shown_line_by_line(tocsin: Tocsin, tmp_path: Path) -> None:
    path = tmp_path / "job.sh"
    path.write_text("#!/bin/bash\n#SBATCH --mem=4G -t 10\n\nsrun ./a.out\n#SBATCH --nodes=2\n")
    said = tocsin("script", path)
    assert "slurm" in said.out
    assert "--mem" in said.out
    seen = json.loads(tocsin("script", path, "--json").out)
    assert seen["request"]["req_memory"] == 4 * 2**30
    assert seen["request"]["time_limit"] == 600
    assert "req_nodes" not in seen["request"]
    assert [problem["line"] for problem in seen["problems"]] == [5]


@pytest.mark.parametrize("content", [b"\x7fELF\x00\x01", b"\x00" * 100])
def test_what_is_no_script_is_refused(tocsin: Tocsin, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "job"
    path.write_bytes(content)
    said = tocsin("script", path)
    assert said.code == 1
    assert "Traceback" not in said.err


def test_the_doctor_names_every_link(tocsin: Tocsin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    said = tocsin("doctor", "--json")
    links = {finding["link"]: finding for finding in json.loads(said.out)["links"]}
    assert said.code == 0
    assert {"settings", "home", "store", "libgomp", "slurm commands"} <= set(links)
    assert links["slurm commands"]["status"] == "absent"
    assert links["slurm commands"]["fix"]


def test_the_doctor_calls_a_named_cluster_without_slurm_broken(
    tocsin: Tocsin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setenv("TOCSIN_CLUSTER__lab__TIMEOUT", "3")
    assert tocsin("doctor").code == 1


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_the_commands(tocsin: Tocsin, shell: str) -> None:
    assert "_TOCSIN_COMPLETE" in tocsin("completion", shell).out


def test_bash_completes_a_subcommand() -> None:
    program = Path(sys.executable).with_name("tocsin")
    environment = {
        **os.environ,
        "_TOCSIN_COMPLETE": "bash_complete",
        "COMP_WORDS": "tocsin im",
        "COMP_CWORD": "1",
    }
    said = subprocess.run([program], env=environment, capture_output=True, text=True)
    assert "plain,import" in said.stdout


def test_every_command_has_a_man_page(tocsin: Tocsin, tmp_path: Path) -> None:
    tocsin("manual", tmp_path / "man")
    written = {path.stem for path in (tmp_path / "man").iterdir()}
    assert written == {"tocsin", *("-".join(("tocsin", *path)) for path in all_commands(cli))}
    pages = dict(man_pages(cli))
    assert "\\-\\-starttime" in pages["tocsin-jobs"]
    for name, page in pages.items():
        assert "\\-h, \\-\\-help" in page, name
        assert not re.search(r"\.TP\n.*\n\n", page), f"{name} lists something without a word about it"


def test_a_backup_is_a_home_that_works(tocsin: Tocsin, tmp_path: Path) -> None:
    tocsin("demo", "--days", "1")
    made = tocsin("backup", tmp_path / "copy", "--json")
    assert (made.code, json.loads(made.out)) == (0, {"backup": str(tmp_path / "copy")})
    here = tocsin("jobs", "--json", "--limit", "0").out
    assert tocsin("--home", tmp_path / "copy", "jobs", "--json", "--limit", "0").out == here


def test_prune_removes_what_is_old_and_says_so_before(tocsin: Tocsin) -> None:
    tocsin("demo", "--days", "1")
    assert "jobs are kept" in tocsin("prune").err
    dry = json.loads(tocsin("prune", "--days", "30", "--dry-run", "--json").out)
    assert json.loads(tocsin("prune", "--days", "30", "--json").out)["jobs"] == dry["jobs"] > 0
    assert json.loads(tocsin("prune", "--days", "30", "--json").out)["jobs"] == 0


def test_the_schema_is_the_published_one(tocsin: Tocsin) -> None:
    published = json.loads((REPOSITORY / "docs" / "verdict.schema.json").read_text())
    assert json.loads(tocsin("schema", "verdict").out) == published
