"""The stage clock: one job and a frame of jobs agree, and so do all rooms that read it."""

from hypothesis import example, given, settings
from hypothesis import strategies as st

from tocsin.core.fields import Job
from tocsin.core.frames import from_jobs
from tocsin.core.frames import reached_at as column_reached_at
from tocsin.core.outcomes import Outcome
from tocsin.core.stages import EARLY_SECONDS, Stage, reached_at
from tocsin.history.ledger import Ledger
from tocsin.history.replay import Replay
from tocsin.watch.stages import BITS, reached

NOON = 1_794_744_000


def job(wait: int | None, run: int | None) -> Job:
    """Started `wait` seconds after its submission and ended `run` seconds after that, as far as is known."""
    start = None if wait is None else NOON + wait
    end = None if run is None else (NOON if start is None else start) + run
    outcome = None if end is None else Outcome.COMPLETED
    known_at = None if end is None else end + 60
    return Job(
        cluster="lab",
        job_id=1,
        task=None,
        submit=NOON,
        start=start,
        end=end,
        outcome=outcome,
        known_at=known_at,
    )


lives = st.builds(job, st.none() | st.integers(0, 300), st.none() | st.integers(0, 300))


@given(lives, st.sampled_from(Stage))
@example(job(0, EARLY_SECONDS), Stage.EARLY)
@example(job(0, EARLY_SECONDS - 1), Stage.EARLY)
@settings(deadline=None)
def test_every_room_agrees_on_when_a_stage_is_reached(job: Job, stage: Stage) -> None:
    frame = from_jobs([job])
    at = reached_at(stage, job.submit, job.start, job.end)
    assert frame.select(column_reached_at(stage)).item() == at
    ledger = Ledger()
    ledger.learn(frame)
    for history in (ledger, Replay(frame)):
        assert (history.features(frame, stage=stage)["cluster.submitted"].item() is not None) is (
            at is not None
        )
    if stage in BITS:
        bits = frame.select(reached(NOON + 1000)).item()
        assert bool(bits & BITS[stage]) is (at is not None)


def test_a_job_that_lived_exactly_two_minutes_reached_early() -> None:
    assert reached_at(Stage.EARLY, NOON, NOON, NOON + 120) == NOON + 120
    assert reached_at(Stage.EARLY, NOON, NOON, NOON + 119) is None
    assert reached_at(Stage.EARLY, NOON, NOON, None) == NOON + 120
    assert reached_at(Stage.RUNNING, NOON, NOON + 5, NOON + 10) == NOON + 5
