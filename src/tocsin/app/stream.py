"""`watch` of a cluster whose job events come from Kafka."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tocsin.app.app import App
from tocsin.app.clusters import cluster_named

if TYPE_CHECKING:
    from tocsin.sources.kafka import KafkaJobs

__all__ = ["INTERVAL", "is_streamed", "job_events"]

INTERVAL = 1.0
"""Seconds between two looks for new events; Kafka pushes them."""


def is_streamed(app: App, name: str | None) -> bool:
    """Whether the events of this cluster, or of the only one, come from Kafka."""
    return bool(cluster_named(app, name)[1].kafka_topic)


@contextmanager
def job_events(app: App, name: str | None) -> "Iterator[KafkaJobs]":
    """The job events of the cluster; at the end, unreadable ones are reported."""
    from tocsin.sources.kafka import KafkaJobs

    name, settings = cluster_named(app, name)
    assert name is not None, "only a cluster of the settings has a topic"
    topics = [topic.strip() for topic in settings.kafka_topic.split(",") if topic.strip()]
    jobs = KafkaJobs(name, topics, app.settings.kafka)
    try:
        yield jobs
    finally:
        jobs.close()
        if jobs.rejects.total:
            app.notify(f"skipped {jobs.rejects.total:,} events that cannot be read")
