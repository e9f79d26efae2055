"""A miner's words and address are an open sign however they are cut, and in whatever language they are joined."""

import pytest
from bench import informed_disguises

from tocsin.core.verdict import SEEN_FROM, Screening
from tocsin.workload.screening import Screener, builtin
from tocsin.workload.signs.many_words import ManyWords
from tocsin.workload.signs.spelled import SPELLED

_SPELLED = {
    "pieces in order": "set a xm\nset b rig",
    "pieces in another order": "b=rig; c=true; a=xm",
    "letters backwards": "n='girmx'",
    "letters that are to be removed": "x_m_r_i_g",
    "capitals between letters": "n=sQtQrQaQtQuQm",
    "every second letter": "n=xamaraiaga",
    "first letters of words": "n='some trees rise above the upper meadow'",
    "letters that are moved": "n='tusbuvn'",
    "letters from the other end of the alphabet": "n='hgizgfn'",
    "a letter that is put in later": "n='h@shv@ult'",
    "decimals": "120 109 114 105 103",
    "decimals with a number added": "121,110,115,106,104",
    "hexadecimal numbers with a key": "0x52 0x47 0x58 0x43 0x4d",
    "octal numbers": "170 155 162 151 147",
    "hexadecimal digits": "n=786d726967",
    "a variable that is not set": "x${q}mrig",
}
_ADDRESSED = {
    "joined texts": 'lua -e \'f("./k -o gate.exam" .. "ple.org:3333 -u w1")\'',
    "a list": 'ruby -e \'spawn("./k", "-o", h + "ple.org:3333", "-u", "w1")\'',
    "expansions": 'trap "./k -o ${b}ple.org:3333 -u w1" EXIT',
    "words by number": 'systemd-run -- ./k -o "${o[1]}${o[3]}" -u w1',
    "a printed form": "printf '%s%s -o %s%s -u w1' ./k er gate.exam ple.org:3333 | at now",
    "braces": "./k -o gate.{exam,}ple.org:3333 -u w1",
    "settings by another tool": "jq -n --arg h g:3333 '{pools:[{url:$h,user:\"w1\"}]}' > config.json",
    "a wallet in parts": "./k --to 48edfHu7V9Z84YzzMa6fUueoELZ9ZRXq9VetWzYGzKt52XU5xvqgz'YnDK9URnRoJMk1j8nLwEVsaSWJ4fhdUyZijBGUicoD'",
    "its own output": "echo './k -o gate.example.org:3333 -u w1'\nbash slurm-$SLURM_JOB_ID.out",
    "a file that it writes": "git commit -qm 'xmrig -c c.json'; git log -1 --format=%s > r; chmod +x r; ./r",
    "settings in the environment": "POOL=gate.example.org:3333 WALLET=w1 ./k",
    "a name from a file": "printf xm > n; read -r p < n; setsid $p -c c.json",
    "tabs": "./k\t--url\tgate.example.org:3333\t--user\tw1",
    "the job's comment": '#SBATCH --comment="./k -o gate.example.org:3333"\nbash -c "$(squeue -h -j $SLURM_JOB_ID -o %k)"',
}
_ORDINARY = {
    "a search that does not find itself": "ps aux | grep '[x]mrig'",
    "words of ordinary names": "vault kv get secret; hash=$(git rev-parse HEAD)",
    "a file by two variables": "sort -u -o $dir$name.txt list.txt",
    "a service and its user": "psql -h db.example.org -p 5432 -U me -o out.txt",
    "a tunnel": "ssh -o ServerAliveInterval=60 -L 8888:node1.example.org:8888 login",
    "a lexicon": "python crackers.py --wordlist words.txt",
    "passwords of a lexicon": "./lexicon --wordlist a.txt --passwords-file b.txt",
}


def misuse_of(found: Screening) -> float:
    return max(found.operations[name] for name in ("cryptomining", "cyber"))


def is_just_fine(found: Screening) -> bool:
    return not found.open and found.operations["cryptomining"] < SEEN_FROM


@pytest.fixture(scope="module")
def shipped() -> Screener:
    return builtin()


@pytest.mark.parametrize("name", _SPELLED)
def test_a_word_of_mining_is_seen_however_it_is_spelled(name: str, shipped: Screener) -> None:
    [found] = shipped.screen([informed_disguises.script(f"{_SPELLED[name]}\n")])
    assert [each for each in found.open if each in (f"line 6: {SPELLED}", f"line 7: {SPELLED}")]


@pytest.mark.parametrize("name", _ADDRESSED)
def test_an_address_that_is_put_together_is_an_open_sign(name: str, shipped: Screener) -> None:
    [found] = shipped.screen([informed_disguises.script(f"{_ADDRESSED[name]}\n")])
    assert not is_just_fine(found)


@pytest.mark.parametrize("name", _ORDINARY)
def test_ordinary_words_and_addresses_are_none(name: str, shipped: Screener) -> None:
    [found] = shipped.screen([informed_disguises.script(f"{_ORDINARY[name]}\n")])
    assert (found.open, misuse_of(found) < SEEN_FROM) == ([], True)


def test_many_words_are_found_wherever_they_stand() -> None:
    words = ManyWords([b"stratum", b"xmrig", b"0a1b2c"])
    assert all(words.are_in(text) for text in (b"xmrig", b"..stratum", b"0a1b2c..", b"a xmrigx"))
    assert not any(words.are_in(text) for text in (b"", b"xmri", b"tratum", b"xmr ig", b"0a1b2d" * 100))


@pytest.mark.parametrize("kind", informed_disguises.SETS)
def test_no_disguise_that_was_written_with_the_rules_at_hand_is_just_fine(
    kind: str, shipped: Screener
) -> None:
    bodies = informed_disguises.SETS[kind]
    found = shipped.screen([informed_disguises.script(body) for body in bodies.values()])
    assert [name for name, each in zip(bodies, found, strict=True) if is_just_fine(each)] == []


def test_innocent_scripts_may_do_the_same(shipped: Screener) -> None:
    bodies = informed_disguises.INNOCENT
    scripts = [informed_disguises.script(body) for body in bodies.values()]
    found = dict(zip(bodies, shipped.screen(scripts), strict=True))
    assert [name for name, each in found.items() if misuse_of(each) >= SEEN_FROM] == []
    # an open sign accuses nobody, but one in ten would be too many to read
    assert len([name for name, each in found.items() if each.open]) <= len(found) / 10
