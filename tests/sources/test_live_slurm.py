"""A real Slurm: the same jobs through sacct's text, sacct --json, and slurmrestd over TCP and over its socket."""

import os
import pwd
import shlex
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from tests.services.slurm import SlurmLab
from tocsin.core.errors import ClusterError, NotFound
from tocsin.core.ids import JobKey
from tocsin.sources.rest import SlurmRest
from tocsin.sources.rest_accounting import RestAccounting
from tocsin.sources.rest_token import ScontrolToken, TokenFile
from tocsin.sources.sacct import SacctFile, SacctLive
from tocsin.sources.sacct_json import SacctJsonFile
from tocsin.sources.slurm_cluster import SlurmCluster

if TYPE_CHECKING:
    from tocsin.core.intake import JobSource

KEY = ["cluster", "job_id", "task", "submit"]
HUNGRY = "python3 -c 'import time; x = bytearray(60_000_000); time.sleep(4)'"
SCRIPT = "#!/bin/bash\n#SBATCH --job-name={name}\n\n{body}\n"


@pytest.fixture(scope="module", autouse=True)
def environment(slurm: SlurmLab) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in slurm.env.items():
            patch.setenv(name, value)
        yield


@pytest.fixture(scope="module")
def rests(slurm: SlurmLab, environment: None) -> Iterator[dict[str, SlurmRest]]:
    with (
        SlurmRest(slurm.rest_url, user="root", token=TokenFile(slurm.token_file)) as tcp,
        SlurmRest(f"unix:{slurm.rest_socket}", user="root", token=ScontrolToken(lifespan=600)) as unix,
    ):
        yield {"tcp": tcp, "socket": unix}


@pytest.fixture(scope="module")
def clusters(slurm: SlurmLab, rests: dict[str, SlurmRest]) -> dict[str, SlurmCluster]:
    over_rest = {name: SlurmCluster(slurm.cluster, rest=rest) for name, rest in rests.items()}
    return {"commands": SlurmCluster(slurm.cluster), **over_rest}


@pytest.fixture(scope="module")
def submitted(slurm: SlurmLab, environment: None) -> dict[str, int]:
    """One job of each kind, submitted together and awaited once."""

    def sbatch(name: str, body: str, *options: str) -> int:
        return slurm.sbatch(SCRIPT.format(name=name, body=body), *options)

    jobs = {
        "requeued": sbatch("requeued", '[ "$SLURM_RESTART_COUNT" ] || sleep 600', "--requeue"),
        "late": sbatch("late", "sleep 600"),
        "done": sbatch("done", "srun sleep 1", "--nodes=2", "--mem-per-cpu=150", "--comment=not to be read"),
        "failed": sbatch("failed", "exit 3"),
        "greedy": sbatch("greedy", "python3 -c 'x = bytearray(300_000_000); print(len(x))'", "--mem=50"),
        "array": sbatch("array", "exit $((SLURM_ARRAY_TASK_ID - 1))", "--array=1-3"),
        "parallel": sbatch("parallel", f"srun {HUNGRY}", "--nodes=1", "--ntasks=2", "--mem=300"),
        "odd": sbatch("odd", "true", "--job-name=a b,c|d", "--comment=a|b\nc"),
    }
    slurm.wait_state(jobs["requeued"], "RUNNING")
    # It needs all nodes, and one is taken: it can only wait.
    jobs["cancelled"] = sbatch("cancelled", "true", f"--nodes={len(slurm.nodes)}", "--exclusive")
    slurm.run("scancel", str(jobs["cancelled"]))
    slurm.exhaust_time(jobs["late"])
    slurm.requeue(jobs["requeued"])
    slurm.wait_ended(jobs.values(), timeout=150)
    return jobs


@pytest.fixture(scope="module")
def told(
    slurm: SlurmLab,
    submitted: dict[str, int],
    rests: dict[str, SlurmRest],
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, pl.DataFrame]:
    """These jobs as each source reads them."""
    until = int(time.time()) + 60
    since, ids = until - 2 * 3600, list(submitted.values())
    printed = tmp_path_factory.mktemp("sacct") / "jobs.json"
    printed.write_text(slurm.run("sacct", "--json", "-a", "-D", "-S", "now-2hours").stdout)
    sources: dict[str, JobSource] = {
        "text": SacctLive(since, until, cluster=slurm.cluster),
        "json": SacctJsonFile(printed, cluster=slurm.cluster),
        "tcp": RestAccounting(rests["tcp"], since, until, cluster=slurm.cluster),
        "socket": RestAccounting(rests["socket"], since, until, cluster=slurm.cluster),
    }
    return {
        name: pl.concat([batch.jobs for batch in source.batches()])
        .filter(pl.col("job_id").is_in(ids))
        .unique(KEY, keep="last")
        .sort(KEY)
        for name, source in sources.items()
    }


def one(frame: pl.DataFrame, submitted: dict[str, int], name: str) -> dict[str, Any]:
    return frame.filter(pl.col("job_id") == submitted[name]).sort("submit").row(-1, named=True)


