"""A real sacct tells of every run of a job: ended, failed, of an array, of a heterogeneous job, requeued, waiting."""

import time
from collections import Counter
from functools import partial

import polars as pl
import pytest

from tests.services.daemons import await_true
from tests.services.slurm import SlurmLab
from tocsin.sources.sacct import SacctLive


def test_a_real_sacct_tells_of_every_run(slurm: SlurmLab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_CONF", str(slurm.conf))
    since = int(time.time()) - 60
    fine = slurm.sbatch("sleep 1", "--mem=50", "--job-name=a name | with a bar")
    failed = slurm.sbatch("exit 3", "--time=2")
    array = slurm.sbatch("exit $((SLURM_ARRAY_TASK_ID % 2))", "--array=1-2")
    het = slurm.sbatch("#!/bin/bash\n#SBATCH --mem=50\n#SBATCH hetjob\n#SBATCH --mem=60\ntrue\n")
    again = slurm.sbatch("[ ${SLURM_RESTART_COUNT:-0} = 1 ] || sleep 300")
    slurm.wait_state(again, "RUNNING")
    slurm.requeue(again)
    slurm.wait_ended([fine, failed, array, het, again])
    blocker = slurm.sbatch("sleep 300")
    slurm.wait_state(blocker, "RUNNING")
    queued = slurm.sbatch("true", "--array=1-9%2", f"--nodes={len(slurm.nodes)}", "--exclusive")
    told = partial(slurm.run, "sacct", "-X", "-n", "-P", "-j", str(queued), "-o", "Eligible")
    await_true("sacct knows no queued array", lambda: told().stdout.strip() not in ("", "Unknown"), 30)

    source = SacctLive(since, int(time.time()) + 1)
    jobs = pl.concat([batch.jobs for batch in source.batches()])
    mine = jobs.filter(pl.coalesce("het_id", "job_id").is_in([fine, failed, array, queued, het]))
    slurm.run("scancel", str(queued), str(blocker))

    assert Counter(mine.select(pl.coalesce("het_id", "job_id"), "task", "outcome").rows()) == {
        (fine, None, "completed"): 1,
        (failed, None, "failed"): 1,
        (array, 1, "failed"): 1,
        (array, 2, "completed"): 1,
        (queued, None, None): 1,
        (het, None, "completed"): 2,
    }
    runs = jobs.filter(pl.col("job_id") == again)
    assert (runs.height, runs["outcome"][0], runs["submit"].n_unique()) == (2, "requeued", 2)
    by_id = {line["job_id"]: line for line in mine.iter_rows(named=True)}
    good = by_id[fine]
    assert since <= good["submit"] <= good["start"] < good["end"] < time.time()
    assert (good["cluster"], good["req_memory"], good["alloc_nodes"]) == (slurm.cluster, 50 * 2**20, 1)
    assert good["steps"] >= 1
    assert good["name"] == "a name | with a bar"
    assert (by_id[failed]["exit_code"], by_id[failed]["time_limit"]) == (3, 120)
    waiting = by_id[queued]
    assert (waiting["array"], waiting["array_tasks"], waiting["start"]) == ("1-9%2", 9, None)
    assert set(mine.filter(pl.col("het_id") == het)["het_offset"]) == {0, 1}
    assert not source.rejects.counts
