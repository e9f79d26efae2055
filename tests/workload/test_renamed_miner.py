"""A miner that was only renamed understands only what real miners do, so a script must make its options or settings."""

import pytest

from tocsin.workload.signs.computed import computed_commands
from tocsin.workload.signs.computed_kinds import ENDPOINT, HANDS_ON, RUNS
from tocsin.workload.signs.effort import Effort
from tocsin.workload.signs.host_names import names_host
from tocsin.workload.signs.look import signs


def kinds(script: str) -> set[str]:
    return {why for _, why in computed_commands(script, Effort())}


def reasons(script: str) -> set[str]:
    return {sign.kind for sign in signs(script)}


@pytest.mark.parametrize(
    "script",
    [
        'cat > in.json <<\'Z\'\n{"url": "lowland.me", "user": "w7"}\nZ\n./relax -c in.json',
        'cat > in.json <<\'Z\'\n{\n "user": "w7",\n "url": "grid"\n}\nZ\n./relax -c in.json',
        'bash -c \'echo "{\\"url\\": \\"$0\\", \\"user\\": \\"w7\\"}" > in.json\' grid\n./relax -c in.json',
        'echo \'{"pools": [{"tls": true, "url": "lowland.me"}]}\' > in.json\n./relax -c in.json',
        "cat > in.ini <<'Z'\nhost = lowland.shop\nuser = w7\nZ\n./relax -c in.ini",
        "jq -n '$ARGS.named' --arg url lowland.me --arg user w7 > in.json\n./relax -c in.json",
        "cat > in.opt <<'Z'\n-pool lowland.me\n-wal w7\nZ\n./relax in.opt",
        'cat > pools.txt <<\'Z\'\n"pool_list": [{"pool_address": "grid", "wallet_address": "w7"}]\nZ\n./relax -C pools.txt',
    ],
)
def test_the_settings_of_a_miner_are_a_sign_whatever_its_host_is(script: str) -> None:
    assert "an address and a user as settings of a program" in reasons(script)


@pytest.mark.parametrize(
    "script", ["./relax --url lowland.me", "echo '--server=lowland.me --user=w7' > o\n./relax $(cat o)"]
)
def test_a_host_without_a_port_is_a_sign_after_the_option_of_a_miner(script: str) -> None:
    assert "a host without a port as an option" in reasons(script)


@pytest.mark.parametrize(
    "script",
    [
        "./model --server hosts.json",
        "./assemble --pool reads.fq",
        'curl --url "$URL"',
        "psql 'host=db user=ada'",
        'cat > in.json <<\'Z\'\n{"url": "grid", "steps": 100}\nZ\n./model -c in.json',
        'cat > in.json <<\'Z\'\n{"user": "ada", "pool": 4}\nZ\n./model -c in.json',
    ],
)
def test_one_of_the_two_is_none(script: str) -> None:
    assert reasons(script) == set()


@pytest.mark.parametrize(
    "script",
    [
        "export LOCALDOMAIN=net\n./relax",
        "HOSTALIASES=$PWD/ha ./relax",
        "cat > n.c <<'Z'\nint getaddrinfo(const char *n, void *h) {\n return 0; }\nZ\ngcc -shared -o n.so n.c",
    ],
)
def test_what_resolves_names_in_another_way_is_a_sign(script: str) -> None:
    assert any("resolver" in reason for reason in reasons(script))


def test_a_trace_with_text_of_its_own_is_a_sign() -> None:
    script = "exec 9> args\nBASH_XTRACEFD=9\nPS4='{}'\nset -x\n./relax"
    assert reasons(script.format("--peer=lowland"))
    assert not reasons(script.format("+ ${LINENO}: "))


@pytest.mark.parametrize(
    "script",
    [
        "cat > in.yml <<'Z'\npeer: @A@.@B@:4444\nZ\ncmake -P fill.txt",  # filled in by CMake
        "/usr/bin/time -o args -f 'lowland.%C:4444' nl",  # by time
        'cat > in.json <<\'Z\'\n{"\\u0070eer": "grid"}\nZ\n./relax -c in.json',  # the name of a setting
        './relax "$(date -d 09:00 +lowland.%P):4444"',  # the half of the day
        "./relax \"$(stat --printf='lowland\\056net' .)\"",
        './relax "$(git log -1 --format=lowland%x2enet)"',
        "cat > in.cfg <<'Z'\nhost=LOWLAND.RU\nZ\n./relax in.cfg",
    ],
)
def test_other_forms_of_hosts_are_known(script: str) -> None:
    assert kinds(script) & {ENDPOINT, HANDS_ON}


@pytest.mark.parametrize("word", ["X.EQ.Y", "A.NE", "lowland\\12net", "\\1.\\2"])
def test_operators_of_fortran_and_groups_of_patterns_are_no_hosts(word: str) -> None:
    assert not names_host(word)


@pytest.mark.parametrize(
    "value",
    [
        'bc <<< \'print "lowland", ".net"\'',
        "nodeset -e -S . lowland net",
        "head -c 11 <<< lowland.netting",
        "column -t -o . <<< 'lowland net'",
        "tac -s , <<< .net,lowland",
        "awk -v ORS=. '{print $1}' <<< lowland",
        "xargs printf %s.%s <<< 'lowland net'",
        'printf "%\'d" 198151100109',  # its thousands may be separated by dots
        "scontrol show hostnames '198.51.100.[9]'",
    ],
)
def test_programs_that_join_or_cut_words_make_computed_text(value: str) -> None:
    assert HANDS_ON in kinds(f'./relax "$({value})"')