def test_the_jobs_ended_as_they_were_made_to(
    told: dict[str, pl.DataFrame], submitted: dict[str, int], slurm: SlurmLab
) -> None:
    for name, jobs in told.items():
        outcomes = {kind: one(jobs, submitted, kind)["outcome"] for kind in submitted if kind != "array"}
        assert outcomes == {
            "requeued": "completed",
            "late": "timeout",
            "done": "completed",
            "failed": "failed",
            "greedy": "out_of_memory" if slurm.cgroups else "failed",
            "parallel": "completed",
            "odd": "completed",
            "cancelled": "cancelled",
        }, name
        tasks = jobs.filter(pl.col("job_id") == submitted["array"]).sort("task")
        assert tasks["task"].to_list() == [1, 2, 3]
        assert tasks["outcome"].to_list() == ["completed", "failed", "failed"]


def test_the_memory_of_a_job_is_that_of_all_its_tasks_on_the_node(
    told: dict[str, pl.DataFrame], submitted: dict[str, int]
) -> None:
    for jobs in told.values():
        assert 120_000_000 < one(jobs, submitted, "parallel")["max_memory"] < 300 * 2**20


def test_the_command_of_the_readme_loses_no_job_and_no_field(
    told: dict[str, pl.DataFrame], slurm: SlurmLab, tmp_path: Path
) -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    command = next(line for line in readme.splitlines() if line.startswith("sacct "))
    words = shlex.split(command.partition(">" + " jobs.txt")[0])
    words[words.index("-S") + 1] = "now-2hours"
    printed = tmp_path / "jobs.txt"
    printed.write_text(slurm.run(*words, "-D").stdout)
    source = SacctFile(printed, delimiter="<|>", zone=slurm.env.get("TZ", "UTC"))
    ids = told["text"]["job_id"].to_list()
    jobs = pl.concat([batch.jobs for batch in source.batches()]).filter(pl.col("job_id").is_in(ids))
    jobs = jobs.unique(KEY, keep="last").sort(KEY)
    assert source.rejects.total == 0
    for column in (*KEY, "name", "submit_line", "state", "elapsed", "max_memory", "req_memory", "node_list"):
        assert jobs[column].to_list() == told["text"][column].to_list(), column


def test_a_job_that_was_cancelled_before_it_ran_never_started(
    told: dict[str, pl.DataFrame], submitted: dict[str, int]
) -> None:
    for jobs in told.values():
        cancelled = one(jobs, submitted, "cancelled")
        assert cancelled["start"] is cancelled["node_list"] is None
        assert cancelled["cancelled_by"] == 0


def test_a_requeue_is_two_jobs_of_one_id(told: dict[str, pl.DataFrame], submitted: dict[str, int]) -> None:
    for jobs in told.values():
        both = jobs.filter(pl.col("job_id") == submitted["requeued"]).sort("submit")
        assert both["outcome"].to_list() == ["requeued", "completed"]
        assert both["submit"].n_unique() == 2


@pytest.mark.parametrize("name", ["json", "tcp", "socket"])
def test_every_way_tells_the_same_keys_times_and_outcomes(told: dict[str, pl.DataFrame], name: str) -> None:
    columns = [*KEY, "raw_id", "eligible", "start", "end", "elapsed", "state", "outcome", "name", "user", "account",
               "partition", "node_list", "req_cpus", "req_nodes", "req_memory", "req_tres", "alloc_tres",
               "time_limit", "work_dir", "steps", "max_memory"]  # fmt: skip
    for column in columns:
        assert told[name][column].to_list() == told["text"][column].to_list(), column


def test_socket_and_tcp_tell_the_very_same(told: dict[str, pl.DataFrame]) -> None:
    assert told["tcp"].equals(told["socket"])


def test_the_queue_by_squeue_and_by_rest_tells_the_same_jobs(
    clusters: dict[str, SlurmCluster], submitted: dict[str, int]
) -> None:
    mine = pl.col("job_id").is_in(list(submitted.values()))
    by_command, by_rest = (clusters[name].queue().filter(mine).sort(KEY) for name in ("commands", "tcp"))
    for column in [*KEY, "raw_id", "state", "outcome", "start", "end", "exit_code", "exit_signal", "name", "user", "uid",
                   "node_list", "alloc_tres", "time_limit", "work_dir", "interactive", "requeue"]:  # fmt: skip
        assert by_command[column].to_list() == by_rest[column].to_list(), column
    assert "a b,c|d" in by_command["name"].to_list()


def test_scontrol_and_rest_tell_the_same_machine(clusters: dict[str, SlurmCluster], slurm: SlurmLab) -> None:
    by_command, by_rest = clusters["commands"].machine(), clusters["socket"].machine()
    assert [node.name for node in by_command.nodes] == slurm.nodes
    assert by_command.nodes[0].gpus == 2

    def settled(nodes: Any) -> Any:  # states change while one looks
        return [(n.name, n.cpus, n.memory, n.gres, n.features, n.partitions, n.reason) for n in nodes]

    assert settled(by_command.nodes) == settled(by_rest.nodes)
    assert by_command.partitions[0].whole_nodes is False  # which slurmrestd does not report
    assert tuple(replace(each, whole_nodes=None) for each in by_command.partitions) == by_rest.partitions
    assert by_command.max_array_size is not None
    assert by_rest.max_array_size == by_command.max_array_size
    assert not by_rest.missing


