"""Whatever way a shell takes from a script's own text to a command, the command is read or an open sign."""

import pytest
from bench import informed_disguises

from tocsin.core.verdict import SEEN_FROM
from tocsin.workload.screening import builtin
from tocsin.workload.signs.computed import computed_commands
from tocsin.workload.signs.computed_kinds import TOO_MUCH
from tocsin.workload.signs.effort import Effort
from tocsin.workload.signs.statements import statements

_SET = "a=gate; b=example.org; "
_RUN = "./relax --to $a.$b:3333"
_HIDDEN = {
    "commands that a reader could lose": [
        f"{_SET}echo [[ x\n{_RUN}\necho ]]",
        f"{_SET}[[ -n $({_RUN}) ]]",
        f"{_SET}(( n[$({_RUN})]++ ))",
        f"{_SET}(({_RUN}); wait)",
        f"{_SET}echo $(({_RUN}) )",
        f"{_SET}(echo case x in; {_RUN})",
        f"{_SET}case x in $({_RUN})) ;; esac",
        f"{_SET}\n: <<'Z'\nZ \ncat > README.txt <<'true'\nZ\n{_RUN}\ntrue\n",
        f"{_SET}\n: <<'Z'\nZ\r\ncat > README.txt <<'true'\nZ\n{_RUN}\ntrue\n",
    ],
    "substitutions": [
        f"{_SET}r=$({_RUN})",
        f'{_SET}echo "`{_RUN}`"',
        f"{_SET}cat > x.log <<Z\n$({_RUN})\nZ\n",
        f"{_SET}exec > >({_RUN})",
        f'{_SET}echo "${{E:-$({_RUN})}}"',
        f"{_SET}echo $((1 + $({_RUN})))",
    ],
    "values": [
        "x=; ./relax --to ${x:-gate.example}.org:3333",
        "echo ${x:=gate.example.org}; ./relax --to $x:3333",
        "h=gate.example.org--old; ./relax --to ${h%--old}:3333",
        "./relax --to gate.example.or{g..g}:3333",
        "printf -v h '%.16s:%s' gate.example.org/+/ 3333; ./relax --to $h",
        "./relax --to $(printf %s gate. example .org :3333)",
        "HOME=gate.example.org; x=~:3333; ./relax --to $x",
        "x=$HOME/gate_example_org; ./relax --to ${x//_/.}",
        "IFS=_ read -r a b c <<< gate_example_org; ./relax --to $a.$b.$c",
        "[[ x-gate.example.org =~ x-(.*) ]]; ./relax --to ${BASH_REMATCH[1]}",
        "for i in 1 2; do ./relax --to $a.$b:3333; a=gate; b=example.org; done",
    ],
    "numbers": [
        "n=9; ./relax --to 192.0.2.$((n)):3333",
        "x=aaaa; ./relax --to 192.0.2.${#x}:3333",
        "./relax --to 192.0.2.$LINENO:3333",
        "declare -i p=0xD05; ./relax --to gate.example.org:$p",
        "(( p = 3300 + 33 )); ./relax --to 192.0.2.9:$p",
        "./relax --to gate.example.org:$(bc <<< 3300+33)",
    ],
    "words that stand for others": [
        "echo gate.example.org:3333; ./relax --to $_",
        "set -H -o history; echo gate.example.org:3333; ./relax --to !ec:1",
        "declare -r h=gate.example.org; ./relax --to $h",
        "set -- gate.example.org; ./relax --to $1",
        "set -- -h gate.example.org; getopts h: o; ./relax --to $OPTARG",
        "declare -x H=gate.example.org; ./relax --to $(printenv H)",
        "f() { echo gate.example.org; }; ./relax --to $(f)",
    ],
    "the job's own request and text": [
        "#SBATCH --chdir=/x/gate.example.org-3333\n./relax --to $(basename $PWD | tr - :)",
        "#SBATCH --comment=gate/3333\n./relax --to $(squeue -h -o %k | tr / :)",
        "#SBATCH --job-name=gate.example.org\n./relax --to $SLURM_JOB_NAME",
        "#SBATCH --output=gate.example.org.log\nf=$(ls *.log); ./relax --to ${f%.log}",
        "exec 4< $0; read -u 4 x; ./relax --to $x",
        "s=$0; ./relax --to $(tail -1 $s)",
        "if [ $1 ]; then ./relax --to $1.$2:3333; else bash $0 gate example.org; fi",
    ],
    "files": [
        "echo --to gate.example.org:3333 >& a; xargs -a a ./relax",
        "exec 3<> a; echo gate.example.org:3333 >&3; ./relax $(cat a)",
        "cat > in.dat <<Z\nto gate.example.org:3333\nZ\n./relax in.dat",
        "cp /dev/stdin r.ini <<Z\nto gate.example.org:3333\nZ\n./relax r.ini",
        "rev > r.ini <<Z\nx = tsoh\nZ\n./relax r.ini",
        "cat > r.sh <<Z\n./relaxX\nZ\nsed -i s/X// r.sh; bash r.sh",
        "touch gate.example.org; for f in gate*; do ./relax --to $f; done",
    ],
    "text that is run": [
        f"{_SET}\nread -r c <<'Z'\n{_RUN}\nZ\neval $c",
        f"{_SET}for c in '{_RUN}' true; do eval $c; done",
        f"{_SET}\nexec 3<<'Z'\n{_RUN}\nZ\n. /dev/fd/3",
        f"{_SET}BASH_ALIASES[q]='{_RUN}'; q",
        f"{_SET}PS4='$({_RUN})'; set -x; :",
        "mapfile -c 1 -C './relax --to gate.example.org' <<< x",
        "jobs -x ./relax --to gate.example.org",
        "hash -p ./relax wc; wc --to gate.example.org:3333",
        f"{_SET}conda run -n md {_RUN}",
        f"{_SET}hostname --to $a.$b:3333",
        "command_not_found_handle() { ./relax $1; }\nx",
        'set -- ./relax --to gate.example.org:3333; "$@"',
    ],
}


@pytest.mark.parametrize(("kind", "script"), [(kind, each) for kind in _HIDDEN for each in _HIDDEN[kind]])
def test_what_a_shell_would_run_is_read_or_open(kind: str, script: str) -> None:
    assert list(computed_commands(script, Effort())), kind


def test_commands_after_brackets_are_kept() -> None:
    words = [
        each.words
        for each in statements("if [[ a == b ]]; then x; fi; for ((i=0; i<3; i++)); do y; done").found
    ]
    assert words == [["if", "[["], ["x"], ["fi"], ["let", "i=0; i<3; i++"], ["y"], ["done"]]


@pytest.mark.parametrize(
    "script", ["bash <<'Z'\n" + ": x\n" * 2000 + "Z\n", "x=" + "$(echo " * 15 + ")" * 15]
)
def test_text_that_is_too_long_or_too_deep_is_an_open_sign(script: str) -> None:
    assert TOO_MUCH in {why for _, why in computed_commands(script, Effort(seconds=60))}


def test_innocent_scripts_that_do_the_same_are_not_called_misuse() -> None:
    found = builtin().screen(
        [informed_disguises.script(body) for body in informed_disguises.INNOCENT.values()]
    )
    worst = [max(each.operations["cryptomining"], each.operations["cyber"]) for each in found]
    assert max(worst) < SEEN_FROM
