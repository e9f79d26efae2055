"""The cost of watching: RPCs per minute to slurmctld with 100 queued jobs, and rounds with 10,000 on the demo cluster."""

import json
import os
import re
import resource
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.services import missing
from tests.services.slurm import SlurmLab

from tocsin.app.judge import load_seats
from tocsin.core.ports import Cluster
from tocsin.core.settings import WatchSettings
from tocsin.demo.cluster import START, DemoCluster
from tocsin.history.ledger import Ledger
from tocsin.judge.judge import Judge
from tocsin.judge.plugins import find_detectors
from tocsin.models.registry import Registry
from tocsin.sources.slurm_cluster import SlurmCluster
from tocsin.store.database import Store, open_store
from tocsin.watch.accounting import COST_SHARE
from tocsin.watch.watcher import Watcher

__all__ = ["run"]

QUEUED = 10_000
INTERVAL = WatchSettings().interval
SECONDS = 60
APPLICATION, USER = "reduce", "rosa"
_COUNT = re.compile(r"^\s*(\w+)\s+\( *\d+\) count:(\d+)", re.MULTILINE)


def run() -> dict[str, Any]:
    return {"slurmctld": _rpcs(), "demo": _rounds()}


def _watcher(cluster: Cluster, store: Store) -> Watcher:
    ledger = Ledger()
    with tempfile.TemporaryDirectory() as models:
        judge = Judge(load_seats(find_detectors(), Registry(Path(models)), ledger))
    return Watcher(cluster, store, judge, ledger)


def _rpcs(jobs: int = 100) -> dict[str, Any]:
    """RPCs per minute by type, from sdiag; each new job adds one for its script."""
    if sentence := missing("slurm"):
        return {"missing": sentence}
    with (
        SlurmLab() as slurm,
        tempfile.TemporaryDirectory() as home,
        open_store(f"sqlite:///{home}/t.db") as store,
    ):
        os.environ.update(slurm.env)
        for _ in range(jobs):
            slurm.sbatch("true", "--begin=now+1day")
        watcher = _watcher(SlurmCluster(slurm.cluster), store)
        watcher.step(int(time.time()))
        before, began, costs = _counted(slurm), time.monotonic(), []
        while time.monotonic() - began < SECONDS:
            done = watcher.step(int(time.time()))
            costs.append(done.cost)
            time.sleep(max(INTERVAL, COST_SHARE * done.cost))
        after, minutes = _counted(slurm), (time.monotonic() - began) / 60
    asked = {
        name: number - before.get(name, 0) for name, number in after.items() if name.startswith("REQUEST_")
    }
    asked.pop("REQUEST_STATS_INFO", None)  # sdiag itself
    rpcs = {name: round(number / minutes, 1) for name, number in asked.items() if number}
    return {
        "queued": jobs,
        "rpcs_per_minute": round(sum(rpcs.values()), 1),
        "by_type": rpcs,
        "dump_seconds": round(statistics.median(costs), 4),
    }


def _counted(slurm: SlurmLab) -> dict[str, int]:
    by_type = slurm.run("sdiag").stdout.partition("by message type")[2].partition("statistics by user")[0]
    return {name: int(number) for name, number in _COUNT.findall(by_type)}


def _rounds() -> dict[str, Any]:
    """The first round, with verdicts on all jobs, and later ones with 1 % new jobs each."""
    cluster, now = DemoCluster(), START + 9 * 3600
    for number in range(QUEUED):
        cluster.clock.advance_to(now + number // 20)
        cluster.submit(APPLICATION, user=USER)
    now += QUEUED // 20
    with tempfile.TemporaryDirectory() as home, open_store(f"sqlite:///{home}/t.db") as store:
        watcher = _watcher(cluster, store)
        first, given = _timed(watcher, cluster, now + 10)
        rounds, dumps = [], []
        for number in range(1, 11):
            for _ in range(QUEUED // 100):
                cluster.submit(APPLICATION, user=USER)
            spent, done = _timed(watcher, cluster, now + 10 + 60 * number)
            rounds.append(spent)
            dumps.append(done.cost)
    pause = max(INTERVAL, COST_SHARE * statistics.median(dumps))
    return {
        "queued": done.queued,
        "first_round_seconds": round(first, 2),
        "first_round_verdicts": len(given.verdicts),
        "round_seconds": round(statistics.median(rounds), 3),
        "dump_seconds": round(statistics.median(dumps), 3),
        "pause_seconds": round(pause, 1),
        "dumps_per_minute": round(60 / (pause + statistics.median(rounds)), 2),
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


def _timed(watcher: Watcher, cluster: DemoCluster, now: int) -> tuple[float, Any]:
    cluster.clock.advance_to(now)
    began = time.perf_counter()
    done = watcher.step(now)
    return time.perf_counter() - began, done


if __name__ == "__main__":
    print(json.dumps(run(), indent=2))
