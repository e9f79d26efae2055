"""Each check can fail: a detector with one fault is caught by the check for it, in a sentence."""

import json
import pickle
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tocsin.core.detector import Budget, Detector, Known, Need, Parts
from tocsin.core.fields import Job
from tocsin.core.frames import from_jobs
from tocsin.core.stages import Stage
from tocsin.core.verdict import Advice, Finding, Level
from tocsin.judge import checks
from tocsin.judge.check_data import CheckData, demo_check_data, scrambled
from tocsin.judge.checks import CHECKS
from tocsin.judge.plugins import find_detectors


class Fitted:
    """Honest: rings for every job whose user has a record of failures."""

    def __init__(self, threshold: float) -> None:
        self.threshold = threshold

    def assess(self, jobs: pl.DataFrame, known: Known, *, stage: Stage) -> list[Parts]:
        shares = known.features(jobs, stage=stage)["user.failed"].fill_null(0.0)
        return [self.parts(share, row) for share, row in zip(shares, jobs.iter_rows(named=True), strict=True)]

    def parts(self, share: float, row: dict[str, Any]) -> Parts:
        return Parts(findings=[self.finding(f"a share of {share:.6f} failed")])

    def finding(self, text: str, **other: Any) -> Finding:
        return Finding(
            **{"detector": "honest", "kind": "failed", "level": Level.WARNING, "text": text, **other}
        )

    def explain(self, job: pl.DataFrame, known: Known, *, stage: Stage) -> Parts:
        return self.assess(job, known, stage=stage)[0]

    def save(self, folder: Path) -> None:
        (folder / "honest.json").write_text(json.dumps({"threshold": self.threshold}))


@dataclass(frozen=True)
class Honest:
    made: type[Fitted] = Fitted
    name: str = "honest"
    stages: tuple[Stage, ...] = (Stage.SUBMIT, Stage.START)
    learns: bool = True
    needs: tuple[Need, ...] = ()

    def fit(self, jobs: pl.DataFrame, known: Known, *, stage: Stage, seed: int, budget: Budget) -> Fitted:
        return self.made(jobs.height / 10**6)

    def load(self, folder: Path) -> Fitted:
        return self.made(json.loads((folder / "honest.json").read_text())["threshold"])


class Peeks(Fitted):
    """Looks into the log itself: the last outcome of the user, whenever it was."""

    def assess(self, jobs: pl.DataFrame, known: Any, *, stage: Stage) -> list[Parts]:
        last = dict(known._log.sort("end").select("user", "outcome").rows())
        return [Parts(findings=[self.finding(f"the last ended {last.get(user)}")]) for user in jobs["user"]]


class CountsAll(Fitted):
    """Counts the jobs of a user, later ones too."""

    def assess(self, jobs: pl.DataFrame, known: Any, *, stage: Stage) -> list[Parts]:
        number = dict(known._log.group_by("user").len().rows())
        return [Parts(findings=[self.finding(f"one of {number.get(user)}")]) for user in jobs["user"]]


class KnowsTheEnd(Fitted):
    def parts(self, share: float, row: dict[str, Any]) -> Parts:
        return Parts(findings=[self.finding(f"it will run {row['elapsed']} seconds")])


class KnowsTheStart(Fitted):
    """Fair at the start, and not at the submission."""

    def parts(self, share: float, row: dict[str, Any]) -> Parts:
        return Parts(findings=[self.finding(f"it will start at {row['start']} or so")])


class Mutates(Fitted):
    def assess(self, jobs: pl.DataFrame, known: Known, *, stage: Stage) -> list[Parts]:
        found = super().assess(jobs, known, stage=stage)
        if jobs.height:
            jobs.replace_column(jobs.get_column_index("user"), pl.Series("user", ["me"] * jobs.height))
        return found


class MutatesTheMachine(Fitted):
    def assess(self, jobs: pl.DataFrame, known: Known, *, stage: Stage) -> list[Parts]:
        if known.machine:
            known.machine.missing["nodes"] = "stolen"
        return super().assess(jobs, known, stage=stage)


class NeedsAll(Fitted):
    def parts(self, share: float, row: dict[str, Any]) -> Parts:
        return Parts(findings=[self.finding(f"it asks for {row['req_cpus'] + 0} CPUs")])


class NeedsRows(Fitted):
    def assess(self, jobs: pl.DataFrame, known: Known, *, stage: Stage) -> list[Parts]:
        jobs.row(0)
        return super().assess(jobs, known, stage=stage)


class NeedsToKnowYou(Fitted):
    def parts(self, share: float, row: dict[str, Any]) -> Parts:
        assert row["user"] != "nobody-yet", "who are you"
        return super().parts(share, row)


