"""`tocsin watch` of a cluster that is known by its events in Kafka alone."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.kits.command_line import Tocsin
from tests.services.kafka import MockKafka

RECORDED = Path(__file__).parents[1] / "sources" / "fixtures" / "jobcomp_kafka.jsonl"


@pytest.fixture(scope="module")
def kafka() -> Iterator[MockKafka]:
    with MockKafka() as broker:
        yield broker


@pytest.fixture
def config(kafka: MockKafka, tmp_path: Path) -> Path:
    file = tmp_path / "c.toml"
    file.write_text(f'[kafka]\nbrokers = "{kafka.address}"\n[cluster.lab]\nkafka_topic = "{tmp_path.name}"\n')
    return file


def publish(kafka: MockKafka, topic: str, *records: bytes) -> None:
    producer = Producer({"bootstrap.servers": kafka.address, "log_level": 0})
    for record in records:
        producer.produce(topic, record, "job")
    assert producer.flush(30) == 0


def test_records_of_jobcomp_become_jobs_and_what_cannot_be_read_is_counted(
    tocsin: Tocsin, kafka: MockKafka, config: Path, tmp_path: Path
) -> None:
    publish(kafka, tmp_path.name, *RECORDED.read_bytes().splitlines())
    said = tocsin("--config", config, "watch", "--once")
    assert said.code == 0, said.err
    assert "watching lab; no job is held or changed" in said.err
    assert "skipped and counted: not JSON" in said.err
    jobs = tocsin("--config", config, "jobs", "-n", "-P", "-o", "JobID,User,State").out
    assert jobs == "1|alice|FAILED\n2|alice|OUT_OF_MEMORY\n"
    scripts = [file.read_text() for file in (tmp_path / "home" / "scripts").iterdir()]
    assert any("sleep 1; exit 1" in script for script in scripts)
    doctor = tocsin("--config", config, "doctor").out
    assert "skipped because they cannot be read: 1 not JSON" in doctor


def test_an_event_brings_a_verdict_and_a_second_watch_gives_none(
    tocsin: Tocsin, kafka: MockKafka, config: Path, tmp_path: Path
) -> None:
    now = int(time.time())
    event = {"schema": "tocsin.job/1", "job_id": 7, "submit": now, "user": "ann", "state": "PENDING"}
    publish(kafka, tmp_path.name, json.dumps(event).encode())
    verdicts = [
        [json.loads(line) for line in said.out.splitlines()]
        for said in (tocsin("--config", config, "watch", "--once", "--all", "--json") for _ in range(2))
    ]
    [[first], none] = verdicts
    assert (first["job"], first["stage"], first["user"]) == (f"lab:7@{now}", "submit", "ann")
    assert "limits" in first["missing"]  # events do not tell of nodes and partitions
    assert none == []


def test_kafka_without_brokers_is_named_as_what_is_missing(tocsin: Tocsin, tmp_path: Path) -> None:
    config = tmp_path / "c.toml"
    config.write_text('[cluster.lab]\nkafka_topic = "jobs"\n')
    said = tocsin("--config", config, "watch", "--once")
    assert (said.code, "kafka.brokers is not set" in said.err) == (1, True)
