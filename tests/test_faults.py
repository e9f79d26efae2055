"""slurmrestd, end to end: the service is killed and its store locked; `make bench` does it with 10,000 jobs."""

from bench.faults import WRONG, survey


def test_every_job_of_a_cluster_gets_exactly_one_verdict_per_stage_whatever_happens_to_the_service() -> None:
    found = survey(jobs=200, kills=2, locks=[1], seconds=10)
    assert (found["kills"], found["locks"], found["exit_code"]) == (2, 1, 0)
    assert found["stored"] == found["verdicts"] == 600
    assert {name: found[name] for name in WRONG} == dict.fromkeys(WRONG, 0)
