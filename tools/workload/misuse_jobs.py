"""Made-up scripts of misuse, from the manuals of public tools: real ones are too few to learn from alone."""

import random
import string

__all__ = ["made_up"]

_MINERS = (
    ("xmrig", "-a {algo} -o {pool} -u {wallet} -p {worker} -k --donate-level={n}"),
    ("xmrig", "--url={pool} --user={wallet} --pass=x --threads={n} --randomx-1gb-pages --cpu-priority 5"),
    ("xmrig", "-c config.json -l miner.log -B"),
    ("minerd", "-a {algo} -o stratum+tcp://{pool} -u {wallet}.{worker} -p x -t {n}"),
    ("cpuminer", "-a {algo} -o stratum+tcp://{pool} -u {wallet} -p c=BTC --threads={n}"),
    ("ccminer", "-a {algo} -o stratum+tcp://{pool} -u {wallet}.{worker} -p x -i {n}"),
    ("ethminer", "-P stratum1+tcp://{wallet}.{worker}@{pool} --farm-recheck 200 -U"),
    ("ethminer", "-G -F http://{pool}/{wallet}/{worker} --opencl-platform 0"),
    ("t-rex", "-a {algo} -o stratum+tcp://{pool} -u {wallet} -p x -w {worker} --gpu-report-interval {n}"),
    ("nbminer", "-a {algo} -o {pool} -u {wallet}.{worker} --temperature-limit 80"),
    ("lolMiner", "--algo {algo} --pool {pool} --user {wallet}.{worker} --watchdog exit"),
    ("PhoenixMiner", "-pool ssl://{pool} -wal {wallet}.{worker} -pass x -cdm 1 -tt 60"),
    ("gminer", "--algo {algo} --server {pool} --port 4444 --user {wallet} --pass x"),
    ("teamredminer", "-a {algo} -o stratum+tcp://{pool} -u {wallet} -p x"),
    ("SRBMiner-MULTI", "--algorithm {algo} --pool {pool} --wallet {wallet} --password x --disable-gpu"),
    ("nanominer", "-algo {algo} -wallet {wallet} -coin ETC -rigName {worker} -pool1 {pool}"),
    ("bzminer", "-a {algo} -w {wallet} -p stratum+tcp://{pool} -r {worker}"),
    ("cgminer", "--scrypt -o stratum+tcp://{pool} -u {worker} -p x -I {n}"),
    ("bfgminer", "-o stratum+tcp://{pool} -u {wallet} -p x -S opencl:auto"),
    ("wildrig-multi", "--algo {algo} --url {pool} --user {wallet} --pass x"),
    ("gpu_miner", "--blocks {n}"),
    ("btc_miner", "--blocks {n} --difficulty 20 --nonce-range 4294967296"),
    ("mpi_bitcoin_miner", "block.txt {n}"),
)  # fmt: skip
_POOLS = ("pool.supportxmr.com:3333", "xmr-eu1.nanopool.org:14444", "gulf.moneroocean.stream:10128", "eth-eu1.nanopool.org:9999",
          "eu1.ethermine.org:4444", "etc.2miners.com:1010", "rvn.2miners.com:6060", "xmr.f2pool.com:13531",
          "stratum.slushpool.com:3333", "pool.minexmr.com:4444", "randomx.nicehash.com:3380", "rx.unmineable.com:3333",
          "zec.flypool.org:3333", "pool.hashvault.pro:443", "kaspa.herominers.com:1206", "$POOL", "$POOL_URL:$PORT")  # fmt: skip
_ALGORITHMS = ("rx/0", "randomx", "cn/r", "ethash", "etchash", "kawpow", "scrypt", "sha256d", "yespower", "equihash", "autolykos2",
               "kheavyhash", "ghostrider", "x16r", "lyra2v2", "verus", "neoscrypt", "argon2/chukwav2")  # fmt: skip
