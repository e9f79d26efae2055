"""Rogue jobs: the rule in the verdict, the case, people's answers, and habits."""

import os
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path

import jsonschema
import polars as pl
import pytest

from tests.judge.test_judge import Speaker
from tests.kits.outbox import takes
from tests.kits.watching import NOON, frame
from tocsin.app.allow_list_reader import AllowListReader
from tocsin.core.actions import Mode
from tocsin.core.allow_list import AllowEntry, SubjectKind
from tocsin.core.detector import Known, Parts
from tocsin.core.schema import verdict_schema
from tocsin.core.stages import Stage
from tocsin.core.verdict import CaseStatus, Evidence, Finding, Level, Screening, Verdict, Workload
from tocsin.history.ledger import Ledger
from tocsin.judge.answers import DetectorModels, Model
from tocsin.judge.judge import Judge
from tocsin.judge.policy import DEFAULT_RULES, ROGUE_CASES, ActionPolicy
from tocsin.learn.feedback import answered, examples
from tocsin.store.actions import list_actions
from tocsin.store.allow import add, entries, remove
from tocsin.store.cases import answer, list_cases
from tocsin.store.database import Store, open_store
from tocsin.store.decisions import load_facts, record
from tocsin.store.home import Home
from tocsin.store.outbox import waiting
from tocsin.store.scriptfiles import save_script
from tocsin.workload.called_files import FollowedFiles


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home").prepare()


@pytest.fixture
def store(home: Home) -> Iterator[Store]:
    with open_store(home.url) as opened:
        yield opened


def look(**operations: float) -> Screening:
    """From 0.98 on, by a sign."""
    return Screening(
        operations=operations,
        evidence=[Evidence(line=3, operation=name) for name in operations],
        signs=[name for name, p in operations.items() if p >= 0.98],
    )


def judge(store: Store, parts: Parts, file: Path | None = None) -> Judge:
    return Judge(
        {"workload": DetectorModels(dict.fromkeys(Stage, Model(Explainer(lambda row: parts), "7")))},
        ROGUE_CASES,
        AllowListReader(partial(entries, store), file).current,
        partial(load_facts, store),
    )


class Explainer(Speaker):
    def explain(self, job: pl.DataFrame, known: Known, *, stage: Stage) -> Parts:
        return self.assess(job, known, stage=stage)[0]


def decided(
    store: Store, judge: Judge, jobs: pl.DataFrame, stage: Stage = Stage.SUBMIT, *, seq: int = 0
) -> list[Verdict]:
    """The verdicts as they were stored."""
    decision = judge.decide(jobs, stage, known=Ledger(), at=NOON, seq=[seq] * jobs.height)
    return record(store, decision)


def of(**operations: float) -> Parts:
    return Parts(workload=Workload(submission=look(**operations)))


def warning(**operations: float) -> Parts:
    """Of a detector that warns by itself of all that it sees."""
    found = [
        Finding(
            detector="workload", kind=name, level=Level.WARNING, text=f"the script is {name}", operation=name
        )
        for name in operations
    ]
    return Parts(findings=found, workload=Workload(submission=look(**operations)))


numbers = count()


def judged(
    store: Store, stage: Stage = Stage.SUBMIT, *, file: Path | None = None, **operations: float
) -> Verdict:
    """A verdict more on the same job."""
    jobs = frame({"account": "chem"})
    return decided(store, judge(store, of(**operations), file), jobs, stage, seq=next(numbers))[0]


def test_a_miner_is_rogue_with_rule_evidence_and_case(store: Store) -> None:
    verdict = judged(store, cryptomining=0.97, ai=0.2)
    assert verdict.level is Level.CRITICAL
    assert verdict.rogue is not None
    assert (verdict.rogue.rogue, verdict.rogue.operations) == (True, ["cryptomining"])
    assert verdict.rogue.case is not None
    assert (verdict.rogue.case.number, verdict.rogue.case.status) == (1, CaseStatus.OPEN)
    assert verdict.rogue.rule == "cryptomining is never allowed"
    [finding] = verdict.findings
    assert (finding.detector, finding.kind) == ("workload", "rogue")
    assert finding.text == "classified as cryptomining (97%); cryptomining is never allowed"
    assert finding.evidence == ["line 3 of its script"]
    assert finding.case == verdict.rogue.case
    assert [case.cause for case in list_cases(store)] == ["workload:rogue:lab:ann:cryptomining"]
    jsonschema.validate(verdict.to_json(), verdict_schema())


