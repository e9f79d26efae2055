"""A real Slurm with the hooks: advice at a terminal, a screening window, and a rogue job held within it."""

import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.services import missing_plugin
from tests.services.daemons import await_true
from tests.services.slurm import SlurmLab
from tests.slurm.stand_in import StandIn

TOCSIN = [sys.executable, "-c", "from tocsin.cli.main import run; run()"]
WINDOW = 12
SITE = """-- the site's own rules
function slurm_job_submit(job, partitions, uid)
  if job.name == "refused" then
    slurm.log_user("the site refuses this name")
    return slurm.ERROR
  end
  return slurm.SUCCESS
end

function slurm_job_modify(job, record, partitions, uid)
  return slurm.SUCCESS
end

return slurm.SUCCESS
"""
MINER = "#!/bin/bash\n./xmrig -o stratum+tcp://pool.minexmr.com:4444 -u 44AFFq5kSiGBoZ4NMDwYtN18obc8AemS33DBLWs3H7otXft -p x --donate-level 1\n"


@pytest.fixture(scope="module")
def service(hooked: SlurmLab) -> Iterator[StandIn]:
    with StandIn(hooked.folder / "service") as stand_in:
        yield stand_in


@pytest.fixture(scope="module")
def hooked(slurm: SlurmLab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmLab]:
    """The lab with both hooks, as an operator installs them; restored to the byte at the end."""
    if sentence := missing_plugin("job_submit_lua.so"):
        pytest.skip(sentence)
    site, conf = slurm.conf.with_name("job_submit.lua"), slurm.conf.read_text()
    site.write_text(SITE)
    home = tmp_path_factory.mktemp("hooks")
    options = ["cli_filter", "job_submit", "--socket", str(slurm.folder / "service" / "tocsin.sock"), "--yes"]

    def tocsin(*arguments: str) -> str:
        environment = {**os.environ, **slurm.env, "TOCSIN_POLICY__SCREENING_SECONDS": str(WINDOW)}
        command = [*TOCSIN, "--home", str(home), "slurm", *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout

    tocsin("install", *options)
    slurm.conf.write_text(f"{conf}\nJobSubmitPlugins=lua\nCliFilterPlugins=cli_filter/lua\n")
    slurm.run("scontrol", "reconfigure")
    await_true("slurmctld has no lua", lambda: "= lua" in _config(slurm, "JobSubmitPlugins"), 20)
    status = tocsin("status", *options[2:4])
    assert "job_submit  installed; screening window 12 s, so jobs start 12 to 13 s after submission" in status
    yield slurm
    slurm.conf.write_text(conf)
    slurm.run("scontrol", "reconfigure")
    await_true("slurmctld still has lua", lambda: "= lua" not in _config(slurm, "JobSubmitPlugins"), 20)
    tocsin("uninstall", "--yes")
    assert site.read_text() == SITE
    site.unlink()
    assert not list(slurm.conf.parent.glob("*.lua"))


def _config(slurm: SlurmLab, name: str) -> str:
    return next(line for line in slurm.run("scontrol", "show", "config").stdout.splitlines() if name in line)


def sbatch(slurm: SlurmLab, *arguments: str, terminal: bool = True) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of sbatch as alice, whose standard error is a terminal or a pipe."""
    master, slave = pty.openpty()
    try:
        process = subprocess.Popen(
            [
                "setpriv",
                "--reuid=alice",
                "--regid=alice",
                "--clear-groups",
                "sbatch",
                "--parsable",
                *arguments,
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=slave if terminal else subprocess.PIPE,
            cwd=slurm.folder / "home-alice",
            env=slurm.command_env,
            text=True,
        )
        out, err = process.communicate(timeout=30)
        if terminal:
            os.set_blocking(master, False)
            try:
                err = os.read(master, 65536).decode()
            except BlockingIOError:
                err = ""
    finally:
        os.close(slave)
        os.close(master)
    return process.returncode, out.strip(), err.replace("\r\n", "\n")


def advised(slurm: SlurmLab, *arguments: str) -> str:
    """What sbatch prints at a terminal. On a busy machine an answer may be late, and the job goes without: ask again."""
    for _ in range(20):
        code, job, words = sbatch(slurm, *arguments)
        assert (code, job.isdecimal()) == (0, True)
        slurm.run("scancel", job)
        if words:
            return words
    return ""


def script(slurm: SlurmLab, text: str, name: str = "job.sh") -> str:
    path = slurm.folder / "home-alice" / name
    path.write_text(text)
    path.chmod(0o644)
    return name


def begin(slurm: SlurmLab, job: str) -> int:
    """Seconds from its submission to its earliest start."""
    shown = slurm.run("env", "TZ=UTC", "SLURM_TIME_FORMAT=%s", "scontrol", "show", "job", job).stdout
    found = {name: re.search(rf"{name}=(\d+)", shown) for name in ("SubmitTime", "EligibleTime")}
    submit, eligible = (int(match[1]) if match else 0 for match in found.values())
    return eligible - submit


def test_advice_is_printed_at_a_terminal_and_the_job_is_submitted(hooked: SlurmLab, service: StandIn) -> None:
    name = script(hooked, "#!/bin/bash\n#SBATCH --mem=50\ntrue\n", "it's a job.sh")
    options = ("--time=3", "-J", "a 'b' & c", "--gres=gpu:1", "--exclusive")
    assert advised(hooked, *options, name) == service.advice
    asked = service.asked[-1]
    assert asked.path == "/api/v1/advice"
    assert asked.accept == "text/plain"
    assert asked.script == "#!/bin/bash\n#SBATCH --mem=50\ntrue\n"
    given = {"--job-name=a 'b' & c", "--mem=50", "--time=00:03:00", "--gres=gpu:1", "--exclusive"}
    assert set(asked.options) == given, "what was not given is not sent"


def test_a_wrapped_command_gets_advice(hooked: SlurmLab, service: StandIn) -> None:
    assert advised(hooked, "--wrap=sleep '1'") == service.advice
    assert service.asked[-1].script == "#!/bin/sh\nsleep '1'\n"


def test_off_a_terminal_nobody_is_asked(hooked: SlurmLab, service: StandIn) -> None:
    before = len(service.asked)
    code, job, words = sbatch(hooked, script(hooked, "#!/bin/bash\ntrue\n"), terminal=False)
    assert (code, words, len(service.asked)) == (0, "", before)
    hooked.run("scancel", job)


def test_escape_sequences_in_advice_do_not_reach_the_terminal(hooked: SlurmLab, service: StandIn) -> None:
    service.advice, before = "tocsin: \x1b[2Jred\x07\n", service.advice
    words = advised(hooked, script(hooked, "#!/bin/bash\ntrue\n"))
    service.advice = before
    assert words == "tocsin: [2Jred\n"


def test_a_service_that_hangs_stops_or_is_gone_never_stops_a_submission(
    hooked: SlurmLab, service: StandIn
) -> None:
    name = script(hooked, "#!/bin/bash\ntrue\n")
    jobs = []

    def quiet() -> None:
        code, job, words = sbatch(hooked, name)
        assert (code, words) == (0, "")
        jobs.append(job)

    service.hang()  # just now: it is asked, and the deadline ends it
    quiet()
    service.stale(4)  # for more than 3 s: it is not asked
    before = len(service.asked)
    quiet()
    assert len(service.asked) == before
    service.go_on()
    socket = service.socket_file.rename(service.socket_file.with_name("away"))
    quiet()
    socket.rename(service.socket_file)
    assert sbatch(hooked, "--test-only", name)[0] == 0
    hooked.run("scancel", *jobs)


def test_the_window_delays_batch_jobs_and_keeps_a_later_start(hooked: SlurmLab) -> None:
    plain = str(hooked.sbatch("true", "--mem=50"))
    later = str(hooked.sbatch("true", "--mem=50", "--begin=now+1hour"))
    assert WINDOW - 1 <= begin(hooked, plain) <= WINDOW + 1
    assert 3590 <= begin(hooked, later) <= 3610
    hooked.run("scancel", plain, later)


def test_an_owner_cannot_leave_the_window_and_an_administrator_can(hooked: SlurmLab) -> None:
    job = str(hooked.sbatch("true", "--mem=50"))
    hooked.run("scontrol", "update", f"JobId={job}", "StartTime=now", user="alice")
    assert WINDOW - 1 <= begin(hooked, job) <= WINDOW + 1
    hooked.run("scontrol", "update", f"JobId={job}", "StartTime=now")
    hooked.wait_ended([int(job)])


def test_interactive_and_immediate_jobs_are_not_delayed(hooked: SlurmLab) -> None:
    begun = time.monotonic()
    hooked.run("srun", "-I30", "-n1", "--mem=50", "true", user="alice")
    hooked.run("srun", "-n1", "--mem=50", "true", user="alice")
    assert time.monotonic() - begun < 2 * WINDOW
    code, job, _ = sbatch(hooked, "--immediate", script(hooked, "#!/bin/bash\ntrue\n"))
    if code == 0:
        assert begin(hooked, job) <= 1


def test_the_sites_own_rules_still_count(hooked: SlurmLab) -> None:
    code, _, words = sbatch(hooked, "-J", "refused", script(hooked, "#!/bin/bash\ntrue\n"), terminal=False)
    assert code != 0
    assert "the site refuses this name" in words


def test_a_library_that_is_gone_or_broken_changes_nothing(hooked: SlurmLab) -> None:
    library = hooked.conf.with_name("tocsin_job_submit.lua")
    site = hooked.conf.with_name("job_submit.lua")
    text = library.read_bytes()
    for broken in (None, b"this is not lua("):
        library.unlink() if broken is None else library.write_bytes(broken)
        os.utime(site, (time.time() + 5, time.time() + 5))  # slurmctld reads it again
        job = hooked.sbatch("true", "--mem=50")
        assert begin(hooked, str(job)) <= 1
        hooked.wait_ended([job])
    library.write_bytes(text)
    os.utime(site, (time.time() + 9, time.time() + 9))


def test_a_rogue_job_is_held_within_the_window_and_runs_when_its_case_is_dismissed(
    hooked: SlurmLab, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    environment = {
        **os.environ,
        **hooked.env,
        "TOCSIN_WATCH__INTERVAL": "1",
        "TOCSIN_POLICY__MODE": "act",
    }

    def tocsin(*arguments: str) -> str:
        command = [*TOCSIN, "--home", str(home), *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout

    tocsin("allow", "default", "cryptomining", "listed")
    watch = subprocess.Popen(
        [*TOCSIN, "--home", str(home), "watch", "-M", "lab"], env=environment, stderr=subprocess.PIPE
    )
    try:
        await_true("nothing is watched", lambda: list((home / "cache").glob("watch-*.json")) != [], 60)
        job = hooked.sbatch(MINER, "--mem=50")
        await_true(
            "it is not held",
            lambda: _reason(hooked, job) == "JobHeldAdmin",
            WINDOW,
            lambda: _reason(hooked, job),
        )
        assert hooked.state(job) == "PENDING"
        assert "hold" in tocsin("actions", "-n")
        tocsin("cases", "dismiss", "1", "--note", "a benchmark")
        hooked.wait_ended([job], timeout=60)
        assert "case 1 was dismissed" in tocsin("actions", "--all", "-n")
    finally:
        watch.send_signal(signal.SIGTERM)
        watch.communicate(timeout=60)


def _reason(slurm: SlurmLab, job: int) -> str:
    return slurm.run("squeue", "-h", "-t", "all", "-j", str(job), "-o", "%r").stdout.strip()
