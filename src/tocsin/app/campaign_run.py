"""`campaign run`: submit labelled jobs to a real Slurm, and record their CPU traces."""

import os
import platform
import socket
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tocsin.app.app import App
from tocsin.app.campaign import summary
from tocsin.core.errors import ClusterError, InputError

if TYPE_CHECKING:
    from tocsin.sources.slurm_submit import SubmittedJob
    from tocsin.traces.campaigns import Campaign, Card
    from tocsin.traces.job_types import JobType
    from tocsin.traces.recording import Recorder
    from tocsin.watch.loop import Stop

__all__ = ["RunRequest", "run_campaign"]

_POLL = 2.0  # seconds
_MEMORY = {"memory_leak": 1100, "cache_thrashing": 700, "good_io": 500}  # MB; the others need less
_NO_MPI = "3:0"


@dataclass(frozen=True, slots=True)
class RunRequest:
    """The options of `tocsin campaign run`."""

    folder: Path
    split: str
    types: list[str]
    """Empty: all that fit on a node."""
    seconds: int
    agents: list[str]
    """Agent addresses; empty: those in the settings, or else this host is sampled."""
    nodelist: str | None
    scratch: str
    cluster: str | None
    note: tuple[str, ...]
    """A note for the card."""
    sbatch: tuple[str, ...]
    """Additional options for sbatch."""


@dataclass(slots=True)
class _Run:
    """The jobs of this run, by raw id."""

    types: "dict[str, JobType]" = field(default_factory=dict)
    seen: "dict[str, SubmittedJob]" = field(default_factory=dict)

    @property
    def active(self) -> list[str]:
        return [job for job in self.types if job not in self.seen or not self.seen[job].ended]

    @property
    def ended(self) -> int:
        return len(self.types) - len(self.active)


def run_campaign(app: App, request: RunRequest) -> dict[str, Any]:
    """Run and record; returns the summary. A signal cancels the jobs of this run and keeps what has ended by then."""
    from tocsin.app.clusters import live_cluster
    from tocsin.app.loop import stop_on_signals
    from tocsin.core.units import format_instant
    from tocsin.traces.campaigns import read_campaign

    before = read_campaign(request.folder) if (request.folder / "campaign.json").exists() else None
    if before and str(before.card.split) != request.split:
        raise InputError(
            f"{request.folder} is a campaign for {before.card.split}, and a campaign belongs wholly to one split; "
            "name another folder"
        )
    with live_cluster(app, request.cluster) as cluster, ExitStack() as stack:
        largest = max((node.cpus or 0 for node in cluster.machine().nodes), default=0)
        chosen = _chosen(request.types, largest)
        agents = request.agents or [
            word.strip() for word in app.settings.traces.agents.split(",") if word.strip()
        ]
        recorders = [stack.enter_context(each) for each in _recorders(agents, request.nodelist)]
        stop = stack.enter_context(stop_on_signals())
        run, began = _Run(), int(time.time())
        try:
            for each in chosen:
                run.types[_submit(each, request)] = each
            interrupted = _follow(app, run, recorders, stop)
        finally:
            _cancel(run, recorders)
        card = _card(request, cluster.name, run, began, local=not agents)
        campaign, problems = _campaign(card, run, recorders)
        _write(request.folder, before, campaign)
    report = {"folder": str(request.folder), **summary(campaign.card), "problems": problems}
    report["interrupted"] = format_instant(int(time.time())) if interrupted else None
    return report


def _chosen(labels: Sequence[str], largest: int) -> "list[JobType]":
    from tocsin.traces.job_types import JOB_TYPES, job_types, ranks

    if labels:
        chosen = job_types(labels)
    else:
        chosen = [each for each in JOB_TYPES.values() if (ranks(each.label) or 1) <= largest]
    too_large = [each.label for each in chosen if (ranks(each.label) or 1) > largest]
    if too_large:
        raise InputError(
            f"{too_large[0]} needs a CPU for each rank on one node, but the largest node has {largest} CPUs"
        )
    return chosen


def _recorders(agents: Sequence[str], nodelist: str | None) -> "list[Any]":
    from tocsin.traces.recording import LocalRecorder, RemoteRecorder

    if agents:
        return [RemoteRecorder(address) for address in agents]
    return [LocalRecorder(nodelist or socket.gethostname().partition(".")[0])]


def _submit(each: "JobType", request: RunRequest) -> str:
    from tocsin import traces
    from tocsin.sources.slurm_submit import submit
    from tocsin.traces.job_types import ranks

    count = ranks(each.label)
    options = [
        f"--job-name=campaign-{each.label}",
        "--nodes=1",
        f"--ntasks={count or 1}",
        "--cpus-per-task=1",
        f"--mem={_MEMORY.get(each.label, 300 * (count or 1))}",
        f"--time={request.seconds // 60 + 3}",
        "--no-requeue",
        "--chdir=/",
        "--output=/dev/null",
        *([f"--nodelist={request.nodelist}"] if request.nodelist else []),
        *request.sbatch,
    ]
    programs = Path(traces.__file__).parent / "programs"
    time_and_place = [str(request.seconds), request.scratch]
    if count:
        return submit(programs / "mpi.sh", time_and_place, options)
    return submit(programs / "job.py", [each.label, *time_and_place], options)


