"""What tests do with a running Slurm: run its commands as a user, submit jobs, wait for them."""

import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from tests.services import SYSTEM_PATH
from tests.services.daemons import ServiceError, await_true

UNFINISHED = {"PENDING", "RUNNING", "REQUEUED", "SUSPENDED", "COMPLETING", "CONFIGURING", "RESIZING"}


class Commands:
    """Slurm's commands towards the cluster whose files are in `folder`."""

    folder: Path
    conf: Path

    @property
    def env(self) -> dict[str, str]:
        """What a process needs in its environment to talk to this cluster."""
        return {"SLURM_CONF": str(self.conf)}

    @property
    def command_env(self) -> dict[str, str]:
        """The whole environment of a command, a daemon or a job."""
        # Nothing of the developer's own environment reaches a daemon or a job.
        return {"PATH": SYSTEM_PATH, "LANG": "C.UTF-8", "HOME": "/", **self.env}

    def run(
        self, *command: str, user: str = "root", stdin: str = "", check: bool = True, timeout: float = 30
    ) -> "subprocess.CompletedProcess[str]":
        """Run a Slurm command as a user of the cluster, in that user's folder, never longer than the timeout."""
        other = user if user != "root" else None
        home = self.folder / f"home-{user}"
        try:
            done = subprocess.run(
                command,
                input=stdin,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=timeout,
                env=self.command_env,
                cwd=home if home.exists() else self.folder,
                user=other,
                group=other,
                extra_groups=[] if other else None,
            )
        except subprocess.TimeoutExpired as late:
            raise ServiceError(f"`{' '.join(command)}` did not end within {timeout:g} s") from late
        if check and done.returncode:
            said = (done.stderr or done.stdout).strip()
            raise ServiceError(
                f"`{' '.join(command)}` as {user} ended with exit code {done.returncode}: {said}"
            )
        return done

    def sbatch(self, script: str | Path, *options: str, user: str = "alice") -> int:
        """Submit a script, given as text (a missing first line is added) or as a file, and return its job id."""
        if isinstance(script, Path):
            shutil.copy(script, self.folder / f"home-{user}")
            said = self.run("sbatch", "--parsable", *options, script.name, user=user).stdout
        else:
            text = script if script.startswith("#!") else f"#!/bin/bash\n{script}\n"
            said = self.run("sbatch", "--parsable", *options, user=user, stdin=text).stdout
        return int(said.strip().partition(";")[0])

    def state(self, job: int) -> str:
        """The state of a job as slurmctld has it now."""
        return self.run("squeue", "-h", "-t", "all", "-j", str(job), "-o", "%T").stdout.strip()

    def wait_state(self, job: int, state: str, timeout: float = 30) -> None:
        """Wait until slurmctld has a job in a state, such as RUNNING."""
        await_true(
            f"job {job} is not {state}",
            lambda: self.state(job) == state,
            timeout,
            lambda: f"It is {self.state(job)}.",
        )

    def wait_ended(self, jobs: Iterable[int], timeout: float = 120) -> dict[str, str]:
        """Wait until accounting has the whole record of each ended job, array task and het component.

        Returns the last state by sacct's JobID. slurmctld hands request and script to slurmdbd only every 5 s; until then a
        job that already ended shows as a bare record: no partition, no request, and no trace of tasks or components.
        """
        ids, rows = {str(job) for job in jobs}, list[list[str]]()

        def ended() -> bool:
            active = self.run("squeue", "-h", "-o", "%A %F").stdout.split()
            fields = ("-X", "-n", "-P", "-o", "JobID,State,Partition")
            rows[:] = (
                row.split("|") for row in self.run("sacct", *fields, "-j", ",".join(ids)).stdout.splitlines()
            )
            known = {job.partition("_")[0].partition("+")[0] for job, _, _ in rows}
            whole = all(partition and state not in UNFINISHED for _, state, partition in rows)
            return ids <= known and ids.isdisjoint(active) and whole

        what = f"jobs {', '.join(sorted(ids))} have not all ended in accounting"
        await_true(what, ended, timeout, lambda: f"sacct has {rows}.", every=0.1)
        return {job: state.split()[0] for job, state, _ in rows}  # "CANCELLED by 1001"

    def requeue(self, job: int) -> None:
        """Requeue a running job and let it start again in 3 s; by itself Slurm waits two minutes.

        In the second in which its node took back the credential of the first run it refuses the second, and the job fails.
        """
        self.run("scontrol", "requeue", str(job))
        self.wait_state(job, "PENDING")
        self.run("scontrol", "update", f"JobId={job}", "StartTime=now+3")

    def exhaust_time(self, job: int) -> None:
        """Move the end of a running job's time to now: it ends TIMEOUT when slurmctld next looks, within 30 s.

        Its time limit becomes the least that Slurm knows, one minute.
        """
        self.wait_state(job, "RUNNING")
        self.run("scontrol", "update", f"JobId={job}", "EndTime=now+1")
