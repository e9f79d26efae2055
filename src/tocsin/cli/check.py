"""`tocsin check` and `tocsin explain`: a verdict in words, before a job is submitted or after."""

import gc
import getpass
import os
import time
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tocsin.cli import options
from tocsin.cli.judging import seated_judge
from tocsin.cli.output import print_json, say
from tocsin.cli.settings import Context
from tocsin.cli.telling import in_words
from tocsin.core.errors import ClusterError, NotFound, TocsinError
from tocsin.core.settings import ClusterSettings
from tocsin.core.stages import Stage
from tocsin.core.verdict import Level, Verdict

if TYPE_CHECKING:
    import polars as pl

    from tocsin.core.detector import Known
    from tocsin.core.machine import Machine
    from tocsin.store.database import Store

__all__ = ["check", "explain"]

NAGIOS = {Level.OK: 0, Level.WARNING: 1, Level.CRITICAL: 2, Level.UNKNOWN: 3}
_HEADLINES = {
    Level.OK: "nothing speaks against it",
    Level.WARNING: "look at this before you submit it",
    Level.CRITICAL: "it will not do what you want",
    Level.UNKNOWN: "nobody could say",
}
_LOOKING_BACK = {
    Level.OK: "nothing spoke against it",
    Level.WARNING: "there was reason for a warning",
    Level.CRITICAL: "it could not do what was wanted",
    Level.UNKNOWN: "nobody could say",
}


class _CheckUsage(click.UsageError):
    exit_code = NAGIOS[Level.UNKNOWN]


class _Check(click.Command):
    """A command whose every error is 3, as monitoring tools expect."""

    def make_context(self, *arguments: Any, **more: Any) -> click.Context:
        try:
            return super().make_context(*arguments, **more)
        except click.UsageError as error:
            raise _CheckUsage(error.format_message(), error.ctx) from error

    def invoke(self, context: click.Context) -> Any:
        gc.disable()  # it ends within a second or two: a tenth of that would go into looking for garbage
        try:
            return super().invoke(context)
        except TocsinError as error:
            if context.obj.debug:
                raise
            say(f"tocsin: {error}")
            raise SystemExit(NAGIOS[Level.UNKNOWN]) from error
        finally:
            gc.freeze()  # nor is there any need to look at what is left when it ends
            gc.enable()


@click.command(cls=_Check)
@click.argument("script")
@click.argument("submit_options", nargs=-1, type=click.UNPROCESSED, metavar="[-- SBATCH OPTIONS]")
@click.option("-u", "--user", metavar="USER", help="Whose job it would be [default: you].")
@click.option("-A", "--account", metavar="ACCOUNT", help="Account that would be charged.")
@options.cluster
@click.option("--local", is_flag=True, help="Use own data only; ask no service.")
@click.option("--follow", is_flag=True, help="Read what the script calls, too: files that the user may read.")
@options.as_json
@click.pass_obj
def check(
    context: Context,
    script: str,
    submit_options: tuple[str, ...],
    user: str | None,
    account: str | None,
    cluster: str | None,
    local: bool,
    follow: bool,
    as_json: bool,
) -> None:
    """Give a verdict on a job script.

    Before it is submitted, and without running anything in it; - is standard input. Options of the submission may
    follow after --. Exit code: 0 fine, 1 warning, 2 critical, 3 unknown or error.
    """
    from tocsin.judge.rehearsal import as_taken, in_group, job_of
    from tocsin.scripts.script import parse
    from tocsin.scripts.text import read

    del local  # until there is a service to ask, own data is all there is
    if submit_options and not submit_options[0].startswith("-"):
        raise _CheckUsage(
            f'"{submit_options[0]}" is no option; after -- come options of the submission, such as --time=60'
        )
    text = read(script)
    seen = parse(text).with_options(submit_options, only_options=True) if submit_options else parse(text)
    user = user or getpass.getuser()
    path = None if script == "-" else script
    with context.store() as store:
        name, machine = _machine(context, cluster, store)
        known = {"account": account, "name": Path(path).name if path else "sbatch", "work_dir": _here()}
        job = job_of(
            seen,
            cluster=name,
            user=user,
            at=int(time.time()),
            path=path,
            options=submit_options,
            known=known,
        )
        past, earlier = _past(context, store, job, machine, {str(job["script"][0]): text})
        job = in_group(as_taken(job, machine, earlier))
        verdict = seated_judge(context, store, past, follow=follow).explain(
            job, Stage.SUBMIT, past=past, at=int(time.time())
        )
    rogue = verdict.rogue is not None and verdict.rogue.rogue
    headline = "it may not run here" if rogue else _HEADLINES[verdict.level]
    _tell(verdict, f"{script}: {headline}.", as_json)
    raise SystemExit(NAGIOS[verdict.level])


