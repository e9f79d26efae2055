"""Readiness: a slurmrestd that misbehaves is survived, and /readyz and `doctor` name the reason and the remedy."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import pytest
from starlette.testclient import TestClient

from tests.kits.service import As, serving, wait_until
from tests.services.replayed_slurmrestd import FAULTS, ReplayedJob, ReplayedSlurmrestd
from tocsin.app.app import App
from tocsin.app.doctor import Status, doctor
from tocsin.app.loop import Output
from tocsin.app.service import Service, ServiceRequest
from tocsin.core.errors import ClusterError, StoreError
from tocsin.demo.cluster import DemoCluster
from tocsin.serve.broadcast import Broadcast
from tocsin.serve.factory import routes
from tocsin.serve.metrics import Metrics
from tocsin.serve.principal import Principal, Role
from tocsin.store.jobs import cluster_names
from tocsin.store.outbox import set_problem

SAYS = {
    "500": ("HTTP 500", "scontrol ping"),
    "511": ("refuses the token", "renew it with scontrol token"),
    "errors": ("slurmctld is tired", "scontrol ping"),
    "garbage": ("unreadable answer", "is it slurmrestd?"),
    "slow": ("does not answer", "is it running"),
}
"""The reason and the next step in the sentence on each fault."""


@contextmanager
def watching(home: Path, url: str, timeout: int = 1) -> Iterator[tuple[App, TestClient]]:
    token = home.parent / "token"
    token.write_text("x.y.z")
    token.chmod(0o600)
    environ = {
        "HOME": str(home.parent),
        "PATH": os.environ["PATH"],
        "TOCSIN_CLUSTER__lab__REST_URL": url,
        "TOCSIN_CLUSTER__lab__REST_TOKEN_FILE": str(token),
        "TOCSIN_CLUSTER__lab__TIMEOUT": str(timeout),
        "TOCSIN_WATCH__INTERVAL": "1",
        "TOCSIN_WATCH__SCRIPTS": "false",
    }
    with App(folder=str(home), environ=environ) as app:
        broadcast, metrics = Broadcast(app), Metrics()
        service = Service(app, ServiceRequest(), Output(lambda _: None))
        metrics.watch(service, lambda: 0)
        service.start()
        try:
            operator = Principal("olga", Role.OPERATOR, "test")
            yield app, TestClient(As(routes(service, broadcast, metrics), operator))
        finally:
            service.stop()


def about_the_cluster(client: TestClient) -> list[dict[str, str]]:
    reasons = client.get("/readyz").json()["reasons"]
    return [each for each in reasons if each["part"] == "cluster lab"]


def is_ready(client: TestClient) -> bool:
    return client.get("/readyz").status_code == 200


def link(app: App) -> tuple[Status, str, str]:
    """What `doctor` says of slurmrestd."""
    [found] = [finding for finding in doctor(app) if finding.link == "rest lab"]
    return found.status, found.text, found.fix


@pytest.mark.parametrize("kind", SAYS)
def test_a_slurmrestd_that_fails_is_reported_with_the_remedy_and_followed_again_when_it_answers(
    kind: str, tmp_path: Path
) -> None:
    now = int(time.time())
    jobs = [ReplayedJob(number, now + 1, now + 1000, now + 2000) for number in range(1, 6)]
    fault, (reason, remedy) = FAULTS[kind], SAYS[kind]
    with (
        ReplayedSlurmrestd(jobs, fault) as slurmrestd,
        watching(tmp_path / "home", slurmrestd.url) as (
            app,
            client,
        ),
    ):
        wait_until(lambda: any(reason in each["text"] for each in about_the_cluster(client)))
        reply = client.get("/readyz")
        assert reply.status_code == 503
        [shown] = about_the_cluster(client)
        assert not shown["ready"]
        assert remedy in shown["text"]
        assert "tocsin doctor" in shown["remedy"]
        assert client.get("/healthz").status_code == 200
        assert client.get("/api/v1/health").status_code == 200
        assert client.get("/api/v1/jobs").json() == {"jobs": [], "next": None}
        assert 'tocsin_watch_up{cluster="lab"} 0.0' in client.get("/metrics").text
        status, text, fix = link(app)
        assert status is Status.BROKEN
        assert reason in text
        assert remedy in text
        assert "remove rest_url from the settings" in fix

        slurmrestd.fault = None

        wait_until(lambda: is_ready(client))
        wait_until(lambda: len(client.get("/api/v1/verdicts").json()["verdicts"]) == len(jobs))
        assert link(app)[0] is Status.FINE


def test_a_cluster_that_stops_answering_is_not_ready_before_the_request_times_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tocsin.app.service.LONGEST_ANSWER", 1.0)
    with (
        ReplayedSlurmrestd([]) as slurmrestd,
        watching(tmp_path / "home", slurmrestd.url, timeout=20) as (_, client),
    ):
        wait_until(lambda: is_ready(client))
        slurmrestd.fault = FAULTS["slow"]
        wait_until(lambda: not is_ready(client), 15)
        [shown] = about_the_cluster(client)
        assert "slurmctld has not answered for" in shown["text"]
        slurmrestd.fault = None
        wait_until(lambda: is_ready(client))


def test_a_newer_slurmrestd_is_read_and_reported_with_the_remedy(tmp_path: Path) -> None:
    now = int(time.time())
    jobs = [ReplayedJob(1, now + 1, now + 1000, now + 2000)]
    with (
        ReplayedSlurmrestd(jobs, FAULTS["newer"]) as slurmrestd,
        watching(tmp_path / "home", slurmrestd.url) as (app, client),
    ):
        wait_until(lambda: is_ready(client))
        [shown] = about_the_cluster(client)
        assert shown["ready"]
        assert "never tested with v0.0.99" in shown["text"]
        assert "upgrade tocsin" in shown["remedy"]
        status, text, fix = link(app)
        assert (status, fix) == (Status.NOTE, shown["remedy"])
        assert "never tested with v0.0.99" in text


def test_a_store_that_does_not_answer_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def locked(_: object) -> list[str]:
        raise StoreError("the store was locked by another process for 30 s")

    with (
        ReplayedSlurmrestd(fault=FAULTS["500"]) as slurmrestd,
        watching(tmp_path / "home", slurmrestd.url) as (_, client),
    ):
        monkeypatch.setattr("tocsin.store.jobs.cluster_names", locked)
        reply = client.get("/readyz")
        assert reply.status_code == 503
        [reason] = reply.json()["reasons"]
        assert reason["part"] == "store"
        assert reason["remedy"]
    assert cluster_names


def test_a_slurmdbd_that_is_down_is_a_reason_but_the_service_stays_ready(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    down = "sacct failed (exit 1): slurmdbd does not answer"

    def accounting(*_: object) -> NoReturn:
        raise ClusterError(down)

    monkeypatch.setattr(DemoCluster, "accounting", accounting)
    with serving(tmp_path / "home", watch=True, demo=True) as served:
        client = served.client()
        wait_until(lambda: down in client.get("/readyz").text)
        document = client.get("/readyz").json()
        assert document["ready"]
        [reason] = [each for each in document["reasons"] if each["part"] == "cluster demo"]
        assert (reason["ready"], reason["text"]) == (True, down)
        assert "tocsin doctor" in reason["remedy"]
        monkeypatch.undo()
        wait_until(lambda: down not in client.get("/readyz").text)


def test_a_sink_that_takes_nothing_is_a_reason_and_a_metric_but_the_service_stays_ready(
    tmp_path: Path,
) -> None:
    """Otherwise, alarms would wait, and then be dropped, without anybody being told."""
    environ = {
        "TOCSIN_SINKS__chat__KIND": "webhook",
        "TOCSIN_SINKS__chat__URL": "https://chat.example.org/secret-hook",
    }
    with serving(tmp_path / "home", environ=environ) as served:
        client = served.client()
        assert client.get("/readyz").json()["reasons"] == []
        assert 'tocsin_sink_up{sink="chat"} 1.0' in client.get("/metrics").text
        set_problem(served.service.app.store, "chat", "secret-hook refuses the connection", 1_790_000_000)
        document = client.get("/readyz").json()
        assert document["ready"]
        [reason] = document["reasons"]
        assert reason["part"] == "sink chat"
        assert "2026-09-21" in reason["text"]
        assert "0 are waiting" in reason["text"]
        assert "secret-hook" not in str(reason), "everybody may ask whether the service is ready"
        metrics = client.get("/metrics").text
        assert 'tocsin_sink_up{sink="chat"} 0.0' in metrics
        assert 'tocsin_sink_messages_total{result="dropped",sink="chat"} 0.0' in metrics
