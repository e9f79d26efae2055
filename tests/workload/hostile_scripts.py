"""Scripts that are made to keep a reader busy: small ones that unpack hugely, long lines, thousands of everything."""

import base64
import gzip
import zlib

__all__ = ["HOSTILE"]


def _nested(depth: int, inner: bytes) -> str:
    for _ in range(depth):
        inner = b"echo " + base64.b64encode(gzip.compress(inner, mtime=0)) + b" | base64 -d | gunzip | bash\n"
    return inner.decode()


def _bombs(count: int) -> str:
    """Each unpacks to lines that unpack again."""
    bomb = base64.b64encode(zlib.compress(b"curl -s -o x https://a.b/c ; " * 40_000, 9)).decode()
    inner = "\n".join(f"echo {bomb}{number:04}= | base64 -d | zcat | sh" for number in range(count))
    return f"echo {base64.b64encode(gzip.compress(inner.encode(), mtime=0)).decode()} | base64 -d | gunzip | bash\n"


def _many_lines(line: str, size: int = 500_000) -> str:
    return "\n".join(line.replace("@", str(number)) for number in range(size // (len(line) + 4)))


HOSTILE = {
    "base64 in base64": _nested(40, b"xmrig -o pool:3333"),
    "a kilobyte that unpacks to megabytes": _nested(1, b"a=`b`;" * 400_000),
    "bombs in a bomb": _bombs(60),
    "two kilobytes that unpack to thousands of packed words": _nested(
        1, b"\n".join(b"61" * (12 + number % 40) + b"%05x" % number for number in range(20_000))
    ),
    "one line of a megabyte": "echo " + "a; rm -rf $x/ | " * 60_000,
    "one word of a megabyte": "x" * 1_000_000,
    "one quoted megabyte": '"' + "a;b " * 250_000,
    "a line of slashes": "./" + "/" * 500_000 + " -o a.b:3333",
    "a line of options": " -o -u -a --url" * 40_000,
    "a line of digits and dots": "1." * 250_000,
    "escapes": "printf '" + "\\x61" * 120_000 + "' | bash",
    "broken words": "x''" * 170_000,
    "backslashes": "\\a" * 250_000,
    "continued lines": "a \\\n" * 120_000,
    "here-documents": _many_lines("cat <<E@\nxmrig\nE@"),
    "here-documents without an end": _many_lines("cat <<E@"),
    "variables that grow": "\n".join(["A=aaaaaaaaaaaaaaaa", *["A=$A$A"] * 5_000, "echo $A"]),
    "many variables": _many_lines("V@=$V@ ; echo $V@ $V1"),
    "loops": _many_lines("for p@ in $(seq 1 9999); do nc -z h $p@; done"),
    "passwords": _many_lines("while read w@; do curl -u a:$w@ http://h; done"),
    "base64 words": _many_lines("echo YWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFh@ | base64 -d"),
    "base64 lines": _many_lines("YWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFh"),
    "hexadecimal words": _many_lines("6161616161616161616161616161616161616161@"),
    "spaced hexadecimal digits": "xxd -r -p\n" + "61 " * 160_000,
    "rotated words": _many_lines("echo 'kzevt -b cbby@' | tr a-z n-za-m | sh"),
    "deep quoting": "bash -c '" * 5_000 + "xmrig" + "'" * 5_000,
    "quotes": "\"'" * 250_000,
    "brackets": "$(" * 100_000 + ")" * 100_000,
    "addresses": _many_lines("1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfN@"),
    "signs in every line": _many_lines("./xmrig -o stratum+tcp://a.b:3333 -u w@ -a rx/0 --donate-level 1"),
    "functions": _many_lines('f@() { "$@"; }; alias a@=env'),
    "written and run": _many_lines("echo x > f@; bash f@"),
    "words of misuse": _many_lines("echo xmrig hashcat miner pool wallet @"),
}
