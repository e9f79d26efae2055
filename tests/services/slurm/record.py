"""Record what this machine's Slurm answers about a few jobs: `python -m tests.services.slurm.record FOLDER`, as root.

Every API version of slurmrestd is recorded, and sacct and scontrol beside it; tests/kits/recordings.py reads the folder.
"""

import gzip
import json
import re
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from tests.services.slurm.lab import SlurmLab

SETTINGS = "PartitionName=inf Nodes=n[1,3] MaxTime=UNLIMITED MaxNodes=2 DefMemPerCPU=77 MaxMemPerNode=3000 AllowAccounts=research"
DROPPED = ("environment", "job_resources", "steps_env")
"""Long parts of a job that are never read."""


def submit(slurm: SlurmLab) -> None:
    """A job of each kind: ended in every way, running, and pending."""

    def sbatch(name: str, body: str, *options: str) -> int:
        return slurm.sbatch(body, "-J", name, "--comment=not to be read", *options)

    ended = [
        sbatch("ok", "srun sleep 1", "--nodes=2", "--mem-per-cpu=150"),
        sbatch("fail", "exit 3"),
        sbatch("oom", "python3 -c 'x = bytearray(300_000_000); print(len(x))'", "--mem=50"),
        sbatch("segv", "kill -SEGV $$"),
        sbatch("arr", "exit $((SLURM_ARRAY_TASK_ID - 1))", "--array=1-2"),
        slurm.sbatch("#!/bin/bash\n#SBATCH -J het --mem=50\n#SBATCH hetjob\n#SBATCH --mem=60\ntrue\n"),
    ]
    cancelled = sbatch("cancelled", "true", "--partition=short", "--time=60")  # more than it allows: it waits
    slurm.run("scancel", str(cancelled))
    slurm.wait_ended([*ended, cancelled], timeout=150)
    running = sbatch("run", "sleep 600", "--gres=gpu:1", "--mem=10", "-t", "7", "--time-min=3")
    slurm.wait_state(running, "RUNNING")
    sbatch("held", "true", "-H", "-w", "n1", "-x", "n3", "-t", "7", "--time-min=3", "--gres=gpu:1")
    sbatch("heldarr", "true", "-H", "--array=5,7%1")
    sbatch("excl", "true", "--exclusive", "--begin=now+1hour")


def ask(slurm: SlurmLab, path: str, token: str) -> tuple[int, bytes]:
    headers = {"X-SLURM-USER-NAME": "root", "X-SLURM-USER-TOKEN": token}
    try:
        with urllib.request.urlopen(urllib.request.Request(slurm.rest_url + path, headers=headers)) as reply:
            return reply.status, reply.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def anonymous(value: Any, host: str) -> Any:
    """Without long parts that are never read, and without this machine's name."""
    if isinstance(value, dict):
        return {name: anonymous(item, host) for name, item in value.items() if name not in DROPPED}
    if isinstance(value, list):
        return [anonymous(item, host) for item in value]
    return value.replace(host, "login1") if isinstance(value, str) else value


def record(slurm: SlurmLab, folder: Path) -> None:
    host = slurm.run("hostname", "-s").stdout.strip()

    def write(name: str, value: Any) -> None:
        text = json.dumps(anonymous(value, host), separators=(",", ":"))
        (folder / f"{name}.json.gz").write_bytes(gzip.compress(text.encode(), mtime=0))

    expired = slurm.new_token("root", slurm.folder / "expired.jwt", lifespan=1)
    time.sleep(2)  # the only way to see an expired token refused
    specification = json.loads(ask(slurm, "/openapi/v3", slurm.token)[1])
    errors: dict[str, Any] = {}
    for version in sorted(set(re.findall(r"/slurm/(v[\d.]+)/jobs/?'", str(list(specification["paths"]))))):
        for what in ("jobs", "nodes", "partitions"):
            write(
                f"slurm_{version}_{what}", json.loads(ask(slurm, f"/slurm/{version}/{what}/", slurm.token)[1])
            )
        now = int(time.time())
        query = f"?start_time={now - 3600}&end_time={now + 60}&show_duplicates=true&disable_truncate_usage_time=true"
        write(
            f"slurmdb_{version}_jobs",
            json.loads(ask(slurm, f"/slurmdb/{version}/jobs/{query}", slurm.token)[1]),
        )
        errors[version] = {
            name: [status, json.loads(body)]
            for name, (status, body) in {
                "unknown job": ask(slurm, f"/slurm/{version}/job/1", slurm.token),
                "expired token": ask(slurm, f"/slurm/{version}/jobs/", expired),
                "expired token, accounting": ask(slurm, f"/slurmdb/{version}/jobs/", expired),
                "no token": ask(slurm, f"/slurm/{version}/jobs/", ""),
            }.items()
        }
    write("errors", errors)
    write("sacct", json.loads(slurm.run("sacct", "--json", "-a", "-D", "-S", "now-2hours").stdout))
    write("squeue", json.loads(slurm.run("squeue", "--json", "-a", "-t", "all").stdout))
    for what in ("node", "partition"):
        text = slurm.run("scontrol", "-a", "-o", "show", what).stdout
        (folder / f"scontrol_{what}.txt").write_text(text.replace(host, "login1"))


if __name__ == "__main__":
    place = Path(sys.argv[1])
    place.mkdir(parents=True, exist_ok=True)
    with SlurmLab(more_settings=SETTINGS) as lab:
        submit(lab)
        record(lab, place)
