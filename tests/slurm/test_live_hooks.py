"""A real Slurm with the hooks: advice at a terminal, and a screening window. The real service is in tests/serve/test_live_service.py."""

import os
import re
import time
from collections.abc import Iterator

import pytest

from tests.kits.slurm_hooks import advised, hooks_installed, sbatch, script
from tests.services.slurm import SlurmLab
from tests.slurm.stand_in import StandIn

WINDOW = 12


@pytest.fixture(scope="module")
def service(hooked: SlurmLab) -> Iterator[StandIn]:
    with StandIn(hooked.folder / "service") as stand_in:
        yield stand_in


@pytest.fixture(scope="module")
def hooked(slurm: SlurmLab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmLab]:
    """The lab with both hooks."""
    home, socket = tmp_path_factory.mktemp("hooks"), slurm.folder / "service" / "tocsin.sock"
    with hooks_installed(slurm, home, socket, window=WINDOW) as tocsin:
        status = tocsin("status", "--socket", str(socket))
        assert (
            "job_submit  installed; screening window 12 s, so jobs start 12 to 13 s after submission"
            in status
        )
        yield slurm


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
