"""Innocent scripts that speak of misuse, search for it, or have its ordinary options are never called misuse."""

import pytest
from bench.fresh_innocent import INNOCENT, innocent_script
from tools.workload.innocent_jobs import innocent_jobs

from tocsin.core.verdict import SEEN_FROM
from tocsin.workload.screening import Screener, builtin

MINER = "./xmrig -o stratum+tcp://pool.supportxmr.com:3333 -u 44AFFq5kSiGBoZ4NMDwYtN18obc8AemS33DBLWs3H7otXft -k --tls"
SPOKEN = {
    "echo": f'echo "Never run {MINER} here"',
    "echo in single quotes": f"echo 'Never run {MINER} here'",
    "echo in ANSI-C quotes": f"echo $'don\\'t run {MINER}'",
    "echo without quotes": f"echo never run {MINER}",
    "echo to standard error": f'echo "no {MINER}" >&2',
    "echo by its path": f"/bin/echo 'no {MINER}'",
    "printf": f"printf '%s\\n' 'no {MINER}'",
    "printf with escapes": f'printf "forbidden:\\n\\t{MINER}\\n"',
    "several lines in double quotes": f'echo "The rules:\n  {MINER}\n  hashcat -m 0 -a 3 hashes.txt\nare forbidden"',
    "several lines in single quotes": f"printf 'The rules:\n{MINER}\nhashcat -m 0 -a 3 hashes.txt\nare forbidden\n'",
    "here-document": f"cat <<EOF\nforbidden:\n{MINER}\nEOF",
    "here-document in single quotes": f"cat <<'EOF'\nforbidden:\n{MINER}\nEOF",
    "here-document in double quotes": f'cat <<"END OF RULES"\nforbidden:\n{MINER}\nEND OF RULES',
    "here-document with a backslash": f"cat <<\\EOF\nforbidden:\n{MINER}\nEOF",
    "here-document with tabs": f"cat <<-EOF\n\tforbidden:\n\t{MINER}\n\tEOF",
    "here-documents with one end word": f"cat <<E\nhello\nE\ncat <<E\n{MINER}\nE\ncat <<E\nhashcat -m 0 hashes.txt\nE",
    "here-document with an apostrophe": f"cat <<E\ndon't run\n{MINER}\nE",
    "here-document to a page": f"cat > docs/rules.md <<E\n{MINER}\nE",
    "here-document by mail": f"mail -s rules all <<E\n{MINER}\nE",
    "comment block": f": <<'COMMENT'\n{MINER}\nCOMMENT",
    "comment": f"# {MINER}",
    "comment behind a command": f"./simulate # not {MINER}",
    "conda's eval beside it": f'eval "$(conda shell.bash hook)"\necho "no {MINER}"',
    "grep": "grep 'stratum+tcp://pool.supportxmr.com:3333' access.log",
    "grep with options": "zgrep -iE 'xmrig|minerd|stratum\\+tcp' /var/log/*.gz | sort | uniq -c",
    "grep -e": "grep -e xmrig -e hashcat -e nmap jobs.txt",
    "git grep": "git log -S xmrig | head\nrg --files-with-matches 'hashcat -m 1000' src",
    "awk": "squeue -h -o '%i %j' | awk '/xmrig|hashcat/ {print $1}'",
    "awk by comparison": "ps aux | awk '$11 ~ /xmrig/ && $3 > 90 {print $2, $11}'",
    "sed": "sed -n '/stratum+tcp:/p' netflow.txt",
    "pgrep": "if pgrep -f 'xmrig|minerd|hashcat'; then echo 'miner found: xmrig'; fi",
    "test": '[[ "$name" == *xmrig* ]] && echo "xmrig found"',
    "find": "find /scratch -name 'xmrig*' -o -name 'hashcat*'",
    "file names": "ls xmrig_benchmarks/ hashcat_results/\ncp report_on_xmrig.pdf /project/papers/",
    "Python print": "python3 - <<E\nprint('never run xmrig -o stratum+tcp://pool.supportxmr.com:3333')\nE",
    "process mining": "pip install pm4py\npython -c 'import pm4py'\npython process_mining.py --miner inductive\npython alpha_miner.py log.xes\npython heuristics_miner.py --log event_log.xes --mining-threshold 0.8",
    "text mining": "python text_miner.py --miner apriori\n./rule_miner --support 0.1 data.arff",
}
ORDINARY = {
    "pip": "pip install --proxy http://proxy.example.org:3128 --user numpy",
    "pip, host alone": "python -m pip install --user --proxy proxy.example.org:8080 torch",
    "curl": "curl --proxy http://proxy.example.org:3128 --user alice:$TOKEN -O https://data.example.org/set.tar",
    "curl -o": "curl -o data.nc -u $USER:$PASS https://thredds.example.org:8443/data.nc",
    "MLflow": "mlflow run . --url http://mlflow.example.org:5000 --user alice",
    "MinIO": "mc-upload --server minio.example.org:9000 --user svc --password-file ~/.minio data/",
    "Dask": "dask-worker --server scheduler.example.org:8786 --user alice --nthreads 4",
    "MongoDB": "mongodump --url mongodb.example.org:27017 --user reader --db runs",
    "PostgreSQL": "psql-copy --server db.example.org:5432 --user loader --pool 4",
    "InfluxDB": "./ingest --url 10.1.2.3:8086 --user telegraf --keepalive",
    "git sha": "./solver 9fceb02d0ae598e95dc970b74767f19372d61af8",
    "run id": "./run_case 5d41402abc4b2a76b9719d911017c592 --steps 100",
    "checksum": "echo '5d41402abc4b2a76b9719d911017c592  data.nc' | md5sum -c\n./solver data.nc",
    "module": "module load nvidia-hpc-sdk\nnvcc quadtree.cu -o quadtree\n./quadtree 1000",
    "namelist": "cat > input_cmf.nam <<E\n&NMAP\nCNEXTXY='nextxy.bin'\n/\nE\n./cama_flood",
    "flood model": "./lisflood --flood --threads 8 model.par",
    "algorithms": "./optimize --algo flex -o out.dat\n./cluster -a scrypt -o result.txt",
    "archive": "rsync -a etc -o backup/\nsplit -a 4 -l 1000 input.txt",
    "steam cracker": "./steam_cracker --feed ethane.dat\n./crack_growth mesh.inp",
    "ssh tunnel": "ssh -L 8888:localhost:8888 -p 22 login.example.org",
    "RDF": "rapper -i turtle --format nt input.ttl > output.nt",
    "bitcoin research": "python analyse_addresses.py --address 1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa --out graph.csv",
    "cells": "python segment.py --mode nuclei --model cyto",
    "MD5 of results": "md5sum results/*.nc > checksums.md5\nsha256sum -c archive.sha256",
    "a stratum of rock": "python layers.py --stratum 3 --pool sandstone --user geology",
}

