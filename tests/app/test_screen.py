"""`tocsin screen`: the store's new jobs, each once; and what `check` says of a rogue script."""

import grp
import json
import os
import pwd
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
import sqlalchemy as sa

from tests.kits.command_line import Tocsin
from tests.kits.job_frames import SUBMIT, frame
from tests.kits.sign_screener import SignScreener, by_signs
from tests.kits.watching import MORNING, rows
from tocsin.app.app import App
from tocsin.app.judge import open_judge
from tocsin.app.loop import Output
from tocsin.app.screen import _Screening, screen
from tocsin.app.verdict_text import verdict_screen
from tocsin.core.decision import Decision
from tocsin.core.ids import parse_key
from tocsin.core.stages import Stage
from tocsin.core.verdict import Finding, Level, Screening, Verdict, Workload
from tocsin.demo.cluster import START, DemoCluster
from tocsin.history.ledger import Ledger
from tocsin.store.database import open_store
from tocsin.store.decisions import record
from tocsin.store.home import Home
from tocsin.store.jobs import upsert
from tocsin.store.locks import locked
from tocsin.store.scriptfiles import save_script
from tocsin.store.tables import verdicts
from tocsin.store.verdicts import of_job
from tocsin.watch.script_reader import ScriptReader
from tocsin.watch.watcher import Watcher

__all__ = ["by_signs"]

pytestmark = pytest.mark.usefixtures("by_signs")

MINER = "#!/bin/bash\n./gcc -o stratum+tcp://any.example:3333 -u me &\n"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """Three jobs: a miner, a plain one, and one whose script is gone."""
    made = Home(tmp_path / "home").prepare()
    digests = [save_script(made.scripts, MINER), save_script(made.scripts, "srun ./a.out\n"), "0" * 64]
    with open_store(made.url) as store:
        upsert(store, frame(*({"job_id": n + 1, "user": "ann", "script": d} for n, d in enumerate(digests))))
    return made


def test_new_jobs_are_screened_once(tocsin: Tocsin, home: Home) -> None:
    said = tocsin("screen")
    assert said.code == 0
    [line] = said.out.splitlines()
    assert " CRITICAL: classified as cryptomining (99%); cryptomining is never allowed" in line
    assert said.err == "3 jobs screened, 1 rogue\n"
    again = tocsin("screen", "--all")
    assert (again.out, again.err) == ("", "0 jobs screened, 0 rogue\n")
    with open_store(home.url) as store:
        upsert(store, frame({"job_id": 9, "submit": SUBMIT + 9, "script": save_script(home.scripts, MINER)}))
    [verdict] = [json.loads(line) for line in tocsin("screen", "--json").out.splitlines()]
    assert (verdict["job"], verdict["rogue"]["rogue"]) == (f"lab:9@{SUBMIT + 9}", True)


