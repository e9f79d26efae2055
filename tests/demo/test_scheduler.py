"""The demo's scheduler: who waits first is not delayed, gaps are filled, spare jobs give way."""

from random import Random

import pytest

from tocsin.demo.applications import APPLICATIONS
from tocsin.demo.behaviour import compose
from tocsin.demo.jobs import Record
from tocsin.demo.machine import build
from tocsin.demo.people import USERS
from tocsin.demo.scheduler import Scheduler

HOUR = 3600


class OneNode:
    """A scheduler with a single node of 32 CPUs."""

    def __init__(self) -> None:
        self.host = build()["cpu"][0]
        self.scheduler = Scheduler({"cpu": [self.host]})
        self.count = 0

    def submit(self, application: str, user: str, *, at: int, time_limit: int) -> Record:
        self.count += 1
        submission = compose(USERS[user], APPLICATIONS[application], Random(1), time_limit=time_limit)
        record = Record(
            job_id=self.count,
            raw_id=self.count,
            task=None,
            submit=at,
            eligible=at,
            submission=submission,
            request=submission.request,
            priority=1,
        )
        self.scheduler.add(record)
        return record

    def run(self, now: int) -> tuple[list[Record], list[Record]]:
        """A pass: who started and who had to give way."""
        started, gone = [], []
        for record, hosts, victims in self.scheduler.starts(now):
            for victim in victims:
                self.host.release(victim)
            self.scheduler.remove(record)
            record.state, record.start = "RUNNING", now
            for host in hosts:
                host.allocate(record)
            started.append(record)
            gone += victims
        return started, gone


@pytest.fixture
def node() -> OneNode:
    return OneNode()


def test_who_ends_in_time_may_pass_who_waits_and_nobody_else(node: OneNode) -> None:
    small = node.submit("lammps", "niels", at=0, time_limit=2 * HOUR)
    assert node.run(1) == ([small], [])
    node.submit("foam", "osborne", at=2, time_limit=2 * HOUR)  # wants all 32 CPUs
    node.submit("lammps", "noor", at=3, time_limit=10 * HOUR)
    short = node.submit("reduce", "amal", at=4, time_limit=HOUR)
    assert node.run(5) == ([short], [])


def test_the_partition_for_short_jobs_goes_first(node: OneNode) -> None:
    later = node.submit("reduce", "amal", at=0, time_limit=HOUR)
    first = node.submit("shell", "emmy", at=1, time_limit=HOUR)
    assert node.run(2) == ([first, later], [])


def test_a_spare_job_gives_way_but_not_in_its_first_hour(node: OneNode) -> None:
    spare = node.submit("lammps", "chen", at=0, time_limit=8 * HOUR)
    node.run(1)
    whole = node.submit("foam", "osborne", at=2, time_limit=2 * HOUR)
    assert node.run(HOUR) == ([], [])
    assert node.run(HOUR + 1) == ([whole], [spare])


def test_nothing_starts_while_partitions_are_down_or_on_a_node_that_is(node: OneNode) -> None:
    record = node.submit("reduce", "amal", at=0, time_limit=HOUR)
    node.scheduler.open = False
    assert node.run(1) == ([], [])
    node.scheduler.open = True
    node.host.up = False
    assert node.run(2) == ([], [])
    node.host.up = True
    assert node.run(3) == ([record], [])