MORE_SPOKEN = {
    "concat quotes": f'echo "never run "\'{MINER}\'" here" ',
    "here-document by tee": f"tee rules.txt <<EOF >/dev/null\n{MINER}\nEOF",
    "here-document and tee": f"cat <<EOF | tee -a README\n{MINER}\nEOF",
    "here-document at the end of a file": f"cat << 'EOF' >> notes.txt\n{MINER}\nEOF",
    "here-document in a variable": f"read -r -d '' USAGE <<'EOF'\nnever: {MINER}\nEOF\necho \"$USAGE\"",
    "here-document in a variable by cat": f'USAGE=$(cat <<EOF\nnever: {MINER}\nEOF\n)\necho "$USAGE"',
    "usage": f"usage() {{\n  cat <<EOF\nnever {MINER}\nEOF\n  exit 1\n}}\n[ $# -gt 0 ] || usage",
    "logger": f"logger -t policy 'no {MINER}'",
    "wall": f"wall <<EOF\n{MINER}\nEOF",
    "write": f"write alice <<< 'no {MINER}'",
    "ag and ack": "ag xmrig /scratch; ack 'stratum\\+tcp' --type=sh",
    "fgrep in a here-string": "fgrep -f patterns <<< 'xmrig -o stratum+tcp://pool.supportxmr.com:3333'",
    "strings": "strings ./binary | grep -c 'xmrig -o stratum+tcp'",
    "jq": 'jq \'.[] | select(.name=="xmrig" or .cmd=="stratum+tcp://pool.supportxmr.com:3333")\' jobs.json',
    "mlr": "mlr --csv filter '$name==\"xmrig -o stratum+tcp://\"' jobs.csv",
    "sqlite": "sqlite3 jobs.db \"select * from jobs where line like '%xmrig -o stratum+tcp://%'\"",
    "psql": "psql -c \"select id from jobs where script ~ 'xmrig -o stratum\\+tcp://pool.supportxmr.com:3333'\"",
    "ausearch": "ausearch -c xmrig; journalctl -g 'xmrig|minerd'",
    "locate": "locate xmrig; which xmrig minerd; command -v hashcat; whereis xmrig; type xmrig",
    "pkill": "pkill -9 -f 'xmrig -o stratum+tcp'; killall xmrig; scancel --name=xmrig",
    "sacct": "sacct --name xmrig -X; squeue --name=xmrig,hashcat",
    "iptables": "iptables -A OUTPUT -d pool.supportxmr.com -p tcp --dport 3333 -j DROP",
    "nslookup": "nslookup pool.minexmr.com; dig +short pool.supportxmr.com; host xmr.pool.com",
    "py list": "python - <<EOF\nBANNED = ['xmrig', 'hashcat', 'stratum+tcp://pool.supportxmr.com:3333']\nfor l in open('log'):\n    if any(b in l for b in BANNED): print(l)\nEOF",
    "git commit": f"git commit -am 'Block {MINER}'",
    "sbatch comment": f"sbatch --comment='no {MINER}' job.sh",
    "banned array": 'BANNED=(xmrig minerd hashcat john)\nfor b in "${BANNED[@]}"; do pgrep -x "$b" && echo "$b"; done',
    "case": "case \"$cmd\" in *xmrig*|*'stratum+tcp://'*) echo banned;; esac",
    "trap echo": f"trap 'echo \"no {MINER}\"' EXIT",
    "sed -i": "sed -i '/xmrig -o stratum+tcp/d' scripts/*.sh",
    "perl -ne": "perl -ne 'print if /stratum\\+tcp|xmrig -o/' log",
    "diff": "diff <(grep 'xmrig -o stratum+tcp' a) <(grep 'xmrig -o stratum+tcp' b)",
    "parallel grep": "parallel grep -l 'xmrig -o stratum+tcp://' ::: *.log",
    "xargs grep": "find . -type f -print0 | xargs -0 grep -l 'xmrig -o stratum+tcp://pool.supportxmr.com:3333'",
    "timeout grep": "timeout 60 grep -r 'xmrig -o stratum+tcp://pool.supportxmr.com:3333' .",
    "srun grep": "srun -n 4 grep -r 'xmrig -o stratum+tcp://pool.supportxmr.com:3333' .",
    "nice rg": "nice -n 10 ionice -c3 rg 'xmrig -o stratum+tcp://pool.supportxmr.com:3333' /scratch",
    "time rg": "time rg -c 'xmrig -o stratum+tcp://pool.supportxmr.com:3333' /scratch",
    "sudo grep": "sudo -u root grep 'xmrig -o stratum+tcp://pool.supportxmr.com:3333' /var/log/audit.log",
    "Rscript": "Rscript -e 'cat(\"never run xmrig -o stratum+tcp://pool.supportxmr.com:3333\")'",
    "awk -v": "awk -v pat='xmrig -o stratum+tcp://pool.supportxmr.com:3333' '$0 ~ pat' log",
    "yes": f"yes 'no {MINER}' | head -3",
    "figlet": f"cowsay 'no {MINER}'; figlet xmrig",
    "var echo": f"MSG='never run {MINER}'\necho \"$MSG\"",
    "var mail": f"MSG='never run {MINER}'\nmail -s policy all <<< \"$MSG\"",
    "slack": f'curl -X POST -d \'{{"text": "found {MINER}"}}\' https://hooks.slack.example.org/x',
    "echo append md": f"echo '- {MINER}' >> BLOCKED.md",
    "latex": f"cat > paper.tex <<EOF\n\\section{{Mining}}\n\\verb|{MINER}|\nEOF\npdflatex paper.tex",
    "html": f"cat > index.html <<EOF\n<pre>{MINER}</pre>\nEOF\npython -m http.server",
    "echo in func": f"warn() {{ echo \"$@\" >&2; }}\nwarn 'never run {MINER}'",
    "log func": f"log() {{ printf '%s %s\\n' \"$(date)\" \"$*\" | tee -a run.log; }}\nlog 'no {MINER}'",
    "die": f"die() {{ echo \"$1\"; exit 1; }}\n[ -f x ] || die 'no {MINER}'",
    "snort": 'cat > local.rules <<EOF\nalert tcp any any -> any 3333 (msg:"xmrig"; content:"mining.subscribe"; sid:1;)\nEOF\nsnort -c local.rules -r capture.pcap',
    "suricata": "suricata -r a.pcap -S rules/mining.rules\ngrep -c 'mining.subscribe' fast.log",
    "tshark": "tshark -r a.pcap -Y 'tcp contains \"mining.authorize\"' -T fields -e ip.src",
    "wallet analysis": "python cluster_wallets.py --wallet 44AFFq5kSiGBoZ4NMDwYtN18obc8AemS33DBLWs3H7otXft --graph out.gml",
}
"""Further quoting forms, search tools, messages and functions that print."""

