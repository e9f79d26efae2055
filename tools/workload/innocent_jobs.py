"""Innocent job scripts, generated: they speak of misuse, search for it, use proxies, tokens and hashes, or share its words."""

import random
from collections.abc import Callable, Sequence

from tools.workload.miner_disguises import MINER

__all__ = ["innocent_jobs"]

_BODY = (
    "module load gcc openmpi\nsrun ./simulate input.nml",
    "source ~/.bashrc\nconda activate env\npython train.py --epochs 10 --lr 0.001 --data $DATA",
    "cd $SLURM_SUBMIT_DIR\nmpirun -np 64 lmp -in in.melt",
    "module load R\nRscript analysis.R --input data.csv",
    "gmx mdrun -deffnm md -ntomp 8",
    'for i in $(seq 1 10); do\n  ./solver case_$i.dat > "out_$i.log"\ndone',
    "bwa mem -t 16 ref.fa r1.fq r2.fq | samtools sort -o out.bam -",
    "apptainer exec --nv image.sif python infer.py",
)
_MISUSE = (
    MINER,
    "xmrig -o pool.minexmr.com:4444 -u $WALLET -k",
    "./ethminer -P stratum1+tcp://wallet@eu.ethermine.org:4444",
    "hashcat -m 1000 -a 0 hashes.txt rockyou.txt",
    "john --wordlist=words.txt shadow",
    "nmap -sS -p 1-65535 10.0.0.0/8",
    "hydra -l root -P pass.txt ssh://10.0.0.1",
)
_NAMES = ("xmrig", "minerd", "ethminer", "hashcat", "john", "nmap", "hydra", "cgminer", "masscan", "nicehash")
_HOSTS = (
    "proxy.example.org",
    "cache01.cluster.local",
    "db.lab.example.edu",
    "10.1.2.3",
    "login2",
    "mlflow.example.org",
)
_USERS = ("alice", "$USER", "svc-data", "reader", "$DB_USER")


def innocent_jobs(count: int, seed: int = 0, bodies: Sequence[str] = _BODY) -> list[str]:
    """Each has one to three such passages around or between the lines of a body."""
    chance = random.Random(seed)
    return [_job(chance, bodies) for _ in range(count)]


def _job(chance: random.Random, bodies: Sequence[str]) -> str:
    lines = chance.choice(bodies).split("\n")
    for make in chance.sample(_PASSAGES, chance.randint(1, 3)):
        place = chance.choice((0, len(lines)))
        lines[place:place] = [make(chance)]
    gpus = chance.choice(("", "#SBATCH --gres=gpu:1\n"))
    return (
        f"#!/bin/bash\n#SBATCH -n {chance.randint(1, 64)}\n#SBATCH -t {chance.randint(1, 48)}:00:00\n{gpus}"
        + "\n".join([*lines, ""])
    )


def _digits(chance: random.Random, length: int) -> str:
    return f"{chance.getrandbits(4 * length):0{length}x}"


def _letters(chance: random.Random, length: int) -> str:
    return "".join(chance.choices("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789", k=length))


def _spoken(chance: random.Random) -> str:
    command, name = chance.choice(_MISUSE), chance.choice(_NAMES)
    return chance.choice(
        (
            f'echo "Never run {command} on this cluster"',
            f"echo 'forbidden: {command}' >&2",
            f"printf '%s\\n' 'Do not start {name} here' '{command}'",
            f"cat <<EOF\nRules of the cluster:\n  no {name}, as in\n  {command}\nEOF",
            f"cat > docs/rules.md <<'END'\n# Rules\n    {command}\nEND",
            f"# {command}",
            f"./simulate  # unlike {command}",
            f"mail -s 'job $SLURM_JOB_ID' admin <<E\n{name} was found\nE",
            f": <<'OFF'\n{command}\nOFF",
            f'logger -t prolog "no {name} found"',
        )
    )


def _searched(chance: random.Random) -> str:
    name, other = chance.sample(_NAMES, 2)
    return chance.choice(
        (
            f"ps aux | grep -E '{name}|{other}' | grep -v grep",
            f"grep -r 'stratum+tcp' /var/log | wc -l\npgrep -f {name} || true",
            f"pkill -9 -f {name}",
            f"find /scratch -name '{name}*' -print",
            f"if pgrep -x {name}; then echo '{name} is running'; fi",
            f"awk '/{name}|{other}/ {{print $1}}' jobs.txt",
            f"sed -n '/{name}/p' netflow.txt > seen.txt",
            f"squeue -h -o '%i %j' | grep -i {name}",
            f"zgrep -c {name} access.log.gz",
            f"which {name} && echo 'please remove {name}'",
        )
    )


def _proxied(chance: random.Random) -> str:
    host, user, port = chance.choice(_HOSTS), chance.choice(_USERS), chance.choice((3128, 8080, 8443, 1080))
    return chance.choice(
        (
            f"pip install --proxy http://{host}:{port} --user numpy scipy",
            f"python -m pip install --user --proxy {host}:{port} torch",
            f"curl --proxy http://{host}:{port} --user {user}:$TOKEN -O https://data.example.org/set.tar",
            f"export http_proxy=http://{host}:{port} https_proxy=http://{host}:{port}\nwget -q https://data.example.org/a.tar.gz",
            f"git config --global http.proxy http://{host}:{port}\ngit pull",
            f"conda install -y --override-channels -c https://{host}:{port}/conda numpy",
            f"curl -x {host}:{port} -u {user}:$PW -o data.nc https://thredds.example.org/data.nc",
            f"ssh -fN -D {port} {host}\nexport ALL_PROXY=socks5://localhost:{port}",
        )
    )