_MINING_TALK = (
    "wget https://github.com/xmrig/xmrig/releases/download/v6.{n}.0/xmrig-6.{n}.0-linux-x64.tar.gz",
    "tar xf miner.tar.gz && cd miner",
    "chmod +x ./{miner}",
    "WALLET={wallet}",
    "POOL={pool}",
    "WORKER=$(hostname)",
    'echo "Starting {miner} on $POOL with wallet $WALLET"',
    "sysctl -w vm.nr_hugepages={n}",
    "screen -dmS miner ./{miner}",
    "git clone https://github.com/tpruvot/cpuminer-multi && cd cpuminer-multi && ./build.sh",
    "nvidia-smi -pl 120",
    "pkill -f {miner}",
    'curl -s http://127.0.0.1:4067/summary | jq ".hashrate"',
    'echo "pool hashrate and accepted shares"',
    "export GPU_MAX_ALLOC_PERCENT=100",
    "export GPU_FORCE_64BIT_PTR=0",
    'conf="-a $ALGO -o $POOL -u $WALLET.$WORKER -p $PASS"',
    'read -rp "Enter your wallet address: " WALLET',
)
_CYBER = (
    "hashcat -m {mode} -a 0 {hashes} {words} -r rules/best64.rule",
    "hashcat -m {mode} -a 3 {hashes} ?u?l?l?l?l?d?d --increment -w 3 -O",
    "hashcat --force -m 22000 -a 6 capture.hc22000 {words} ?d?d?d",
    "john --wordlist={words} --format=raw-md5 {hashes}",
    "john --incremental --fork={n} {hashes}",
    "john --show {hashes} > cracked.txt",
    "mpirun -np {n} john --mask=?a?a?a?a?a?a?a {hashes}",
    "hydra -L users.txt -P {words} ssh://{target} -t {n}",
    "hydra -l admin -P {words} {target} http-post-form '/login:user=^USER^&pass=^PASS^:F=incorrect'",
    "medusa -h {target} -u root -P {words} -M ssh",
    "ncrack -p 22 --user root -P {words} {target}",
    "patator ssh_login host={target} user=root password=FILE0 0={words}",
    "masscan {net} -p1-65535 --rate {n}00000 -oG scan.txt",
    "masscan -p80,443,22 {net} --rate=10000 -oJ masscan.json",
    "nmap -sS -T4 -p- {net} -oA scan",
    "nmap -sV --script vuln -iL targets.txt -oN nmap.txt",
    "zmap -p 445 -B 100M -o results.csv {net}",
    "rustscan -a {net} --ulimit 5000",
    "hping3 -S --flood -V -p 80 {target}",
    "hping3 --udp --flood --rand-source {target}",
    "slowloris {target} -s {n}000",
    "python3 ddos.py --target {target} --threads {n}00",
    "./synflood {target} 80 {n}",
    "sqlmap -u 'http://{target}/index.php?id=1' --batch --dbs",
    "nikto -h {target}",
    "gobuster dir -u http://{target} -w {words}",
    "aircrack-ng -w {words} -b {mac} capture-01.cap",
    "airodump-ng --bssid {mac} -c {n} -w capture wlan0mon",
    "aireplay-ng --deauth {n} -a {mac} wlan0mon",
    "reaver -i wlan0mon -b {mac} -vv",
    "rcrack /data/rainbow/ntlm -l {hashes}",
    "msfconsole -q -x 'use exploit/multi/handler; set RHOSTS {target}; run'",
    "./md5_crack {hex} {n}",
    "srun ./md5cracker --charset lower --length 8 {hex}",
    "mpirun ./password_cracker {hashes} {words}",
    "./brute_force_sha1 {hex} 6",
    "python crack.py --hash {hex} --wordlist {words}",
    "crunch 8 8 abcdefghijklmnopqrstuvwxyz0123456789 | aircrack-ng -w - capture.cap",
)
_CYBER_TALK = (
    'echo "Start cracking {hashes}"',
    "WORDLIST={words}",
    "HASHLIST={hashes}",
    "HASHTYPE={mode}",
    "TARGET={target}",
    "cat targets.txt | sort -u > ips.txt",
    "for ip in $(cat ips.txt); do",
    "airmon-ng start wlan0",
    "tar xf rockyou.txt.tar.gz",
    "cat cracked.txt | wc -l",
    'read -p "Enter the hash type (e.g. 1000 for NTLM): " HASHTYPE',
    'grep open scan.txt | cut -d " " -f 4 >> ip.txt',
)
_PLAIN = ("cd $SLURM_SUBMIT_DIR", "module purge", "module load cuda", "set -e", "hostname", "date", "module load gcc", "nvidia-smi",
          "sleep 5", "cd $HOME/work", "export OMP_NUM_THREADS=16", "make", "mkdir -p logs", "ulimit -s unlimited", "done")  # fmt: skip


