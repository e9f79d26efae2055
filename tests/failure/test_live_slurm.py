"""A real Slurm: it teaches the habits of its users, and the next job that would run out of memory is warned of."""

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.conftest import unavailable
from tests.services.daemons import ServiceError, await_true
from tests.services.slurm import SlurmLab

TOCSIN = [sys.executable, "-c", "from tocsin.cli.main import run; run()"]
WAVES = 12
GROW = "head -c 80M /dev/zero | tail > /dev/null"
"""`tail` keeps all of a line that never ends: 80 MB, which 60 do not hold and 160 do."""
HABITS = (
    # user, name, megabytes (by turns), what it runs, jobs in a wave, how they end
    ("alice", "grow", (36, 40, 48, 60), GROW, 8, "OUT_OF_MEMORY"),
    ("alice", "grow", (160, 192, 240), GROW, 4, "COMPLETED"),
    ("alice", "plot", (40, 50, 60), "true", 5, "COMPLETED"),
    ("bob", "tidy", (40, 50, 60), "true", 5, "COMPLETED"),
    ("bob", "crash", (40,), "exit 1", 2, "FAILED"),
)

Tocsin = Callable[..., str]
Check = Callable[..., dict[str, Any]]


class History(NamedTuple):
    began: int
    states: Counter[str]


def script(name: str, megabytes: int, body: str, case: int) -> str:
    """No two jobs have the very same script: each names its case."""
    return (
        f"#!/bin/bash\n#SBATCH --job-name={name}\n#SBATCH --mem={megabytes}M\n#SBATCH --time=5\n"
        f"# case {case}\n{body}\n"
    )


@pytest.fixture(scope="module")
def jobs(slurm: SlurmLab) -> History:
    """Some hundred jobs in waves, so that it is known how one wave ended when the next is submitted."""
    if not slurm.cgroups:
        unavailable(
            "a job over its memory ends OUT_OF_MEMORY only where the cgroup v1 controllers memory and freezer are mounted"
        )
    began, scripts = int(time.time()), dict[int, tuple[str, str]]()

    def submit(text: str, user: str) -> None:
        scripts[slurm.sbatch(text, user=user)] = text, user

    def left() -> list[int]:
        queue = slurm.run("squeue", "-h", "-t", "PD,R,CG", "-o", "%A").stdout
        return [int(job) for job in queue.split() if int(job) in scripts]

    for wave in range(WAVES):
        for user, name, megabytes, body, count, _ in HABITS:
            for case in range(count):
                submit(script(name, megabytes[case % len(megabytes)], body, 100 * wave + case), user)
        try:
            await_true(f"jobs of wave {wave} still run", lambda: not left(), 60)
        except ServiceError:
            # Once in some thousand jobs slurmstepd 22.05 dies with a job over its memory, which then "runs" on without
            # any process. Another one takes its place; what is cancelled is no outcome.
            for job in left():
                slurm.run("scancel", str(job))
                submit(*scripts.pop(job))
            await_true(f"jobs of wave {wave} still run", lambda: not left(), 60)
    return History(began, Counter(slurm.wait_ended(scripts).values()))


