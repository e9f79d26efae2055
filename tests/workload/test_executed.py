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
    for head in ("bash <<E", "cat <<E | sh", "cat > run.sh <<E", "x=$(cat <<E", "ssh n1 <<E", "python - <<E"):
        assert acts([head, *text]) == [head, *text], head
    assert acts(["cat <<E", "./xmrig"]) == ["cat <<E", "./xmrig"]  # without an end it is none
    assert acts(["f() {", "cat <<E", *text, "}", "f | bash"])[2] == "./xmrig"


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