class NeedsOneLine(Fitted):
    def parts(self, share: float, row: dict[str, Any]) -> Parts:
        assert "\n" not in row["name"], "a name has one line"
        return super().parts(share, row)


class TooFew(Fitted):
    def assess(self, jobs: pl.DataFrame, known: Known, *, stage: Stage) -> list[Parts]:
        return super().assess(jobs, known, stage=stage)[1:]


class Ranks(Fitted):
    """The first of a frame is told apart."""

    def assess(self, jobs: pl.DataFrame, known: Known, *, stage: Stage) -> list[Parts]:
        return [Parts(findings=[self.finding(f"number {row} of the list")]) for row in range(jobs.height)]


class Compares(Fitted):
    """Each job is held against the others of its frame."""

    def assess(self, jobs: pl.DataFrame, known: Known, *, stage: Stage) -> list[Parts]:
        return [Parts(findings=[self.finding(f"one of {jobs.height} jobs")]) for _ in range(jobs.height)]


class Forgets(Fitted):
    """Saves less than it needs."""

    def parts(self, share: float, row: dict[str, Any]) -> Parts:
        return Parts(findings=[self.finding(f"threshold {self.threshold} it is")])

    def save(self, folder: Path) -> None:
        (folder / "honest.json").write_text(json.dumps({"threshold": round(self.threshold)}))


class Pickles(Fitted):
    def save(self, folder: Path) -> None:
        super().save(folder)
        (folder / "model.pkl").write_bytes(pickle.dumps(self.threshold))


class HidesAPickle(Fitted):
    def save(self, folder: Path) -> None:
        super().save(folder)
        (folder / "model.txt").write_bytes(pickle.dumps(self.threshold))


class NoJson(Fitted):
    def save(self, folder: Path) -> None:
        super().save(folder)
        (folder / "more.json").write_text("threshold = 1")


class Dices(Fitted):
    def __init__(self, threshold: float) -> None:
        super().__init__(threshold)
        self.dice = random.random()

    def parts(self, share: float, row: dict[str, Any]) -> Parts:
        return Parts(findings=[self.finding(f"the dice show {self.dice} this time")])


class DicesInItsFiles(Fitted):
    def save(self, folder: Path) -> None:
        super().save(folder)
        (folder / "dice.txt").write_text(str(random.random()))


class DicesWhenAsked(Fitted):
    def parts(self, share: float, row: dict[str, Any]) -> Parts:
        return Parts(findings=[self.finding(f"the dice show {random.random()} this time")])


class WrongName(Fitted):
    def finding(self, text: str, **other: Any) -> Finding:
        return super().finding(text, detector="limits")


class Mumbles(Fitted):
    def finding(self, text: str, **other: Any) -> Finding:
        return super().finding("hm")


class OddKind(Fitted):
    def finding(self, text: str, **other: Any) -> Finding:
        return super().finding(text, kind="Some Thing")


class OddLevel(Fitted):
    def parts(self, share: float, row: dict[str, Any]) -> Parts:
        loud: Any = "loud"
        return Parts(findings=[self.finding("all is well"), self.finding("it is loud here", score=loud)])


class NotANumber(Fitted):
    def parts(self, share: float, row: dict[str, Any]) -> Parts:
        return Parts(findings=[self.finding("all is well", score=float("nan"))])


class NoReason(Fitted):
    def parts(self, share: float, row: dict[str, Any]) -> Parts:
        return Parts(missing={"failure": ""})


class AdvisesNothing(Fitted):
    def parts(self, share: float, row: dict[str, Any]) -> Parts:
        return Parts(advice=[Advice(change=" ", why="it would be better")])


FAULTS = [
    (Peeks, "no_leak", "it leaks"),
    (CountsAll, "no_leak", "it leaks"),
    (KnowsTheEnd, "respects_stages", "known only later"),
    (KnowsTheEnd, "no_leak", "it leaks"),
    (KnowsTheStart, "respects_stages", "known only later"),
    (Mutates, "no_mutation", "changed the frame of the jobs"),
    (MutatesTheMachine, "no_mutation", "changed the machine"),
    (NeedsAll, "missing_values", "without optional values"),
    (NeedsRows, "missing_values", "without rows"),
    (NeedsToKnowYou, "missing_values", "who are you"),
    (NeedsOneLine, "any_request", "with an odd name"),
    (TooFew, "any_order", "answers for"),
    (Ranks, "any_order", "order of the rows"),
    (Compares, "one_by_one", "alone and among others"),
    (Forgets, "saved_is_same", "save and load"),
    (Pickles, "safe_files", "model.pkl"),
    (HidesAPickle, "safe_files", "by its first bytes"),
    (NoJson, "safe_files", "not JSON"),
    (Dices, "deterministic", "same seed"),
    (DicesInItsFiles, "deterministic", "dice.txt"),
    (DicesWhenAsked, "deterministic", "differs when"),
    (WrongName, "valid_parts", "in the name of limits"),
    (Mumbles, "valid_parts", "without a sentence"),
    (OddKind, "valid_parts", "of the kind"),
    (OddLevel, "valid_parts", "breaks the schema"),
    (NotANumber, "valid_parts", "not JSON"),
    (NoReason, "valid_parts", "gives no reason"),
    (AdvisesNothing, "valid_parts", "without naming it"),
]


