"""`connect slurm-to-kafka`: another tocsin that reads the topic knows what the first one saw."""

from pathlib import Path
from typing import Any

import pytest

from tests.kits.watching import MORNING, stored_verdicts
from tests.services.kafka import MockKafka
from tocsin.app import connect
from tocsin.app.connect import SINK
from tocsin.app.sinks import Sinks
from tocsin.core.settings import KafkaSettings
from tocsin.core.sink_settings import KafkaSinkSettings
from tocsin.demo.cluster import DemoCluster
from tocsin.history.ledger import Ledger
from tocsin.judge.judge import Judge
from tocsin.sinks.deliver import deliver
from tocsin.sinks.kafka import KafkaSink
from tocsin.sources.kafka import KafkaJobs
from tocsin.store.database import Store, open_store
from tocsin.store.home import Home
from tocsin.store.jobs import load
from tocsin.store.outbox import states, waiting
from tocsin.watch.stream_rounds import StreamRounds

TOPIC = "tocsin.jobs"
SETTINGS = KafkaSinkSettings(kind="kafka", messages="job", topic=TOPIC)
NOT_SENT = ("known_at", "intervened")


def publisher(cluster: DemoCluster, store: Store, home: Home, *, scripts: bool = False) -> Any:
    sinks = Sinks(store, [], {SINK: SETTINGS.subscription(SINK)})
    return connect._watcher(cluster, store, home, sinks, scripts=scripts)


@pytest.fixture
def cluster() -> DemoCluster:
    made = DemoCluster()
    made.clock.advance_to(MORNING)
    return made


def test_a_remote_tocsin_gives_the_same_verdicts_as_one_next_to_slurm(
    cluster: DemoCluster, tmp_path: Path
) -> None:
    here, there = (Home(tmp_path / name).prepare() for name in ("here", "there"))
    with MockKafka() as kafka, open_store(here.url) as near, open_store(there.url) as far:
        access = KafkaSettings(brokers=kafka.address)
        publish = publisher(cluster, near, here)
        sink = KafkaSink(SINK, access, SETTINGS)
        source = KafkaJobs(cluster.name, [TOPIC], access)
        remote = StreamRounds(source, far, Judge({}), Ledger(), folder=there.scripts)
        remote.step(MORNING)
        for now in range(MORNING, MORNING + 4 * 3600, 60):
            cluster.clock.advance_to(now)
            publish.step(now)
            if now == MORNING + 7200:  # as after a restart: what is in the queue is published again
                publish = publisher(cluster, near, here)
        assert deliver(near, sink) is None
        sink.close()
        while remote.step(now).behind:
            pass
        source.close()
        mine, theirs = (load(store).drop(NOT_SENT).sort("submit", "job_id", "task") for store in (near, far))
        assert mine.height > 20
        assert theirs.equals(mine)
        assert stored_verdicts(far) == stored_verdicts(near)


def test_scripts_are_sent_only_if_asked_for(cluster: DemoCluster, tmp_path: Path) -> None:
    for scripts in (False, True):
        home = Home(tmp_path / str(scripts)).prepare()
        with open_store(home.url) as store:
            publisher(cluster, store, home, scripts=scripts).step(MORNING)
            events = [message.document for message in waiting(store, SINK, 10_000)]
        texts = [event["script_text"] for event in events if "script_text" in event]
        assert bool(texts) is scripts
        assert all(text.startswith("#!") for text in texts)


def test_events_are_bounded_while_kafka_is_away(cluster: DemoCluster, tmp_path: Path) -> None:
    home = Home(tmp_path / "home").prepare()
    few = KafkaSinkSettings(kind="kafka", messages="job", most_waiting=5).subscription(SINK)
    with open_store(home.url) as store:
        sinks = Sinks(store, [], {SINK: few})
        connect._watcher(cluster, store, home, sinks, scripts=False).step(MORNING)
        state = states(store, [SINK])[SINK]
        assert state.waiting == 5
        assert state.dropped == load(store).height - 5