BODIES = (
    "cd $CMSSW_BASE/src\neval `scramv1 runtime -sh`\ncmsRun step_cfg.py",
    'run() {\n  echo "$1"\n  eval "$1"\n}\nrun "python train.py --epochs 10"',
    "for i in $(eval echo {1..$N}); do\n  ./solver case_$i.dat\ndone > results.txt",
    '{\n  echo "Job $SLURM_JOB_ID"\n  date\n} |& tee "$RESULTS/details.log"\nsrun ./simulate',
    'if [ -n "$DEBUG" ]; then\n  (\n    module list\n    env\n  ) 2>&1 | sort > env.txt\nfi\nmpirun ./model',
    "sacct -j $ID -o MaxRSS | perl -pe 's/K$//' > memory.txt\npython $SCRIPT.py < input.txt",
    "ls runs/*.pdb | xargs -n 1 -P 8 ./relax\n./list | python3 dbtool.py insert results.db &\nwait",
    'while read -r pid parent; do\n  children[$parent]+=" $pid"\ndone < <(ps -e -o pid= -o ppid=)\n( launch ) >$out 2>$err &\nwait',
    'case "$1" in\n  -h|--help) cat <<E\nusage: don\'t panic\nE\n    ;;\n  *) n=$(( ${#list[@]} - 1 )) ;;\nesac | more\nsrun ./sim "$n"',
    "#cat prof.* | perl -w merge.pl\nsource config_${SYSTEM}.sh\n./forecast",
)
"""As in jobspec: each may run some of its own output, and none of what is printed elsewhere in it."""