def test_what_may_run_is_no_rogue_and_says_by_which_rule(store: Store) -> None:
    add(
        store,
        AllowEntry(
            operation="cyber", kind=SubjectKind.ACCOUNT, name="chem", reason="audit", granted_by="ada"
        ),
        at=1,
    )
    verdict = judged(store, cyber=0.9, ai=0.7)
    assert verdict.level is Level.OK
    assert verdict.rogue is not None
    assert not verdict.rogue.rogue
    assert verdict.rogue.rule == (
        "cyber is allowed only for listed users, accounts and groups; account chem is listed from 1970-01-01T00:00:01Z (entry 1: audit, granted by ada); "
        "ai is allowed for everybody"
    )
    assert list_cases(store, None) == []


def test_below_one_half_nothing_was_seen(store: Store) -> None:
    verdict = judged(store, cryptomining=0.49)
    assert verdict.rogue is not None
    assert (verdict.rogue.rogue, verdict.rogue.operations) == (False, [])


@pytest.mark.parametrize(
    ("by_script", "by_deed", "rogue"),
    [(0.9, 0.1, False), (0.9, 0.95, True), (0.9, None, True), (0.99, 0.1, True)],
    ids=["corrected", "both", "script alone", "a sign in the script is not corrected"],
)
def test_what_it_did_corrects_what_a_model_said_of_its_script(
    store: Store, by_script: float, by_deed: float | None, rogue: bool
) -> None:
    execution = None if by_deed is None else Screening(operations={"cryptomining": by_deed})
    workload = Workload(submission=look(cryptomining=by_script), execution=execution)
    [verdict] = decided(store, judge(store, Parts(workload=workload)), frame({}), Stage.END)
    assert verdict.rogue is not None
    assert verdict.rogue.rogue is rogue
    if by_deed == 0.95:
        assert "by what it did when it ran: 95%; by its script it was 90%" in verdict.findings[0].evidence


@pytest.mark.parametrize("operation", ["cryptomining", "cyber", "rendering"])
@pytest.mark.parametrize("script", [look(), look(cryptomining=0.0, cyber=0.49, rendering=0.3), None])
def test_execution_alone_is_a_warning_and_never_a_case(
    store: Store, operation: str, script: Screening | None
) -> None:
    workload = Workload(submission=script, execution=Screening(operations={operation: 1.0}))
    [verdict] = decided(store, judge(store, Parts(workload=workload)), frame({}), Stage.END)
    assert verdict.level is Level.WARNING
    assert verdict.rogue is not None
    assert (verdict.rogue.rogue, verdict.rogue.operations) == (False, [])
    assert [(f.kind, f.operation) for f in verdict.findings] == [("suspected", operation)]
    assert list_cases(store, None) == []


def test_a_detector_that_warned_of_the_execution_is_not_repeated(store: Store) -> None:
    own = Finding(
        detector="workload", kind="cyber", level=Level.WARNING, text="by what it did", operation="cyber"
    )
    workload = Workload(submission=look(), execution=Screening(operations={"cyber": 0.9}))
    [verdict] = decided(store, judge(store, Parts(findings=[own], workload=workload)), frame({}), Stage.END)
    assert verdict.findings == [own]


def test_who_is_listed_is_not_warned_of(store: Store) -> None:
    add(store, AllowEntry(operation="cyber", kind=SubjectKind.USER, name="ann"), at=1)
    [verdict] = decided(store, judge(store, warning(cyber=0.9)), frame({}))
    assert verdict.level is Level.OK
    [finding] = verdict.findings
    assert "user ann is listed" in finding.text
    [other] = decided(store, judge(store, warning(cyber=0.9)), frame({"user": "bob"}), seq=1)
    assert [finding.level for finding in other.findings] == [Level.CRITICAL, Level.WARNING]


