"""What a single line of an output is."""

import pytest

from tocsin.causes.lines import bare, closes, is_call, quotes, recovers, without_folders


@pytest.mark.parametrize(
    "line",
    [
        'file "/opt/lib/python3.11/socket.py", line 851, in create_connection',
        "#3 0x400000352008 in __pthread_kill_implementation",
        "at java.base/java.net.socket.connect(socket.java:633)",
        "getaddrinfo at ./socket.jl:591",
        "[7] getaddrinfo(::string) at ./sockets.jl:591 [inlined]",
    ],
)
def test_a_call_of_a_stack_is_recognised(line: str) -> None:
    assert is_call(line)


@pytest.mark.parametrize(
    "line",
    [
        "connection refused at 10.0.0.7:443 after 3 s",
        "error at line 12",
        "file not found: x.dat",
        "illegal division by zero at run.pl line 7.",
    ],
)
def test_a_message_is_no_call_of_a_stack(line: str) -> None:
    assert not is_call(line)


def test_a_closing_line_says_that_work_is_done() -> None:
    assert closes("stage-in finished")
    assert closes("24 of 24 steps (100%) done")
    assert closes("inventory written.")
    assert not closes("finished")  # one word may be a part of anything
    assert not closes("the restart file could not be written")
    assert not closes("job 3 failed, others completed")
    assert not closes("step 12 of 40")


def test_only_folders_are_left_out_of_a_path() -> None:
    assert without_folders("cannot run /opt/nccl/bin/solver: error") == "cannot run /solver: error"
    assert without_folders("mpid/ch4/shm.c") == "mpid/ch4/shm.c"
    assert without_folders("no path") == "no path"


def test_the_prefix_of_a_task_and_a_box_are_left_out() -> None:
    assert bare("[rank3]:   │ error │") == "error"
    assert bare("  12: stopped") == "stopped"


@pytest.mark.parametrize(
    "line", ["mean 0.41", "aligned 5012 reads (98.1%)", "rmse = 3.2e-05", "4096 12.5 0.61"]
)
def test_a_result_closes_an_output(line: str) -> None:
    assert closes(line)


@pytest.mark.parametrize(
    "line",
    [
        "rc=139",
        "exit code: 1",
        "with errorcode 9999.",
        "srun: terminating stepid=56100882.0",
        "see backtrace.0.7 file for details",
        "element 4 is inverted",
        "walltime used: 86400",
        "stop 2",
    ],
)
def test_a_number_of_an_end_or_a_fault_is_no_result(line: str) -> None:
    assert not closes(line)


def test_text_of_scripts_settings_and_help_pages_is_no_statement() -> None:
    quoted = (
        "on_error = abort",
        "+ test -f out of memory",
        "raise runtimeerror('killed')",
        "-k, --keep  keep on errors",
    )
    assert all(map(quotes, quoted))
    assert not any(
        map(quotes, ("exception: killed", "error = 3", "--> foam fatal error: x", "printing failed"))
    )


def test_a_line_may_say_that_the_work_goes_on() -> None:
    assert recovers("cannot read it, the default is used")
    assert not recovers("using mpirun of the default path")
