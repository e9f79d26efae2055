"""The weekly walk through whole logs at submit, target unsuccessful, and its audit on SDSC-BLUE and KTH-SP2."""

import os
import resource
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from bench.failure import logs
from tocsin.core.outcomes import Target
from tocsin.failure.detector import FailureDetector
from tocsin.history.replay import Replay
from tocsin.learn.audit import audit
from tocsin.learn.report import Report, Source, report
from tocsin.learn.walk import StepResult, Walk, WalkRequest
from tocsin.limits.detector import DETECTOR as LIMITS
from tocsin.models.splits import NEVER, first_last

__all__ = ["run"]

AUDITED = ("SDSC-BLUE", "KTH-SP2")


def run(folder: Path | None = None) -> dict[str, Any]:
    folder = folder or Path(os.environ.get("TOCSIN_DATA", "../shared/data"))
    wanted = os.environ.get("TOCSIN_BENCH_LOGS", "").split(",")
    found = {}
    for name, read in logs(folder):
        if "sacct" in name or not any(word in name for word in wanted):
            continue
        jobs = read()
        began = time.perf_counter()
        walked = list(walk(jobs))
        told = report(walked, Target.UNSUCCESSFUL, rule=FailureDetector().rule)
        seconds = time.perf_counter() - began
        found[name] = {
            "seconds": round(seconds, 1),
            "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
            "trainings": told.trainings,
            "predicted": told.predicted,
            "figures": _figures(told),
            "last_fifth": _figures(report(_last(walked, jobs), Target.UNSUCCESSFUL)),
            "runtime_covered": _short(told.runtime.completed),
            "runtime_covered_all": _short(told.runtime.all_ended),
            "wasted": round(told.wasted),
            "promise": told.to_json()["promise"],
            "sources": {each.source: _source(each) for each in told.sources},
            "months": [[m.month, m.jobs, _short(m.auc), _short(m.covered)] for m in told.months],
        }
        if any(name.startswith(word) for word in AUDITED):
            proof = audit(jobs, walked, walk)
            found[name]["audit"] = {"compared": proof.compared, "differing": proof.differing}
        print(name, found[name]["seconds"], found[name]["figures"]["auc"], flush=True)
    return {"target": str(Target.UNSUCCESSFUL), "stage": "submit", "every_days": 7, "logs": found}


def walk(jobs: pl.DataFrame, start: int | None = None) -> Walk:
    detector = FailureDetector(target=Target.UNSUCCESSFUL, threads=2)
    return Walk(jobs, Replay(jobs), detector, WalkRequest(), rules={LIMITS.name: LIMITS}, start=start)


def _last(walked: list[StepResult], jobs: pl.DataFrame) -> list[StepResult]:
    """Its predictions of the jobs that a single split predicts: the last 20 % by time."""
    cut = first_last(jobs["submit"].to_numpy(), jobs["known_at"].fill_null(NEVER).to_numpy()).cut
    found = []
    for each in walked:
        rows = np.flatnonzero(each.jobs["submit"].to_numpy() >= cut)
        if len(rows):
            found.append(
                replace(
                    each,
                    jobs=each.jobs[rows],
                    probability=each.probability[rows],
                    alarms={source: flags[rows] for source, flags in each.alarms.items()},
                    bound=each.bound[rows],
                )
            )
    return found


def _source(each: Source) -> dict[str, float | None]:
    return {
        "alarms": each.alarms,
        "precision": _short(each.precision),
        "recall": _short(each.recall),
        "saved": round(each.saved),
        "delayed": round(each.delayed),
    }


def _figures(told: Report) -> dict[str, list[float | None]]:
    return {m.name: [_short(m.value), _short(m.low), _short(m.high)] for m in told.figures}


def _short(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