@pytest.fixture(scope="module")
def shipped() -> Screener:
    return builtin()


@pytest.mark.parametrize("name", [*SPOKEN, *MORE_SPOKEN, *ORDINARY])
def test_no_innocent_script_is_called_misuse(name: str, shipped: Screener) -> None:
    text = (SPOKEN | MORE_SPOKEN | ORDINARY)[name]
    header = "#!/bin/bash\n#SBATCH -n 4\n#SBATCH -t 1:00:00\nmodule load python\n"
    for script in (header + text + "\nsrun ./simulate input.nml\n", text):
        [found] = shipped.screen([script])
        assert max(found.operations["cryptomining"], found.operations["cyber"]) < SEEN_FROM
        assert found.domain not in ("cryptomining", "security")


def test_generated_innocent_scripts_are_hardly_ever_called_misuse(shipped: Screener) -> None:
    """Quick: 2,000; `bench misuse` screens 10,000."""
    found = shipped.screen([*innocent_jobs(1000, seed=7), *innocent_jobs(1000, seed=8, bodies=BODIES)])
    assert (
        sum(max(each.operations["cryptomining"], each.operations["cyber"]) >= SEEN_FROM for each in found)
        <= 2
    )


def test_none_that_was_written_before_the_rules_were_read_is_called_misuse(shipped: Screener) -> None:
    found = shipped.screen([innocent_script(name) for name in INNOCENT])
    assert [
        name
        for name, each in zip(INNOCENT, found, strict=True)
        if max(each.operations["cryptomining"], each.operations["cyber"]) >= SEEN_FROM
    ] == []
