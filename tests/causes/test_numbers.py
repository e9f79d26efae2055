"""Numbers in an output are read by their meaning, in whatever words a launcher reports them."""

import pytest

from tocsin.causes.numbers import ERRNO, EXIT, SIGNAL, find_numbers


@pytest.mark.parametrize(
    ("text", "meaning", "value"),
    [
        ("srun: error: n1: task 3: exited with exit code 139", SIGNAL, 11),
        ("[error] failed (exitcode: -9) local_rank: 0", SIGNAL, 9),
        ("main.py exits with return code = -11", SIGNAL, 11),
        ("command 'x' returned non-zero exit status 127.", EXIT, 127),
        ("process `align (1)` terminated with an error exit status (137)", SIGNAL, 9),
        ("command exit status:\n  137\n", SIGNAL, 9),
        ("exit_status=265 resources_used.mem=1kb", SIGNAL, 9),
        ("jobid=7 exitcode=0:9", SIGNAL, 9),
        ("on node n1 exited on signal 11 (segmentation fault).", SIGNAL, 11),
        ("signal (8): floating point", SIGNAL, 8),
        ("died with <signals.sigkill: 9>", SIGNAL, 9),
        ("oserror: [errno 28] no space", ERRNO, 28),
        ("write failed, errno = 122", ERRNO, 122),
    ],
)
def test_a_number_is_found_with_its_meaning(text: str, meaning: str, value: int) -> None:
    assert (meaning, value) in [(n.meaning, n.value) for n in find_numbers(text)]


@pytest.mark.parametrize(
    "text",
    [
        "the server answered with status 404",
        "epoch 137 of 200, loss 0.139",
        "signal to noise ratio 11",
        "error code 1234567",
        "exit code 2:30 pm",
    ],
)
def test_other_numbers_are_left_alone(text: str) -> None:
    assert list(find_numbers(text)) == []


def test_only_what_follows_the_given_place_is_read() -> None:
    text = "exit code 139\nexit code 137"
    assert [n.value for n in find_numbers(text, 14)] == [9]


def test_a_long_text_gives_a_bounded_number() -> None:
    assert len(list(find_numbers("exit code 139\n" * 5000))) <= 1000
