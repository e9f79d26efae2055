"""Scripts are checked by a process of their own, which knows what the followed cluster knows."""

import os
import shutil
import signal
from collections.abc import Iterator
from functools import partial
from multiprocessing import Pipe
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import polars as pl
import pytest

from tests.kits.service import wait_until
from tocsin.app.app import App
from tocsin.app.check import ScriptQuestion
from tocsin.app.checker_process import CheckerProcess, _Worker
from tocsin.app.ledger import past_jobs, read_history
from tocsin.app.script_checker import ScriptChecker
from tocsin.app.watch import Followed
from tocsin.core.errors import InputError, Unavailable
from tocsin.core.verdict import Verdict
from tocsin.demo.cluster import START, DemoCluster
from tocsin.history.ledger import Ledger

DAY = 86400
NOW = START + 2 * DAY + 10 * 3600


def as_json(verdict: Verdict) -> dict[str, Any]:
    return verdict.to_json()


def refuse(verdict: Verdict) -> None:
    raise InputError(f"no answer for {verdict.stage}")


def hang(path: str, _: Verdict) -> None:
    Path(path).touch()
    signal.pause()


@pytest.fixture
def app(demo_home: Path, tmp_path: Path) -> Iterator[App]:
    home = tmp_path / "home"
    shutil.copytree(demo_home, home)
    with App(folder=str(home), environ={"HOME": str(tmp_path), "TZ": "UTC"}) as found:
        yield found


@pytest.fixture
def followed(app: App) -> Followed:
    cluster = DemoCluster()
    cluster.clock.advance_to(NOW)
    ledger = read_history(app, "demo")
    ledger.machine = cluster.machine()
    ledger.advance(NOW)
    return Followed("demo", ledger, lambda: NOW, live=False)


@pytest.fixture
def checker(app: App, followed: Followed) -> Iterator[CheckerProcess]:
    found = CheckerProcess(app, followed)
    try:
        wait_until(lambda: found.is_ready)
        yield found
    finally:
        found.close()


def questions(app: App) -> list[ScriptQuestion]:
    files = sorted(app.home.scripts.iterdir())[:8]
    return [
        ScriptQuestion(text=file.read_text("utf-8"), user=user) for file in files for user in ("ada", "max")
    ]


def test_its_verdicts_are_those_of_the_process_that_follows(
    app: App, followed: Followed, checker: CheckerProcess
) -> None:
    beside = ScriptChecker(app, followed)
    for asked in questions(app):
        here = beside.check(asked, beside.prepare(asked.user))
        assert checker.check(asked, as_json).result(60) == here.to_json()


def test_what_the_cluster_learns_counts_in_the_next_check(app: App, demo_home: Path) -> None:
    jobs = past_jobs(app.store, "demo", 0)
    users = jobs.filter(pl.col("outcome") == "failed")["user"].unique().sort()
    ledger = Ledger()
    ledger.machine = DemoCluster().machine()
    ledger.advance(NOW)
    shutil.rmtree(app.home.cache, ignore_errors=True)
    followed = Followed("demo", ledger, lambda: NOW, live=False)
    with App(folder=str(app.home.root.parent / "empty"), environ=app.environ) as empty:
        empty.store  # noqa: B018  # made
        checker = CheckerProcess(empty, followed)
        try:
            asked = [ScriptQuestion(text="#!/bin/bash\nsrun ./a.out\n", user=user) for user in users]
            before = [checker.check(each, as_json).result(60)["failure"]["probability"] for each in asked]
            ledger.learn(jobs)
            ledger.advance(NOW)
            after = [checker.check(each, as_json).result(60)["failure"]["probability"] for each in asked]
        finally:
            checker.close()
    assert len(set(before)) == 1, "nothing is known of anybody"
    assert len(set(after)) > 1, "each has a history of their own"


def test_history_is_counted_before_the_first_check(app: App, followed: Followed) -> None:
    ours, theirs = Pipe()
    with ours, theirs:
        worker = _Worker(app, "demo", False, NOW, SimpleQueue(), theirs)
    assert worker._ledger.known_until == followed.ledger.known_until == NOW
    assert worker._ledger.counted() == worker._ledger.learned  # nothing is left for a check to count


def test_an_error_is_the_one_that_was_raised_there(app: App, checker: CheckerProcess) -> None:
    [first, *_] = questions(app)
    with pytest.raises(InputError, match="no answer for submit"):
        checker.check(first, refuse).result(60)
    assert checker.check(first, as_json).result(60)["stage"] == "submit"


def test_a_process_that_is_killed_is_replaced(app: App, checker: CheckerProcess, tmp_path: Path) -> None:
    [first, *_] = questions(app)
    begun = tmp_path / "begun"
    waiting = checker.check(first, partial(hang, str(begun)))
    wait_until(begun.exists)
    assert checker._child is not None
    checker._began = -1e9  # it lived for long
    os.kill(checker._child.process.pid or 0, signal.SIGKILL)
    with pytest.raises(Unavailable, match="try again"):
        waiting.result(60)
    assert checker.check(first, as_json).result(60)["stage"] == "submit"


def test_a_closed_desk_leaves_no_question_open_and_no_process(app: App, followed: Followed) -> None:
    checker = CheckerProcess(app, followed)
    [first, *_] = questions(app)
    waiting = checker.check(first, as_json)
    checker.close()
    assert waiting.done()
    assert not followed.ledger.followers
    assert checker._child is None or checker._child.process.exitcode is not None
    with pytest.raises(Unavailable):
        checker.check(first, as_json)
