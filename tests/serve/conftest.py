"""A home with some days of the demo cluster and a few verdicts, and a service on it that does not watch."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kits.service import Served, serving
from tocsin.app.app import App
from tocsin.app.demo import demo
from tocsin.app.judge import LiveJudge
from tocsin.demo.cluster import START, DemoCluster
from tocsin.demo.scripted_jobs import ScriptedJobs
from tocsin.history.ledger import Ledger
from tocsin.watch.script_reader import ScriptReader
from tocsin.watch.watcher import Watcher

DAYS = 2
MINUTE = 60


@pytest.fixture(scope="session")
def demo_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two days of the demo cluster, and half an hour of the third watched, with the demo's story: a miner and others."""
    home = tmp_path_factory.mktemp("service") / "home"
    with App(folder=str(home), environ={"HOME": str(home.parent), "TZ": "UTC"}) as app:
        demo(app, seed=1, days=DAYS)
        cluster, ledger = DemoCluster(), Ledger()
        at = START + DAYS * 86400 + 9 * 3600
        cluster.clock.advance_to(at)
        judge = LiveJudge(app, ledger, cluster="demo").judge
        watch = Watcher(
            cluster,
            app.store,
            judge,
            ledger,
            scripts=ScriptReader(cluster, app.home.scripts),
            seconds=lambda: 0.0,
        )
        scripted_jobs = ScriptedJobs(cluster)
        for now in range(at, at + 30 * MINUTE, 2 * MINUTE):
            cluster.clock.advance_to(now)
            scripted_jobs.submit_due(now - at)
            watch.step(now)
    return home


@pytest.fixture(scope="module")
def served(demo_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service on a copy of that home."""
    home = tmp_path_factory.mktemp("served") / "home"
    shutil.copytree(demo_home, home)
    with serving(home) as found:
        yield found
