"""A check beside a running watcher: it reads the same store and changes no verdict."""

from pathlib import Path
from typing import Any

from tests.kits.watching import MORNING, rows
from tocsin.app.app import App
from tocsin.app.check import CheckRequest, check, explain
from tocsin.app.judge import open_judge
from tocsin.demo.cluster import START, DemoCluster
from tocsin.history.ledger import Ledger
from tocsin.watch.watcher import Watcher

MINUTE = 60
SCRIPT = "#!/bin/sh\n#SBATCH --time=9-0 --nodes=1000\nsrun ./solver\n"


def watched(home: Path, *, checks: bool) -> list[tuple[Any, ...]]:
    """Every verdict of an hour of the demo, with or without questions in between."""
    script = home.parent / "job.sh"
    script.write_text(SCRIPT)
    cluster, ledger = DemoCluster(seed=3), Ledger()
    with App(folder=str(home), environ={"HOME": str(home.parent), "TZ": "UTC"}) as app:
        app.home.prepare()
        watch = Watcher(cluster, app.store, open_judge(app, ledger), ledger, seconds=lambda: 0.0)
        watch.step(START)
        for now in range(MORNING, MORNING + 3600, 5 * MINUTE):
            cluster.clock.advance_to(now)
            verdicts = watch.step(now).verdicts
            if checks and verdicts:
                job = verdicts[-1].job
                user = str(rows(app.store, 'SELECT "user" FROM jobs LIMIT 1')[0][0])
                assert check(app, CheckRequest(script=str(script), cluster="demo", user=user)).findings
                assert explain(app, job).verdict.job == job
                asked = cluster.queue().head(3)
                ledger.peek().features(asked.with_columns(submit=now + 86400), stage=verdicts[-1].stage)
        return rows(app.store, "SELECT job, stage, seq, document FROM verdicts ORDER BY job, stage, seq")


def test_a_check_beside_a_running_watcher_changes_no_verdict(tmp_path: Path) -> None:
    alone = watched(tmp_path / "alone", checks=False)
    asked = watched(tmp_path / "asked", checks=True)
    assert len(alone) > 100
    assert asked == alone
