"""A host that is written out for a program that is not known is an open sign, wherever it stands."""

import pytest

from tocsin.workload.signs.computed import computed_commands
from tocsin.workload.signs.computed_kinds import ENDPOINT, HANDS_ON
from tocsin.workload.signs.effort import Effort

OPEN = {
    "a host and a port": "./m -s example.ch -n 3333",
    "a host far away": "./m -s gate.example.ch",
    "a host and a user": "./m -s example.ch -u w1",
    "a number and a port": "./m -s 5.9.11.12 -n 3333",
    "a number of two parts": "./m -p 5.592652:3333",
    "a long number": "./m -s 2001:db8:0:1:2:3:4:5 -n 3333",
    "this machine, with a user": "./m -s localhost -n 3333 -u w1",
    "in capitals, with a number in another form": "./m -s EXAMPLE.CH -n 0xd05",
    "with a comma in between": "./m example.ch,3333",
    "a function": 'conda() { ./m "$@"; }\nconda -s example.ch -n 3333',
    "a command of ssh": "ssh -o ProxyCommand='./m -s example.ch -n 3333' x",
    "a document of marks": "cat > c.xml <<'E'\n<a>example.ch</a><b>3333</b>\nE\n./m c.xml",
    "a tunnel": "ssh -fN -L 4444:gate.example.ch:3333 login1\n./m -s localhost -n 4444",
    "variables": "H=example.ch; P=3333\n./m -s $H -n $P",
    "pieces": "a=gate; b=example; c=ch\n./m -s $a.$b.$c -n 3333",
    "the environment": "export SINK=example.ch TAG=3333\n./m",
    "another option": "./m -L gate.example.ch:3333",
    "standard input": "./m <<'E'\npeer example.ch\ntag 3333\nE",
    "data": "cat > a.dat <<'E'\nsink gate.example.ch:3333\nE\n./m -i a.dat",
    "a glued option": "cat > run.in <<'E'\ntag 3333\npeer example.ch\nE\n./m -crun.in",
    "a redirection": "cat > run.in <<'E'\npeer example.ch 3333\nE\n./m < run.in",
    "other keys": "cat > a.ini <<'E'\nnode = gate.example.ch\nslot = 3333\nE\n./m -c a.ini",
    "a host alone": "./m -s example.ch",
    "a host in the environment": "export GRID=example.ch\n./m",
    "a host before a command": "GRID=example.ch ./m",
    "a host in a directive": "#SBATCH --export=ALL,GRID=example.ch\n./m",
    "a host on standard input": "echo example.ch | ./m",
    "a host for another command": "coproc ./m\necho example.ch >&${COPROC[1]}",
    "a host as analysts write it": "./m --ioc 'gate[.]example[.]ch'",
    "a host with its dot as a word": "./m 'example(dot)ch'",
    "a host as a distinguished name": "./m --base dc=example,dc=ch",
    "a host in a list": "for h in a.ch example.ch; do ./m $h; done",
    "a host by the place in a list": "w=(low land ch)\n./m ${w[0]}${w[1]}.${w[2]}",
    "a host that sed puts in": "sed -i 's/@H@/example.ch/' m.in\n./m m.in",
    "a host that is worked out": "x=example_ch\n./m ${x//_/.}",
    "a page": "./m --from http://example.ch/work",
    "another protocol": "./m --feed wss://example.ch/ws",
    "an escaped dot": 'cat > m.json <<\'E\'\n{"a": "example\\u002ech"}\nE\n./m m.json',
    "a wide dot": "./m -s example．ch",
    "a number in one": "./m --seed 3325256713 --steps 4444",
    "an octal number": "./m -s 0306.0x33.100.9 -n 4444",
    "a number that is computed": "./m -s 198.51.100.$((3*3))",
    "an address of the sixth version": "./m -s 2001:db8:40::9",
    "a value behind the host": "./m example.ch=3333",
    "a user behind the host": "./m example.ch:w7",
    "a port in brackets": "./m 'example.ch[3333]'",
    "a port after a dash": "./m example.ch-3333",
    "a mark before the host": "./m %example.ch",
    "a home that is none": "./m '~example.ch'",
    "a setting with a dot": "env example.ch=3333 ./m",
    "a user at a host": "./m w7@example.ch",
    "a proxy of its own": "https_proxy=http://example.ch:4444 ./m",
    "a university": "./m -s gate.example.edu",
    "a client of its own": "PATH=$HOME/bin:$PATH\npsql -s example.ch",
    "a proxy that only it knows": "export M_PROXY=socks5h://w7@example.ch:4444\n./m",
    "a host that no proxy is for": "export no_proxy=localhost,example.ch\n./m",
    "a package server that is stored": "pip config set global.index-url https://w7@example.ch/simple\n./m",
    "a channel that is stored": "conda config --add channels https://example.ch/t\n./m",
    "a registry that is stored": "npm config set registry https://example.ch:4444/\n./m",
    "a remote that is stored": "git remote add up ssh://w7@example.ch:4444/r\n./m",
    "a directive of a burst buffer": "#BB create_persistent name=example.ch\n./m",
    "capitals in data": "cat > in.pdb <<'E'\nREMARK 900 EXAMPLE.NET 4444\nE\n./m in.pdb",
    "a file of placeholders": "cat > .env <<'E'\nA=example\nB=ch\nH=${A}.${B}\nE\ndotenv run -- ./m",
    "a list of commands": "cat > multi.conf <<'E'\n0 ./m -s gate.example.ch\nE\nsrun --multi-prog multi.conf",
}
READ = {
    "a database": "psql -h db.example.edu -p 5432 -U me",
    "a copy": "scp -P 2222 a me@store.example.edu:/b",
    "a notebook": "jupyter lab --port 8888 --ip localhost",
    "a tunnel": "ssh -N -L 8888:node1.example.org:8888 login",
    "a file": "./m run.in 5000\n./m -c model.py -n 3333\n./m a.sh 80",
    "an address of mail": "./m --mail me@example.edu --steps 5000",
    "a module": "python -m torch.distributed.run --port 6001 --user a",
    "a version": "./m --version 1.2.3 --steps 5000",
    "settings": "cat > run.in <<'E'\nsteps = 5000\nfile = run.nc\nE\n./m -i run.in",
    "a university elsewhere": "HOST=db.example.edu\npsql -h $HOST",
    "a licence": "export LM_LICENSE_FILE=27000@lic.example.edu:27001@lic2.example.edu\n./m",
    "a message": "echo ask example.ch >&2\n./m",
    "a registry": "apptainer exec docker://nvcr.io/nvidia/pytorch:23.10-py3 ./m",
    "names of code": "java -cp build org.example.Simulation\npython -m pkg.convert in.md",
    "sizes of a lattice": "./m --grid 32.32.32.64 --mpi 2.2.2.4 --steps 1000",
    "a date": "./m 20200101 20201231 --steps 1000",
    "a region": "./m --region chr1:10000 in.bam",
    "times": "./m --from 2020-01-01T00:00 --to 12:30:00",
    "the site's proxy": "export HTTPS_PROXY=http://proxy.example.ch:3128 http_proxy=http://proxy.example.ch:3128\n./m",
    "a package server that everyone knows": "pip config set global.index-url https://pypi.org/simple\n./m",
    "a remote that everyone knows": "git remote add up git@github.com:me/r.git\n./m",
    "a key of 2048 bits": "openssl req -x509 -newkey rsa:2048 -nodes -keyout k.pem -out c.pem\n./m",
    "a random token": "token=$(openssl rand -hex 24)\n./m --token=$token",
    "a task's number": "cat > mp.conf <<'E'\n0-3 ./m\n4-7 ./n -n %o\nE\nsrun --multi-prog mp.conf",
    "a parameter of a workflow": "cat > Snakefile <<'E'\nrule a:\n  params: k=31\n  shell: 'bwa mem -k {params.k} > {output}'\nE\nsnakemake",
    "words of Fortran": "cat > fort.4 <<'E'\n &NAM CFILE='A.PRO', B=.T. /\nE\n./m",
    "the zone of a clock": "./m --day $(TZ=UTC date +%F) --log run_$(TZ=UTC date +%H).log",
    "a setting of a virtual machine": "./m --conf shuffle.io=true --conf shuffle.net = 5",
    "a computed version": "./m --release $((N + 1)).2.0",
    "code": "cat > a.py <<'E'\nself.net[0] = model.net(x)\nE\npython a.py",
    "devices": "export CUDA_VISIBLE_DEVICES=$(seq -s, 0 3)\n./m",
}


@pytest.mark.parametrize("name", OPEN)
def test_a_named_host_is_an_open_sign(name: str) -> None:
    assert ENDPOINT in {why for _, why in computed_commands(OPEN[name], Effort())}


@pytest.mark.parametrize("name", READ)
def test_what_is_no_host_or_for_a_client_is_none(name: str) -> None:
    assert list(computed_commands(READ[name], Effort())) == []


def test_placeholders_with_dots_in_between_may_become_a_host() -> None:
    script = "python run.py a=example b=ch 'peer=${a}.${b}'"
    assert HANDS_ON in {why for _, why in computed_commands(script, Effort())}
    assert not list(computed_commands("python run.py a=x 'out=${a}/${b}.nc'", Effort()))


@pytest.mark.parametrize("given", ["./m -crun.in", "./m < run.in", "./m --in=run.in", "./m run.in"])
def test_a_file_of_computed_text_is_handed_on(given: str) -> None:
    script = f"tr _ . <<< a_b > run.in\n{given}"
    assert HANDS_ON in {why for _, why in computed_commands(script, Effort())}
