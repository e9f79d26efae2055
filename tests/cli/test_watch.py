"""`tocsin watch` as a person meets it, on the demo cluster."""

import json
import re
import time
from dataclasses import replace
from datetime import UTC
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.kits.watching import NOON
from tocsin.app.app import App
from tocsin.app.doctor import Status, doctor
from tocsin.app.heartbeat import Heartbeat, watch_lock
from tocsin.app.text import clock
from tocsin.app.verdict_text import verdict_line
from tocsin.cli.output import print_message
from tocsin.cli.watch import watch
from tocsin.core.errors import InputError, NotFound, StoreError
from tocsin.core.schema import verdict_schema
from tocsin.core.stages import Stage
from tocsin.core.verdict import Finding, Level, Verdict
from tocsin.store.locks import locked


def call(home: Path, *arguments: str) -> Result:
    with App(folder=str(home), notify=print_message) as app:
        done = CliRunner().invoke(watch, list(arguments), obj=app)
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done


def test_the_demo_is_watched_and_every_verdict_is_a_document(tmp_path: Path) -> None:
    validate = pytest.importorskip("jsonschema").validate
    first = call(tmp_path, "--demo", "--once", "--all", "--json")
    documents = [json.loads(line) for line in first.stdout.splitlines()]
    assert {document["stage"] for document in documents} >= {"submit", "start", "early"}
    for document in documents:
        validate(document, verdict_schema())
        assert document["job"].startswith("demo:")
        assert {"at", "user", "account", "name"} <= set(document)
    assert all(document["user"] and document["name"] for document in documents)
    assert "no job is held or changed" in first.stderr
    assert len(list((tmp_path / "scripts").iterdir())) > 1
    again = call(tmp_path, "--demo", "--once", "--all", "--json")
    said = {document["id"] for document in documents}
    assert said.isdisjoint(json.loads(line)["id"] for line in again.stdout.splitlines())


def test_what_is_fine_is_not_printed(tmp_path: Path) -> None:
    done = call(tmp_path, "--demo", "--once")
    assert done.exit_code == 0
    assert "OK:" not in done.stdout


def test_a_second_watch_on_one_store_stops(tmp_path: Path) -> None:
    with App(folder=str(tmp_path)) as app, locked(app.store, watch_lock("demo")) as first:
        assert first
        with pytest.raises(StoreError, match="another"):
            call(tmp_path, "--demo", "--once")
    assert call(tmp_path, "--demo", "--once").exit_code == 0


def watch_link(home: Path) -> tuple[Status, str]:
    with App(folder=str(home)) as app:
        [found] = [each for each in doctor(app) if each.link.startswith("watch")]
    return found.status, found.text


def test_the_doctor_reads_when_the_watch_last_looked(tmp_path: Path) -> None:
    assert watch_link(tmp_path)[0] is Status.ABSENT
    call(tmp_path, "--demo", "--once")
    status, text = watch_link(tmp_path)
    assert status is Status.NOTE
    assert "stopped" in text
    cache, now = tmp_path / "cache", time.time()
    running = Heartbeat(cluster="demo", last=now - 4, due=now)
    running.write(cache)
    assert watch_link(tmp_path)[0] is Status.BROKEN, "no process holds the lock: it was killed"
    with App(folder=str(tmp_path)) as app, locked(app.store, watch_lock("demo")):
        status, text = watch_link(tmp_path)
        assert status is Status.FINE
        assert re.search(r"last read [4-9] s ago", text)
        replace(running, last=now - 400, due=now - 390).write(cache)
        assert watch_link(tmp_path)[0] is Status.BROKEN, "it hangs"
        replace(running, problem="slurmctld is down").write(cache)
        status, text = watch_link(tmp_path)
        assert status is Status.BROKEN
        assert "slurmctld is down" in text


def test_the_demo_has_one_name(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="lab"):
        call(tmp_path, "--demo", "-M", "lab")


def test_a_mistyped_cluster_is_an_error_with_a_suggestion(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(NotFound, match='did you mean "demo"'):
        call(tmp_path, "-M", "dmeo", "--once")


def test_the_words_come_first() -> None:
    def verdict(level: Level, *findings: Finding, missing: dict[str, str] | None = None) -> Verdict:
        return Verdict(
            job=f"lab:1@{NOON}",
            stage=Stage.SUBMIT,
            at=NOON,
            known_until=NOON,
            level=level,
            late=level is Level.CRITICAL,
            findings=list(findings),
            missing=missing or {},
        )

    big = Finding(detector="limits", kind="memory", level=Level.CRITICAL, text="no node has 9 TB")
    odd = Finding(detector="limits", kind="time", level=Level.WARNING, text="it is short")
    assert verdict_line(verdict(Level.CRITICAL, odd, big), UTC) == (
        f"{clock(NOON, UTC)} CRITICAL: no node has 9 TB (lab:1@{NOON}, submit, late)"
    )
    assert verdict_line(verdict(Level.UNKNOWN, missing={"limits": "it failed"}), UTC) == (
        f"{clock(NOON, UTC)} UNKNOWN: limits: it failed (lab:1@{NOON}, submit)"
    )
