"""A script is read when its programs and their arguments are written out or come from outside; what it computes is an open sign."""

import pytest

from tocsin.workload.signs.computed import computed_commands
from tocsin.workload.signs.computed_kinds import BUILT, ENDPOINT, HANDS_ON, RUNS, TOO_MUCH, UNCLEAR
from tocsin.workload.signs.effort import Effort
from tocsin.workload.signs.statements import statements

READ = {
    "a command in a variable": "CMD='srun ./model in.nml'\neval $CMD",
    "an array": 'cmd=(srun ./model)\n"${cmd[@]}" in.nml',
    "a node of the job": "H=$(scontrol show hostnames $SLURM_NODELIST | head -1)\n./model --server $H:29500",
    "a node of the job, in the singular": "H=$(scontrol show hostname $SLURM_NODELIST | head -n 1)\n./model --server $H:29500",
    "the stem of a file": 'for f in *.nc; do ./model "${f%.nc}"; done',
    "a number": './model --dt $(echo "scale=3; 1/3" | bc)',
    "a line of a table": "./model $(sed -n ${SLURM_ARRAY_TASK_ID}p table.txt)",
    "a date": "./model --log run_$(date +%F).log",
    "a shell's setup": 'eval "$(conda shell.bash hook)"\npython fit.py',
    "text for people": "cat <<E\nask gate.example.org:3333\nE",
    "a proxy": "export https_proxy=proxy.example.org:3128\npip install numpy",
    "patterns of a case": "case $1 in\n -h | --help) usage ;;\nesac",
}
OPEN = {
    "a changed text": ("./model $(tr _ . <<< gate_example_org)", HANDS_ON),
    "a slice": ("x=relaxation; ./${x:0:5}", RUNS),
    "a file that went through a filter": ("sed s/_//g > r <<< _./x; sh r", RUNS),
    "code with a joined command": ('python3 -c \'import os; os.system("a" + "b")\'', RUNS),
    "letters by number": ("./model $(printf '\\x67\\x61')", HANDS_ON),
    "settings after the function that uses them": (
        "f() { ./m --to $h:$p; }\nh=gate.example.org; p=3333\nf",
        HANDS_ON,
    ),
    "a name in pieces": ("a=xm; ./${a}rig", BUILT),
    "an address": ("./model --to gate.example.org:3333", ENDPOINT),
    "a quote without an end": ("echo 'a\n./model", UNCLEAR),
}


@pytest.mark.parametrize("name", READ)
def test_what_real_scripts_do_is_read(name: str) -> None:
    assert list(computed_commands(READ[name], Effort())) == []


@pytest.mark.parametrize("name", OPEN)
def test_what_is_computed_is_an_open_sign(name: str) -> None:
    script, why = OPEN[name]
    assert why in {found for _, found in computed_commands(script, Effort())}


def test_statements_have_their_lines_words_and_documents() -> None:
    first, second = statements("# a\nif cat > f <<'E'\nx | y\nE\nthen srun -n 2 ./m \"a b\"; fi").found[:2]
    assert (first.line, first.words, first.redirections) == (
        2,
        ["if", "cat"],
        [(">", "f"), ("<<'", "x | y\n")],
    )
    assert (second.line, second.words) == (5, ["srun", "-n", "2", "./m", '"a b"'])


@pytest.mark.parametrize(
    "script",
    ["./m " + " ".join(f"$a{n}" for n in range(60_000)), "\n".join(f"./m $a{n}" for n in range(5000))],
)
def test_too_much_to_put_together_is_said(script: str) -> None:
    assert TOO_MUCH in {why for _, why in computed_commands(script, Effort(seconds=60))}


def test_a_file_that_may_call_itself_is_not_read_over_and_over() -> None:
    class Counted(Effort):
        looks = 0

        def over(self) -> bool:
            self.looks += 1
            return False

    effort = Counted()
    step = " ".join(f'"$v{n}"' for n in range(16))
    list(computed_commands(f'f="$(mktemp)"\ncat > $f <<E\n./m $a\nbash s.sh {step}\nE\nqsub "$f"', effort))
    assert effort.looks < 500