@click.command()
@click.argument("which", metavar="JOB")
@options.cluster
@click.option(
    "--stage",
    type=click.Choice([str(stage) for stage in Stage]),
    default="submit",
    show_default=True,
    help="As of when.",
)
@options.as_json
@click.pass_obj
def explain(context: Context, which: str, cluster: str | None, stage: str, as_json: bool) -> None:
    """Explain the verdict on one job.

    From what was known at that stage of its life, with all evidence. Whether it might run what it is, is told as the
    verdict said that was given then; where today's models or allow-list say otherwise, that is said beside it.
    """
    from tocsin.cli.jobs import found_jobs
    from tocsin.store.scriptfiles import read_script

    with context.store() as store:
        jobs = found_jobs(store, which, cluster)
        if jobs.height > 1:
            raise NotFound(
                f"{jobs.height} jobs have the id {which}; name one by its key (tocsin job {which})"
            )
        _, machine = _machine(context, str(jobs["cluster"][0]), store)
        digest, texts = jobs["script"][0], {}
        if digest:
            with suppress(NotFound):  # pruned, or never kept
                texts[digest] = read_script(context.folder.scripts, digest)
        past, _ = _past(context, store, jobs, machine, texts)
        verdict = seated_judge(context, store, past).explain(
            jobs, Stage(stage), past=past, at=int(time.time())
        )
    ended = jobs["outcome"][0]
    since = f" It ended {ended.replace('_', ' ')}." if ended else ""
    rogue = verdict.rogue is not None and verdict.rogue.rogue
    said = "it might not run what it is" if rogue else _LOOKING_BACK[verdict.level]
    headline = f"{verdict.job} as known at {stage}: {said}.{since}"
    _tell(verdict, headline, as_json)


def _here() -> str | None:
    """Where sbatch would start the job, unless it is told otherwise."""
    with suppress(OSError):  # the folder was removed
        return os.getcwd()  # noqa: PTH109  # text is wanted
    return None


def _machine(context: Context, cluster: str | None, store: "Store") -> tuple[str, "Machine | None"]:
    """The name of the cluster and what it has, where it can be asked."""
    from tocsin.cli.clusters import host_cluster, live_cluster

    if cluster == "demo":
        from tocsin.demo.cluster import DemoCluster

        return cluster, DemoCluster().machine()
    if cluster is not None and cluster not in context.settings.cluster:
        here = host_cluster(ClusterSettings().timeout)
        if here != cluster:
            if not _has_jobs_of(store, cluster):
                raise NotFound(
                    f"no cluster {cluster} in the settings, in the store or on this host; "
                    "name it in the settings ([cluster.NAME]), or leave -M out"
                )
            return cluster, None  # its jobs are known; this host's nodes are not its own
    found = live_cluster(context, cluster)
    with found.rest or nullcontext():
        try:
            return found.name, found.machine()
        except ClusterError:
            return found.name, None  # the verdict says what is missing for it


def _has_jobs_of(store: "Store", cluster: str) -> bool:
    from tocsin.store.jobs import Filter, load

    return load(store, Filter(clusters=[cluster], limit=1), ["cluster"]).height > 0


def _past(
    context: Context, store: "Store", job: "pl.DataFrame", machine: "Machine | None", texts: dict[str, str]
) -> "tuple[Known, pl.DataFrame]":
    """What is known of the cluster's jobs, and these; without a failure model nobody asks for more than this user's."""
    from tocsin.history.recipe import KEYS, OWN_KEYS
    from tocsin.history.replay import READS, Replay
    from tocsin.judge import rehearsal
    from tocsin.store.jobs import Filter, load

    user = job["user"][0]
    whole = bool(context.registry().versions("failure"))
    users = [] if whole or not user else [user]
    fields = list(dict.fromkeys([*READS, *rehearsal.READS]))
    known = load(store, Filter(clusters=[job["cluster"][0]], users=users, arrays=True), fields)
    past = Replay(known, machine=machine, scripts=texts.get, keys=tuple(KEYS if whole else OWN_KEYS))
    return past, known


def _tell(verdict: Verdict, headline: str, as_json: bool) -> None:
    if as_json:
        print_json(verdict.to_json())
        return
    for line in in_words(verdict, headline):
        click.echo(line)
