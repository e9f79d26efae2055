"""Code of other languages is read only if nothing in it starts, loads or calls what is not written out."""

import pytest

from tocsin.workload.signs.computed import computed_commands
from tocsin.workload.signs.computed_kinds import ENDPOINT, RUNS
from tocsin.workload.signs.effort import Effort
from tocsin.workload.signs.foreign import makes_text, runs_unwritten

OPEN = {
    "a list with a name": "subprocess.run([prog, '-s', host])",
    "arguments behind a written program": 'os.execvp("./relax", a)',
    "a function handed on": "list(map(os.system, texts))",
    "a function in a table": 'f = {"go": os.system}',
    "a function by its name": 'os["execute"](c)',
    "a handle": "cellfun(@system, {c})",
    "an imported name": "from subprocess import run\nrun(x)",
    "an imported name with another one": "from os import system as go",
    "all imported names": "from os import *",
    "an attribute of anything": "MPI.COMM_SELF.Spawn('./relax', args=a)",
    "a process of C": 'execlp("./relax", "relax", "-p", h, (char *)0);',
    "words of Perl": 'exec "./relax", @a;',
    "words of Raku": 'run "./relax", "-s", $h',
    "a process of Lisp": '(call-process "./relax" nil nil nil h)',
    "a connection": "s = connect(h, 3333)",
    "input by a pipe": "p = Popen(['./relax'], stdin=PIPE)",
    "a pickle": "pickle.loads(t)",
    "a library": "import ctypes\nctypes.CDLL(x)",
    "a shell's work in a call": 'os.system("a=gate; ./relax $a.example")',
    "a pipe of awk": 'BEGIN { print "x" | S }',
    "a cell of a notebook": '{"cells": [{"source": ["!./relax x"]}]}',
}
READ = {
    "a written command": 'os.system("ls -l")',
    "a written list": 'subprocess.run(["nvidia-smi", "-L"], check=True, stdout=subprocess.DEVNULL)',
    "arguments from outside": 'subprocess.call(["./model", sys.argv[1], os.environ["HOME"], 3])',
    "an import alone": "import subprocess\nprint(1)",
    "a model": "model.eval()\nmodel.compile()\nx = re.compile('a')",
    "a variable of that name": "system = load(1)\nsystem.minimize()",
    "a namelist": "&system\n ibrav = 0\n/",
    "a definition": "def run(a):\n    return a",
    "a free port": 's = socket.socket()\ns.bind(("", 0))',
}


@pytest.mark.parametrize("name", OPEN)
def test_what_is_not_written_out_is_noticed(name: str) -> None:
    assert runs_unwritten(OPEN[name], surely=True)


@pytest.mark.parametrize("name", READ)
def test_what_is_written_out_is_read(name: str) -> None:
    assert not runs_unwritten(READ[name], surely=True)


@pytest.mark.parametrize(
    "code",
    [
        '"a" + b',
        '".".join(x)',
        'paste0("a", b)',
        "f'{a}'",
        '"$a.b"',
        "a .. 'b'",
        "a // 'b'",
        '["a" h "b"]',
        '"a" "b"',
    ],
)
def test_text_of_text_is_noticed(code: str) -> None:
    assert makes_text(code)


@pytest.mark.parametrize("code", ['plot(x, "a.png")', "x = a + b * 2", 'print(summary(x$value), "a")'])
def test_numbers_and_written_text_are_no_such(code: str) -> None:
    assert not makes_text(code)


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("python3 -c 'import os; os.system(\"./m -s gate.example.ch -n 3333\")'", ENDPOINT),
        ("#!/usr/bin/env raku\nrun './m', <a b>.join('.')", RUNS),
        ("cat > a.rb <<'E'\nh = %w[a b].join('.')\nE", RUNS),
        ('perl -x "$0"', RUNS),
        ('guile -c \'(f (string-append "a" "b"))\'', RUNS),
        ('apptainer exec a.sif python -c \'print("a" + "b")\'', RUNS),
        ("echo a > r.sh; perl -pi -e s/a/b/ r.sh; bash r.sh", RUNS),
        ("echo a > r.sh; ex -s r.sh <<< 's/a/b/|x'; bash r.sh", RUNS),
    ],
)
def test_code_is_found_wherever_it_stands(script: str, why: str) -> None:
    assert why in {found for _, found in computed_commands(script, Effort())}