@pytest.fixture(scope="module")
def check_data() -> CheckData:
    """Three days of the demo cluster are enough to tell good from bad."""
    whole = demo_check_data()
    first = int(whole.log["submit"].min())  # type: ignore[arg-type]  # a log has a first instant
    return CheckData(whole.log.filter(pl.col("submit") < first + 3 * 86400), whole.machine, whole.scripts)


@pytest.mark.parametrize(("bad", "check", "words"), FAULTS, ids=[f"{b.__name__}-{c}" for b, c, _ in FAULTS])
def test_a_fault_is_caught_by_its_check(
    bad: type[Fitted], check: str, words: str, check_data: CheckData
) -> None:
    before = dict(check_data.machine.missing) if check_data.machine else {}
    try:
        with pytest.raises(AssertionError, match=words):
            getattr(checks, check)(Honest(bad), check_data)
    finally:
        if check_data.machine:  # one of them changes it
            check_data.machine.missing.clear()
            check_data.machine.missing.update(before)


def test_every_check_has_a_fault_that_it_catches() -> None:
    assert {check.__name__ for check in CHECKS} == {check for _, check, _ in FAULTS}


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_an_honest_detector_passes(check: Callable[..., None], check_data: CheckData) -> None:
    check(Honest(), check_data)


@pytest.mark.parametrize("stages", [(Stage.EARLY,), (Stage.END, Stage.RUNNING)], ids=str)
def test_later_stages_are_checked_too(stages: tuple[Stage, ...], check_data: CheckData) -> None:
    for check in CHECKS:
        check(Honest(stages=stages), check_data)
    fair: Detector = Honest(KnowsTheEnd, stages=(Stage.END,))
    checks.respects_stages(fair, check_data)


INSTALLED = ("failure", "limits", "traces", "workload")


@pytest.mark.parametrize("name", [name for name in INSTALLED if name != "traces"])
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_all_registered_detectors_pass(check: Callable[..., None], name: str) -> None:
    """That of traces passes them in its own tests, after a short training: a whole one takes minutes."""
    check(find_detectors()[name])


def test_no_registered_detector_is_left_out() -> None:
    assert sorted(find_detectors()) == sorted(INSTALLED)


def test_a_site_may_bring_a_log_of_its_own() -> None:
    jobs = from_jobs(
        Job(
            cluster="site",
            job_id=number,
            task=None,
            submit=number * 100,
            user=f"u{number % 3}",
            start=number * 100 + 10,
            end=number * 100 + 500,
            outcome="failed" if number % 4 == 0 else "completed",  # type: ignore[arg-type]  # as a row has it
        )
        for number in range(1, 200)
    )
    own = CheckData(jobs)
    for check in CHECKS:
        check(Honest(), own)
    with pytest.raises(AssertionError, match="it leaks"):
        checks.no_leak(Honest(Peeks), own)


def test_the_other_future_leaves_the_past_alone(check_data: CheckData) -> None:
    other = scrambled(check_data.log, check_data.cut)
    known = pl.col("known_at") <= check_data.cut
    assert (
        other.filter(known)
        .sort("submit", "job_id", "task")
        .equals(check_data.log.filter(known).sort("submit", "job_id", "task"))
    )
    assert other.filter(~known)["known_at"].min() > check_data.cut  # type: ignore[operator]  # some are later
    assert (
        other["start"]
        .filter(other["start"] <= check_data.cut)
        .sort()
        .equals(check_data.log["start"].filter(check_data.log["start"] <= check_data.cut).sort())
    )


def test_a_job_that_waits_in_the_past_waits_in_every_future() -> None:
    waits = Job(cluster="site", job_id=1, task=None, submit=100, user="u")
    gone = Job(cluster="site", job_id=2, task=None, submit=100, user="u", end=900, outcome="cancelled")  # type: ignore[arg-type]  # as a row has it
    log = from_jobs([waits, gone]).with_columns(known_at=pl.Series([None, 960], dtype=pl.Int64))
    for until in range(200, 260):
        starts = scrambled(log, until)["start"]
        assert not (starts <= until).any()