def test_a_dismissed_case_warns_no_more(store: Store) -> None:
    warns = judge(store, warning(cryptomining=0.7))
    decided(store, warns, frame({}))
    answer(store, 1, CaseStatus.DISMISSED, who="ada", at=NOON, note="geology")
    [verdict] = decided(store, warns, frame({"job_id": 2}))
    assert {finding.level for finding in verdict.findings} == {Level.OK}
    assert verdict.level is Level.OK


def test_a_dismissed_false_alarm_is_no_licence(store: Store) -> None:
    def level(script: str, p: float) -> Level:
        jobs = frame({"script": script})
        return decided(store, judge(store, of(cryptomining=p)), jobs, seq=next(numbers))[0].level

    def open_cases() -> list[int]:
        return [case.id for case in list_cases(store)]

    assert level("strata", 0.7) is Level.CRITICAL
    answer(store, 1, CaseStatus.DISMISSED, who="ada", at=NOON, note="geology")
    assert level("other strata", 0.6) is Level.OK  # a model's answer, like the one that was dismissed
    assert level("ethminer", 0.98) is Level.CRITICAL  # a pool's address
    assert level("another miner", 0.99) is Level.CRITICAL
    assert open_cases() == [2, 3]  # each script with a sign is looked into separately
    answer(store, 2, CaseStatus.DISMISSED, who="ada", at=NOON, note="a test of ours")
    assert level("ethminer", 0.98) is Level.OK
    assert level("another miner", 0.99) is Level.CRITICAL
    assert open_cases() == [3]
    answer(store, 3, CaseStatus.CONFIRMED, who="ada", at=NOON)
    assert level("a third", 0.99) is Level.CRITICAL
    assert open_cases() == [], "a confirmed miner opens no more cases"
    answer(store, 3, CaseStatus.DISMISSED, who="ada", at=NOON)
    assert level("a third", 0.99) is Level.CRITICAL
    assert open_cases() == [4], "nobody has looked at the third script"


def test_dismissing_a_case_releases_only_jobs_with_the_script_that_it_shows(store: Store) -> None:
    act = ActionPolicy(mode=Mode.ACT, rules=DEFAULT_RULES)
    acting = replace(judge(store, of(cryptomining=0.99)), policy=replace(ROGUE_CASES, actions=act))

    def submit(number: int, script: str) -> None:
        decided(store, acting, frame({"job_id": number, "script": script}))

    def dismissed() -> list[bool]:
        return [action.dismissed for action in list_actions(store)]

    submit(1, "x.sh")
    submit(2, "y.sh")
    submit(3, "y.sh")
    answer(store, 1, CaseStatus.DISMISSED, who="ada", at=NOON)
    assert dismissed() == [True, False, False]
    answer(store, 2, CaseStatus.CONFIRMED, who="ada", at=NOON)
    submit(4, "z.sh")
    answer(store, 2, CaseStatus.DISMISSED, who="ada", at=NOON)
    assert dismissed() == [True, True, True, False], "nobody has looked at z.sh"


def test_of_the_scripts_of_one_user_sinks_get_the_first_open_case(store: Store) -> None:
    def submit(user: str, script: str) -> int:
        """How many cases the sink has got by then."""
        jobs = frame({"user": user, "script": script})
        made = judge(store, of(cryptomining=0.99)).decide(
            jobs, Stage.SUBMIT, known=Ledger(), at=NOON, seq=[next(numbers)]
        )
        record(store, made, {"log": takes("case")})
        return len(waiting(store, "log", 100))

    assert [submit("ann", "x.sh"), submit("ann", "y.sh"), submit("ann_1", "x.sh")] == [1, 1, 2]
    for number in (1, 2):
        answer(store, number, CaseStatus.DISMISSED, who="ada", at=NOON)
    assert submit("ann", "z.sh") == 3, "none of hers was open"