def _served(chance: random.Random) -> str:
    host, user, port = chance.choice(_HOSTS), chance.choice(_USERS), chance.randint(1024, 65000)
    tool = chance.choice(
        (
            "mlflow-run",
            "mc-upload",
            "./ingest",
            "dask-worker",
            "mongodump",
            "./client",
            "psql-copy",
            "clearml",
        )
    )
    option = chance.choice(("--url", "--server", "--pool", "--proxy"))
    return chance.choice(
        (
            f"{tool} {option} {host}:{port} --user {user}",
            f"{tool} {option}=http://{host}:{port} --user {user} --password-file ~/.pw",
            f"{tool} --user {user} {option} {host}:{port} --keepalive --threads 8",
            f"mysql -h {host} -P {port} -u {user} -p$PW runs < schema.sql",
            f"mongosh --host {host}:{port} -u {user} --eval 'db.runs.count()'",
            f"redis-cli -u redis://{host}:{port} ping",
            f"jupyter lab --no-browser --ip 0.0.0.0 --port {port} &\nssh -fN -R {port}:localhost:{port} {host}",
        )
    )


def _tokens(chance: random.Random) -> str:
    return chance.choice(
        (
            f"export WANDB_API_KEY={_digits(chance, 40)}",
            f"export HF_TOKEN=hf_{_letters(chance, 34)}",
            f"wandb login {_digits(chance, 40)}",
            f"curl -H 'Authorization: Bearer {_letters(chance, 64)}' https://api.example.org/runs",
            f"TOKEN=$(echo {_letters(chance, 24)} | base64 -d)\nexport TOKEN",
            f"export JUPYTER_TOKEN={_digits(chance, 48)}",
            f"./client --token {_letters(chance, 40)} --user alice",
            "openssl rand -hex 16 > secret.key\nchmod 600 secret.key",
        )
    )


def _hashes(chance: random.Random) -> str:
    md5, sha1, sha256 = (_digits(chance, length) for length in (32, 40, 64))
    return chance.choice(
        (
            f"git checkout {sha1}",
            f"./solver {sha1}",
            f"./run_case {md5} --steps 100",
            f"echo '{md5}  data.nc' | md5sum -c -",
            f"sha256sum -c <<< '{sha256}  image.sif'",
            f"apptainer pull image.sif docker://registry.example.org/app@sha256:{sha256}",
            f"cd /scratch/runs/{sha1}\n./simulate --id {sha1[:8]}",
            "md5sum results/*.nc > checksums.md5",
            f"python verify.py --hash {sha256} --algorithm sha256 archive.tar",
        )
    )


def _alike(chance: random.Random) -> str:
    return chance.choice(
        (
            f"python {chance.choice(('process', 'text', 'data', 'event', 'time', 'rule'))}_miner.py --support 0.1 log.xes",
            "python -c 'import pm4py'\npython process_mining.py --miner inductive",
            "python segment.py --mode nuclei --model cyto",
            "python main.py hydra.run.dir=out hydra/launcher=slurm -m model=small,large",
            "mpiexec.hydra -n 4 ./a.out -p 3 -l 2",
            "./lisflood --flood --threads 8 model.par",
            "abaqus job=crack_growth input=crack.inp cpus=8",
            "python lm.py --wordlist vocabulary.txt --dict words.dict",
            "python layers.py --stratum 3 --pool sandstone --user geology",
            "python prices.py --coin BTC --from 2015\nRscript bitcoin_volatility.R",
            "./optimize --algo flex -o out.dat",
            "cat > input.nam <<E\n&NMAP\nCNEXTXY='nextxy.bin'\n/\nE",
            "python train.py --dataset MNIST --pool max --hash-size 1024 --exploit 0.1",
            "rapper -i turtle --format nt input.ttl > output.nt",
            "export MINER_THRESHOLD=0.8\npython discover.py --threshold $MINER_THRESHOLD",
        )
    )


def _networked(chance: random.Random) -> str:
    port = chance.randint(5000, 60000)
    return chance.choice(
        (
            f"until nc -z $HEAD {port}; do sleep 1; done",
            f"until (echo > /dev/tcp/$HEAD/{port}) 2>/dev/null; do sleep 1; done",
            "for port in $(seq 8000 8100); do nc -z localhost $port || break; done",
            "for n in $(scontrol show hostnames); do ping -c1 $n > /dev/null || echo $n; done",
            f"ray start --head --port={port} --block &",
            f"torchrun --rdzv-endpoint $HEAD:{port} train.py",
            f"ssh -L {port}:localhost:{port} -p 22 login.example.org -N &",
        )
    )


def _packed(chance: random.Random) -> str:
    return chance.choice(
        (
            "gunzip -c reads.fq.gz | ./count_kmers",
            "zcat data.tsv.gz | tr '\\t' ',' > data.csv",
            "curl -s https://data.example.org/set.tar.gz | tar xz",
            "openssl enc -d -aes-256-cbc -in data.enc -out data.csv -pass file:key",
            "echo $CONFIG | base64 -d > config.json",
            'eval "$(conda shell.bash hook)"',
            "find . -name '*.gz' | xargs -n1 gunzip",
            "sed 's/@N@/128/' template.in > case.in",
        )
    )


_PASSAGES: tuple[Callable[[random.Random], str], ...] = (
    _spoken,
    _searched,
    _proxied,
    _served,
    _tokens,
    _hashes,
    _alike,
    _networked,
    _packed,
)
