"""What a script changes is worked out, keeps its words, or counts as computed; code that only computes is no sign."""

import pytest

from tocsin.workload.signs.arithmetic import calculated
from tocsin.workload.signs.computed import computed_commands
from tocsin.workload.signs.computed_kinds import HANDS_FETCHED, HANDS_ON, RUNS
from tocsin.workload.signs.effort import Effort
from tocsin.workload.signs.inert_code import is_inert
from tocsin.workload.signs.word_filters import keeps_words


def kinds(script: str) -> set[str]:
    return {why for _, why in computed_commands(script, Effort())}


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1+2*3", 7),
        ("(5<<24)+12", 83886092),
        ("0x10", 16),
        ("-4/2", -2),
        ("x+1", None),
        ("9**9", None),
        ("1/0", None),
    ],
)
def test_written_arithmetic_is_calculated(text: str, number: int | None) -> None:
    assert calculated(text) == number


@pytest.mark.parametrize(
    "command",
    [
        "head -1",
        "cut -d, -f2",
        "cut -d '_' -f1",
        "awk -F: '{print $2}'",
        "awk '{print $NF}'",
        "sed -n 3p",
        "tr A-Z a-z",
    ],
)
def test_filters_that_choose_words_keep_them(command: str) -> None:
    name, *words = command.split(maxsplit=1)
    assert keeps_words(name, words[0].replace("'{print $", "'{print$").split())
    assert kinds(f"for x in a,b c,d; do ./m $(echo $x | {command}); done") == set()


@pytest.mark.parametrize(
    "command",
    [
        "cut -c1-3",
        "cut -dx -f2",
        "cut -d_ -f1,2 --output-delimiter=.",
        "tr _ .",
        "rev",
        "sed s/_/./",
        "awk '{print $1$2}'",
        "awk -Fx '{print $1}'",
        "awk -F_ -vOFS=. '{print$1,$2}'",
    ],
)
def test_what_other_filters_make_is_computed(command: str) -> None:
    assert HANDS_ON in kinds(f"for x in a_b c_d; do ./m $(echo $x | {command}); done")


@pytest.mark.parametrize(
    ("program", "code"),
    [
        ("python3", "import torch; print('{} {}'.format(torch.__version__, 1))"),
        ("python", "import pandas as pd\nx = 'cd' + 'ef'\npd.read_csv('a.csv').to_csv(x)"),
        ("Rscript", "library(ggplot2); ggsave(paste0('a', '.png'))"),
        ("matlab", "save(['a' num2str(1) '.mat'])"),
    ],
)
def test_code_that_only_computes_is_inert(program: str, code: str) -> None:
    assert is_inert(program, code)


@pytest.mark.parametrize(
    ("program", "code"),
    [
        ("python3", "import anyio; anyio.run(print, 'a' + 'b')"),
        ("python3", "import os; os.execl('a', 'b')"),
        ("python3", "from os import execl"),
        ("python3", "import matplotlib.pyplot as p; p.rcParams['animation.ffmpeg_path'] = './m'"),
        ("Rscript", "sys::exec_wait('./m', paste0('a', 'b'))"),
        ("Rscript", "system(paste('./m', 'a'))"),
        ("matlab", "system(['./m ' 'a'])"),
        ("ruby", "puts 1"),
    ],
)
def test_code_that_may_start_something_is_not(program: str, code: str) -> None:
    assert not is_inert(program, code)


@pytest.mark.parametrize(
    "script",
    [
        "./m $(curl -s https://example.edu/a)",
        "a=$(dig +short TXT example.edu)\n./m $a",
        "curl -s https://example.edu/a | ./m -",
        "wget -O m.json https://example.edu/a\n./m -c m.json",
    ],
)
def test_what_a_server_answers_is_handed_on(script: str) -> None:
    assert HANDS_FETCHED in kinds(script)


@pytest.mark.parametrize(
    "script",
    [
        "coproc T { rev; }\nread -r h <&${T[0]}\n./m $h",
        "for x in a b; do h=$h.$x; done\n./m ${h#.}",
        "parallel ./m {1}.{2} ::: a ::: b",
        "./m -s $(TZ=example date +%Z).$(TZ=ch date +%Z)",
        "RANDOM=7\n./m -s $((RANDOM%256)).$((RANDOM%256)).$((RANDOM%256)).9",
        "rev <<< x > a.dat\nrsync a.dat b\nbash b",
        '#!/usr/bin/tcc -run\nint main() { char c[9]; snprintf(c, 9, "%s", "a"); return system(c); }',
        'sbcl <<\'E\'\n(run-program "./m" (list (format nil "~a" "b")))\nE',
    ],
)
def test_what_is_not_followed_is_computed(script: str) -> None:
    assert kinds(script) & {HANDS_ON, RUNS}