def test_a_script_that_was_dismissed_stays_so_when_a_sign_is_found_in_it_later(store: Store) -> None:
    script = frame({"script": "nodes.sh"})
    for p in (0.7, 0.98):
        [verdict] = decided(store, judge(store, of(cyber=p)), script, seq=next(numbers))
        if p == 0.7:
            answer(store, 1, CaseStatus.DISMISSED, who="ada", at=NOON)
    assert verdict.level is Level.OK


def test_a_dismissed_case_is_silent_and_a_confirmed_one_is_not(store: Store) -> None:
    judged(store, cryptomining=0.97)
    answer(store, 1, CaseStatus.DISMISSED, who="ada", at=NOON, note="a benchmark")
    quiet = judged(store, cryptomining=0.97)
    assert quiet.level is Level.OK
    assert quiet.rogue is not None
    assert (quiet.rogue.rogue, quiet.rogue.action) == (False, "none")
    assert quiet.rogue.case is not None
    assert (quiet.rogue.case.number, quiet.rogue.case.status) == (1, CaseStatus.DISMISSED)
    assert judged(store, cyber=0.97).level is Level.CRITICAL  # another operation is another case
    answer(store, 1, CaseStatus.CONFIRMED, who="ada", at=NOON)
    loud = judged(store, cryptomining=0.97)
    assert loud.level is Level.CRITICAL
    assert loud.findings[0].case is not None
    assert loud.findings[0].case.text == "case 1 was confirmed by ada"
    assert len(list_cases(store, None)) == 2


def test_with_a_broken_allow_list_a_miner_is_as_rogue_as_ever(store: Store, tmp_path: Path) -> None:
    broken = tmp_path / "allow.toml"
    broken.write_text("[default]\nai = 1\n")
    verdict = judged(store, file=broken, cryptomining=0.97)
    assert verdict.level is Level.CRITICAL
    assert verdict.rogue is not None
    assert verdict.rogue.rogue
    assert "line 2" in verdict.missing["allow-list"]
    assert judged(store, file=broken, ai=0.97).level is Level.OK


def test_a_job_without_a_workload_has_no_rogue(store: Store) -> None:
    [verdict] = decided(store, judge(store, Parts()), frame({}))
    assert (verdict.rogue, verdict.missing) == (None, {})


def hints_in(store: Store, *rounds: list[dict[str, object]]) -> list[tuple[str, Finding]]:
    """The hints on ann's jobs, of which 30 were nothing special before; each round is judged, then stored."""
    before = frame(*({"job_id": n, "submit": NOON - 3 * 86_400 + n} for n in range(1, 31)))
    decided(store, judge(store, of(ai=0.1)), before)
    found = []
    for jobs in rounds:
        verdicts = decided(store, judge(store, of(ai=0.9)), frame(*jobs))
        found += [(v.job, finding) for v in verdicts for finding in v.findings if finding.kind == "habit"]
    return found


def one(number: int, at: int = NOON) -> dict[str, object]:
    return {"job_id": 100 + number, "submit": at}


def task(array: int, number: int) -> dict[str, object]:
    return {**one(array), "task": number}


@pytest.mark.parametrize(
    ("rounds", "first", "times"),
    [
        ([[one(n, NOON + n)] for n in range(8)], f"lab:104@{NOON + 4}", 5),
        ([[one(n) for n in range(8)]], f"lab:100@{NOON}", 8),
        ([[one(n) for n in range(3)], [one(n) for n in range(3, 6)], [one(6)]], f"lab:103@{NOON}", 6),
        ([[one(n, NOON + 9 - n)] for n in range(9)], None, 0),
        ([[task(a, n) for n in range(40)] for a in range(6)], f"lab:104_0@{NOON}", 5),
    ],
)
def test_a_sudden_change_is_a_hint_of_stolen_credentials(
    store: Store, rounds: list[list[dict[str, object]]], first: str | None, times: int
) -> None:
    hints = hints_in(store, *rounds)
    if first is None:  # the newest came first: said with the next job
        hints = hints_in(store, [one(50, NOON + 60)])
        first, times = f"lab:150@{NOON + 60}", 10
    [(job, hint)] = hints
    assert (job, hint.level) == (first, Level.WARNING)
    assert (
        f"ann had never run ai in 30 screened submissions, then ran it {times} times within a day"
        in hint.text
    )


