"""Partitions come and go while a cluster is followed."""

from dataclasses import dataclass, field

from tests.kits.watching import NOON, FakeCluster, watcher
from tocsin.core.errors import ClusterError
from tocsin.core.machine import Machine, Node, Partition
from tocsin.core.stages import Stage
from tocsin.core.verdict import Level
from tocsin.judge.answers import DetectorModels, Model
from tocsin.judge.judge import Judge
from tocsin.limits.detector import FittedLimits
from tocsin.store.database import Store

JUDGE = Judge(
    {"limits": DetectorModels(dict.fromkeys((Stage.SUBMIT, Stage.START), Model(FittedLimits(), "1")))}
)


@dataclass
class ChangingCluster(FakeCluster):
    partitions: list[str] = field(default_factory=lambda: ["main"])
    readings: int = 0
    answers: bool = True

    def machine(self) -> Machine:
        self.readings += 1
        if not self.answers:
            raise ClusterError("slurmctld does not answer")
        return Machine(
            cluster=self.name,
            nodes=(Node(name="n1", cpus=4, memory=1 << 32, partitions=tuple(self.partitions)),),
            partitions=tuple(Partition(name=name, node_list="n1", nodes=1) for name in self.partitions),
        )


def levels(watch: object, now: int) -> list[Level]:
    return [verdict.level for verdict in watch.step(now).verdicts]  # type: ignore[attr-defined]


def test_a_job_in_a_partition_that_was_just_added_is_not_accused(store: Store) -> None:
    cluster = ChangingCluster()
    watch = watcher(cluster, store, JUDGE)
    watch.step(NOON - 20)
    cluster.partitions.append("fresh")
    cluster.queued = [{"partition": "fresh"}]
    assert levels(watch, NOON + 1) == [Level.OK]


def test_a_partition_that_does_not_exist_is_still_named(store: Store) -> None:
    cluster = ChangingCluster()
    watch = watcher(cluster, store, JUDGE)
    watch.step(NOON - 20)
    cluster.queued = [{"partition": "nowhere"}]
    assert levels(watch, NOON + 1) == [Level.CRITICAL]


def test_many_alarms_do_not_read_the_machine_each_time(store: Store) -> None:
    cluster = ChangingCluster()
    watch = watcher(cluster, store, JUDGE)
    for second in range(60):
        cluster.queued.append({"job_id": 1 + second, "partition": "nowhere", "submit": NOON + second})
        watch.step(NOON + second)
    assert cluster.readings <= 6


def test_the_last_reading_is_used_while_slurmctld_does_not_answer(store: Store) -> None:
    cluster = ChangingCluster()
    watch = watcher(cluster, store, JUDGE)
    watch.step(NOON - 120)
    cluster.answers = False
    cluster.queued = [{"partition": "main"}]
    done = watch.step(NOON + 1)
    assert [verdict.level for verdict in done.verdicts] == [Level.OK]
    assert done.problems == ["slurmctld does not answer"]