def _follow(app: App, run: _Run, recorders: "Sequence[Recorder]", stop: "Stop") -> bool:
    """Wait until all jobs have ended; returns whether a signal came first."""
    from tocsin.sources.slurm_submit import follow, forgotten

    while run.active:
        if stop.wait(_POLL):
            return True
        with suppress(ClusterError):  # a busy slurmctld is asked again
            seen = follow(run.types)
            gone = {job: forgotten(job) for job in run.active if job not in seen}
            run.seen |= seen | gone
        for recorder in recorders:
            recorder.poll()
        app.progress("jobs", run.ended, len(run.types))
    return stop.wait(0)


def _cancel(run: _Run, recorders: "Sequence[Recorder]") -> None:
    from tocsin.sources.slurm_submit import cancel, follow

    left = run.active
    cancel(left)
    if left:
        with suppress(ClusterError):
            run.seen |= follow(run.types)
    for recorder in recorders:
        recorder.poll()


def _card(request: RunRequest, cluster: str, run: _Run, began: int, *, local: bool) -> "Card":
    from tocsin.traces.campaigns import Card, Split

    return Card(
        split=Split(request.split),
        origin="recorded",
        cluster=cluster,
        nodes=sorted({job.node for job in run.seen.values() if job.node}),
        first=began,
        last=int(time.time()),
        jobs=[],
        kernel=platform.release() if local else None,
        processor=_processor() if local else None,
        slurm=_slurm_version(),
        notes=list(request.note),
    )


def _campaign(card: "Card", run: _Run, recorders: "Sequence[Recorder]") -> "tuple[Campaign, list[str]]":
    """The samples with the jobs that ran to their end; a sentence for each other job."""
    import polars as pl

    from tocsin.sources.trace_agent import agent_samples
    from tocsin.traces.campaigns import Campaign, LabelledJob

    samples = [agent_samples(each.node, each.samples, Counter()) for each in recorders]
    cpus = pl.concat([each.cpus for each in samples]).sort("node", "cpu", "at")
    counters = pl.concat([each.jobs for each in samples])
    recorded = set(counters["job"])
    owned = dict(cpus.drop_nulls("job").group_by("job").agg(pl.col("cpu").unique().sort()).iter_rows())
    jobs: list[LabelledJob] = []
    problems = []
    for job, kind in run.types.items():
        seen = run.seen.get(job)
        if seen is None or seen.state != "COMPLETED" or not (seen.submit and seen.start and seen.end):
            problems.append(_problem(job, kind.label, seen))
        elif job not in recorded:
            problems.append(
                f"job {job} ({kind.label}) on {seen.node} is in no sample; is that node recorded?"
            )
        else:
            jobs.append(
                LabelledJob(
                    job=job,
                    label=kind.label,
                    normal=kind.normal,
                    node=seen.node,
                    cpus=owned.get(job, []),  # none: it did nothing, and was bound to no CPU
                    submit=seen.submit,
                    start=seen.start,
                    end=seen.end,
                )
            )
    return Campaign(replace(card, jobs=jobs), cpus, counters), problems


def _problem(job: str, label: str, seen: "SubmittedJob | None") -> str:
    from tocsin.sources.slurm_submit import FORGOTTEN, exit_code

    if seen is None or not seen.ended or seen.state == "CANCELLED":
        return f"job {job} ({label}) was cancelled"
    if seen.state == FORGOTTEN:
        return f"job {job} ({label}) has ended, but Slurm has forgotten how; raise MinJobAge in slurm.conf"
    code = exit_code(job)
    reason = "; mpicc or mpiexec is missing on the node (Debian: mpich)" if code == _NO_MPI else ""
    return f"job {job} ({label}) ended {seen.state} with exit code {code or 'unknown'}{reason}"


def _write(folder: Path, before: "Campaign | None", campaign: "Campaign") -> None:
    """Write to the folder, together with what an earlier run recorded there."""
    from tocsin.traces.campaigns import joined, write_campaign

    whole = joined(before, campaign) if before else campaign
    if whole.card.jobs:
        write_campaign(folder, whole.card, [whole.cpus], [whole.jobs])


def _slurm_version() -> str | None:
    from tocsin.sources.commands import run

    with suppress(ClusterError):
        return run(["sbatch", "--version"], timeout=10).decode("utf-8", "replace").split()[-1]
    return None


def _processor() -> str:
    name = platform.machine()
    with suppress(OSError), Path("/proc/cpuinfo").open() as lines:
        name = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), name)
    return f"{os.cpu_count()} × {name}"