def test_an_array_is_one_submission_however_many_tasks_it_has(store: Store) -> None:
    many = [task(0, n) for n in range(2100)]  # more than are read of a user's submissions
    assert hints_in(store, many) == []
    [(job, hint)] = hints_in(store, [one(n, NOON + n) for n in range(1, 6)])
    assert (job, "in 30 screened submissions, then ran it 5 times" in hint.text) == (
        f"lab:104@{NOON + 4}",
        True,
    )


def test_an_explanation_keeps_the_hint(store: Store) -> None:
    [(_, hint)] = hints_in(store, [one(n) for n in range(8)])
    for number, kept in ((0, [hint]), (1, [])):
        verdict = judge(store, of(ai=0.9)).explain(frame(one(number)), Stage.SUBMIT, known=Ledger(), at=NOON)
        assert [finding for finding in verdict.findings if finding.kind == "habit"] == kept


def explained(store: Store, *, file: Path | None = None, job: dict[str, object] | None = None) -> Verdict:
    jobs = frame({"account": "chem", **(job or {})})
    return judge(store, of(cyber=0.9), file).explain(jobs, Stage.SUBMIT, known=Ledger(), at=NOON + 999)


def test_an_explanation_tells_the_rule_of_its_time_and_what_is_said_today(store: Store) -> None:
    then = judged(store, cyber=0.9)
    again = explained(store)
    assert (again.rogue, again.level, again.findings) == (then.rogue, then.level, then.findings)
    add(store, AllowEntry(operation="cyber", kind=SubjectKind.USER, name="ann", reason="audit"), at=1)
    now = explained(store)
    assert (now.level, now.rogue) == (Level.CRITICAL, then.rogue)
    *_, today = now.findings
    assert (today.level, today.kind) == (Level.OK, "today")
    assert today.text == (
        "judged so at 2026-01-05T12:00:00Z; judged today: cyber is allowed only for listed users, accounts and groups; user ann is listed "
        "from 1970-01-01T00:00:01Z (entry 1: audit)"
    )
    jsonschema.validate(now.to_json(), verdict_schema())


def test_an_explanation_is_the_verdict_given_with_what_todays_model_says(store: Store) -> None:
    then = judged(store, cyber=0.1)
    jobs = frame({"account": "chem"})
    newer = judge(store, of(cyber=0.9))
    newer.detectors = {
        "workload": DetectorModels(dict.fromkeys(Stage, Model(Explainer(lambda row: of(cyber=0.9)), "8")))
    }
    now = newer.explain(jobs, Stage.SUBMIT, known=Ledger(), at=NOON + 999)
    assert (now.level, now.rogue, now.models, now.at) == (Level.OK, then.rogue, {"workload": "7"}, then.at)
    texts = [finding.text for finding in now.findings if finding.kind == "today"]
    assert "a verdict given today would be critical" in texts[0]
    assert texts[1] == "models have changed: workload 7 then, 8 today"


def test_an_explanation_is_as_silent_as_the_verdict_was(store: Store) -> None:
    add(store, AllowEntry(operation="cyber", kind=SubjectKind.USER, name="ann", until=NOON + 9), at=1)
    judged(store, cyber=0.9)
    remove(store, 1, at=2, who="ada")
    now = explained(store)
    assert now.level is Level.OK
    assert now.rogue is not None
    assert (now.rogue.rogue, "user ann is listed" in now.rogue.rule) == (False, True)
    assert (
        "judged today: cyber is allowed only for listed users, accounts and groups; none of user ann, account chem is listed"
        in (now.findings[-1].text)
    )


def test_a_task_is_explained_by_the_verdict_on_its_array(store: Store) -> None:
    judged(store, cyber=0.9)
    add(store, AllowEntry(operation="cyber", kind=SubjectKind.USER, name="ann"), at=1)
    assert explained(store, job={"task": 4}).level is Level.CRITICAL
    assert explained(store, job={"task": 4, "job_id": 2}).level is Level.OK, "it has no verdict of its time"


