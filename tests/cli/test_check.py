"""`tocsin check` reports problems before submission and the line to change; `tocsin explain` does so afterwards."""

import io
import json
from pathlib import Path

import jsonschema
import pytest

from tests.kits.command_line import Tocsin
from tocsin.core.schema import verdict_schema

FINE = "#!/bin/bash\n#SBATCH --job-name=ok\n#SBATCH --partition=main\n#SBATCH --mem=4G\n#SBATCH --time=60\nsrun ./a.out\n"


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "job.sh"
    path.write_text(FINE)
    return path


def test_a_request_that_fits_is_fine_and_has_a_risk_on_the_first_day(tocsin: Tocsin, script: Path) -> None:
    said = tocsin("check", script, "-M", "demo", "-u", "ada")
    assert said.code == 0
    assert said.out.startswith("OK:")
    assert "  risk of failure " in said.out
    assert "    from other clusters' experience; 0 jobs of this cluster seen so far" in said.out


def test_an_ordinary_user_gets_a_risk_from_the_shipped_model(
    tocsin: Tocsin, script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tocsin.store.home.user_name", lambda *_: "ada")
    said = tocsin("check", script, "-M", "demo", "--json")
    assert said.code == 0
    document = json.loads(said.out)
    assert document["models"]["failure"] == "builtin"
    assert 0 < document["failure"]["probability"] < 1


def test_without_a_home_a_user_reads_whom_to_ask(
    tocsin: Tocsin, script: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("TOCSIN_HOME", str(tmp_path / "file" / "home"))
    said = tocsin("check", script, "-M", "demo")
    assert said.code == 3
    assert "administrator" in said.err


def test_an_impossible_request_is_critical_and_shows_the_line_to_change(tocsin: Tocsin, script: Path) -> None:
    script.write_text(FINE.replace("--mem=4G", "--mem=5000G"))
    said = tocsin("check", script, "-M", "demo", "-u", "ada")
    assert said.code == 2
    assert "-#SBATCH --mem=5000G" in said.out
    assert "@@ line 4 @@" in said.out
    changed = next(line.strip()[1:] for line in said.out.splitlines() if line.strip().startswith("+#SBATCH"))
    script.write_text(script.read_text().replace("#SBATCH --mem=5000G", changed))
    assert "no problem found" in tocsin("check", script, "-M", "demo", "-u", "ada").out


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


def test_a_request_on_the_command_line_is_not_corrected_in_the_script(tocsin: Tocsin, script: Path) -> None:
    said = tocsin("check", script, "-M", "demo", "-u", "ada", "--", "--time=400-0")
    assert said.code == 2
    assert "on the command line" in said.out
    assert "@@" not in said.out


@pytest.mark.parametrize(
    "line",
    [
        *("--mem=1.5G", "--ntasks=0", "--cpus-per-task=0", "--begin=garbage", "--gres=gpu:x:y", "--mem=4X"),
        *("--time=abc", "-n zwei", "--nope", "-p"),
    ],
)
def test_what_sbatch_refuses_is_critical(tocsin: Tocsin, script: Path, line: str) -> None:
    script.write_text(FINE.replace("--mem=4G", line))
    said = tocsin("check", script, "-M", "demo", "-u", "ada")
    assert said.code == 2
    assert "line 4" in said.out
    script.write_text(FINE)
    assert tocsin("check", script, "-M", "demo", "-u", "ada", "--", *line.split()).code == 2


@pytest.mark.parametrize("text", ["", "  \n", "echo hello\n"])
def test_a_script_that_sbatch_refuses_is_critical(tocsin: Tocsin, script: Path, text: str) -> None:
    script.write_text(text)
    assert tocsin("check", script, "-M", "demo", "-u", "ada").code == 2


@pytest.mark.parametrize(
    "more", [("--usr", "niels"), ("--time=5",), ("foo",), ("--", "foo", "bar"), ("-t", "5")]
)
def test_what_is_no_option_of_the_check_is_an_error(
    tocsin: Tocsin, script: Path, more: tuple[str, ...]
) -> None:
    assert tocsin("check", script, "-M", "demo", *more).code == 3


def test_an_option_of_sbatch_before_the_dashes_is_answered_with_where_to_put_it(
    tocsin: Tocsin, script: Path
) -> None:
    said = tocsin("check", script, "-M", "demo", "--mem=5G")
    assert "No such option '--mem'; options of sbatch come after --: tocsin check job.sh -- --mem" in said.err
    assert "come after --" not in tocsin("check", script, "--jsn").err, "a slip of a known option"


@pytest.mark.parametrize("limit", ["00:10:00", "18:00:00", "2-00:00:00", "7-00:00:00"])
def test_no_job_is_expected_to_outlive_its_time_limit(tocsin: Tocsin, script: Path, limit: str) -> None:
    said = tocsin("check", script, "-M", "demo", "-u", "ada", "--json", "--", f"--time={limit}")
    time = json.loads(said.out)["resources"]["runtime_seconds"]
    assert time["p95"] <= time["requested"]


@pytest.mark.parametrize("words", [("--mem",), ("--mem=4G", "foo"), ("--shoe-size=4",)])
def test_words_of_the_submission_that_sbatch_refuses_are_critical(
    tocsin: Tocsin, script: Path, words: tuple[str, ...]
) -> None:
    said = tocsin("check", script, "-M", "demo", "-u", "ada", "--", *words)
    assert said.code == 2
    assert "command line" in said.out


def test_an_unknown_cluster_is_an_error(
    tocsin: Tocsin, script: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    said = tocsin("check", script, "-M", "nosuch")
    assert said.code == 3
    assert 'no cluster "nosuch"; known clusters: ' in said.err
    (tmp_path / "config" / "tocsin").mkdir(parents=True)
    (tmp_path / "config" / "tocsin" / "tocsin.toml").write_text("[cluster.nosuch]\ntimeout = 1\n")
    said = tocsin("check", script, "-M", "nosuch", "-u", "ada", "--json")
    assert said.code == 3, "a known cluster that does not answer"
    assert {"limits", "machine"} <= set(json.loads(said.out)["missing"])


def test_this_hosts_slurm_is_not_taken_for_another_cluster(
    tocsin: Tocsin, script: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    scontrol = tmp_path / "bin" / "scontrol"
    scontrol.parent.mkdir()
    scontrol.write_text('#!/bin/sh\n[ "$2" = config ] && echo "ClusterName = lab"\n')
    scontrol.chmod(0o755)
    monkeypatch.setenv("PATH", str(scontrol.parent))
    assert 'no cluster "nosuch"; known clusters: ' in tocsin("check", script, "-M", "nosuch", "-u", "ada").err
    assert tocsin("check", script, "-M", "lab", "-u", "ada").out.startswith("UNKNOWN:")


def test_a_script_may_come_from_standard_input(tocsin: Tocsin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(FINE.replace("4G", "5000G").encode())))
    said = tocsin("check", "-", "-M", "demo", "-u", "ada")
    assert said.code == 2
    assert "-#SBATCH --mem=5000G" in said.out


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


def test_bytes_that_are_not_utf_8_are_no_error(tocsin: Tocsin, script: Path) -> None:
    script = script.with_name("job-\udcff.sh")
    script.write_text("#!/bin/bash\n#SBATCH --time=10\nsrun ./a.out\n")
    document = json.loads(tocsin("check", script, "-M", "demo", "-u", "ada", "--json").out)
    assert document["name"] == "job-\ufffd.sh"
    words = ("--job-name=a\udc85b", "--comment=\udcff")
    document = json.loads(
        tocsin("check", script, "-M", "demo", "-u", "ada\udcff", "--json", "--", *words).out
    )
    assert (document["user"], document["name"]) == ("ada\ufffd", "a?b")
    log = script.with_name("log-\udcff.swf")
    log.write_text("1 100 5 100 4 -1 -1 4 -1 -1 1 1 1 1 1 -1 -1 -1\n")
    assert tocsin("import", log).code == 0
    job = json.loads(tocsin("jobs", "-M", "log-\udcff", "-S", "1970-01-01", "--json").out)["jobs"][0]
    assert job["job"] == "log-\ufffd:1@100"


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


def test_without_slurm_the_stores_only_cluster_is_checked_against(
    tocsin: Tocsin, script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tocsin("demo", "--days", "1")
    monkeypatch.setenv("PATH", "/nonexistent")
    document = json.loads(tocsin("check", script, "-u", "ada", "--json").out)
    assert document["job"].startswith("demo:")
    assert "limits" not in document["missing"]
