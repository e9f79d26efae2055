"""`tocsin check` says before submission what is wrong and which line to change; `tocsin explain` does so afterwards."""

import json
from pathlib import Path

import jsonschema
import pytest

from tests.cli.conftest import Tocsin
from tocsin.core.schema import verdict_schema

FINE = "#!/bin/bash\n#SBATCH --job-name=ok\n#SBATCH --partition=main\n#SBATCH --mem=4G\n#SBATCH --time=60\nsrun ./a.out\n"


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "job.sh"
    path.write_text(FINE)
    return path


def test_a_request_that_fits_is_fine(tocsin: Tocsin, script: Path) -> None:
    said = tocsin("check", script, "-M", "demo", "-u", "ada")
    assert said.code == 0
    assert said.out.startswith("OK:")


def test_an_impossible_request_is_critical_and_shows_the_line_to_change(tocsin: Tocsin, script: Path) -> None:
    script.write_text(FINE.replace("--mem=4G", "--mem=5000G"))
    said = tocsin("check", script, "-M", "demo", "-u", "ada")
    assert said.code == 2
    assert "-#SBATCH --mem=5000G" in said.out
    assert "@@ line 4 @@" in said.out
    changed = next(line.strip()[1:] for line in said.out.splitlines() if line.strip().startswith("+#SBATCH"))
    script.write_text(script.read_text().replace("#SBATCH --mem=5000G", changed))
    assert tocsin("check", script, "-M", "demo", "-u", "ada").code == 0


def test_the_document_is_a_verdict(tocsin: Tocsin, script: Path) -> None:
    script.write_text(FINE.replace("--time=60", "--time=400-0"))
    said = tocsin("check", script, "-M", "demo", "-u", "ada", "--json")
    document = json.loads(said.out)
    assert said.code == 2
    jsonschema.validate(document, verdict_schema(), format_checker=jsonschema.FormatChecker())
    assert document["stage"] == "submit"
    assert [advice["edit"]["line"] for advice in document["advice"] if advice["edit"]] == [5]


def test_options_of_the_submission_win_over_the_script(tocsin: Tocsin, script: Path) -> None:
    assert tocsin("check", script, "-M", "demo", "-u", "ada", "--", "--mem=5000G").code == 2


def test_a_directive_that_is_ignored_is_a_warning(tocsin: Tocsin, script: Path) -> None:
    script.write_text(FINE + "#SBATCH --nodes=4\n")
    said = tocsin("check", script, "-M", "demo", "-u", "ada")
    assert said.code == 1
    assert "line 7" in said.out


def test_without_a_cluster_to_ask_the_verdict_says_so(
    tocsin: Tocsin, script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    document = json.loads(tocsin("check", script, "-u", "ada", "--json").out)
    assert "limits" in document["missing"]


@pytest.mark.parametrize("arguments", [("/nonexistent/job.sh",), (), ("x", "--shoe-size=4", "-M")])
def test_every_error_of_a_check_is_three(tocsin: Tocsin, arguments: tuple[str, ...]) -> None:
    said = tocsin("check", *arguments)
    assert said.code == 3
    assert "Traceback" not in said.err


def test_a_job_in_the_store_is_explained_as_of_its_stage(tocsin: Tocsin) -> None:
    tocsin("demo", "--days", "2")
    job = json.loads(tocsin("jobs", "-M", "demo", "--json", "--limit", "1").out)["jobs"][0]
    said = tocsin("explain", job["job"], "--json")
    document = json.loads(said.out)
    assert said.code == 0
    assert document["job"] == job["job"]
    jsonschema.validate(document, verdict_schema())
    assert job["job"] in tocsin("explain", job["job"]).out


def test_an_unknown_job_cannot_be_explained(tocsin: Tocsin) -> None:
    assert "no job 4711" in tocsin("explain", "4711").err
