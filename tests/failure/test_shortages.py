"""A request that always ran out rings, also where the model never saw it."""

from dataclasses import replace

import pytest

from tests.kits.ended_jobs import GIB, job, jobs, row
from tocsin.core.outcomes import Outcome
from tocsin.core.stages import Stage
from tocsin.failure.fitted import FittedFailure
from tocsin.failure.shortages import Shortages
from tocsin.judge.check_data import CheckData

OOM = Outcome.OUT_OF_MEMORY


def habit(out: int, done: int) -> Shortages:
    """Jobs that ran out with 4 GiB, and others that completed with as much."""
    ran_out = [job(n, name="grow", req_memory=4 * GIB, outcome=OOM) for n in range(out)]
    completed = [job(out + n, name="grow", req_memory=4 * GIB) for n in range(done)]
    return Shortages.fit(jobs([*ran_out, *completed]))


@pytest.mark.parametrize(
    ("out", "done", "asked", "certain"),
    [(10, 0, 4, True), (10, 0, 3, True), (9, 0, 4, False), (12, 1, 4, False)],
)
def test_certain_is_what_happened_often_and_without_exception(
    out: int, done: int, asked: int, certain: bool
) -> None:
    short = habit(out, done).of(row(99, name="grow", req_memory=asked * GIB))["req_memory"]
    assert short.certain is certain


def test_jobs_that_share_only_their_size_prove_nothing() -> None:
    others = Shortages.fit(
        jobs(job(n, name=None, req_cpus=4, req_memory=4 * GIB, outcome=OOM) for n in range(20))
    )
    assert not others.of(row(99, name=None, req_memory=4 * GIB))["req_memory"].certain


def test_a_certain_shortage_is_a_finding_at_submit(check_data: CheckData, model: FittedFailure) -> None:
    asked = jobs([job(99, name="grow", submit=int(check_data.log["submit"].max()), req_memory=2 * GIB)])  # type: ignore[arg-type]  # an instant
    knowing = replace(model, shortages=habit(12, 0))
    for said in (
        knowing.assess(asked, check_data.known(), stage=Stage.SUBMIT)[0],
        knowing.explain(asked, check_data.known(), stage=Stage.SUBMIT),
    ):
        found = [finding for finding in said.findings if finding.kind == "short_of_memory"]
        assert len(found) == 1
        assert found[0].text.startswith("12 earlier jobs of this user with this name ran out of memory")
