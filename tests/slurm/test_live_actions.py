"""A real Slurm: jobs are delayed, held, released, commented on and cancelled, and everything ends by itself."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.services.daemons import await_true
from tests.services.slurm import SlurmLab
from tests.slurm.test_executor import plan as planned_action
from tocsin.core.actions import ActionKind, ActionStatus
from tocsin.core.errors import ClusterError
from tocsin.core.ids import JobKey
from tocsin.slurm.executor import Executor
from tocsin.sources.commands import run
from tocsin.sources.rest import SlurmRest
from tocsin.sources.rest_token import TokenFile
from tocsin.sources.slurm_cluster import SlurmCluster
from tocsin.store import actions
from tocsin.store.actions import Action
from tocsin.store.database import Store, open_store
from tocsin.store.home import Home

TOCSIN = [sys.executable, "-c", "from tocsin.cli.main import run; run()"]
WAYS = ["operator", "rest"]


@pytest.fixture(scope="module", autouse=True)
def environment(slurm: SlurmLab) -> Iterator[None]:
    slurm.run("sacctmgr", "-i", "modify", "user", "bob", "set", "adminlevel=Operator")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in slurm.env.items():
            patch.setenv(name, value)
        yield
    slurm.run("sacctmgr", "-i", "modify", "user", "bob", "set", "adminlevel=None")


def by_operator(argv: list[str], **more: Any) -> bytes:
    """Slurm's commands as a user who is an Operator and nothing more."""
    return run(["setpriv", "--reuid=bob", "--regid=bob", "--clear-groups", *argv], **more)


@pytest.fixture(scope="module")
def clusters(slurm: SlurmLab, environment: None) -> Iterator[dict[str, SlurmCluster]]:
    with SlurmRest(slurm.rest_url, user="root", token=TokenFile(slurm.token_file)) as rest:
        yield {
            "operator": SlurmCluster(slurm.cluster, run=by_operator),
            "rest": SlurmCluster(slurm.cluster, rest=rest),
        }


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home").prepare()


@pytest.fixture
def store(home: Home) -> Iterator[Store]:
    with open_store(home.url) as opened:
        yield opened


Submit = Callable[..., JobKey]


@pytest.fixture
def submit(slurm: SlurmLab) -> Iterator[Submit]:
    """Submit a short job of alice's; what is left of it is cancelled at the end."""
    jobs: list[int] = []

    def submitted(*options: str) -> JobKey:
        jobs.append(slurm.sbatch("sleep 1", "--mem=50", *options))
        return key_of(slurm, jobs[-1])

    yield submitted
    slurm.run("scancel", *map(str, jobs))


def key_of(slurm: SlurmLab, job: int) -> JobKey:
    shown = slurm.run(
        "env", "TZ=UTC", "SLURM_TIME_FORMAT=%s", "squeue", "-h", "-a", "-t", "all", "-j", str(job), "-o", "%V"
    )
    return JobKey(slurm.cluster, job, None, int(shown.stdout.split()[0]))


def plan(store: Store, key: JobKey, kind: ActionKind, **more: Any) -> Action:
    now = int(time.time())
    values = {"job": str(key), "at": now, "expires": now + 3600, "user": "alice", **more}
    return planned_action(store, kind, **values)  # type: ignore[arg-type]  # any store will do


def reason(slurm: SlurmLab, key: JobKey) -> str:
    return slurm.run("squeue", "-h", "-a", "-t", "all", "-j", str(key.job_id), "-o", "%r").stdout.strip()


def status(store: Store, action: Action) -> str:
    return str(actions.find(store, action.id).status)


def now() -> int:
    return int(time.time())


@pytest.mark.parametrize("way", WAYS)
def test_a_lease_keeps_a_job_waiting_and_runs_out_by_itself(
    slurm: SlurmLab, clusters: dict[str, SlurmCluster], store: Store, submit: Submit, way: str
) -> None:
    key = submit("--begin=now+2")
    lease = plan(store, key, ActionKind.LEASE)
    Executor(store, clusters[way], lease=12, act=True).step(begun := now())
    assert status(store, lease) == "done"
    # Nothing renews it: tocsin has died.
    slurm.wait_state(key.job_id, "RUNNING", timeout=60)
    assert now() - begun >= 12