def test_a_case_that_was_dismissed_since_is_told_once(store: Store) -> None:
    judged(store, cyber=0.9)
    answer(store, 1, CaseStatus.DISMISSED, who="ada", at=NOON, note="an audit")
    now = explained(store)
    assert now.level is Level.OK
    assert now.rogue is not None
    assert now.rogue.case is not None
    assert now.rogue.case.status is CaseStatus.DISMISSED
    assert [finding.kind for finding in now.findings] == ["rogue"]


def test_answers_are_examples(store: Store, home: Home) -> None:
    scripts = [save_script(home.scripts, f"./miner {n}\n") for n in range(3)]
    jobs = frame(*({"job_id": n, "user": f"u{n}", "script": script} for n, script in enumerate(scripts)))
    decided(store, judge(store, of(cryptomining=0.9)), jobs)
    again = frame(
        {"job_id": 7, "user": "u1", "script": scripts[1]}, {"job_id": 8, "user": "u2", "script": scripts[1]}
    )
    answer(store, 1, CaseStatus.CONFIRMED, who="ada", at=NOON)
    answer(store, 2, CaseStatus.DISMISSED, who="ada", at=NOON)
    assert examples(store, home.scripts) == (
        [("./miner 0\n", "cryptomining", True), ("./miner 1\n", "cryptomining", False)],
        0,
    )
    assert answered(store, pl.concat([jobs, again])) == {
        f"lab:0@{NOON}": {"cryptomining": True},
        f"lab:1@{NOON}": {"cryptomining": False},
        f"lab:7@{NOON}": {"cryptomining": False},  # the same user and script
    }
    (home.scripts / scripts[0]).unlink()
    assert examples(store, home.scripts)[1] == 1


class Scripted(Ledger):
    def script(self, digest: str) -> str | None:
        return "#!/bin/sh\nsh go.sh\n"


def deep_look(store: Store, work: Path) -> Verdict:
    """On a job whose script runs a miner or AI that the file it calls names, and that itself tells nothing."""
    work.mkdir(exist_ok=True)

    def screen(texts: list[str]) -> list[Screening]:
        lines = list(enumerate(texts[0].split("\n"), 1))
        found = [Evidence(line=n, operation="cryptomining") for n, words in lines if "stratum" in words]
        found += [Evidence(line=n, operation="ai") for n, words in lines if "torch" in words]
        seen = {each.operation for each in found}
        operations = {name: 0.99 if name in seen else 0.01 for name in ("ai", "cryptomining")}
        return [Screening(operations=operations, evidence=found)]

    jobs = frame({"script": "x", "work_dir": str(work), "uid": os.geteuid(), "gid": os.getegid()})
    fitted = FollowedFiles(Explainer(lambda row: of(cryptomining=0.01)), screen)
    looking = judge(store, Parts())
    looking.detectors = {"workload": DetectorModels({Stage.SUBMIT: Model(fitted, "7")})}
    return looking.decide(jobs, Stage.SUBMIT, known=Scripted(), at=NOON).verdicts[0]


def test_a_deeper_look_reads_what_the_script_calls(store: Store, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "go.sh").write_text("cd /tmp\n./gcc -o stratum+tcp://any.example:1\n")
    verdict = deep_look(store, work)
    assert verdict.rogue is not None
    assert verdict.rogue.rogue
    told = f"line 2 leads to {work}/go.sh, whose line 2 speaks for cryptomining"
    assert told in verdict.findings[0].evidence


def test_what_a_called_file_says_is_told_where_it_may_run(store: Store, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "go.sh").write_text("\n\npython -c 'import torch'\n")
    verdict = deep_look(store, work)
    assert verdict.level is Level.OK
    assert [f.text for f in verdict.findings] == [f"line 2 leads to {work}/go.sh, whose line 3 speaks for ai"]
    assert verdict.workload is not None
    assert verdict.workload.submission is not None
    assert Evidence(line=2, operation="ai") in verdict.workload.submission.evidence
