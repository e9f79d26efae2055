"""What a line does is told from what it only says or looks for; what may still be run is never left out."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tocsin.workload.keywords import find_keywords
from tocsin.workload.normal import commands
from tocsin.workload.signs.executed import executed


def acts(lines: list[str]) -> list[str]:
    return list(executed(tuple(lines)))


NOTHING = [
    "echo 'xmrig is forbidden here'",
    'echo "no xmrig; no hashcat | none" >&2',
    "logger -t admin xmrig",
    "pkill -9 xmrig",
    "which hashcat nmap",
    "rm -rf /tmp/xmrig",
    "dnf install -y nmap",
    "echo 'xmrig seen' | mail",
]
DOING = [
    "echo './xmrig' | sh",
    "echo ./xmrig > run.sh",
    'echo "$(./xmrig)"',
    "echo `./xmrig`",
    "printf './xmrig' | tee run.sh",
    "echo ./xmrig | cat > run.sh",
    "rm $(./xmrig)",
    "grep -v '^#' rockyou.txt | ./job",
    "if ! pgrep xmrig; then ./xmrig; fi",
    "sed -i 's/HOST/pool.supportxmr.com/' config.json",
    "echo started && ./xmrig",
]


@pytest.mark.parametrize("line", NOTHING)
def test_a_line_that_says_or_seeks_does_nothing(line: str) -> None:
    assert acts([line]) in ([""], ["mail"])


@pytest.mark.parametrize("line", DOING)
def test_a_line_that_runs_something_keeps_it(line: str) -> None:
    [act] = acts([line])
    assert any(name in act for name in ("./xmrig", "rockyou.txt", "supportxmr.com"))


def test_a_comment_and_what_is_looked_for_are_left_out_of_a_line() -> None:
    lines = [
        "./a.out # xmrig",
        "ps aux | grep -i xmrig | wc -l",
        "ssh n1 'pkill -f xmrig'",
        "echo a#b '# c' > x.sh",
    ]
    assert ["xmrig" in act for act in acts(lines)] == [False] * 4
    assert acts(lines)[3] == lines[3]


def test_a_here_document_does_something_unless_people_read_it() -> None:
    text = ["./xmrig", "E"]
    for head in ("cat <<E", "cat <<'E' >&2", ": <<E", "mail -s hello root <<-E", "cat > README.md <<E"):
        assert acts([head, *text, "./sim"])[1:] == ["", "E", "./sim"], head
    for head in ("bash <<E", "cat <<E | sh", "cat > run.sh <<E", "ssh n1 <<E", "perl - <<E"):
        assert acts([head, *text]) == [head, *text], head
    assert acts(["cat <<E", "./xmrig"]) == ["cat <<E", "./xmrig"]  # without an end it is none
    assert acts(["f() {", "cat <<E", *text, "}", "f | bash"])[2] == "./xmrig"


SAID = "echo './xmrig -o pool'"
CAPTURED = {
    "a group into a shell": f"{{\n{SAID}\n}} | bash",
    "a group without blanks": f"{{\n{SAID}\n}}|bash",
    "a group, errors aside": f"{{\n{SAID}\n}} 2>/dev/null | bash",
    "a group on one line": f"( {SAID}; date ) | bash",
    "a group into a file": f"{{\n{SAID}\n}} &> run\nbash run",
    "a here-document in a group": "{\ncat <<E\n./xmrig\nE\n} | bash",
    "a loop": f"for i in 1; do\n{SAID}\ndone > run\nbash run",
    "a loop's condition": f"until {SAID}; do\n:\ndone | bash",
    "a branch": f"if true; then\n{SAID}\nfi | sh",
    "a case": f"case a in\na) {SAID} ;;\nesac | bash",
    "a function": f"f() {{\n{SAID}\n}}\nf | bash",
    "a function by keyword": f"function f\n{{\n{SAID}\n}}\nf | bash",
    "a function in a substitution": f"f() {{\n{SAID}\n}}\nx=$(f)\n$x",
    "a substitution on several lines": f"x=$(\n{SAID}\n)\n$x",
    "a quoted substitution": f'x="$(\n{SAID}\n)"\neval "$x"',
    "a substitution of two commands": f"x=$(cd /tmp; {SAID})\n$x",
    "backticks": f"x=`\n{SAID}\n`\n$x",
    "a process substitution": f"mapfile -t a < <(\n{SAID}\n)\n${{a[0]}}",
    "all that follows": f"exec > run\n{SAID}\nexec >&2\nbash run",
    "all that follows a branch": f"if true; then exec > run; fi\n{SAID}\nbash run",
    "a coprocess": f"coproc {{ {SAID}; }}\nbash <&${{COPROC[0]}}",
    "a continued line": f"{SAID} \\\n| bash",
    "a brace that is an argument": f"{{ {SAID}\necho \\\n}}\n}} | bash",
    "a brace in quotes": f"{{ x='\n}}\n'\n{SAID}\n}} | bash",
    "a brace in a here-document": f"{{ cat <<E\n}}\nE\n{SAID}\n}} | bash",
    "a variable": "printf -v x %s './xmrig -o pool'\n$x",
    "a page by its name in two parts": "cat > rules.md <<E\n./xmrig\nE\nname=rules\n{ :; } | cat\nsource $name.md",
    "a page by a pattern": 'cat > docs/rules.md <<E\n./xmrig\nE\neval "$(cat docs/*)"',
    "a redefined echo": f'eval "ec"\'ho() {{ bash -c "$*"; }}\'\n{SAID}',
}
SPOKEN_BESIDE = {
    "eval": "eval `scramv1 runtime -sh`",
    "a function with eval": 'run() {\neval "$1"\n}\nrun ./sim',
    "a loop into a file": "for i in 1 2; do\n./sim $i\ndone > out.txt",
    "a group into a shell": "{\necho ./sim\n} | bash",
    "nested blocks": 'if a; then\nfor i in "${list[${n}]}"; do\n( ./sim "$(basename "$i")" )\ndone | sort\nfi',
    "a pipe into a shell": "make_commands | bash",
    "a commented pipe": "# ./list | bash",
    "arithmetic": "n=$((1<<2))\nfor ((i=0; i<n; i++)); do echo $i; done | xargs -n1 sh -c ./sim",
    "a file by a variable": "script=run.py\npython $script\nsource $PREAMBLE",
    "a log": 'exec > "$HOME/$SLURM_JOB_ID.log" 2>&1',
}


@pytest.mark.parametrize("name", CAPTURED)
def test_what_a_script_prints_and_runs_is_kept(name: str) -> None:
    assert "./xmrig" in "\n".join(acts(CAPTURED[name].split("\n")))


@pytest.mark.parametrize("name", SPOKEN_BESIDE)
def test_text_outside_the_block_that_is_run_is_only_printed(name: str) -> None:
    lines = [*SPOKEN_BESIDE[name].split("\n"), SAID, "cat <<E", "./xmrig", "E"]
    if name not in ("a pipe into a shell", "a group into a shell", "arithmetic"):  # which may be of any file
        lines += ["cat > docs/rules.md <<E", "./xmrig", "E"]
    assert "./xmrig" not in "\n".join(acts(lines))


def test_words_that_are_only_said_are_no_trace_of_misuse() -> None:
    def traced(text: str) -> bool:
        return find_keywords(commands(text)).mentions_misuse

    assert not traced("echo 'no xmrig, no hashcat'\nps aux | grep minerd\n./sim")
    assert not traced("python btc_prices.py --coin BTC\nRscript bitcoin.R")
    assert not traced("python text_miner.py --miner apriori")
    assert not traced("echo 'no miners here'\npython bitcoin.py")
    assert traced("./btc_miner --blocks 3")
    assert traced("echo ./xmrig | sh")


@settings(max_examples=200, deadline=None)
@given(st.lists(st.text("echo grep<<'E\"|;&#$(`)> \\catE", max_size=60), max_size=8))
def test_any_lines_are_taken(lines: list[str]) -> None:
    found = acts(lines)
    assert len(found) == len(lines)
    assert all(len(act) <= 2 * len(line) for act, line in zip(found, lines, strict=True))
