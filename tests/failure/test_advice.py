"""Advice: on evidence only, as a line of the script, never beyond the partition, never at a higher risk."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from tests.kits.ended_jobs import DAY, GIB, MIB, job, jobs, row
from tocsin.core.detector import Parts
from tocsin.core.errors import ModelError
from tocsin.core.machine import Machine, Node, Partition
from tocsin.core.outcomes import Outcome, Target
from tocsin.core.stages import Stage
from tocsin.core.verdict import Advice, Avoid, Failure, MemoryRange, Resources, RuntimeRange
from tocsin.failure.advice import advise, moved
from tocsin.failure.changes import Evidence
from tocsin.failure.features import monotone
from tocsin.failure.findings import with_shortages
from tocsin.failure.fitted import FittedFailure
from tocsin.failure.shortages import Shortages, nice_memory, nice_time
from tocsin.judge.check_data import CheckData
from tocsin.models.engines import engine
from tocsin.scripts.edits import Edit, apply
from tocsin.scripts.script import parse
from tocsin.scripts.submission import Submission

HOUR = 3600
MACHINE = Machine(
    cluster="lab",
    nodes=tuple(Node(name=f"n{n}", memory=8 * GIB, partitions=("main",)) for n in range(1, 9)),
    partitions=(Partition(name="main", default=True, max_time=DAY),),
)
HABIT = {"name.completed": 40.0, "name.ended": 50.0, "name.time_used": 0.05, "name.memory_used": 0.03}
Risk = Callable[[pl.DataFrame], float]


def falling(field: str) -> Risk:
    """A model whose risk falls with one field of the request."""
    return lambda frame: 0.9 if not frame[field][0] or frame[field][0] <= 500 * MIB else 0.2


def level(_frame: pl.DataFrame) -> float:
    return 0.4


def submission(text: str) -> Submission:
    return Submission(parse(text), fixed=False, memory_per="node")


def script(*lines: str) -> str:
    return "\n".join(["#!/bin/bash", *lines, "srun ./relax", ""])


def asked(**fields: Any) -> pl.DataFrame:
    return jobs([job(9000, outcome=None, elapsed=None, **fields)])


def known_habits() -> pl.DataFrame:
    """Relax runs out of memory with 500M and completes with 2G; two never got by; fine completes with 100M."""
    out, done = Outcome.OUT_OF_MEMORY, Outcome.COMPLETED
    return jobs(
        [
            *(job(n, req_memory=500 * MIB, outcome=out) for n in range(20)),
            *(job(n, req_memory=2 * GIB, max_memory=900 * MIB, outcome=done) for n in range(20, 40)),
            *(job(n, name="never", req_memory=GIB, outcome=out) for n in range(40, 50)),
            *(job(n, name="fine", req_memory=100 * MIB, max_memory=60 * MIB) for n in range(50, 150)),
            *(
                job(n, name="slow", time_limit=HOUR, elapsed=HOUR, outcome=Outcome.TIMEOUT)
                for n in range(150, 155)
            ),
            *(job(n, name="slow", time_limit=3 * HOUR, elapsed=5000) for n in range(155, 160)),
            job(160, name="fine", req_memory=100 * MIB, outcome=out),
        ]
    )


@pytest.fixture(scope="module")
def shortages() -> Shortages:
    return Shortages.fit(known_habits())


def advice_for(
    frame: pl.DataFrame, shortages: Shortages, risk: Risk, text: str | None = None
) -> list[Advice]:
    evidence = Evidence(
        history=HABIT,
        shortages=shortages.of(frame.row(0, named=True)),
        machine=MACHINE,
        submission=None if text is None else submission(text),
    )
    return advise(frame, evidence, risk)


def test_a_job_bound_to_run_out_of_memory_gets_the_line_to_change(shortages: Shortages) -> None:
    text = script("#SBATCH --job-name=relax", "#SBATCH --mem=500M")
    (advice,) = advice_for(asked(req_memory=500 * MIB), shortages, falling("req_memory"), text)
    assert advice.change == "--mem=2G"
    assert advice.edit is not None
    assert (advice.edit.line, advice.edit.old, advice.edit.new) == (
        3,
        "#SBATCH --mem=500M",
        "#SBATCH --mem=2G",
    )
    assert (advice.risk_before, advice.risk_after) == (0.9, 0.2)
    assert advice.why == (
        "20 earlier jobs of this user with this name ran out of memory with 500M per node, and none completed "
        "with 500M or less; jobs that requested 2G completed"
    )


def test_requests_above_this_one_that_ran_out_too_are_named_with_the_largest(shortages: Shortages) -> None:
    (advice,) = advice_for(asked(req_memory=400 * MIB), shortages, falling("req_memory"))
    assert advice.why == (
        "20 earlier jobs of this user with this name ran out of memory with 400M to 500M per node, and none "
        "completed with 400M or less; jobs that requested 2G completed"
    )


def test_the_edit_is_in_the_words_of_the_scripts_own_scheduler(shortages: Shortages) -> None:
    text = script("#PBS -l select=1:ncpus=4:mem=500mb")
    (advice,) = advice_for(asked(req_memory=500 * MIB), shortages, level, text)
    assert advice.edit is not None
    assert advice.edit.new == "#PBS -l select=1:ncpus=4:mem=2gb"


def test_a_job_that_names_no_memory_gets_a_line_more(shortages: Shortages) -> None:
    text = script("#SBATCH --ntasks=1")
    (advice,) = advice_for(asked(req_memory=None), shortages, falling("req_memory"), text)
    assert advice.edit is not None
    assert (advice.edit.line, advice.edit.old, advice.edit.new) == (2, None, "#SBATCH --mem=2G")


def test_where_none_got_by_twice_as_much_is_a_guess(shortages: Shortages) -> None:
    (advice,) = advice_for(asked(name="never", req_memory=GIB), shortages, level)
    assert advice.change == "--mem=2G"
    assert "is a guess" in advice.why
    assert "the model's risk hardly changes (40% before, 40% after)" in advice.why


@pytest.mark.parametrize(
    "fields",
    [
        {"req_memory": 2 * GIB},
        {"name": "fine", "req_memory": 100 * MIB},
        {"user": "bob", "req_memory": 500 * MIB},
        {"name": "new", "req_memory": 500 * MIB},
    ],
    ids=["enough", "an accident", "another user", "a new name"],
)
def test_without_evidence_no_advice(shortages: Shortages, fields: dict[str, Any]) -> None:
    assert advice_for(asked(**fields), shortages, level) == []


def test_time_that_did_not_do_before_is_raised(shortages: Shortages) -> None:
    (advice,) = advice_for(asked(name="slow", time_limit=HOUR), shortages, level, script("#SBATCH -t 60"))
    assert advice.edit is not None
    assert advice.edit.new == "#SBATCH -t 03:00:00"
    assert (
        "5 earlier jobs of this user with this name ran out of time with a limit of 01:00:00, and none completed"
        in advice.why
    )


def test_advice_stays_within_the_partition() -> None:
    log = jobs(job(n, req_memory=6 * GIB, outcome=Outcome.OUT_OF_MEMORY) for n in range(5))
    (advice,) = advice_for(asked(req_memory=6 * GIB), Shortages.fit(log), level)
    assert advice.change == "--mem=8G"
    assert "its partition allows no more" in advice.why
    assert advice_for(asked(req_memory=8 * GIB), Shortages.fit(log), level) == []
    log = jobs(job(n, time_limit=DAY, elapsed=DAY, outcome=Outcome.TIMEOUT) for n in range(5))
    assert advice_for(asked(time_limit=DAY), Shortages.fit(log), level) == []


def test_advice_that_the_model_takes_for_harmful_is_not_given(shortages: Shortages) -> None:
    def rising(frame: pl.DataFrame) -> float:
        return 0.1 if frame["req_memory"][0] <= 500 * MIB else 0.3

    assert advice_for(asked(req_memory=500 * MIB), shortages, rising) == []


def runtime(p95: int, asked_for: int) -> Resources:
    return Resources(runtime_seconds=RuntimeRange(p50=p95 // 2, p95=p95, requested=asked_for))


def test_a_bound_above_the_request_is_advised_only_with_evidence() -> None:
    frame, need = asked(time_limit=HOUR), runtime(2 * HOUR, HOUR)
    assert advise(frame, Evidence(history={}, resources=need), level) == []
    ran_out = {"name.timeout": 0.2, "name.ended": 10.0}
    (advice,) = advise(frame, Evidence(history=ran_out, resources=need), level)
    assert advice.change == "--time=02:15:00"
    assert "2 of 10 earlier jobs of this user with this name ran out of time" in advice.why
    assert "02:00:00" in advice.why
    seldom = {"name.timeout": 0.02, "name.ended": 100.0}
    assert advise(frame, Evidence(history=seldom, resources=need), level) == []
    memory = Resources(memory_bytes=MemoryRange(p50=GIB, p95=2 * GIB, requested=GIB))
    lost = {"name.out_of_memory": 0.5, "name.ended": 10.0}
    (advice,) = advise(
        asked(req_memory=GIB), Evidence(history=lost, resources=memory, machine=MACHINE), level
    )
    assert advice.change == "--mem=2560M"


def test_an_expected_need_far_above_the_request_is_a_finding_with_advice() -> None:
    need = Resources(
        runtime_seconds=RuntimeRange(p50=51 * 60, p95=80 * 60, requested=120),
        memory_bytes=MemoryRange(p50=512 * MIB, p95=GIB, requested=100 * MIB),
    )
    found = with_shortages(Parts(resources=need), {})
    assert [finding.kind for finding in found.findings] == ["short_of_time", "short_of_memory"]
    request = asked(time_limit=120, req_memory=100 * MIB)
    given = advise(request, Evidence(history={}, resources=need, machine=MACHINE), lambda _: 0.1)
    assert [(each.field, each.why) for each in given] == [
        ("time_limit", found.findings[0].text),
        ("req_memory", found.findings[1].text),
    ]
    usual = Resources(runtime_seconds=RuntimeRange(p50=110, p95=900, requested=120), memory_bytes=None)
    assert not with_shortages(Parts(resources=usual), {}).findings


@pytest.mark.parametrize(("risk", "level"), [(0.1, "ok"), (0.49, "ok"), (0.5, "warning")])
def test_an_expected_need_raises_an_alarm_only_if_the_job_is_likely_to_fail(risk: float, level: str) -> None:
    failure = Failure(probability=risk, threshold=0.9, will_fail=False, target=Target.FAILED)
    need = Resources(runtime_seconds=RuntimeRange(p50=51 * 60, p95=80 * 60, requested=120))
    (finding,) = with_shortages(Parts(resources=need, failure=failure), {}).findings
    assert (finding.kind, str(finding.level)) == ("short_of_time", level)


def test_a_request_far_above_the_bound_is_lowered() -> None:
    frame = asked(time_limit=DAY, req_memory=64 * GIB)
    need = Resources(
        runtime_seconds=RuntimeRange(p50=600, p95=HOUR, requested=DAY),
        memory_bytes=MemoryRange(p50=GIB, p95=2 * GIB, requested=64 * GIB),
    )
    time, memory = advise(frame, Evidence(history=HABIT, resources=need), level)
    assert time.change == "--time=02:00:00"
    assert "start sooner" in time.why
    assert memory.change == "--mem=4G"
    assert (memory.risk_before, memory.risk_after) == (0.4, 0.4)
    assert advise(frame, Evidence(history={}, resources=need), level) == [], "too few completed to say so"
    busy = {**HABIT, "name.time_used": 0.9, "name.memory_used": 0.9}
    assert advise(frame, Evidence(history=busy, resources=need), level) == [], (
        "others of its kind used it all"
    )
    several = frame.with_columns(req_tasks=pl.lit(8, pl.Int64))
    assert len(advise(several, Evidence(history=HABIT, resources=need), level)) == 1, (
        "a task's peak is not the node's"
    )


def test_nodes_that_fail_jobs_are_excluded_and_those_excluded_stay_so() -> None:
    bad = [Avoid(node="n3", why="it crashed 4 times"), Avoid(node="n5", why="9 of the 10 jobs failed")]
    text = script("#SBATCH --exclude=n1")
    evidence = Evidence(history={}, bad_nodes=bad, machine=MACHINE, submission=submission(text))
    (advice,) = advise(asked(exclude_nodes="n1"), evidence, level)
    assert advice.edit is not None
    assert advice.edit.new == "#SBATCH --exclude=n[1,3,5]"
    assert advice.why == "n3: it crashed 4 times; n5: 9 of the 10 jobs failed"
    assert advice.risk_after is None
    assert advise(asked(req_nodes=6, exclude_nodes="n1"), evidence, level) == [], "too few would be left"
    assert advise(asked(exclude_nodes="n[3,5]"), evidence, level) == []


def test_of_a_big_array_that_fails_a_few_tasks_go_first() -> None:
    failing = {"name.failed_last10": 0.8, "name.ended": 25.0}
    text = script("#SBATCH --array=5-500%20")
    evidence = Evidence(history=failing, submission=submission(text))
    (advice,) = advise(asked(array="5-500%20", array_tasks=496), evidence, level)
    assert advice.edit is not None
    assert advice.edit.new == "#SBATCH --array=5-7"
    assert "8 of the last 10 jobs of this user with this name failed" in advice.why
    assert "3 of the 496 tasks first" in advice.why
    odd = advise(asked(array="1,4,9,20-99", array_tasks=83), Evidence(history=failing), level)
    assert odd[0].change == "--array=1,4,9"
    assert advise(asked(array="1-5", array_tasks=5), evidence, level) == []
    assert advise(asked(array="x", array_tasks=50), evidence, level) == []
    well = Evidence(history={**failing, "name.failed_last10": 0.1})
    assert advise(asked(array="1-500", array_tasks=500), well, level) == []


def test_amounts_are_those_that_people_write() -> None:
    assert nice_memory(1.01 * GIB) == 1088 * MIB
    assert nice_memory(1000) == MIB
    assert [nice_time(seconds) for seconds in (10, 7200, 7201, DAY + 1)] == [300, 7200, 8100, 25 * HOUR]


def test_more_time_or_memory_never_raises_the_risk_of_a_monotone_model() -> None:
    rng = np.random.default_rng(0)
    names = ["limit/name.elapsed_most", "req_memory", "time_limit", "user.failed"]
    X = rng.random((2000, 4)).astype(np.float32)
    y = rng.random(2000) < 0.5 * X[:, 0]
    model = engine("lightgbm").train(X, y, monotone=monotone(names), rounds=40)
    before = rng.random((300, 4)).astype(np.float32)
    after = (before + rng.random((300, 4))).astype(np.float32)
    changed = moved(before, after, names)
    assert (model.predict(changed) <= model.predict(before)).all()
    assert (changed[:, :2] > before[:, :2]).all()
    assert (changed[:, 2:] == before[:, 2:]).all()
    assert monotone(names) == [-1, -1, 0, 0]


def test_archives_tell_by_the_run_time_that_a_limit_stopped_a_job() -> None:
    """A log without names and applications: what was run is told by its size alone."""
    log = jobs(
        job(n, name=None, time_limit=HOUR, elapsed=HOUR + 5, outcome=Outcome.CANCELLED)
        if n < 8
        else job(n, name=None, time_limit=4 * HOUR, elapsed=2 * HOUR)
        for n in range(12)
    )
    short = Shortages.fit(log).of(row(name=None, time_limit=HOUR))
    assert short["time_limit"].value == 4 * HOUR
    assert "8 earlier jobs of this user with this number of CPUs ran out of time" in short["time_limit"].text
    assert Shortages.fit(log).of(row(name="new", time_limit=HOUR)) == {}


def test_shortages_are_saved_and_read_back(shortages: Shortages, tmp_path: Path) -> None:
    shortages.save(tmp_path)
    assert Shortages.load(tmp_path) == shortages
    (tmp_path / "shortages.json").write_text('{"version": 1, "requests": {}}')
    with pytest.raises(ModelError, match=r"shortages\.json cannot be read"):
        Shortages.load(tmp_path)


def test_advice_on_the_demo_fits_its_scripts(check_data: CheckData, model: FittedFailure) -> None:
    """All of it together: each edit fits the script, asks for something else, and the risk is never higher."""
    past = check_data.known()
    later = check_data.log.filter(pl.col("submit") > check_data.cut, pl.col("script").is_not_null())
    found = 0
    for number in range(0, later.height, 4):
        one = later[number]
        text = check_data.scripts[one["script"][0]]
        for advice in model.explain(one, past, stage=Stage.SUBMIT).advice:
            found += 1
            assert advice.risk_before is None or advice.risk_after <= advice.risk_before  # type: ignore[operator]  # both
            if advice.edit:
                line, old, new = advice.edit.line, advice.edit.old, advice.edit.new
                applied = apply(text, [Edit(line + (old is None), old, new)])
                assert parse(applied).request != parse(text).request
    assert found > 3


def test_a_row_has_all_that_evidence_looks_at() -> None:
    assert Shortages.fit(jobs([])).of(row()) == {}
