"""The weekly walk through whole logs at submit, target unsuccessful, and its audit on SDSC-BLUE and KTH-SP2."""

import os
import resource
import time
from pathlib import Path
from typing import Any

from bench.failure import logs
from tocsin.core.outcomes import Target
from tocsin.failure.detector import FailureDetector
from tocsin.history.replay import Replay
from tocsin.learn.audit import audit
from tocsin.learn.report import report
from tocsin.learn.walk import Walk, WalkRequest

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
        detector = FailureDetector(target=Target.UNSUCCESSFUL, threads=2)
        walk = Walk(jobs, Replay(jobs), detector, WalkRequest())
        walked = list(walk)
        told = report(walked, Target.UNSUCCESSFUL)
        seconds = time.perf_counter() - began
        found[name] = {
            "seconds": round(seconds, 1),
            "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
            "trainings": told.trainings,
            "predicted": told.predicted,
            "figures": {m.name: [_short(m.value), _short(m.low), _short(m.high)] for m in told.figures},
            "runtime_covered": _short(told.runtime.completed),
            "runtime_covered_all": _short(told.runtime.all_ended),
            "node_hours": {
                "saved": round(told.saved),
                "delayed": round(told.delayed),
                "wasted": round(told.wasted),
            },
            "months": [[m.month, m.jobs, _short(m.auc), _short(m.covered)] for m in told.months],
        }
        if any(name.startswith(word) for word in AUDITED):
            proof = audit(jobs, walked, detector, WalkRequest(), Replay)
            found[name]["audit"] = {"compared": proof.compared, "differing": proof.differing}
        print(name, found[name]["seconds"], found[name]["figures"]["auc"], flush=True)
    return {"target": str(Target.UNSUCCESSFUL), "stage": "submit", "every_days": 7, "logs": found}


def _short(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