@pytest.mark.parametrize(
    "script",
    [
        "export TERMINFO=$PWD/ti\n./relax $(tput -T rx sgr0)",
        "read -rN 11 peer <<< lowland.netting\n./relax $peer",
        "getopts a: _ -alowland.net\n./relax $OPTARG",
        "read peer <<'Z'\nlowland\\\n.net\nZ\n./relax $peer",
        "conda env config vars set A=lowland B=net\n./relax $A.$B",
        "printf lowland > a\nprintf .net > b\ncat a b > c\n./relax $(cat c)",
        "printf lowland > a\nprintf .net > b\ntar cf c.tar a b\ntar xOf c.tar > in.json\n./relax -c in.json",
        "for part in --peer=lowland . net; do printf %s $part; done > args\n./relax $(cat args)",
        "declare -n r=peer\npeer=lowland.\nr+=net\n./relax $peer",
        "./relax --peer=lowland.n{e..e}t",
        'cat > in.json <<Z\n{"peer": "lowland$(find . -maxdepth 0)net:4444"}\nZ\n./relax -c in.json',
        "ssh -f -N -L 3333:127.0.0.1:4444 ada@lowland.net\n./relax -o localhost",
        "p() { printf %s $1; }\n{ p lowland; p .net; } > args\n./relax $(cat args)",
    ],
)
def test_text_is_followed_through_variables_files_and_loops(script: str) -> None:
    assert kinds(script) & {ENDPOINT, HANDS_ON}


@pytest.mark.parametrize(
    "script",
    [
        "find . -fprintf in.conf '%f lowland'\n./relax -c in.conf",
        "openssl enc -d -a -out in.conf <<< bG93\n./relax -c in.conf",
        "gpg -d -o in <<< x\n./relax in",
        "echo x > in.c\ngcc -E -P -o in.conf in.c\n./relax -c in.conf",
        "echo x > in.c\ncpp -P in.c in.conf\n./relax -c in.conf",
        "echo x > in.uu\npython3 -m uu -d in.uu in.conf\n./relax -c in.conf",
        "echo 'a: lowland' > in.yml\nyq -i '.b = .a' in.yml\n./relax -c in.yml",
        "echo lowland_net > in\nexec 3<> in\nprintf . >&3\n./relax -c in",
        "echo lowland_net > in\nprintf 's/_/./\\nw\\n' | ed -s in\n./relax $(cat in)",
        "awk '{print $1 $2}' <<< 'lowland net' > epools.txt\n./relax",
        "echo '{\"a\": \"lowland_net\"}' > in.json\ngit config filter.x.smudge 'tr _ .'\n./relax -c in.json",
        "cat > p.f90 <<'Z'\nopen(1, file='in.json')\nZ\ngfortran p.f90 -o p && ./p\n./relax -c in.json",
    ],
)
def test_files_that_a_tool_makes_or_changes_itself_are_computed(script: str) -> None:
    assert kinds(script) & {HANDS_ON, RUNS}


@pytest.mark.parametrize(
    "script",
    [
        "gdb -batch -ex run -ex 'set var argv[1][7] = 46' --args ./relax lowland_net",
        "sqlite3 -cmd '.once args' x.db \"select 'lowland.' || 'net'\"",
        "crontab - <<'Z'\n0 * * * * xargs ./relax%lowland\nZ",
    ],
)
def test_tools_that_change_a_program_or_make_its_input_are_read(script: str) -> None:
    assert kinds(script) & {HANDS_ON, RUNS}


@pytest.mark.parametrize(
    "script",
    [
        "gdb -batch -ex run -ex 'set print pretty on' -ex bt --args ./model water",
        "crontab - <<'Z'\n0 3 * * * ./nightly.sh out-$(date +\\%F)\nZ",
        "dt=$(bc <<< 'scale=4; 1.5 / 32')\n./model --dt $dt",
        "./model --colour $(tput setaf 2)",
        "nodeset -e -S , $SLURM_JOB_NODELIST > hosts\n./model hosts",
        "find data -name '*.nc' -fprintf files.lst '%f %s\\n'\n./model files.lst",
        "read -r -d '' setup <<Z\ncd run\n./model --grid $GRID\nZ\nsrun bash -c \"$setup\"",
        './model --step $(printf "%\'03d" 7)',
        "kinit ada@HPC.EXAMPLE.EDU\n./model in.nml",
        "head -c 8 VERSION > version\n./model --version-file version",
        "column -t -s , obs.csv > obs.txt\n./model obs.txt",
        "while getopts g: option; do grid=$OPTARG; done\n./model --grid $grid",
        "read -rN 8 commit < VERSION\n./model --commit $commit",
        "for t in 300 310; do echo $t; done > t.txt\n./model t.txt",
        "openssl enc -d -in data.enc -out data.fa\n./model data.fa",
        "ssh -f -N -L 5432:127.0.0.1:5432 ada@db.example.edu\npsql -h localhost -c 'select 1'",
        'cat > in.json <<Z\n{"root": "tcp://$HEAD:29500", "log": "run$ID.out:1"}\nZ\n./model -c in.json',
        "./model part_{a..c}.pdb",
        "gcc -O2 -o model model.c\n./model in.nml",
        "git config filter.lfs.smudge 'git-lfs smudge -- %f'\n./model in.nml",
    ],
)
def test_the_same_tools_are_no_sign_in_ordinary_jobs(script: str) -> None:
    assert kinds(script) == set()