def test_a_screening_killed_before_its_verdict_is_repeated(
    tocsin: Tocsin, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("tocsin.store.decisions.insert_new", killed)
        assert tocsin("screen").code != 0
    said = tocsin("screen")
    assert " CRITICAL: classified as cryptomining" in said.out
    assert said.err == "3 jobs screened, 1 rogue\n", "all of it, or nothing, is stored"
    assert tocsin("screen").err == "0 jobs screened, 0 rogue\n"


def test_two_do_not_screen_at_once(tocsin: Tocsin, home: Home) -> None:
    with open_store(home.url) as store, locked(store, "screen"):
        said = tocsin("screen")
    assert (said.code, said.out) == (0, "")
    assert "another `tocsin screen`" in said.err
    assert tocsin("screen").err == "3 jobs screened, 1 rogue\n"


def test_the_verdict_is_stored_and_the_case_is_open(tocsin: Tocsin, home: Home) -> None:
    tocsin("screen")
    shown = json.loads(tocsin("job", "1", "--json").out)
    [verdict] = shown["jobs"][0]["verdicts"]
    assert (verdict["seq"], verdict["rogue"]["case"]["number"]) == (0, 1)
    assert "cryptomining" in tocsin("cases").out


def test_a_case_shows_the_lines_of_its_script_and_all_of_its_jobs(tocsin: Tocsin, home: Home) -> None:
    miner = {"user": "ann", "account": "physics", "name": "train", "script": save_script(home.scripts, MINER)}
    with open_store(home.url) as store:
        upsert(store, frame(*({**miner, "job_id": n} for n in range(20, 24))))
    tocsin("screen")
    shown = json.loads(tocsin("cases", "show", "1", "--json").out)
    assert shown["lines"] == [{"line": 2, "text": MINER.splitlines()[1]}]
    assert len(shown["jobs"]) == 5
    assert {job["job"] for job in shown["jobs"]} > {f"lab:{n}@{SUBMIT}" for n in range(20, 24)}
    said = tocsin("cases", "show", "1").out
    assert MINER.splitlines()[1] in said
    assert f"lab:23@{SUBMIT}" in said
    assert "name train" in said
    for path in home.scripts.iterdir():
        path.unlink()
    assert "was it pruned?" in tocsin("cases", "show", "1").out


OTHER = "#!/bin/bash\nmodule load cuda\n./icc -o stratum+tcp://any.example:3333 -u you &\n"


def test_a_case_shows_each_of_its_scripts_with_its_lines_and_jobs(tocsin: Tocsin, home: Home) -> None:
    other = {"user": "ann", "script": save_script(home.scripts, OTHER)}
    with open_store(home.url) as store:
        upsert(store, frame(*({**other, "job_id": n} for n in (30, 31))))
    tocsin("screen")
    shown = json.loads(tocsin("cases", "show", "1", "--json").out)
    assert [(script["lines"], script["jobs"]) for script in shown["scripts"]] == [
        ([{"line": 2, "text": MINER.splitlines()[1]}], [f"lab:1@{SUBMIT}"]),
        ([{"line": 3, "text": OTHER.splitlines()[2]}], [f"lab:30@{SUBMIT}", f"lab:31@{SUBMIT}"]),
    ]
    said = tocsin("cases", "show", "1").out
    assert OTHER.splitlines()[2] in said
    assert f"script   {other['script']}, used by lab:30@{SUBMIT}, lab:31@{SUBMIT}" in said


def test_a_case_whose_verdicts_were_pruned_says_so(tocsin: Tocsin, home: Home) -> None:
    tocsin("screen")
    tocsin("cases", "confirm", "1")
    with open_store(home.url) as store, store.writing() as connection:
        connection.execute(sa.delete(verdicts))
    said = tocsin("cases", "show", "1").out
    assert "script   the verdict that names its lines was pruned; the script is" in said
    assert "no single line" not in said


def test_scripts_with_a_sign_have_separate_cases_that_are_listed_and_answered_together(
    tocsin: Tocsin, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = SignScreener._one
    monkeypatch.setattr(
        SignScreener, "_one", lambda self, text: replace(one(self, text), signs=["cryptomining"])
    )
    scripts = [f"{OTHER}# {number}\n" for number in range(3)]
    with open_store(home.url) as store:
        upsert(
            store,
            frame(
                *(
                    {"job_id": n, "user": "ann", "script": save_script(home.scripts, text)}
                    for n, text in enumerate(scripts, 40)
                )
            ),
        )
    tocsin("screen")
    assert len(json.loads(tocsin("cases", "list", "--json").out)["cases"]) == 4
    listed = tocsin("cases", "list", "-n", "-P").out.splitlines()
    assert [line.split("|")[:1] + line.split("|")[5:6] for line in listed] == [["1", "4"]]
    assert len(tocsin("cases", "list", "-n", "--all").out.splitlines()) == 4
    assert "others   2, 3, 4 for other scripts of this user" in tocsin("cases", "show", "1").out
    assert tocsin("cases", "dismiss", "2", "99").code == 1
    assert len(json.loads(tocsin("cases", "list", "--json").out)["cases"]) == 4, "all of them or none"
    answered = tocsin("cases", "dismiss", "2", "3")
    assert answered.out.count("is dismissed") == 2
    assert [case["case"] for case in json.loads(tocsin("cases", "list", "--json").out)["cases"]] == [1, 4]


def test_progress_counts_all_jobs_that_wait(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tocsin.app.screen.CHUNK", 2)
    shown: list[tuple[str, int, int]] = []
    with App(folder=str(home.root), progress=lambda *step: shown.append(step)) as app:
        screen(app, Output(print))
    assert shown == [("screening", 2, 3), ("screening", 3, 3)]


def test_a_line_for_each_verdict_is_logged(
    tocsin: Tocsin, home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "verdicts.log"
    monkeypatch.setenv("TOCSIN_SINKS__log__KIND", "log")
    monkeypatch.setenv("TOCSIN_SINKS__log__FILE", str(log))
    tocsin("screen")
    assert [json.loads(line)["level"] for line in log.read_text().splitlines()] == ["critical", "unknown"]
    monkeypatch.setenv("TOCSIN_SINKS__log__FILE", str(tmp_path / "no" / "such"))
    assert "change sinks.log.file" in tocsin("screen").err


def test_a_broken_allow_list_does_not_stop_it(
    tocsin: Tocsin, home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "allow.toml"
    monkeypatch.setenv("TOCSIN_WORKLOAD__ALLOW_FILE", str(file))
    file.write_text('[default]\ncryptomining = "allowed"\n')
    assert tocsin("allow", "check").out == f"{file} is valid: 1 rule, 0 entries\n"
    tocsin("allow", "list")
    file.write_text('[default]\ncryptomining = "maybe"\n')
    refused = tocsin("allow", "check")
    assert refused.code == 1
    assert f"{file}, line 2: cryptomining is 'maybe'" in refused.err
    said = tocsin("screen", "--all")
    assert said.code == 0
    assert "its last valid version stays in force" in said.err
    assert "0 rogue" in said.err


def test_without_a_model_nothing_is_screened(
    tocsin: Tocsin, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tocsin.judge.plugins.find_detectors", lambda broken=None: {})
    said = tocsin("screen")
    assert (said.code, "nothing can be screened" in said.err) == (1, True)


def test_check_classifies_a_script_and_applies_the_allow_list(tocsin: Tocsin, tmp_path: Path) -> None:
    script = tmp_path / "job.sh"
    script.write_text(MINER)
    said = tocsin("check", script, "-M", "demo", "-u", "ada")
    assert said.code == 2
    assert said.out.startswith(f"CRITICAL: {script}: this job is not allowed to run here.\n")
    assert "by its script: cryptomining (99%); language bash" in said.out
    assert "rogue: cryptomining is never allowed" in said.out
    assert json.loads(tocsin("check", script, "-M", "demo", "--json").out)["rogue"]["rogue"] is True
    assert tocsin("cases", "list", "--all", "-n").out == ""  # a check opens no case
    script.write_text("#!/bin/sh\npython -c 'import torch'\n")
    said = tocsin("check", script, "-M", "demo", "-u", "ada")
    assert said.code == 0
    assert "allowed: ai is allowed for everybody" in said.out


def test_check_follows_what_the_script_calls_when_asked(
    tocsin: Tocsin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("job.sh").write_text("#!/bin/sh\n\nsource go.sh\n")
    Path("go.sh").write_text(MINER)
    assert tocsin("check", "job.sh", "-M", "demo").code == 0
    said = tocsin("check", "job.sh", "-M", "demo", "--follow")
    assert said.code == 2
    assert f"line 3 leads to {tmp_path}/go.sh, whose line 2 speaks for cryptomining" in said.out
    Path("go.sh").write_text("python -c 'import torch'\n")
    assert "by its script: ai (90%)" in tocsin("check", "job.sh", "-M", "demo", "--follow").out


def test_check_knows_the_group_of_a_user(tocsin: Tocsin, tmp_path: Path) -> None:
    user = pwd.getpwuid(os.getuid())
    script = tmp_path / "job.sh"
    script.write_text("#!/bin/sh\nnmap -sS 10.0.0.0/8\n")
    check = ("check", script, "--local", "-M", "demo", "-u", user.pw_name)
    assert tocsin(*check).code == 2
    assert tocsin("allow", "add", "cyber", "-g", grp.getgrgid(user.pw_gid).gr_name).code == 0
    said = tocsin(*check)
    assert (
        said.code,
        "allowed: cyber is allowed only for listed users, accounts and groups; group" in said.out,
    ) == (0, True)
    assert tocsin("check", script, "-M", "demo", "-u", "nobody-of-this-host").code == 2


def test_explain_shows_the_rule_of_the_verdict_and_that_todays_differs(tocsin: Tocsin, home: Home) -> None:
    tocsin("screen")
    assert tocsin("allow", "default", "cryptomining", "allowed").code == 0
    said = tocsin("explain", "1").out
    assert "it was not allowed to run" in said.splitlines()[0]
    assert said.startswith("CRITICAL")
    assert "rogue: cryptomining is never allowed" in said
    assert "judged today: cryptomining is allowed for everybody" in said


def test_explain_never_says_ok_where_a_case_is_confirmed(
    tocsin: Tocsin, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    tocsin("screen")
    assert tocsin("cases", "confirm", "1").code == 0
    for stage in ("submit", "start"):  # with and without a verdict at the stage
        said = tocsin("explain", "1", "--stage", stage).out
        assert said.startswith("CRITICAL"), said
        assert "case 1 was confirmed" in said
    for script in home.scripts.iterdir():
        script.unlink()
    monkeypatch.setattr("tests.kits.sign_screener.SignScreener._one", lambda *_: Screening(operations={}))
    said = tocsin("explain", "1").out
    assert said.startswith("CRITICAL")
    assert "not allowed to run" in said
    assert tocsin("explain", "2").out.startswith(("OK", "UNKNOWN"))


def test_a_later_rule_judges_no_earlier_job(tocsin: Tocsin, home: Home) -> None:
    assert tocsin("allow", "default", "cryptomining", "allowed").code == 0
    assert tocsin("screen").err == "3 jobs screened, 1 rogue\n"


def test_a_verdict_that_a_job_has_is_not_repeated_and_never_contradicted(tocsin: Tocsin, home: Home) -> None:
    """The watcher judged both without their scripts: the miner's verdict is completed, the other one stands."""
    problem = Finding(detector="limits", kind="nodes", level=Level.WARNING, text="too many nodes")
    given = [
        Verdict(
            job=f"lab:{job}@{SUBMIT}",
            stage=Stage.SUBMIT,
            at=SUBMIT,
            known_until=SUBMIT,
            level=Level.WARNING,
            findings=[problem],
            models={"limits": "1"},
            missing={"workload": "no script"},
        )
        for job in (1, 2)
    ]
    with open_store(home.url) as store:
        record(store, Decision(verdicts=given))
        tocsin("screen")
        assert of_job(store, parse_key(given[1].job)) == [given[1]]
        first, second = of_job(store, parse_key(given[0].job))
    assert (first, second.seq, second.level) == (given[0], 1, Level.CRITICAL)
    assert problem in second.findings
    assert {"limits", "workload"} <= second.models.keys()
    assert "workload" not in second.missing
    assert "too many nodes" in tocsin("explain", "1").out


def test_screen_beside_watch_gives_each_job_one_verdict_at_submission(tmp_path: Path) -> None:
    """Every few minutes of the demo both run; nothing that watch judges is judged by screen as well."""
    cluster, ledger = DemoCluster(seed=3), Ledger()
    with App(folder=str(tmp_path / "home"), environ={"HOME": str(tmp_path), "TZ": "UTC"}) as app:
        folder = app.home.prepare().scripts
        live = open_judge(app, ledger, ["workload"])
        plain = save_script(folder, "srun ./a.out\n")
        reader = ScriptReader(cluster, folder)
        watch = Watcher(cluster, app.store, live, ledger, scripts=reader, seconds=lambda: 0.0)
        screening = _Screening(app.store, live, ledger, {}, everything=True)
        watch.step(START)
        for now in range(MORNING, MORNING + 3600, 300):
            cluster.clock.advance_to(now)
            stored = cluster.queue().with_columns(script=pl.lit(plain))
            upsert(app.store, stored)  # as if the watcher were slow to judge what it has stored
            screening.step(now)
            watch.step(now)
            screening.step(now + 60)
        found = rows(app.store, "SELECT job, count(*) FROM verdicts WHERE stage = 'submit' GROUP BY job")
    assert len(found) > 20
    assert {count for _, count in found} == {1}


def test_words_do_not_contradict_each_other() -> None:
    def words(**look: object) -> str:
        workload = Workload(submission=Screening(**look))  # type: ignore[arg-type]  # as given
        return "\n".join(verdict_screen(replace(plain, workload=workload), "x"))

    plain = Verdict(job="lab:1@1", stage=Stage.SUBMIT, at=1, known_until=1, level=Level.OK)
    said = words(operations={"ai": 0.34}, application="llama-cli", domain="machine learning")
    assert "ai is possible (34%), but below 50%; application llama-cli" in said
    said = words(operations={"ai": 0.34}, application="gromacs", domain="chemistry")
    assert "no known operation; application gromacs" in said
    assert "no known operation; no known application or language" in words(operations={"ai": 0.01})


def test_the_tasks_of_an_array_are_one_line_and_each_keeps_its_verdict(tocsin: Tocsin, home: Home) -> None:
    tocsin("screen")
    tasks = 600  # more than are judged at a time
    with open_store(home.url) as store:
        script = save_script(home.scripts, MINER)
        jobs = [{"job_id": 7, "task": n, "user": "ann", "script": script} for n in range(tasks)]
        upsert(store, frame(*jobs, {"job_id": 8, "user": "ann", "script": script}))
    said = tocsin("screen")
    array, job = said.out.splitlines()
    assert " CRITICAL: classified as cryptomining" in array
    assert array.endswith(f"(lab:7_0@{SUBMIT}, submit, user ann, and 599 more)")
    assert job.endswith(f"(lab:8@{SUBMIT}, submit, user ann)")
    assert said.err == "601 jobs screened, 601 rogue\n"
    last = json.loads(tocsin("job", f"7_{tasks - 1}", "--json").out)
    assert last["jobs"][0]["verdicts"][0]["rogue"]["rogue"] is True


def test_a_hint_of_stolen_credentials_is_in_the_line_of_a_miner(tocsin: Tocsin, home: Home) -> None:
    plain, miner = (save_script(home.scripts, text) for text in ("srun ./a.out\n", MINER))
    before = [{"job_id": 100 + n, "user": "eve", "script": plain, "submit": SUBMIT} for n in range(20)]
    now = {"job_id": 200, "user": "eve", "script": miner, "submit": SUBMIT + 3 * 86_400}
    with open_store(home.url) as store:
        upsert(store, frame(*before, *({**now, "job_id": 200 + n} for n in range(4))))
        later = {**now, "job_id": 300, "submit": SUBMIT + 4 * 86_400 - 1}
        upsert(store, frame(*({**later, "task": n} for n in range(8))))
    *_, job, array = tocsin("screen").out.splitlines()
    assert "eve had never run" not in job
    assert (
        "eve had never run cryptomining in 20 screened submissions, then ran it 5 times within a day" in array
    )
    assert "and 7 more" in array
    assert "eve had never run cryptomining" in tocsin("explain", "300_0").out