@pytest.fixture(scope="module")
def tocsin(slurm: SlurmLab, tmp_path_factory: pytest.TempPathFactory) -> Tocsin:
    """`tocsin(...)` beside the cluster, on a home of its own; all that it printed, when it ended with `code`."""
    folder = tmp_path_factory.mktemp("tocsin")
    environment = {
        **os.environ,
        **slurm.env,
        "TOCSIN_HOME": str(folder / "home"),
        "HOME": str(folder),
        "XDG_CONFIG_HOME": str(folder),
        "TZ": "UTC",
        # A minute by default: longer than all of this history.
        "TOCSIN_HISTORY__LAG": "0",
    }

    def call(*arguments: object, code: int = 0) -> str:
        said = subprocess.run(
            [*TOCSIN, *map(str, arguments)],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert said.returncode == code, said.stdout + said.stderr
        return said.stdout

    return call


@pytest.fixture(scope="module")
def trained(slurm: SlurmLab, tocsin: Tocsin, jobs: History) -> dict[str, Any]:
    """What the training said of itself; it learns from these jobs alone."""
    tocsin("import", "slurm", "-M", slurm.cluster, "-S", jobs.began)
    return dict(json.loads(tocsin("train", "failure", "-M", slurm.cluster, "--trials", 5, "--json")))


@pytest.fixture
def checked(tocsin: Tocsin, trained: dict[str, Any], tmp_path: Path) -> Check:
    """The verdict on a script that nobody submitted yet."""
    del trained

    def check(user: str, name: str, megabytes: int, body: str, *, code: int) -> dict[str, Any]:
        path = tmp_path / "job.sh"
        path.write_text(script(name, megabytes, body, 9999))
        return dict(json.loads(tocsin("check", path, "-u", user, "--json", code=code)))

    return check


def test_the_jobs_end_by_their_habits(jobs: History, trained: dict[str, Any]) -> None:
    expected = Counter[str]()
    for *_, count, state in HABITS:
        expected[state] += WAVES * count
    assert jobs.states == expected
    assert trained["rows"] > 200
    assert trained["promoted"]


def test_a_job_bound_to_run_out_of_memory_is_warned_of_with_the_line_to_change(
    checked: Check,
) -> None:
    verdict = checked("alice", "grow", 48, GROW, code=1)
    failure = verdict["failure"]
    assert verdict["level"] == "warning"
    assert failure["will_fail"]
    assert failure["probability"] > 0.6, "of few jobs no model is sure: most of its weight is other clusters'"
    assert next(iter(failure["causes"])) == "out_of_memory"
    assert "out of memory" in next(f["text"] for f in verdict["findings"] if f["detector"] == "failure")
    assert [advice["edit"] for advice in verdict["advice"]] == [
        {"line": 3, "old": "#SBATCH --mem=48M", "new": "#SBATCH --mem=160M"}
    ]


@pytest.mark.parametrize(
    ("user", "name", "megabytes", "body"),
    [("alice", "grow", 192, GROW), ("alice", "plot", 50, "true"), ("bob", "tidy", 40, "true")],
    ids=["more memory", "another name", "another user"],
)
def test_a_job_of_a_good_habit_is_left_alone(
    checked: Check, user: str, name: str, megabytes: int, body: str
) -> None:
    verdict = checked(user, name, megabytes, body, code=0)
    assert not verdict["failure"]["will_fail"]
    assert verdict["failure"]["probability"] < 0.2
    assert verdict["findings"] == verdict["advice"] == []


def test_the_same_is_said_of_jobs_that_wait(slurm: SlurmLab, tocsin: Tocsin, trained: dict[str, Any]) -> None:
    """By `predict`, and by `watch` of its own accord."""
    bad = slurm.sbatch(script("grow", 60, GROW, 9998), "--hold")
    good = slurm.sbatch(script("plot", 40, "true", 9998), "--hold")
    try:
        predicted = json.loads(tocsin("predict", bad, good, "-M", slurm.cluster, "--json"))
        lines = tocsin("watch", "--once", "--all", "--json", "-M", slurm.cluster).splitlines()
        [stored] = json.loads(tocsin("job", bad, "-M", slurm.cluster, "--json"))["jobs"]
    finally:
        slurm.run("scancel", str(bad), str(good))
    assert [row["will_fail"] for row in predicted] == [True, False]
    assert next(iter(predicted[0]["causes"])) == "out_of_memory"
    verdicts = {verdict["job"]: verdict for verdict in map(json.loads, lines)}
    heard = [verdicts[row["job"]] for row in predicted]
    assert [verdict["level"] for verdict in heard] == ["warning", "ok"]
    assert [verdict["failure"]["will_fail"] for verdict in heard] == [True, False]
    assert heard[0]["failure"]["probability"] == pytest.approx(predicted[0]["probability"], abs=0.05)
    [alarm] = [verdict for verdict in stored["verdicts"] if verdict["stage"] == "submit"]
    assert alarm == heard[0], "it was stored as it was printed"
    assert alarm["failure"]["contributions"], "an alarm comes explained"
    assert alarm["failure"]["similar"]
    assert any("memory" in advice["change"] or "--mem" in advice["change"] for advice in alarm["advice"])
    assert heard[1]["failure"]["contributions"] == []
