"""A real Slurm on a real kernel: the agent finds a running job, where it runs and what it uses."""

import time

from tests.conftest import unavailable
from tests.services.slurm import SlurmLab
from tocsin.agent.sampler import Sample, Sampler


def test_a_running_job_is_found_on_its_cpu(slurm: SlurmLab) -> None:
    if not slurm.cgroups:
        unavailable("control groups of version 1 are not ours to write here")
    job = str(slurm.sbatch("#!/bin/bash\nwhile :; do :; done\n", "--mem=50"))
    sampler = Sampler(interval=0.2)
    found: Sample | None = None
    try:
        slurm.wait_state(job, "RUNNING")
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            found = sampler.sample()
            used = found.counters.get(job, {}) if found else {}
            if used.get("cpu_user_seconds_total", 0) > 0.5 and used.get("context_switches_total"):
                break
            time.sleep(0.2)  # the kernel's counters need time to move
    finally:
        slurm.run("scancel", job)
    assert found is not None
    assert job in found.jobs.values()
    assert found.counters[job]["cpu_user_seconds_total"] > 0.5
    assert 0 < found.counters[job]["memory_bytes"] <= 50 << 20
    assert found.counters[job]["context_switches_total"] > 0