@pytest.mark.parametrize("way", WAYS)
def test_a_lease_is_renewed_and_its_undo_lets_the_job_start(
    slurm: SlurmLab, clusters: dict[str, SlurmCluster], store: Store, submit: Submit, way: str
) -> None:
    key, cluster = submit("--begin=now+2"), clusters[way]
    lease = plan(store, key, ActionKind.LEASE)
    Executor(store, cluster, lease=20, act=True).step(now())
    first = cluster.queue_state(key).begin
    assert first
    Executor(store, cluster, lease=60, act=True).step(now())  # more than half of it is over
    assert (cluster.queue_state(key).begin or 0) > first + 30
    assert slurm.state(key.job_id) == "PENDING"
    Executor(store, cluster, lease=60, act=True).undo(actions.find(store, lease.id), who="ann", now=now())
    slurm.wait_state(key.job_id, "RUNNING")
    assert status(store, lease) == "undone"


@pytest.mark.parametrize("way", WAYS)
def test_several_leases_are_renewed_together(
    clusters: dict[str, SlurmCluster], store: Store, submit: Submit, way: str
) -> None:
    keys, cluster = [submit("--begin=now+2"), submit("--begin=now+2", "--array=1-2")], clusters[way]
    leases = [plan(store, key, ActionKind.LEASE) for key in keys]
    Executor(store, cluster, lease=60, act=True).step(now())
    assert Executor(store, cluster, lease=600, act=True).step(now()) == []
    for key, lease in zip(keys, leases, strict=True):
        assert status(store, lease) == "done"
        assert (cluster.queue_state(key).begin or 0) > now() + 500


@pytest.mark.parametrize("way", WAYS)
def test_the_users_own_earliest_start_is_restored(
    clusters: dict[str, SlurmCluster], store: Store, submit: Submit, way: str
) -> None:
    key, cluster = submit("--begin=now+100"), clusters[way]
    own = cluster.queue_state(key).begin
    lease = plan(store, key, ActionKind.LEASE)
    Executor(store, cluster, lease=300, act=True).step(now())
    assert own
    assert (cluster.queue_state(key).begin or 0) > own + 150
    Executor(store, cluster, lease=300, act=False).undo(actions.find(store, lease.id), who="ann", now=now())
    assert cluster.queue_state(key).begin == own


def test_an_owner_who_moves_the_start_ends_the_lease(
    slurm: SlurmLab, clusters: dict[str, SlurmCluster], store: Store, submit: Submit
) -> None:
    key, cluster = submit("--begin=now+600"), clusters["operator"]
    lease = plan(store, key, ActionKind.LEASE)
    Executor(store, cluster, lease=900, act=True).step(now())
    slurm.run("scontrol", "update", f"JobId={key.job_id}", "StartTime=now+200", user="alice")
    Executor(store, cluster, lease=3000, act=True).step(now())
    assert status(store, lease) == "undone"
    assert abs((cluster.queue_state(key).begin or 0) - now() - 200) < 30


@pytest.mark.parametrize("way", WAYS)
def test_a_held_job_cannot_be_released_by_its_owner_and_an_undo_lets_it_run(
    slurm: SlurmLab, clusters: dict[str, SlurmCluster], store: Store, submit: Submit, way: str
) -> None:
    key, cluster = submit("--begin=now+5"), clusters[way]
    hold = plan(store, key, ActionKind.HOLD)
    Executor(store, cluster, lease=60, act=True).step(now())
    assert reason(slurm, key) == "JobHeldAdmin"
    assert slurm.run("scontrol", "release", str(key.job_id), user="alice", check=False).returncode
    assert reason(slurm, key) == "JobHeldAdmin"
    Executor(store, cluster, lease=60, act=False).undo(actions.find(store, hold.id), who="ann", now=now())
    await_true("the job does not run", lambda: slurm.state(key.job_id) in ("RUNNING", "COMPLETED"), 30)


def test_the_owners_own_hold_is_given_back(
    slurm: SlurmLab, clusters: dict[str, SlurmCluster], store: Store, submit: Submit
) -> None:
    key, cluster = submit("-H"), clusters["operator"]
    hold = plan(store, key, ActionKind.HOLD)
    Executor(store, cluster, lease=60, act=True).step(now())
    assert reason(slurm, key) == "JobHeldAdmin"
    Executor(store, cluster, lease=60, act=True).undo(actions.find(store, hold.id), who="ann", now=now())
    assert reason(slurm, key) == "JobHeldUser"


