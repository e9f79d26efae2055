"""`connect slurm-to-kafka` on a real Slurm: what happens to jobs is in the topic, also after a kill."""

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from tests.services.daemons import await_true
from tests.services.kafka import MockKafka, read_all
from tests.services.slurm import SlurmLab

TOCSIN = [sys.executable, "-c", "from tocsin.cli.main import run; run()"]


def start(slurm: SlurmLab, home: Path, brokers: str) -> "subprocess.Popen[bytes]":
    environment = {
        **os.environ,
        **slurm.env,
        "TOCSIN_KAFKA__BROKERS": brokers,
        "TOCSIN_WATCH__INTERVAL": "1",
    }
    command = [*TOCSIN, "--home", str(home), "connect", "slurm-to-kafka", "-M", "lab", "--scripts"]
    with (home.parent / "errors").open("ab") as errors:
        return subprocess.Popen(command, env=environment, stderr=errors)


def test_jobs_of_a_real_slurm_are_published_from_submission_to_end(slurm: SlurmLab, tmp_path: Path) -> None:
    records: list[Any] = []
    stop = threading.Event()
    with MockKafka() as kafka:
        reader = threading.Thread(target=read_all, args=(kafka.address, "tocsin.jobs", stop, records))
        reader.start()
        process = start(slurm, tmp_path / "home", kafka.address)

        def events(job: int) -> dict[str, dict[str, Any]]:
            found = [json.loads(record.value()) for record in list(records)]
            return {one["event"]: one for one in found if one["job_id"] == job}

        def said() -> str:
            return (tmp_path / "errors").read_text()

        try:
            # jobs that ended before its first round are not followed
            await_true("it does not begin", lambda: "publishing jobs of lab" in said(), 60, said)
            good = slurm.sbatch("sleep 20", "--mem=50", user="alice")
            await_true("the start is not published", lambda: "start" in events(good), 60, said)
            process.send_signal(signal.SIGKILL)
            process.wait()
            bad = slurm.sbatch("sleep 1; exit 3", "--mem=50", user="bob")
            slurm.wait_state(bad, "FAILED", timeout=60)
            process = start(slurm, tmp_path / "home", kafka.address)
            for job in (good, bad):
                await_true("the end is not published", lambda job=job: "end" in events(job), 180, said)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)
            stop.set()
            reader.join()
    assert process.returncode == 0, said()
    end, failed = events(good)["end"], events(bad)["end"]
    assert (end["cluster"], end["user"], end["outcome"], end["elapsed"] >= 20) == (
        "lab",
        "alice",
        "completed",
        True,
    )
    assert (failed["user"], failed["outcome"], failed["exit_code"]) == ("bob", "failed", 3)
    scripts = [json.loads(record.value()).get("script_text", "") for record in records]
    assert any("sleep 20" in script for script in scripts)  # in the first event of the job
    assert "published so far" in said()
