"""`tocsin screen`: the store's new jobs, each once; and what `check` says of a rogue script."""

import json
import time
from pathlib import Path

import pytest

from tests.cli.conftest import Tocsin
from tests.cli.screeners import by_signs
from tests.store.examples import SUBMIT, frame
from tocsin.store.database import open_store
from tocsin.store.home import Home
from tocsin.store.jobs import upsert
from tocsin.store.scriptfiles import keep_script

__all__ = ["by_signs"]

pytestmark = pytest.mark.usefixtures("by_signs")

MINER = "#!/bin/bash\n./gcc -o stratum+tcp://any.example:3333 -u me &\n"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """Three jobs: a miner, a plain one, and one whose script is gone."""
    made = Home(tmp_path / "home").prepare()
    digests = [keep_script(made.scripts, MINER), keep_script(made.scripts, "srun ./a.out\n"), "0" * 64]
    with open_store(made.url) as store:
        upsert(store, frame(*({"job_id": n + 1, "user": "ann", "script": d} for n, d in enumerate(digests))))
    return made


def test_new_jobs_are_screened_once(tocsin: Tocsin, home: Home) -> None:
    said = tocsin("screen")
    assert said.code == 0
    [line] = said.out.splitlines()
    assert line.startswith("CRITICAL: this is cryptomining (99%), and cryptomining is never allowed")
    assert said.err == "3 jobs screened, 1 rogue\n"
    again = tocsin("screen", "--all")
    assert (again.out, again.err) == ("", "0 jobs screened, 0 rogue\n")
    with open_store(home.url) as store:
        upsert(store, frame({"job_id": 9, "submit": SUBMIT + 9, "script": keep_script(home.scripts, MINER)}))
    [verdict] = [json.loads(line) for line in tocsin("screen", "--json").out.splitlines()]
    assert (verdict["job"], verdict["rogue"]["rogue"]) == (f"lab:9@{SUBMIT + 9}", True)


def test_the_verdict_is_stored_and_the_case_is_open(tocsin: Tocsin, home: Home) -> None:
    tocsin("screen")
    shown = json.loads(tocsin("job", "1", "--json").out)
    [verdict] = shown["jobs"][0]["verdicts"]
    assert (verdict["seq"], verdict["rogue"]["case"]) == (1, "1")  # a watcher's own verdict has 0
    assert "cryptomining" in tocsin("cases").out


def test_a_line_for_each_verdict_is_logged(
    tocsin: Tocsin, home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "verdicts.log"
    monkeypatch.setenv("TOCSIN_WORKLOAD__LOG_FILE", str(log))
    tocsin("screen")
    assert [json.loads(line)["level"] for line in log.read_text().splitlines()] == ["critical", "ok"]
    monkeypatch.setenv("TOCSIN_WORKLOAD__LOG_FILE", str(tmp_path / "no" / "such"))
    assert "change workload.log_file" in tocsin("screen").err


def test_a_broken_allow_list_does_not_stop_it(
    tocsin: Tocsin, home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "allow.toml"
    monkeypatch.setenv("TOCSIN_WORKLOAD__ALLOW_FILE", str(file))
    file.write_text('[default]\ncryptomining = "allowed"\n')
    assert tocsin("allow", "check").out == f"{file} is good: 1 rule, 0 permissions\n"
    tocsin("allow", "list")
    file.write_text('[default]\ncryptomining = "maybe"\n')
    refused = tocsin("allow", "check")
    assert refused.code == 1
    assert f"{file}, line 2: cryptomining is 'maybe'" in refused.err
    said = tocsin("screen", "--all")
    assert said.code == 0
    assert "the last good one stays in force" in said.err
    assert "0 rogue" in said.err


def test_without_a_model_nothing_is_screened(
    tocsin: Tocsin, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tocsin.judge.plugins.find_detectors", lambda broken=None: {})
    said = tocsin("screen")
    assert (said.code, "nothing can be screened" in said.err) == (1, True)


def test_check_says_what_it_is_and_that_it_may_not(tocsin: Tocsin, tmp_path: Path) -> None:
    script = tmp_path / "job.sh"
    script.write_text(MINER)
    said = tocsin("check", script, "-M", "demo", "-u", "ada")
    assert said.code == 2
    assert "by its script: cryptomining (99%); language bash" in said.out
    assert "rogue: cryptomining is never allowed" in said.out
    assert json.loads(tocsin("check", script, "-M", "demo", "--json").out)["rogue"]["rogue"] is True
    assert tocsin("cases", "list", "--all", "-n").out == ""  # a check opens no case
    script.write_text("#!/bin/sh\npython -c 'import torch'\n")
    said = tocsin("check", script, "-M", "demo", "-u", "ada")
    assert said.code == 0
    assert "it may: ai is allowed for everybody" in said.out


def test_what_was_screened_and_answered_trains_what_tells_by_deeds(tocsin: Tocsin, tmp_path: Path) -> None:
    made = Home(tmp_path / "home").prepare()
    digests = [keep_script(made.scripts, "srun ./a.out\n"), keep_script(made.scripts, MINER)]
    now = int(time.time())
    rows = [
        {
            "job_id": n,
            "user": f"u{n % 7}",
            "script": digests[n % 3 == 0],
            "submit": now - 90_000 + 100 * n,
            "start": now - 89_000 + 100 * n,
            "end": now - 88_000 + 100 * n,
            "known_at": now - 88_000 + 100 * n,
            "outcome": "completed",
            "state": "COMPLETED",
            "elapsed": 1000,
            "cpu_seconds": 990 if n % 3 == 0 else 400 + n,
            "energy": 900.0 + n if n % 3 == 0 else 300.0 + n,
            "alloc_cpus": 4,
        }
        for n in range(1, 301)
    ]
    with open_store(made.url) as store:
        upsert(store, frame(*rows))
    refused = tocsin("train", "execution")
    assert (refused.code, "run: tocsin screen" in refused.err) == (1, True)
    tocsin("screen")
    said = tocsin("train", "execution", "--json")
    assert said.code == 0, said.err
    trained = json.loads(said.out)
    assert trained["operations"]["cryptomining"] == {"jobs": 300, "positive": 100}
    assert trained["in_service"]
    assert "cyber" in trained["untrained"]
    assert "workload" in tocsin("models", "list").out
