"""A miner that was only renamed understands only what real miners do, so a script must make its options or settings."""

import pytest

from tocsin.workload.signs.computed import computed_commands
from tocsin.workload.signs.computed_kinds import ENDPOINT, HANDS_ON
from tocsin.workload.signs.effort import Effort
from tocsin.workload.signs.host_names import names_host
from tocsin.workload.signs.look import signs


def kinds(script: str) -> set[str]:
    return {why for _, why in computed_commands(script, Effort())}


def reasons(script: str) -> set[str]:
    return {sign.kind for sign in signs(script)}


@pytest.mark.parametrize(
    "script",
    [
        'cat > in.json <<\'Z\'\n{"url": "lowland.me", "user": "w7"}\nZ\n./relax -c in.json',
        'cat > in.json <<\'Z\'\n{\n "user": "w7",\n "url": "grid"\n}\nZ\n./relax -c in.json',
        'bash -c \'echo "{\\"url\\": \\"$0\\", \\"user\\": \\"w7\\"}" > in.json\' grid\n./relax -c in.json',
        'cat > pools.txt <<\'Z\'\n"pool_list": [{"pool_address": "grid", "wallet_address": "w7"}]\nZ\n./relax -C pools.txt',
    ],
)
def test_the_settings_of_a_miner_are_a_sign_whatever_its_host_is(script: str) -> None:
    assert "an address and a user, as in the settings of a miner" in reasons(script)


@pytest.mark.parametrize(
    "script",
    [
        'cat > in.json <<\'Z\'\n{"url": "grid", "steps": 100}\nZ\n./model -c in.json',
        'cat > in.json <<\'Z\'\n{"user": "ada", "pool": 4}\nZ\n./model -c in.json',
    ],
)
def test_one_of_the_two_is_none(script: str) -> None:
    assert reasons(script) == set()


@pytest.mark.parametrize(
    "script",
    [
        "export LOCALDOMAIN=net\n./relax",
        "HOSTALIASES=$PWD/ha ./relax",
        "cat > n.c <<'Z'\nint getaddrinfo(const char *n, void *h) {\n return 0; }\nZ\ngcc -shared -o n.so n.c",
    ],
)
def test_what_resolves_names_in_another_way_is_a_sign(script: str) -> None:
    assert any("resolver" in reason for reason in reasons(script))


def test_a_trace_with_text_of_its_own_is_a_sign() -> None:
    script = "exec 9> args\nBASH_XTRACEFD=9\nPS4='{}'\nset -x\n./relax"
    assert reasons(script.format("--peer=lowland"))
    assert not reasons(script.format("+ ${LINENO}: "))


@pytest.mark.parametrize(
    "script",
    [
        "cat > in.yml <<'Z'\npeer: @A@.@B@:4444\nZ\ncmake -P fill.txt",  # filled in by CMake
        "/usr/bin/time -o args -f 'lowland.%C:4444' nl",  # by time
        'cat > in.json <<\'Z\'\n{"\\u0070eer": "grid"}\nZ\n./relax -c in.json',  # the name of a setting
        './relax "$(date -d 09:00 +lowland.%P):4444"',  # the half of the day
        "./relax \"$(stat --printf='lowland\\056net' .)\"",
        './relax "$(git log -1 --format=lowland%x2enet)"',
        "cat > in.cfg <<'Z'\nhost=LOWLAND.RU\nZ\n./relax in.cfg",
    ],
)
def test_other_forms_of_hosts_are_known(script: str) -> None:
    assert kinds(script) & {ENDPOINT, HANDS_ON}


@pytest.mark.parametrize("word", ["X.EQ.Y", "A.NE", "lowland\\12net", "\\1.\\2"])
def test_operators_of_fortran_and_groups_of_patterns_are_no_hosts(word: str) -> None:
    assert not names_host(word)
