"""Kafka, end to end: the watch is killed, the line cut and the store locked; `make bench` does it with 10,000 jobs."""

from bench.streams import WRONG, survey


def test_every_job_of_a_stream_gets_exactly_one_verdict_per_stage_whatever_happens() -> None:
    found = survey(jobs=500, kills=2, cuts=1)
    assert (found["kills"], found["cuts"], found["locks"]) == (2, 1, 1)
    assert found["stored"] == found["verdicts"] == 2000
    assert {name: found[name] for name in WRONG} == dict.fromkeys(WRONG, 0)
    assert found["published"] >= found["verdicts"]
    assert found["unreadable"] >= 10  # events that nobody can read are counted, again after a kill
