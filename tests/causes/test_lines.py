"""What a single line of an output is."""

import pytest

from tocsin.causes.lines import bare, closes, is_call, without_folders


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