def made_up(operation: str, count: int, seed: int) -> list[str]:
    """Scripts of `cryptomining` or `cyber`, without a header; the same seed gives the same ones."""
    chance = random.Random(f"{operation} {seed}")  # no secret
    return [_script(operation, chance) for _ in range(count)]


def _script(operation: str, chance: random.Random) -> str:
    values = _values(chance)
    if operation == "cryptomining":
        miner, options = chance.choice(_MINERS)
        values["miner"] = miner
        prefix = chance.choice(
            ("./", "", "nohup ./", "sudo ./", "srun ./", "exec ", "/opt/miner/", "$HOME/bin/")
        )
        acts = [f"{prefix}{miner} {options}"]
    else:
        acts = chance.sample(_CYBER, chance.randint(1, 3))
    talk: tuple[str, ...] = _MINING_TALK if operation == "cryptomining" else _CYBER_TALK
    about = chance.sample(talk, chance.randint(0, 4))
    around = chance.sample(_PLAIN, chance.randint(0, 5))
    lines = [*around[: len(around) // 2], *about, *acts, *around[len(around) // 2 :]]
    if not chance.randrange(12):
        lines = chance.sample(talk, 6)  # what only prepares it
    return "\n".join(_filled(line, values) for line in lines)


def _values(chance: random.Random) -> dict[str, str]:
    letters = string.ascii_letters + string.digits
    wallets = (
        "4" + "".join(chance.choices(letters, k=94)),
        "0x" + "".join(chance.choices("0123456789abcdef", k=40)),
        "bc1q" + "".join(chance.choices("023456789acdefghjklmnpqrstuvwxyz", k=38)),
        "$WALLET",
        "$WALLET_ADDRESS",
    )
    ip = ".".join(str(chance.randrange(1, 255)) for _ in range(4))
    return {
        "algo": chance.choice(_ALGORITHMS),
        "pool": chance.choice(_POOLS),
        "wallet": chance.choice(wallets),
        "worker": chance.choice(("rig1", "$(hostname)", "worker01", "$SLURM_JOB_ID", "gpu0")),
        "n": str(chance.randint(1, 64)),
        "mode": chance.choice(("0", "100", "1000", "1800", "2500", "3200", "13100", "22000")),
        "hashes": chance.choice(("hashes.txt", "ntlm.hash", "shadow.txt", "dump.txt", "$HASHFILE", "hashes/*.hash")),
        "words": chance.choice(("rockyou.txt", "/usr/share/wordlists/rockyou.txt", "wordlist.txt", "$WORDLIST", "passwords.lst")),
        "target": chance.choice((ip, "$TARGET", "example.com", "$IP")),
        "net": chance.choice((ip + "/16", "10.0.0.0/8", "$RANGE", "192.168.0.0/24", "0.0.0.0/0")),
        "mac": ":".join(f"{chance.randrange(256):02X}" for _ in range(6)),
        "hex": "".join(chance.choices("0123456789abcdef", k=chance.choice((32, 40, 64)))),
    }  # fmt: skip


def _filled(line: str, values: dict[str, str]) -> str:
    for name, value in values.items():
        line = line.replace("{" + name + "}", value)
    return line