def test_a_script_is_read_back(
    clusters: dict[str, SlurmCluster], submitted: dict[str, int], told: dict[str, pl.DataFrame]
) -> None:
    failed = one(told["text"], submitted, "failed")
    key = JobKey(failed["cluster"], failed["job_id"], failed["task"], failed["submit"])
    assert clusters["commands"].script(key) == SCRIPT.format(name="failed", body="exit 3")
    assert clusters["commands"].script(key._replace(job_id=1)) is None


def test_slurmdbd_keeps_the_very_script(clusters: dict[str, SlurmCluster], submitted: dict[str, int]) -> None:
    def no_slurmctld(argv: list[str], **options: Any) -> bytes:
        if argv[0] == "scontrol":
            raise ClusterError("slurmctld knows the job no more")
        return real(argv, **options)

    real: Callable[..., bytes] = clusters["commands"]._command
    forgetful = SlurmCluster(clusters["commands"].name, run=no_slurmctld)
    for job in ("failed", "requeued"):
        script = forgetful.script(JobKey("lab", submitted[job], None, 0))
        assert script == clusters["commands"].script(JobKey("lab", submitted[job], None, 0))


@pytest.fixture(scope="module")
def waiting(slurm: SlurmLab, environment: None) -> Iterator[dict[str, int]]:
    """A job and an array that will not start."""
    script = SCRIPT.format(name="waiting", body="true")
    jobs = {
        "job": slurm.sbatch(script, "--begin=now+1hour"),
        "array": slurm.sbatch(script, "--begin=now+1hour", "--array=1-5:2%1"),
    }
    yield jobs
    slurm.run("scancel", *map(str, jobs.values()))


@pytest.mark.parametrize("way", ["commands", "tcp", "socket"])
@pytest.mark.parametrize(("kind", "task"), [("job", None), ("array", None), ("array", 3)])
def test_what_waits_is_held_and_released(
    clusters: dict[str, SlurmCluster],
    waiting: dict[str, int],
    slurm: SlurmLab,
    way: str,
    kind: str,
    task: int | None,
) -> None:
    cluster = clusters[way]
    row = cluster.queue().filter(pl.col("job_id") == waiting[kind]).row(0, named=True)
    key = JobKey(row["cluster"], row["job_id"], task, row["submit"])
    name = str(key.job_id) if task is None else f"{key.job_id}_{task}"

    def reasons() -> set[str]:
        return set(slurm.run("squeue", "-h", "-r", "-j", name, "-o", "%r").stdout.split())

    cluster.hold(key, "a reason")
    assert reasons() == {"JobHeldAdmin"}
    cluster.release(key)
    assert not reasons() & {"JobHeldAdmin", "JobHeldUser"}


@pytest.mark.parametrize("way", ["commands", "tcp"])
def test_what_does_not_wait_is_not_held(
    clusters: dict[str, SlurmCluster], submitted: dict[str, int], told: dict[str, pl.DataFrame], way: str
) -> None:
    done = one(told["text"], submitted, "done")
    key = JobKey(done["cluster"], done["job_id"], None, done["submit"])
    with pytest.raises(ClusterError, match="COMPLETED"):
        clusters[way].hold(key, "x")
    with pytest.raises(NotFound):
        clusters[way].hold(key._replace(submit=key.submit - 1), "x")
    with pytest.raises(NotFound):
        clusters[way].hold(key._replace(job_id=2), "x")


def test_a_bad_token_is_told_in_words(slurm: SlurmLab) -> None:
    with (
        SlurmRest(slurm.rest_url, user="root", token=lambda: "a.b.c", sleep=lambda _: None) as rest,
        pytest.raises(ClusterError, match="token"),
    ):
        rest.queue()


def test_a_local_socket_needs_no_token(slurm: SlurmLab) -> None:
    def no_token() -> str:
        raise AssertionError("it was asked for a token")

    with (
        slurm.local_rest("alice") as socket,
        acting_as("alice"),
        SlurmRest(f"unix:{socket}", user="alice", token=no_token) as rest,
    ):
        assert [node.name for node in rest.nodes()] == slurm.nodes


@contextmanager
def acting_as(user: str) -> Iterator[None]:
    """A slurmrestd without tokens serves the user that it runs as, known by the socket."""
    os.seteuid(pwd.getpwnam(user).pw_uid)
    try:
        yield
    finally:
        os.seteuid(0)


def test_environments_of_jobs_stay_where_they_are(told: dict[str, pl.DataFrame]) -> None:
    for jobs in told.values():
        words = jobs.write_csv()
        assert "not to be read" not in words.replace("--comment=not to be read", "")
        assert os.environ["SLURM_CONF"] not in words
