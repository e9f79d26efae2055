"""Lines of verdicts: many jobs with one problem are one line, a job rings once, and nothing is lost."""

import json
from collections.abc import Iterator
from datetime import UTC
from pathlib import Path
from typing import Any

import pytest

from tests.kits.watching import NOON, frame
from tocsin.app.text import clock
from tocsin.app.verdict_lines import VerdictLines
from tocsin.core.decision import Decision
from tocsin.core.stages import Stage
from tocsin.core.verdict import Finding, Level, Verdict
from tocsin.store.database import Store, open_store
from tocsin.store.decisions import record
from tocsin.store.home import Home
from tocsin.store.jobs import upsert

AT = clock(NOON, UTC)
ANN: dict[str, Any] = {"user": "ann", "account": "physics", "name": "train"}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(Home(tmp_path / "home").prepare().url) as opened:
        yield opened


def on(job: str, *kinds: str, level: Level = Level.CRITICAL, missing: str = "", **more: Any) -> Verdict:
    found = [Finding(detector="d", kind=kind, level=level, text=f"{kind} of {job}") for kind in kinds]
    plain: dict[str, Any] = {"stage": Stage.START, "at": NOON, "known_until": NOON}
    return Verdict(
        job=f"lab:{job}@{NOON}",
        level=level,
        findings=found,
        missing={"d": missing} if missing else {},
        **{**plain, **more},
    )


def tasks(numbers: range, kind: str = "rogue") -> list[Verdict]:
    return [on(f"7_{number}", kind) for number in numbers]


class Rounds:
    """What is printed, round by round."""

    def __init__(self, store: Store, capsys: pytest.CaptureFixture[str], **asked: bool) -> None:
        self._lines = VerdictLines(
            store, print, lambda _: UTC, **{"everything": False, "as_json": False, **asked}
        )
        self._capsys = capsys

    def __call__(self, *verdicts: Verdict) -> list[str]:
        self._lines.add(verdicts)
        self._lines.end()
        return self._capsys.readouterr().out.splitlines()


@pytest.fixture
def told(store: Store, capsys: pytest.CaptureFixture[str]) -> Rounds:
    return Rounds(store, capsys)


def test_the_tasks_of_an_array_are_one_line_with_their_number(told: Rounds) -> None:
    assert told(*tasks(range(1000)), on("8", "rogue")) == [
        f"{AT} CRITICAL: rogue of 7_0 (lab:7_0@{NOON}, start, and 999 more)",
        f"{AT} CRITICAL: rogue of 8 (lab:8@{NOON}, start)",
    ]


def test_what_is_wrong_with_other_tasks_is_another_line(told: Rounds) -> None:
    mixed = [
        v for pair in zip(tasks(range(0, 50, 2)), tasks(range(1, 51, 2), "memory"), strict=True) for v in pair
    ]
    rogue, memory = told(*mixed)
    assert "rogue of 7_0" in rogue
    assert "memory of 7_1" in memory
    assert rogue.endswith("and 24 more)")


def test_a_problem_is_printed_again_when_ten_times_as_many_tasks_have_it(told: Rounds) -> None:
    assert len(told(*tasks(range(3)))) == 1
    assert told(*tasks(range(3, 9))) == []
    [line] = told(*tasks(range(9, 20)))
    assert line.endswith("and 19 more)")
    assert told(*tasks(range(20, 60))) == []
    assert len(told(*tasks(range(60, 70), "memory"))) == 1, "something else is new"


def test_a_hint_on_a_later_task_gets_its_own_line(told: Rounds) -> None:
    told(*tasks(range(20)))
    hint = Finding(detector="workload", kind="habit", level=Level.WARNING, text="ann never ran it")
    other = on("7_30", "rogue")
    other.findings.append(hint)
    [line] = [line for line in told(*tasks(range(20, 30)), other) if "never ran" in line]
    assert f"lab:7_30@{NOON}" in line


def test_an_array_that_waits_says_how_many_tasks_it_has(told: Rounds, store: Store) -> None:
    upsert(store, frame({"job_id": 9, "array": "1-1000", "array_tasks": 1000}))
    assert told(on("9", "rogue")) == [
        f"{AT} CRITICAL: rogue of 9 (lab:9@{NOON}, start, an array of 1,000 tasks)",
    ]


def test_a_reason_why_nothing_could_be_checked_is_printed_once(told: Rounds) -> None:
    blind = [on(str(n), level=Level.UNKNOWN, missing="no model") for n in range(5)]
    assert len(told(*blind)) == 1
    assert told(*(on(f"7_{n}", level=Level.UNKNOWN, missing="no model") for n in range(30))) == []
    [line] = told(*(on(f"8_{n}", level=Level.UNKNOWN, missing="it failed") for n in range(30)))
    assert "it failed" in line
    named = [on("40", level=Level.UNKNOWN, missing=why, **ANN) for why in ("no script", "no nodes")]
    assert len(told(*named)) == 2


def test_a_line_names_time_user_account_and_job(told: Rounds) -> None:
    [line] = told(on("8", "rogue", **ANN))
    assert line.startswith(AT)
    assert line.endswith("user ann, account physics, name train)")


def test_jobs_of_one_user_name_and_problem_are_one_line(told: Rounds) -> None:
    same = [on(str(n), "memory", **ANN) for n in range(8)]
    first, other, named, kind = told(
        *same,
        on("20", "memory", **{**ANN, "user": "bob"}),
        on("21", "memory", **{**ANN, "name": "plot"}),
        on("22", "rogue", **ANN),
    )
    assert first.endswith("and 7 more)")
    assert ("bob" in other, "plot" in named, "rogue" in kind) == (True, True, True)
    assert told(on("30", "memory", **ANN)) == []
    assert len(told(on("31", "memory", **ANN))) == 1, "now there are ten"
    assert len(told(on("32", "memory", **ANN, at=NOON + 3600))) == 1, "an hour later"


def test_a_job_rings_once_and_later_stages_update_it(store: Store, told: Rounds) -> None:
    def give(stage: Stage, *kinds: str, level: Level = Level.WARNING, job: str = "8") -> list[str]:
        verdict = on(job, *kinds, stage=stage, level=level, **ANN)
        record(store, Decision(verdicts=[verdict]))
        return told(verdict)

    assert len(give(Stage.SUBMIT, "memory")) == 1
    told = Rounds(store, told._capsys)  # a restart forgets the groups, not the job
    assert give(Stage.START, "memory") == []
    [worse] = give(Stage.EARLY, "memory", level=Level.CRITICAL)
    assert "after an earlier alarm" in worse
    assert give(Stage.END, "memory") == []
    assert give(Stage.START, "memory", job="8_1") == [], "its array has rung"
    [other] = give(Stage.START, "rogue", job="8_2")
    assert "rogue" in other


def test_as_json_every_verdict_is_a_line(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    lines = Rounds(store, capsys, as_json=True)(*tasks(range(30)), on("8", level=Level.OK))
    assert [json.loads(line)["job"] for line in lines] == [f"lab:7_{n}@{NOON}" for n in range(30)]