def test_an_expired_hold_is_released_by_a_timer_while_no_service_runs(
    slurm: SlurmLab, clusters: dict[str, SlurmCluster], home: Home, store: Store, submit: Submit
) -> None:
    key = submit("--begin=now+2")
    hold = plan(store, key, ActionKind.HOLD, expires=now() + 2)
    Executor(store, clusters["operator"], lease=60, act=True).step(now())
    assert reason(slurm, key) == "JobHeldAdmin"
    await_true("it has not expired", lambda: now() >= (hold.expires or 0), 10)
    done = subprocess.run(
        [*TOCSIN, "--home", str(home.root), "expire"],
        env={**os.environ, **slurm.env},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout == "lab: released 1 job\n"
    assert status(store, hold) == "expired"
    await_true("the job does not run", lambda: slurm.state(key.job_id) in ("RUNNING", "COMPLETED"), 30)


def test_one_command_undoes_everything(
    slurm: SlurmLab, clusters: dict[str, SlurmCluster], home: Home, store: Store, submit: Submit
) -> None:
    keys = [submit("--begin=now+600") for _ in range(2)]
    for key, kind in zip(keys, (ActionKind.HOLD, ActionKind.LEASE), strict=True):
        plan(store, key, kind)
    Executor(store, clusters["operator"], lease=1200, act=True).step(now())
    command = [*TOCSIN, "--home", str(home.root), "undo", "--all", "--note", "drill"]
    environment = {**os.environ, **slurm.env}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.count("undone by root: drill") == 2
    assert reason(slurm, keys[0]) != "JobHeldAdmin"
    assert (clusters["operator"].queue_state(keys[1]).begin or 0) < now() + 700


def test_a_comment_leaves_the_text_of_others_alone(
    slurm: SlurmLab, clusters: dict[str, SlurmCluster], submit: Submit
) -> None:
    key = submit("--begin=now+600", "--comment=my own")

    def shown(field: str) -> str:
        return slurm.run("squeue", "-h", "-j", str(key.job_id), "-O", f"{field}:200").stdout.strip()

    slurm.run("scontrol", "update", f"JobId={key.job_id}", "AdminComment=ticket 7")
    cluster = SlurmCluster(slurm.cluster)
    cluster.comment(key, "likely to fail")
    assert shown("admin_comment") == "ticket 7 [tocsin: likely to fail]"
    cluster.comment(key, "")
    assert (shown("admin_comment"), shown("comment")) == ("ticket 7", "my own")
    try:
        clusters["rest"].comment(key, "x")
    except ClusterError:  # on 22.05, an Operator may not
        assert shown("admin_comment") == "ticket 7"
    else:
        assert shown("admin_comment") == "ticket 7 [tocsin: x]"


@pytest.mark.parametrize("way", WAYS)
def test_one_task_of_an_array_is_cancelled(
    slurm: SlurmLab, clusters: dict[str, SlurmCluster], store: Store, submit: Submit, way: str
) -> None:
    array, cluster = submit("--begin=now+600", "--array=1-3"), clusters[way]
    plan(store, array._replace(task=2), ActionKind.CANCEL, expires=None)
    Executor(store, cluster, lease=60, act=True).step(now())
    left = slurm.run("squeue", "-h", "-r", "-t", "PD", "-j", str(array.job_id), "-o", "%K").stdout.split()
    assert sorted(left) == ["1", "3"]


@pytest.mark.parametrize("way", WAYS)
def test_the_rest_of_an_array_is_leased(
    clusters: dict[str, SlurmCluster], store: Store, submit: Submit, way: str
) -> None:
    array, cluster = submit("--begin=now+100", "--array=1-3%1"), clusters[way]
    lease = plan(store, array, ActionKind.LEASE)
    Executor(store, cluster, lease=600, act=True).step(now())
    assert (cluster.queue_state(array).begin or 0) > now() + 500
    assert (cluster.queue_state(array._replace(task=2)).begin or 0) > now() + 500
    Executor(store, cluster, lease=600, act=True).undo(actions.find(store, lease.id), who="ann", now=now())
    assert (cluster.queue_state(array).begin or 0) < now() + 200


def test_what_cannot_be_done_is_retried_and_then_reported(store: Store, submit: Submit) -> None:
    def nobody(argv: list[str], **more: Any) -> bytes:
        return run(["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", *argv], **more)

    key = submit("--begin=now+600")
    hold = plan(store, key, ActionKind.HOLD)
    [problem] = Executor(store, SlurmCluster("lab", run=nobody), lease=60, act=True).step(now())
    assert f"hold of {key}" in problem
    assert status(store, hold) == str(ActionStatus.PLANNED)
