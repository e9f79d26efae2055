"""Commands run without a shell, within a time, and fail in warning_texts."""

import os
import select
import subprocess
import sys
import time

import pytest

from tocsin.core.errors import ClusterError
from tocsin.sources import commands
from tocsin.sources.commands import run, stream
from tocsin.sources.waiting import of_command, on_run_queue, waited

PYTHON = sys.executable


def ends(handle: int) -> bool:
    """Whether the process behind a pidfd ends soon."""
    return bool(select.select([handle], [], [], 10)[0])


def test_the_output_is_given_back_and_nothing_is_a_shell() -> None:
    assert run(["echo", "$HOME; id"], timeout=10) == b"$HOME; id\n"


def test_the_environment_is_clean_and_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_CONF", "/etc/slurm/slurm.conf")
    monkeypatch.setenv("SLURM_CLUSTERS", "other")
    monkeypatch.setenv("SACCT_FORMAT", "jobid")
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    said = dict(
        line.split("=", 1) for line in run(["env"], timeout=10, env={"MORE": "1"}).decode().splitlines()
    )
    assert said["SLURM_CONF"] == "/etc/slurm/slurm.conf"
    assert said["SLURM_TIME_FORMAT"] == "%s"
    assert (said["LC_ALL"], said["TZ"], said["MORE"]) == ("C.UTF-8", "UTC", "1")
    assert not {"SLURM_CLUSTERS", "SACCT_FORMAT"} & set(said)


def test_a_missing_command_names_what_to_install() -> None:
    with pytest.raises(ClusterError, match="squeue-of-nowhere is not installed here; install"):
        run(["squeue-of-nowhere"], timeout=10)


@pytest.mark.parametrize(
    ("reason", "next_step"),
    [
        ("slurm_load_node error: Unable to contact slurm controller (connect failure)", "scontrol ping"),
        ("error: slurm_persist_conn_open: No response to persist_init", "scontrol ping"),
        ("Invalid job id specified", ""),
    ],
)
def test_a_daemon_that_does_not_answer_is_named_with_the_next_step(reason: str, next_step: str) -> None:
    with pytest.raises(ClusterError) as raised:
        run(["sh", "-c", f"echo '{reason}' >&2; exit 1"], timeout=10)
    assert str(raised.value).endswith(
        f"`{next_step}` shows whether slurmctld answers" if next_step else reason
    )


def test_a_host_without_a_slurm_conf_is_told_what_it_needs() -> None:
    reason = "scontrol: error: resolve_ctls_from_dns_srv: res_nsearch error: Unknown host"
    with pytest.raises(ClusterError, match=r"this host needs the cluster's slurm\.conf and munge key"):
        run(["sh", "-c", f"echo '{reason}' >&2; exit 1"], timeout=10)


def test_a_failing_command_gives_its_code_and_first_words() -> None:
    argv = [PYTHON, "-c", "import sys; print('sacct: error: no', 'x', file=sys.stderr); sys.exit(3)"]
    with pytest.raises(ClusterError, match=r"failed \(exit 3\): sacct: error: no x"):
        run(argv, timeout=30)


def test_a_command_that_hangs_is_killed_with_what_it_started() -> None:
    output = stream(["sh", "-c", "sleep 600 & echo $!; wait"], timeout=1.5)
    child = os.pidfd_open(int(next(output)))
    with pytest.raises(ClusterError, match=r"did not answer within 1\.5 s"):
        list(output)
    assert ends(child)


def test_the_time_of_a_stream_is_that_of_its_silence() -> None:
    talks = "import time\nfor _ in range(8): print('x', flush=True); time.sleep(0.2)"
    assert b"".join(stream([PYTHON, "-c", talks], timeout=1.0)).count(b"x") == 8
    with pytest.raises(ClusterError, match="did not answer within 1 s"):
        run([PYTHON, "-c", talks], timeout=1.0)


def test_a_reader_that_stops_ends_the_command() -> None:
    endless = "import os\nprint(os.getpid(), flush=True)\nwhile True: print('x' * 1000)"
    output = stream([PYTHON, "-c", endless], timeout=60)
    process = os.pidfd_open(int(next(output).split()[0]))
    output.close()  # type: ignore[attr-defined] # a generator
    assert ends(process)


def test_more_than_can_be_held_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "MAX_BYTES", 2**20)
    with pytest.raises(ClusterError, match="printed more than 1 MiB"):
        run([PYTHON, "-c", "print('x' * 3_000_000)"], timeout=30)


@pytest.mark.parametrize(
    ("silence", "cpu", "queued", "slurms"),
    [(0.35, 0.04, 0.3, 0.01), (25.0, 0.04, 0.0, 24.96), (0.01, 0.02, 0.0, 0.0)],
)
def test_what_a_command_computes_or_waits_for_a_cpu_is_not_slurms(
    silence: float, cpu: float, queued: float, slurms: float
) -> None:
    assert of_command(silence, cpu, queued) == pytest.approx(slurms)


def test_a_command_that_computes_costs_slurm_little_and_one_that_waits_all_of_its_time() -> None:
    began, before = time.monotonic(), waited()
    run([PYTHON, "-c", "import time\nwhile time.process_time() < 0.5: pass"], timeout=60)
    assert waited() - before < 0.5 * (time.monotonic() - began)
    before = waited()
    run(["sleep", "0.5"], timeout=60)
    assert waited() - before > 0.4
    before = waited()
    with pytest.raises(ClusterError, match="did not answer"):
        run(["sleep", "60"], timeout=0.3)
    assert waited() - before > 0.2


def test_where_the_kernel_does_not_tell_of_its_run_queue_nothing_is_taken_off() -> None:
    assert on_run_queue("no-such-task") == 0.0
    assert on_run_queue("self") >= 0.0


def test_a_command_that_a_thread_waits_for_ends_with_the_process() -> None:
    talks = (
        "import threading\nfrom tocsin.sources.commands import stream\n"
        "output = stream(['sh', '-c', 'echo $$; exec sleep 600'], timeout=600)\n"
        "print(next(output).decode().strip(), flush=True)\n"
        "threading.Thread(target=lambda: list(output), daemon=True).start()\ninput()"
    )
    process = subprocess.Popen([PYTHON, "-c", talks], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin
    assert process.stdout
    command = os.pidfd_open(int(process.stdout.readline()))
    process.communicate(b"\n", timeout=60)
    assert ends(command)
